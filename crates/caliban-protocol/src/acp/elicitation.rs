//! What servers want to know from the user, as a form that the client shows.

use agent_client_protocol_schema::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAction, ElicitationFormMode,
    ElicitationSchema, ElicitationSessionScope, Error, SessionId,
};
use caliban_agent::{Elicitation, Reply};
use serde_json::Value;

/// The form; nothing where what the server wants does not fit into one.
pub fn elicitation(
    session: &SessionId,
    elicitation: &Elicitation,
) -> Option<CreateElicitationRequest> {
    let schema: ElicitationSchema = serde_json::from_value(elicitation.schema.clone()).ok()?;
    let scope = ElicitationSessionScope::new(session.clone());
    let mode = ElicitationFormMode::new(scope, schema);
    let message = format!("{}: {}", elicitation.server, elicitation.message);
    Some(CreateElicitationRequest::new(mode, message))
}

/// What a client's answer means. What cannot be understood decides nothing.
pub fn reply(answer: Result<Value, Error>) -> Reply {
    let response = answer
        .ok()
        .and_then(|answer| serde_json::from_value::<CreateElicitationResponse>(answer).ok());
    match response.map(|response| response.action) {
        Some(ElicitationAction::Accept(accepted)) => {
            let content = accepted.content.unwrap_or_default();
            Reply::Accept(serde_json::to_value(content).unwrap_or_default())
        }
        Some(ElicitationAction::Decline) => Reply::Decline,
        Some(_) | None => Reply::Cancel,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_form_names_who_asks() {
        let wish = Elicitation {
            server: "files".to_owned(),
            message: "Which one?".to_owned(),
            schema: json!({
                "type": "object",
                "properties": {"name": {"type": "string", "title": "Name"}},
                "required": ["name"],
            }),
        };
        let request = elicitation(&SessionId::new("s"), &wish).unwrap();
        let request = serde_json::to_value(request).unwrap();
        assert_eq!(request["sessionId"], "s");
        assert_eq!(request["mode"], "form");
        assert_eq!(request["message"], "files: Which one?");
        assert_eq!(request["requestedSchema"], wish.schema);
    }

    #[test]
    fn only_a_clear_answer_decides() {
        let accepted = json!({"action": "accept", "content": {"n": 3, "on": true}});
        assert_eq!(
            reply(Ok(accepted)),
            Reply::Accept(json!({"n": 3, "on": true}))
        );
        assert_eq!(reply(Ok(json!({"action": "decline"}))), Reply::Decline);
        assert_eq!(reply(Ok(json!({"action": "cancel"}))), Reply::Cancel);
        assert_eq!(reply(Ok(json!({"action": "postpone"}))), Reply::Cancel);
        assert_eq!(reply(Ok(Value::Null)), Reply::Cancel);
        assert_eq!(reply(Err(Error::method_not_found())), Reply::Cancel);
    }
}
