//! Questions that an agent in the background has: who is asked, how long they wait, and what
//! becomes of them where nobody answers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use caliban_agent::{Answer, Interrupt, Remember, Reply};
use caliban_protocol::Decision;
use caliban_session::{Asked, Command, QuestionKind, RuleChange};
use caliban_settings::RuleAction;
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::Instant;

use crate::state::{Needs, NeedsKind};

/// Characters of a question that are shown in a list.
const SUMMARY: usize = 120;
/// How often the same rule may have been in the way, with nobody there, before the agent gives up.
const TRIES: u32 = 2;

/// What becomes of a question while nobody is attached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnQuestion {
    /// It waits for somebody.
    #[default]
    Park,
    /// It is a refusal.
    Deny,
    /// It ends the agent.
    Fail,
}

/// The questions that are open.
#[derive(Debug)]
pub(crate) struct Desk {
    policy: OnQuestion,
    patience: Duration,
    open: Vec<Open>,
    in_the_way: HashMap<String, u32>,
}

#[derive(Debug)]
struct Open {
    id: Arc<str>,
    kind: NeedsKind,
    summary: String,
    since: Timestamp,
    until: Instant,
    /// The rule that asks.
    rule: String,
    suggestions: Vec<String>,
}

/// What is to be done about a question.
#[derive(Debug)]
pub(crate) enum Verdict {
    Wait,
    Say(Command),
    /// The agent ends, because of this.
    GiveUp(String),
}

/// Whether somebody is there who can answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Presence {
    Somebody,
    Nobody,
}

impl Desk {
    pub(crate) fn new(policy: OnQuestion, patience: Duration) -> Self {
        Self {
            policy,
            patience,
            open: Vec::new(),
            in_the_way: HashMap::new(),
        }
    }

    /// A question came up.
    pub(crate) fn ask(&mut self, asked: &Asked, presence: Presence) -> Verdict {
        let (kind, summary, rule, suggestions) = match &asked.kind {
            QuestionKind::Permission(inquiry) => {
                let input = inquiry
                    .question
                    .input
                    .as_ref()
                    .unwrap_or(&inquiry.call.input);
                let text = format!("{} {}", inquiry.call.name, told(input));
                let rule = inquiry.question.rule.clone();
                let rule = rule.unwrap_or_else(|| inquiry.call.name.to_string());
                let suggestions = inquiry.question.suggestions.clone();
                (NeedsKind::Permission, text, rule, suggestions)
            }
            QuestionKind::Elicitation(elicitation) => {
                let text = format!("{}: {}", elicitation.server, elicitation.message);
                let rule = elicitation.server.clone();
                (NeedsKind::Elicitation, text, rule, Vec::new())
            }
        };
        self.open.push(Open {
            id: Arc::clone(&asked.question),
            kind,
            summary: short(&summary),
            since: Timestamp::now(),
            until: Instant::now() + self.patience,
            rule,
            suggestions,
        });
        match presence {
            Presence::Somebody => Verdict::Wait,
            Presence::Nobody => self.judge(self.open.len() - 1),
        }
    }

    /// What the policy says to a question that nobody is there for.
    fn judge(&mut self, index: usize) -> Verdict {
        let Some(open) = self.open.get(index) else {
            return Verdict::Wait;
        };
        match self.policy {
            OnQuestion::Park => Verdict::Wait,
            OnQuestion::Fail => Verdict::GiveUp(format!(
                "it had a question and nobody was there: {}",
                open.summary
            )),
            OnQuestion::Deny => {
                let times = self.in_the_way.entry(open.rule.clone()).or_default();
                *times += 1;
                if *times >= TRIES {
                    return Verdict::GiveUp(format!(
                        "`{}` was in the way {times} times and nobody was there to ask: {}",
                        open.rule, open.summary
                    ));
                }
                Verdict::Say(nobody(open))
            }
        }
    }

    /// Nobody is there any more: what becomes of the first open question, and so on.
    pub(crate) fn deserted(&mut self) -> Vec<Verdict> {
        (0..self.open.len())
            .map(|index| self.judge(index))
            .collect()
    }

    /// A question has its answer.
    pub(crate) fn settle(&mut self, question: &str) {
        self.open.retain(|open| *open.id != *question);
    }

    /// The commands that an answer comes to; nothing where there is no such question.
    pub(crate) fn answer(
        &self,
        question: &str,
        decision: Decision,
        input: Option<Value>,
        message: Option<String>,
    ) -> Option<Vec<Command>> {
        let open = self.open.iter().find(|open| *open.id == *question)?;
        let mut commands = Vec::new();
        let answer = match decision {
            Decision::Allow | Decision::AllowSession => Answer::Allow {
                input,
                remember: Remember::Once,
            },
            Decision::Deny => Answer::Deny {
                reason: message,
                remember: Remember::Once,
                interrupt: Interrupt::No,
            },
        };
        if decision == Decision::AllowSession {
            commands.extend(open.suggestions.iter().map(|pattern| {
                Command::Rule(RuleChange::Add {
                    pattern: pattern.clone(),
                    action: RuleAction::Allow,
                })
            }));
        }
        commands.push(Command::Answer {
            question: Arc::clone(&open.id),
            answer,
        });
        Some(commands)
    }

