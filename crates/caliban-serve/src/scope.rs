//! What an application's answer means to the session that asked.

use caliban_agent::{Answer as Consent, Inquiry, Interrupt, Remember, Reply};
use caliban_model::{Argument, BuiltInTool};
use caliban_session::{Asked, Command, QuestionKind};
use serde_json::Value;
use std::sync::Arc;

use crate::request::{Action, Answer, Decision, Scope};

/// The command that answers a question; the error says why there is none.
pub(crate) fn command(asked: &Asked, answer: &Answer) -> Result<Command, String> {
    let question = Arc::clone(&asked.question);
    match (&asked.kind, answer.decision, answer.action) {
        (QuestionKind::Permission(inquiry), Some(decision), _) => {
            let answer = consent(inquiry, decision, answer)?;
            Ok(Command::Answer { question, answer })
        }
        (QuestionKind::Elicitation(_), _, Some(action)) => {
            let reply = match action {
                Action::Accept => Reply::Accept(answer.content.clone().unwrap_or_default()),
                Action::Decline => Reply::Decline,
                Action::Cancel => Reply::Cancel,
            };
            Ok(Command::AnswerElicitation { question, reply })
        }
        (QuestionKind::Permission(_), None, _) => {
            Err("a question about a call is answered with a `decision`".to_owned())
        }
        (QuestionKind::Elicitation(_), _, None) => {
            Err("a question of a server is answered with an `action`".to_owned())
        }
    }
}

fn consent(inquiry: &Inquiry, decision: Decision, answer: &Answer) -> Result<Consent, String> {
    match decision {
        Decision::Allow => Ok(Consent::Allow {
            input: answer.input.clone(),
            remember: remember(inquiry, answer.scope)?,
        }),
        Decision::Deny => Ok(Consent::Deny {
            reason: Some(
                answer
                    .reason
                    .clone()
                    .unwrap_or_else(|| "the application denied it".to_owned()),
            ),
            remember: Remember::Once,
            interrupt: Interrupt::No,
        }),
    }
}

/// The tool whose calls are nothing but a question to the user, who is asked every time.
const NEEDS_THE_USER: &str = "ExitPlanMode";

fn remember(inquiry: &Inquiry, scope: Scope) -> Result<Remember, String> {
    let name = &*inquiry.call.name;
    let argument = BuiltInTool::named(name).map(|tool| tool.argument);
    let session = |pattern: String| Ok(Remember::Session { pattern });
    match (scope, argument) {
        (Scope::Once, _) => Ok(Remember::Once),
        // Commands are too different from each other to be allowed all at once.
        (Scope::Session | Scope::Command, Some(Argument::Command)) => {
            match inquiry.question.suggestions.first() {
                Some(pattern) => session(pattern.clone()),
                None => {
                    Err("no rule would permit this command alone; use the scope `once`".to_owned())
                }
            }
        }
        (Scope::Domain, Some(Argument::Url)) => match domain(inquiry) {
            Some(domain) => session(format!("{name}(domain:{domain})")),
            None => Err("the call names no domain; use the scope `once`".to_owned()),
        },
        (Scope::Session, _) if name == NEEDS_THE_USER => Ok(Remember::Once),
        (Scope::Session, _) => session(name.to_owned()),
        (Scope::Command, _) => Err(format!("`{name}` runs no command; use `once` or `session`")),
        (Scope::Domain, _) => Err(format!("`{name}` fetches no page; use `once` or `session`")),
    }
}

/// The domain of the page that a call fetches.
fn domain(inquiry: &Inquiry) -> Option<String> {
    let input = inquiry
        .question
        .input
        .as_ref()
        .unwrap_or(&inquiry.call.input);
    let address = input.get("url").and_then(Value::as_str)?;
    let address = url::Url::parse(address).ok()?;
    address.host_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use caliban_agent::{Effect, Opinion, Question, ToolCall};
    use serde_json::json;

    use super::*;

    fn inquiry(name: &str, input: Value, suggestions: &[&str]) -> Inquiry {
        let call = ToolCall {
            id: "call".into(),
            name: name.into(),
            input,
            effect: Effect::Executes,
            first_arg: None,
            agent: None,
            turn: 1,
            opinion: Opinion::None,
        };
        let question = Question {
            reason: String::new(),
            rule: None,
            remedy: String::new(),
            suggestions: suggestions.iter().map(|&text| text.to_owned()).collect(),
            parts: Vec::new(),
            place: None,
            target: None,
            input: None,
        };
        Inquiry::new(call, question)
    }

    #[test]
    fn a_scope_is_a_rule_of_the_session() {
        let page = inquiry("WebFetch", json!({"url": "https://docs.rs/serde"}), &[]);
        let shell = inquiry("Bash", json!({"command": "make all"}), &["Bash:make *"]);
        let write = inquiry("Write", json!({"path": "a"}), &[]);
        let plan = inquiry("ExitPlanMode", json!({}), &[]);
        let rule = |pattern: &str| {
            Ok(Remember::Session {
                pattern: pattern.to_owned(),
            })
        };
        assert_eq!(
            remember(&page, Scope::Domain),
            rule("WebFetch(domain:docs.rs)")
        );
        assert_eq!(remember(&shell, Scope::Command), rule("Bash:make *"));
        assert_eq!(remember(&shell, Scope::Session), rule("Bash:make *"));
        assert_eq!(remember(&write, Scope::Session), rule("Write"));
        assert_eq!(remember(&write, Scope::Once), Ok(Remember::Once));
        assert_eq!(remember(&plan, Scope::Session), Ok(Remember::Once));
        assert!(remember(&write, Scope::Domain).is_err());
        assert!(remember(&page, Scope::Command).is_err());
        let nowhere = inquiry("WebFetch", json!({"url": "no address"}), &[]);
        assert!(remember(&nowhere, Scope::Domain).is_err());
    }
}
