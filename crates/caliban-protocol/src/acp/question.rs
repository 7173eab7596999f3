//! Questions about calls: what a client asks its user, and what his answer means.

use std::sync::Arc;

use agent_client_protocol_schema::v1::{
    Error, PermissionOption, PermissionOptionKind, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SessionId, ToolCallStatus, ToolCallUpdate,
    ToolCallUpdateFields,
};
use caliban_agent::{Answer, Inquiry, Interrupt, Remember};
use serde_json::Value;

use super::shown;
use super::tools;
use super::updates::Projection;

const ALLOW: &str = "allow";
const ALLOW_SESSION: &str = "allow-session";
const REJECT: &str = "reject";

/// What a person decides about, of the session itself or of the agent of this name.
pub fn permission(
    session: &SessionId,
    inquiry: &Inquiry,
    agent: Option<&str>,
    projection: &Projection,
) -> RequestPermissionRequest {
    let (call, question) = (&inquiry.call, &inquiry.question);
    let input = question.input.as_ref().unwrap_or(&call.input);
    let title = tools::title(&call.name, call.first_arg.as_deref());
    let title = match agent {
        Some(agent) => format!("{agent}: {title}"),
        None => title,
    };
    let cwd = projection.cwd();
    let (mut content, mut locations) = match tools::changed(inquiry.preview.as_ref()) {
        Some((diff, location)) => (vec![diff], vec![location]),
        None => (tools::changes(&call.name, input, cwd), Vec::new()),
    };
    if locations.is_empty() {
        locations = tools::locations(&call.name, input, cwd);
    }
    content.extend(tools::proposal(&call.name, input));
    let target = question
        .target
        .as_deref()
        .map(|target| format!("It is about `{target}`."));
    let reason = [Some(question.reason.clone()), target];
    let reason = reason.into_iter().flatten().collect::<Vec<_>>().join("\n");
    content.extend(shown::output(&reason));
    let fields = ToolCallUpdateFields::new()
        .status(ToolCallStatus::Pending)
        .title(title)
        .name(call.name.to_string())
        .kind(tools::kind(&call.name))
        .raw_input(input.clone())
        .locations(locations)
        .content(content);
    let update = ToolCallUpdate::new(Arc::clone(&call.id), fields);
    RequestPermissionRequest::new(session.clone(), update, options(narrowest(inquiry)))
}

/// The rule that would permit this call and as little else as possible.
fn narrowest(inquiry: &Inquiry) -> Option<&str> {
    inquiry.question.suggestions.first().map(String::as_str)
}

fn options(rule: Option<&str>) -> Vec<PermissionOption> {
    let always = rule.map(|rule| {
        let name = format!("Allow `{rule}` in this session");
        PermissionOption::new(ALLOW_SESSION, name, PermissionOptionKind::AllowAlways)
    });
    let once = PermissionOption::new(ALLOW, "Allow", PermissionOptionKind::AllowOnce);
    let reject = PermissionOption::new(REJECT, "Reject", PermissionOptionKind::RejectOnce);
    std::iter::once(once)
        .chain(always)
        .chain([reject])
        .collect()
}

/// What a client's answer means. What cannot be understood is a refusal.
pub fn verdict(inquiry: &Inquiry, answer: Result<Value, Error>) -> Answer {
    let response = match answer {
        Ok(answer) => serde_json::from_value::<RequestPermissionResponse>(answer),
        Err(error) => {
            return refused(
                format!("the client could not ask: {}", error.message),
                Interrupt::No,
            );
        }
    };
    let outcome = response.map(|response| response.outcome);
    match outcome {
        Ok(RequestPermissionOutcome::Selected(selected)) => match &*selected.option_id.0 {
            ALLOW => allowed(Remember::Once),
            ALLOW_SESSION => match narrowest(inquiry) {
                Some(pattern) => allowed(Remember::Session {
                    pattern: pattern.to_owned(),
                }),
                None => refused(
                    "it was not offered for the session".to_owned(),
                    Interrupt::No,
                ),
            },
            REJECT => refused("the user rejected it".to_owned(), Interrupt::No),
            other => refused(
                format!("the client chose `{other}`, which was not offered"),
                Interrupt::No,
            ),
        },
        Ok(RequestPermissionOutcome::Cancelled) => {
            refused("the user cancelled".to_owned(), Interrupt::Yes)
        }
        Ok(_) | Err(_) => refused(
            "the client's answer makes no sense".to_owned(),
            Interrupt::No,
        ),
    }
}

fn allowed(remember: Remember) -> Answer {
    let input = None;
    Answer::Allow { input, remember }
}

fn refused(reason: String, interrupt: Interrupt) -> Answer {
    Answer::Deny {
        reason: Some(reason),
        remember: Remember::Once,
        interrupt,
    }
}

#[cfg(test)]
mod tests {
    use caliban_agent::{Effect, Opinion, Question, ToolCall};
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn inquiry(suggestions: &[&str]) -> Inquiry {
        let call = ToolCall {
            id: "c".into(),
            agent: None,
            name: "Bash".into(),
            input: json!({"command": "ls"}),
            effect: Effect::Executes,
            first_arg: Some("ls".to_owned()),
            turn: 1,
            opinion: Opinion::None,
        };
        let question = Question {
            reason: "r".to_owned(),
            rule: None,
            remedy: String::new(),
            suggestions: suggestions.iter().map(|&it| it.to_owned()).collect(),
            parts: Vec::new(),
            place: None,
            target: None,
            input: None,
        };
        Inquiry::new(call, question)
    }

    fn selected(option: &str) -> Value {
        json!({"outcome": {"outcome": "selected", "optionId": option}})
    }

    #[test]
    fn the_narrowest_rule_is_what_is_allowed_for_the_session() {
        let asked = inquiry(&["Bash:ls", "Bash:*"]);
        let pattern = "Bash:ls".to_owned();
        let expected = allowed(Remember::Session { pattern });
        assert_eq!(verdict(&asked, Ok(selected(ALLOW_SESSION))), expected);
        assert_eq!(
            verdict(&asked, Ok(selected(ALLOW))),
            allowed(Remember::Once)
        );
        let names: Vec<_> = options(narrowest(&asked))
            .into_iter()
            .map(|it| it.name)
            .collect();
        assert_eq!(
            names,
            ["Allow", "Allow `Bash:ls` in this session", "Reject"]
        );
        assert_eq!(options(None).len(), 2);
    }

    #[rstest]
    #[case(Ok(selected(REJECT)), Interrupt::No)]
    #[case(Ok(selected("allow_everything")), Interrupt::No)]
    #[case(Ok(selected(ALLOW_SESSION)), Interrupt::No)]
    #[case(Ok(json!({"outcome": {"outcome": "cancelled"}})), Interrupt::Yes)]
    #[case(Ok(json!({"outcome": {"outcome": "whatever"}})), Interrupt::No)]
    #[case(Ok(Value::Null), Interrupt::No)]
    #[case(Err(Error::internal_error()), Interrupt::No)]
    fn what_is_no_consent_is_a_refusal(
        #[case] answer: Result<Value, Error>,
        #[case] expected: Interrupt,
    ) {
        match verdict(&inquiry(&[]), answer) {
            Answer::Deny { interrupt, .. } => assert_eq!(interrupt, expected),
            other => panic!("{other:?}"),
        }
    }
}