    /// When the next question has waited long enough.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.open.iter().map(|open| open.until).min()
    }

    /// The answers to those that have waited long enough: that there was nobody.
    pub(crate) fn overdue(&mut self, now: Instant) -> Vec<Command> {
        let late = self.open.iter().filter(|open| open.until <= now);
        let commands = late.map(nobody).collect();
        self.open.retain(|open| open.until > now);
        commands
    }

    /// What the agent waits for, the oldest question first.
    pub(crate) fn needs(&self) -> Option<Needs> {
        let open = self.open.first()?;
        Some(Needs {
            kind: open.kind,
            id: Some(open.id.to_string()),
            since: open.since,
            summary: open.summary.clone(),
        })
    }
}

/// That nobody answered, which is recorded as that and not as anybody's refusal.
fn nobody(open: &Open) -> Command {
    let question = Arc::clone(&open.id);
    match open.kind {
        NeedsKind::Permission | NeedsKind::Input => Command::Answer {
            question,
            answer: Answer::TimedOut,
        },
        NeedsKind::Elicitation => Command::AnswerElicitation {
            question,
            reply: Reply::Nobody,
        },
    }
}

/// What a call is about: its one text, or all of it.
fn told(input: &Value) -> String {
    let texts = input.as_object().map(|fields| {
        let named = ["command", "path", "file_path", "url", "pattern"];
        named
            .iter()
            .find_map(|name| fields.get(*name)?.as_str())
            .map(str::to_owned)
    });
    texts.flatten().unwrap_or_else(|| input.to_string())
}

/// One line of bounded length.
pub(crate) fn short(text: &str) -> String {
    let mut line: String = text
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .take(SUMMARY)
        .collect();
    if text.chars().count() > SUMMARY {
        line.push('…');
    }
    line.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use caliban_agent::Elicitation;
    use serde_json::json;

    use super::*;

    fn asked(id: &str) -> Asked {
        Asked {
            question: id.into(),
            agent: None,
            kind: QuestionKind::Elicitation(Elicitation {
                server: "s".to_owned(),
                message: "which\none?".to_owned(),
                schema: json!({}),
            }),
        }
    }

    fn desk(policy: OnQuestion) -> Desk {
        Desk::new(policy, Duration::from_secs(5))
    }

    #[tokio::test(start_paused = true)]
    async fn a_question_waits_and_then_nobody_was_there() {
        let mut desk = desk(OnQuestion::Park);
        assert!(matches!(
            desk.ask(&asked("q"), Presence::Nobody),
            Verdict::Wait
        ));
        let needs = desk.needs().unwrap();
        assert_eq!(
            (needs.id.as_deref(), needs.summary.as_str()),
            (Some("q"), "s: which one?")
        );
        assert!(desk.overdue(Instant::now()).is_empty());
        let late = desk.overdue(desk.deadline().unwrap());
        assert!(matches!(
            late.as_slice(),
            [Command::AnswerElicitation {
                reply: Reply::Nobody,
                ..
            }]
        ));
        assert!(desk.needs().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn who_tries_round_a_refusal_is_stopped() {
        let mut desk = desk(OnQuestion::Deny);
        assert!(matches!(
            desk.ask(&asked("a"), Presence::Somebody),
            Verdict::Wait
        ));
        assert!(matches!(desk.deserted().as_slice(), [Verdict::Say(_)]));
        desk.settle("a");
        assert!(matches!(
            desk.ask(&asked("b"), Presence::Nobody),
            Verdict::GiveUp(_)
        ));
        let mut desk = Desk::new(OnQuestion::Fail, Duration::ZERO);
        assert!(matches!(
            desk.ask(&asked("a"), Presence::Nobody),
            Verdict::GiveUp(_)
        ));
    }

    #[tokio::test(start_paused = true)]
    async fn only_an_open_question_can_be_answered() {
        let mut desk = desk(OnQuestion::Park);
        desk.ask(&asked("a"), Presence::Nobody);
        assert!(desk.answer("b", Decision::Allow, None, None).is_none());
        assert_eq!(
            desk.answer("a", Decision::Deny, None, None).unwrap().len(),
            1
        );
        desk.settle("a");
        assert!(desk.answer("a", Decision::Allow, None, None).is_none());
    }
}
