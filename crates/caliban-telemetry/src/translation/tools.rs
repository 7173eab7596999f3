//! Calls of tools.

use std::sync::Arc;
use std::time::Duration;

use caliban_agent::{Answer, Denial, DenialSource, Details, ToolOutput, ToolStatus};
use caliban_model::{BuiltInTool, Origin};
use jiff::Timestamp;
use serde_json::Value as Json;
use similar::{ChangeTag, TextDiff};

use crate::data::{Attributes, Context, LONGEST, Severity, Span, SpanKind, shortened};
use crate::instruments::Instrument;

use super::{Translator, answered, elapsed};

/// A call that has not ended.
#[derive(Debug)]
pub(super) struct ToolCall {
    pub(super) context: Context,
    /// What it runs is told that it stands here.
    execution: Context,
    /// The span of the agent that made it.
    parent: [u8; 8],
    id: Arc<str>,
    name: Arc<str>,
    began: Timestamp,
    /// What identifies it, and what it was given; kept only where somebody wants to know, or to
    /// count lines.
    first_arg: Option<String>,
    input: Option<String>,
    /// What it said, where somebody wants it.
    result: Option<String>,
    lines: Option<u64>,
    asked: Option<(Timestamp, Context)>,
    started: Option<Timestamp>,
    /// How it was decided, and by what.
    decision: Option<(&'static str, &'static str)>,
}

impl Translator {
    pub(super) fn tool_ready(
        &mut self,
        id: &Arc<str>,
        name: &Arc<str>,
        input: &Json,
        first_arg: Option<&str>,
        of: Option<&Arc<str>>,
        at: Timestamp,
    ) {
        let (details, seed) = (self.contents.tool_details, self.seed);
        let Some(agent) = self.agent(of, at) else {
            return;
        };
        let written = input.get("content").and_then(Json::as_str);
        let call = ToolCall {
            context: agent.context.child(),
            execution: seed.execution(agent.context.trace, id),
            parent: agent.context.span,
            id: Arc::clone(id),
            name: Arc::clone(name),
            began: at,
            first_arg: first_arg.map(|text| shortened(text, 1_000)),
            input: details.then(|| shortened(&input.to_string(), LONGEST)),
            result: None,
            lines: written.map(|text| text.lines().count() as u64),
            asked: None,
            started: None,
            decision: None,
        };
        agent.tools.insert(Arc::clone(id), call);
    }

    fn tool(
        &mut self,
        id: &Arc<str>,
        of: Option<&Arc<str>>,
        at: Timestamp,
    ) -> Option<&mut ToolCall> {
        self.agent(of, at)?.tools.get_mut(id)
    }

    pub(super) fn tool_asked(&mut self, id: &Arc<str>, of: Option<&Arc<str>>, at: Timestamp) {
        if let Some(tool) = self.tool(id, of, at) {
            tool.asked = Some((at, tool.context.child()));
        }
    }

    pub(super) fn tool_answered(
        &mut self,
        id: &Arc<str>,
        answer: &Answer,
        of: Option<&Arc<str>>,
        at: Timestamp,
    ) {
        let Some(tool) = self.tool(id, of, at) else {
            return;
        };
        tool.decision = Some(answered(answer));
        let Some((began, context)) = tool.asked.take() else {
            return;
        };
        let (decision, _) = answered(answer);
        let span = Span {
            context,
            parent: Some(tool.context.span),
            name: "caliban.tool.blocked_on_user".to_owned(),
            kind: SpanKind::Internal,
            began,
            ended: at,
            attributes: Attributes::default().with("decision", decision),
            error: None,
        };
        self.push_span(span);
    }

    pub(super) fn tool_started(&mut self, id: &Arc<str>, of: Option<&Arc<str>>, at: Timestamp) {
        if let Some(tool) = self.tool(id, of, at) {
            tool.started = Some(at);
            tool.decision.get_or_insert(("accept", "config"));
        }
    }

