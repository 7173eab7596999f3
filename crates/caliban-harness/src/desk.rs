//! What can be looked up in a session while it lives, for faces that show it.

use std::sync::Arc;

use caliban_model::{Message, Provider, Role};
use caliban_permissions::{Judge, Origin, Rule, RuleBook};
use caliban_settings::{RuleAction, RuleSpec};
use caliban_tools::{Jobs, ListedJob};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::gate::Gate;
use crate::recorder::Recorder;
use crate::session::Session;

/// A session, for those who look. It changes nothing.
#[derive(Debug, Clone)]
pub struct SessionDesk {
    jobs: Option<Arc<Jobs>>,
    gate: Arc<Gate>,
    provider: Arc<dyn Provider>,
    /// What was said before, without what the model is told first.
    pub past: Vec<Arc<Message>>,
    /// What the model is told first.
    pub system: String,
    /// How the session can be opened again; nothing where it is not kept.
    pub name: Option<String>,
}

impl SessionDesk {
    pub(crate) fn of(session: &Session) -> Self {
        let (system, past): (Vec<_>, Vec<_>) = session
            .conversation
            .messages()
            .iter()
            .cloned()
            .partition(|message| message.role == Role::System);
        let system: Vec<String> = system.iter().map(|message| message.text()).collect();
        Self {
            jobs: session.jobs.clone(),
            gate: Arc::clone(&session.gate),
            provider: Arc::clone(&session.agent.provider),
            past,
            system: system.join("\n\n"),
            name: session.recorder.as_ref().and_then(Recorder::name),
        }
    }

    /// The rules that count, in the order they are asked.
    pub fn rules(&self) -> Vec<Rule> {
        self.gate.book().rules().to_vec()
    }

    /// Who answers.
    pub fn provider(&self) -> Arc<dyn Provider> {
        Arc::clone(&self.provider)
    }

    /// What the rules say about a call, written as `Tool: argument` or `Tool: {json}`.
    pub fn judged(&self, call: &str) -> String {
        let (tool, argument) = call.split_once(':').unwrap_or((call, ""));
        let (tool, argument) = (tool.trim(), argument.trim());
        if tool.is_empty() {
            return "write a call as `Bash: git push`".to_owned();
        }
        let input = match serde_json::from_str(argument) {
            Ok(input @ Value::Object(_)) => input,
            Ok(_) | Err(_) => json!({
                "command": argument, "path": argument, "url": argument, "pattern": argument,
            }),
        };
        let judge = self.gate.judge_by();
        let decision = judge.decide(tool, &input, Timestamp::now());
        let rule = judge.book.rules().get(decision.rule);
        let rule = rule.map_or_else(String::new, |rule| {
            format!(" by `{}`, {}", rule.pattern.text(), rule.origin.described())
        });
        format!("{}{rule}", decision.action)
    }

    /// Background jobs, in the order they began.
    pub fn jobs(&self) -> Vec<ListedJob> {
        self.jobs
            .as_ref()
            .map_or_else(Vec::new, |jobs| jobs.listed())
    }

    /// The end of what a job has written.
    pub fn job_output(&self, job: &str) -> String {
        let jobs = self.jobs.as_ref();
        jobs.and_then(|jobs| jobs.tail(job)).unwrap_or_default()
    }

    /// Whether rules that allow these would by themselves permit a call, for each of these. A
    /// pattern that makes no sense permits nothing.
    pub fn permits(&self, patterns: &[String], calls: &[(String, Value)]) -> Vec<bool> {
        let rules = patterns.iter().filter_map(|pattern| {
            let spec = RuleSpec::new(pattern, RuleAction::Allow);
            Rule::new(spec, Origin::Runtime).ok()
        });
        let judge = Judge {
            book: RuleBook::of(rules),
            ..self.gate.judge_by()
        };
        let now = Timestamp::now();
        calls
            .iter()
            .map(|(tool, input)| {
                let decision = judge.decide(tool, input, now);
                let by_rule = judge.book.rules().get(decision.rule);
                decision.action == RuleAction::Allow
                    && by_rule.is_some_and(|rule| rule.origin == Origin::Runtime)
            })
            .collect()
    }
}
