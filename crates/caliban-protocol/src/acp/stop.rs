//! How a prompt ends for the client: a reason to stop, with or without a word about it, or an error.

use agent_client_protocol_schema::v1::{Error, StopReason};
use caliban_agent::Outcome;
use caliban_model::ErrorKind;
use serde_json::json;

/// The end of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub enum Ending {
    /// It stopped; the text is told before, where the model did not say why.
    Stopped(StopReason, Option<String>),
    /// The model declined, and the prompt does not count from here on.
    Refused(String),
    Failed(Error),
}

/// What an outcome is to a client.
pub fn ending(outcome: &Outcome) -> Ending {
    let told = |text: &str| {
        let text = Some(text.to_owned()).filter(|text| !text.trim().is_empty());
        Ending::Stopped(StopReason::EndTurn, text)
    };
    let message = || outcome.message().unwrap_or_default();
    match outcome {
        Outcome::Success { .. } => Ending::Stopped(StopReason::EndTurn, None),
        Outcome::Obeyed { text, .. } => told(text),
        Outcome::MaxTokens => Ending::Stopped(StopReason::MaxTokens, None),
        Outcome::MaxTurns { .. } => Ending::Stopped(StopReason::MaxTurnRequests, None),
        Outcome::Cancelled => Ending::Stopped(StopReason::Cancelled, None),
        Outcome::Refusal { .. } | Outcome::ContentFilter { .. } => Ending::Refused(message()),
        Outcome::BudgetExceeded { .. }
        | Outcome::HookDenied { .. }
        | Outcome::Looping { .. }
        | Outcome::Misused { .. } => told(&message()),
        Outcome::Unusable { message } => Ending::Failed(Error::new(-32602, message.clone())),
        Outcome::Provider(error) => {
            let failed = match error.kind {
                ErrorKind::Auth => Error::new(-32000, message()),
                _ => Error::new(-32603, message()),
            };
            let details = json!({
                "kind": error.kind,
                "provider": error.provider,
                "model": error.model,
                "status": error.status,
            });
            Ending::Failed(failed.data(details))
        }
        Outcome::ContextFull { .. } | Outcome::SchemaMismatch { .. } | Outcome::Internal { .. } => {
            Ending::Failed(Error::new(-32603, message()))
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(Outcome::Success { text: "t".to_owned() }, StopReason::EndTurn, None)]
    #[case(Outcome::obeyed("done"), StopReason::EndTurn, Some("done"))]
    #[case(Outcome::obeyed(" "), StopReason::EndTurn, None)]
    #[case(Outcome::MaxTokens, StopReason::MaxTokens, None)]
    #[case(Outcome::MaxTurns { limit: 3 }, StopReason::MaxTurnRequests, None)]
    #[case(Outcome::Cancelled, StopReason::Cancelled, None)]
    fn what_ends_well_has_a_reason(
        #[case] outcome: Outcome,
        #[case] reason: StopReason,
        #[case] text: Option<&str>,
    ) {
        let expected = Ending::Stopped(reason, text.map(str::to_owned));
        assert_eq!(ending(&outcome), expected);
    }

    #[test]
    fn what_nobody_said_is_said() {
        let looping = Outcome::Looping {
            tool: "Bash".to_owned(),
            times: 5,
        };
        match ending(&looping) {
            Ending::Stopped(StopReason::EndTurn, Some(text)) => assert!(text.contains("Bash")),
            other => panic!("{other:?}"),
        }
        let refusal = Outcome::Refusal { detail: None };
        assert!(matches!(ending(&refusal), Ending::Refused(_)));
        let internal = Outcome::Internal {
            message: "m".to_owned(),
        };
        match ending(&internal) {
            Ending::Failed(error) => assert_eq!(i32::from(error.code), -32603),
            other => panic!("{other:?}"),
        }
    }
}