    pub(super) fn tool_finished(
        &mut self,
        id: &Arc<str>,
        output: &ToolOutput,
        duration: Duration,
        denial: Option<&Denial>,
        of: Option<&Arc<str>>,
        at: Timestamp,
    ) {
        let Some(mut tool) = self.agent(of, at).and_then(|agent| agent.tools.remove(id)) else {
            return;
        };
        if let Some(denial) = denial {
            tool.decision = Some(("reject", source(denial.source)));
        }
        let agent = self
            .run
            .as_mut()
            .and_then(|run| run.agents.remove(&Some(Arc::clone(id))));
        if let Some(agent) = agent {
            self.end_agent(&agent, failure(output.status).map(ToOwned::to_owned), at);
        }
        self.decided(&tool, id, at);
        if output.status == ToolStatus::Ok {
            let by = self.agent(of, at).and_then(|agent| agent.origin.clone());
            self.count_work(&tool, output, &by.unwrap_or_else(|| self.origin()));
        }
        self.result(&tool, id, output, duration, at);
        if self.contents.tool_content {
            tool.result = Some(shortened(&output.text(), LONGEST));
        }
        let error = failure(output.status).map(ToOwned::to_owned);
        self.end_tool(&tool, error, at);
    }

    fn decided(&mut self, tool: &ToolCall, id: &Arc<str>, at: Timestamp) {
        let Some((decision, source)) = tool.decision else {
            return;
        };
        let name = self.tool_name(&tool.name);
        let attributes = Attributes::default()
            .with("tool_name", name.clone())
            .with("tool_use_id", id.to_string())
            .with("decision", decision)
            .with("source", source);
        self.log(at, "tool_decision", Severity::Info, attributes);
        if BuiltInTool::editors().any(|editor| *editor == *tool.name) {
            let language = tool.first_arg.as_deref().and_then(language);
            let of = self
                .measured
                .clone()
                .with("tool_name", name)
                .with("decision", decision)
                .with("source", source)
                .with("language", language.unwrap_or("unknown"));
            self.instruments.count(Instrument::EditDecisions, of, 1);
        }
    }

    /// Lines that were changed, commits and pull requests that were made.
    fn count_work(&mut self, tool: &ToolCall, output: &ToolOutput, by: &Origin) {
        let (added, removed) = match &output.details {
            Some(Details::Edited {
                texts: Some((before, after)),
                ..
            }) => changed_lines(before, after),
            Some(Details::Created { .. } | Details::Overwritten { .. }) => {
                (tool.lines.unwrap_or_default(), 0)
            }
            _ => (0, 0),
        };
        for (kind, lines) in [("added", added), ("removed", removed)] {
            let of = self
                .measured
                .clone()
                .with("type", kind)
                .with("model", by.model.to_string());
            self.instruments.count(Instrument::LinesOfCode, of, lines);
        }
        if let ("Bash", Some(line)) = (&*tool.name, &tool.first_arg) {
            let of = self.measured.clone();
            if line.contains("git commit") {
                self.instruments.count(Instrument::Commits, of, 1);
            } else if line.contains("gh pr create") || line.contains("glab mr create") {
                self.instruments.count(Instrument::PullRequests, of, 1);
            }
        }
    }

    fn result(
        &mut self,
        tool: &ToolCall,
        id: &Arc<str>,
        output: &ToolOutput,
        duration: Duration,
        at: Timestamp,
    ) {
        let text = output.text();
        let error = failure(output.status);
        let mut attributes = Attributes::default()
            .with("tool_name", self.tool_name(&tool.name))
            .with("tool_use_id", id.to_string())
            .with("success", (output.status == ToolStatus::Ok).to_string())
            .with("duration_ms", duration)
            .with_known("error_type", error)
            .with("tool_result_size_bytes", text.len() as u64);
        if self.contents.tool_details {
            attributes = attributes.with_known("tool_parameters", tool.input.clone());
        }
        if self.contents.tool_content {
            attributes.set("tool_result", shortened(&text, LONGEST));
        }
        let severity = match error {
            None => Severity::Info,
            Some(_) => Severity::Warn,
        };
        self.log(at, "tool_result", severity, attributes);
    }

