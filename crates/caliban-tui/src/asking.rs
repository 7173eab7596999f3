//! What a question about a call says, line by line: drawn above the draft, paged, or read out.
//! Nothing in it can hide: it is text of others, judged by its looks.

use caliban_agent::{Details, Inquiry, PartVerdict, QuestionPart, RulePlace};
use caliban_model::{Argument, BuiltInTool};
use caliban_text::{DiffView, LineKind, Strength, sanitise};
use serde_json::Value;

/// Unchanged lines around a change that is read out.
const CONTEXT: usize = 3;

/// What a line is, for its looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// What is about to run.
    Call,
    Plain,
    Quiet,
    Good,
    Warning,
    Bad,
}

/// A line of a question, harmless.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) tone: Tone,
    pub(crate) text: String,
}

fn line(tone: Tone, text: impl AsRef<str>) -> Line {
    let text = sanitise(text.as_ref(), Strength::Name).into_owned();
    Line { tone, text }
}

/// The input that will run.
pub(crate) fn input(inquiry: &Inquiry) -> &Value {
    let question = &inquiry.question;
    question.input.as_ref().unwrap_or(&inquiry.call.input)
}

/// The plan that a call presents, if it presents one.
pub(crate) fn plan(inquiry: &Inquiry) -> Option<&str> {
    input(inquiry).get("plan").and_then(Value::as_str)
}

/// Whether the call runs a command, so that a rule about its tool is one about every command.
pub(crate) fn is_command(inquiry: &Inquiry) -> bool {
    let tool = BuiltInTool::named(&inquiry.call.name);
    tool.is_some_and(|tool| tool.argument == Argument::Command)
}

/// Who asks, what is about to run, what each part of it comes to, and why it is asked.
pub(crate) fn lines(inquiry: &Inquiry, agent: Option<&str>) -> Vec<Line> {
    let question = &inquiry.question;
    let mut lines = Vec::new();
    if let Some(agent) = agent {
        lines.push(line(Tone::Quiet, format!("asked by the agent: {agent}")));
    }
    lines.extend(call(inquiry));
    lines.extend(question.parts.iter().map(part));
    if let Some(target) = &question.target {
        lines.push(line(Tone::Warning, format!("really about: {target}")));
    }
    lines.push(line(Tone::Plain, &question.reason));
    if let Some(rule) = &question.rule {
        let place = question.place.as_ref().map(stands).unwrap_or_default();
        lines.push(line(Tone::Quiet, format!("rule that asks: {rule}{place}")));
    }
    let comment = question.place.as_ref().and_then(|it| it.comment.as_ref());
    if let Some(comment) = comment {
        lines.push(line(Tone::Quiet, format!("its comment: {comment}")));
    }
    lines
}

fn call(inquiry: &Inquiry) -> Vec<Line> {
    let input = input(inquiry);
    let name = &inquiry.call.name;
    let text_of = |key: &str| input.get(key).and_then(Value::as_str);
    let path = text_of("path").or(text_of("file_path"));
    if plan(inquiry).is_some() {
        let text = "The plan is ready. Shall it be carried out?";
        return vec![line(Tone::Call, text)];
    }
    match (text_of("command"), path) {
        (Some(command), _) => {
            let rows = command.lines().enumerate().map(|(place, text)| {
                if place == 0 {
                    line(Tone::Call, format!("{name}: {text}"))
                } else {
                    line(Tone::Call, format!("  {text}"))
                }
            });
            rows.collect()
        }
        (None, Some(path)) => vec![line(Tone::Call, format!("{name}: {path}"))],
        (None, None) => vec![line(Tone::Call, format!("{name}: {input}"))],
    }
}

fn part(part: &QuestionPart) -> Line {
    let (verdict, tone) = match part.verdict {
        PartVerdict::Allow => ("allowed", Tone::Good),
        PartVerdict::Ask => ("asks", Tone::Warning),
        PartVerdict::Deny => ("denied", Tone::Bad),
    };
    let item = part.item.replace('\n', " ");
    match &part.unread {
        Some(why) => line(Tone::Warning, format!("  unread  {item}  ({why})")),
        None => line(
            tone,
            format!("  {verdict:<8}{item}  ({}, {})", part.rule, part.origin),
        ),
    }
}

/// Where a rule stands, behind its name.
fn stands(place: &RulePlace) -> String {
    match &place.written {
        Some(written) => format!(" ({}, {written})", place.scope),
        None => format!(" ({})", place.scope),
    }
}

/// What the call would change, as lines of a diff.
pub(crate) fn change(inquiry: &Inquiry) -> Vec<Line> {
    let Some(Details::Edited { path, texts }) = &inquiry.preview else {
        return Vec::new();
    };
    let Some((old, new)) = texts else {
        return vec![line(Tone::Quiet, "the change is too large to show")];
    };
    let view = DiffView::between(old, new, path, CONTEXT);
    let mut lines = vec![line(
        Tone::Quiet,
        format!(
            "{path}: {} more, {} less",
            count_of_lines(view.added),
            count_of_lines(view.removed)
        ),
    )];
    for hunk in &view.hunks {
        if hunk.skipped > 0 {
            let text = format!("  ({} lines as they are)", hunk.skipped);
            lines.push(line(Tone::Quiet, text));
        }
        lines.extend(hunk.lines.iter().map(|changed| {
            let (sign, tone) = match changed.kind {
                LineKind::Context => (' ', Tone::Plain),
                LineKind::Added => ('+', Tone::Good),
                LineKind::Removed => ('-', Tone::Bad),
            };
            line(tone, format!("{sign} {}", changed.text()))
        }));
    }
    lines
}

fn count_of_lines(count: usize) -> String {
    match count {
        1 => "1 line".to_owned(),
        count => format!("{count} lines"),
    }
}

/// All of a question, to be read at leisure.
pub(crate) fn everything(inquiry: &Inquiry, agent: Option<&str>) -> String {
    let mut lines = lines(inquiry, agent);
    let remedy = &inquiry.question.remedy;
    if !remedy.is_empty() {
        lines.push(line(Tone::Quiet, format!("without being asked: {remedy}")));
    }
    let texts = lines.into_iter().map(|line| line.text);
    let mut sections = vec![texts.collect::<Vec<_>>().join("\n")];
    if let Some(plan) = plan(inquiry) {
        sections.push(sanitise(plan, Strength::Name).into_owned());
    }
    let change: Vec<String> = change(inquiry).into_iter().map(|line| line.text).collect();
    if !change.is_empty() {
        sections.push(change.join("\n"));
    }
    if plan(inquiry).is_none() && change.is_empty() {
        // The command stands above; the rest of its input is here.
        let mut rest = input(inquiry).clone();
        if let Some(fields) = rest.as_object_mut() {
            fields.remove("command");
        }
        if rest.as_object().is_none_or(|fields| !fields.is_empty()) {
            let rest = format!("{rest:#}");
            sections.insert(0, sanitise(&rest, Strength::Name).into_owned());
        }
    }
    sections.join("\n\n") + "\n"
}