    pub(super) fn end_tool(&mut self, tool: &ToolCall, error: Option<String>, at: Timestamp) {
        let name = self.tool_name(&tool.name);
        let taken = elapsed(tool.began, at).as_secs_f64();
        let of = Attributes::default()
            .with("gen_ai.operation.name", "execute_tool")
            .with("gen_ai.tool.name", name.clone())
            .with("gen_ai.tool.type", "function")
            .with_known("error.type", error.clone());
        self.instruments
            .measure(Instrument::ToolDuration, of.clone(), taken);
        if let Some(began) = tool.started {
            let span = Span {
                context: tool.execution,
                parent: Some(tool.context.span),
                name: "caliban.tool.execution".to_owned(),
                kind: SpanKind::Internal,
                began,
                ended: at,
                attributes: Attributes::default(),
                error: error.clone(),
            };
            self.push_span(span);
        }
        let mut attributes = of.with("gen_ai.tool.call.id", tool.id.to_string());
        if self.contents.tool_details {
            attributes = attributes.with_known("gen_ai.tool.call.arguments", tool.input.clone());
        }
        let attributes = attributes.with_known("gen_ai.tool.call.result", tool.result.clone());
        let span = Span {
            context: tool.context,
            parent: Some(tool.parent),
            name: format!("execute_tool {name}"),
            kind: SpanKind::Internal,
            began: tool.began,
            ended: at,
            attributes,
            error,
        };
        self.push_span(span);
    }

    /// The tool's name; what a user named is nobody's business unless he says so.
    fn tool_name(&self, name: &str) -> String {
        match name.strip_prefix("mcp__") {
            Some(_) if !self.contents.tool_details => "mcp_tool".to_owned(),
            Some(_) | None => name.to_owned(),
        }
    }
}

fn source(source: DenialSource) -> &'static str {
    match source {
        DenialSource::Rule | DenialSource::Unattended | DenialSource::Classifier => "config",
        DenialSource::Hook => "hook",
        DenialSource::Person => "user_reject",
    }
}

/// What went wrong with a call.
fn failure(status: ToolStatus) -> Option<&'static str> {
    match status {
        ToolStatus::Ok => None,
        ToolStatus::Failed => Some("failed"),
        ToolStatus::InvalidInput => Some("invalid_input"),
        ToolStatus::Denied => Some("denied"),
        ToolStatus::CouldNotRun => Some("could_not_run"),
        ToolStatus::TimedOut => Some("timed_out"),
        ToolStatus::Cancelled => Some("cancelled"),
    }
}

/// Lines that are new and lines that are gone.
fn changed_lines(before: &str, after: &str) -> (u64, u64) {
    let diff = TextDiff::from_lines(before, after);
    diff.iter_all_changes()
        .fold((0, 0), |(added, removed), change| match change.tag() {
            ChangeTag::Insert => (added + 1, removed),
            ChangeTag::Delete => (added, removed + 1),
            ChangeTag::Equal => (added, removed),
        })
}

/// The language of a file, by the end of its name.
fn language(path: &str) -> Option<&'static str> {
    let end = path.rsplit('/').next()?.rsplit_once('.')?.1;
    let language = match end {
        "rs" => "Rust",
        "py" => "Python",
        "ts" | "tsx" => "TypeScript",
        "js" | "jsx" | "mjs" | "cjs" => "JavaScript",
        "go" => "Go",
        "java" => "Java",
        "kt" => "Kotlin",
        "c" | "h" => "C",
        "cc" | "cpp" | "cxx" | "hpp" => "C++",
        "cs" => "C#",
        "rb" => "Ruby",
        "php" => "PHP",
        "swift" => "Swift",
        "sh" | "bash" => "Shell",
        "html" => "HTML",
        "css" => "CSS",
        "json" => "JSON",
        "yaml" | "yml" => "YAML",
        "toml" => "TOML",
        "md" => "Markdown",
        "sql" => "SQL",
        "ipynb" => "Jupyter Notebook",
        _ => return None,
    };
    Some(language)
}
