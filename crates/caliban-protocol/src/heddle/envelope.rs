//! Errors as clients read them: a code, a message, and whether trying again may help.

use caliban_agent::Outcome;
use caliban_model::Error;
use serde::Serialize;
use serde_json::{Value, json};

use super::version::Version;

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    ProviderError,
    ProtocolError,
    ProtocolVersionMismatch,
    ToolError,
    LoopDetected,
    Cancelled,
    /// Only from 0.5 on.
    MaxIterations,
}

impl Code {
    /// Whether the same request may succeed when it is sent again. The code alone decides, as
    /// the protocol says; `details` tell failures that are known to be permanent.
    pub fn is_retryable(self) -> bool {
        match self {
            Self::ProviderError => true,
            Self::ProtocolError
            | Self::ProtocolVersionMismatch
            | Self::ToolError
            | Self::LoopDetected
            | Self::Cancelled
            | Self::MaxIterations => false,
        }
    }
}

/// An error.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Envelope {
    pub code: Code,
    pub message: String,
    pub retryable: bool,
    /// Only where a provider failed; null where it gave no particulars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}

impl Envelope {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            retryable: code.is_retryable(),
            details: (code == Code::ProviderError).then_some(Value::Null),
        }
    }

    pub fn protocol(message: impl Into<String>) -> Self {
        Self::new(Code::ProtocolError, message)
    }
}

/// The error that the end of a run is; nothing for a success.
pub fn of_outcome(outcome: &Outcome, version: Version) -> Option<Envelope> {
    let code = match outcome {
        Outcome::Success { .. } | Outcome::Obeyed { .. } => return None,
        Outcome::Cancelled => Code::Cancelled,
        Outcome::Looping { .. } => Code::LoopDetected,
        Outcome::Provider(error) => {
            return Some(Envelope {
                details: Some(particulars(error)),
                ..Envelope::new(Code::ProviderError, error.to_string())
            });
        }
        // The same message would come to the same end.
        Outcome::MaxTokens
        | Outcome::Refusal { .. }
        | Outcome::ContentFilter { .. }
        | Outcome::ContextFull { .. } => {
            let message = outcome.message().unwrap_or_default();
            return Some(Envelope {
                details: Some(json!({"permanent": true})),
                ..Envelope::new(Code::ProviderError, message)
            });
        }
        Outcome::MaxTurns { limit } => {
            let code = match version {
                Version::V0_5 => Code::MaxIterations,
                // The code that is neither retried nor blamed on the client: calls remained
                // whose results nobody read.
                Version::V0_2 => Code::ToolError,
            };
            let message = format!("stopped after {limit} iterations; raise `max_iterations`");
            return Some(Envelope::new(code, message));
        }
        Outcome::BudgetExceeded { .. }
        | Outcome::HookDenied { .. }
        | Outcome::SchemaMismatch { .. }
        | Outcome::Unusable { .. }
        | Outcome::Misused { .. }
        | Outcome::Internal { .. } => Code::ToolError,
    };
    Some(Envelope::new(code, outcome.message().unwrap_or_default()))
}

/// What a program can act on: the status, when to try again, and whether it is any use.
fn particulars(error: &Error) -> Value {
    let mut particulars = serde_json::Map::new();
    if let Some(status) = error.status {
        particulars.insert("status".to_owned(), json!(status));
    }
    if let Some(wait) = error.retry_after {
        let wait = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
        particulars.insert("retry_after_ms".to_owned(), json!(wait));
    }
    if !error.is_retryable() {
        particulars.insert("permanent".to_owned(), json!(true));
    }
    if particulars.is_empty() {
        Value::Null
    } else {
        Value::Object(particulars)
    }
}

#[cfg(test)]
mod tests {
    use caliban_model::ErrorKind;

    use super::*;

    fn frame(outcome: &Outcome, version: Version) -> Value {
        serde_json::to_value(of_outcome(outcome, version)).unwrap()
    }

    #[test]
    fn every_end_has_its_documented_code() {
        let v2 = |outcome: &Outcome| frame(outcome, Version::V0_2);
        assert_eq!(
            v2(&Outcome::Success {
                text: String::new()
            }),
            Value::Null
        );
        assert_eq!(
            v2(&Outcome::Cancelled),
            json!({"code": "cancelled", "message": "cancelled", "retryable": false})
        );
        let looping = Outcome::Looping {
            tool: "Read".to_owned(),
            times: 8,
        };
        assert_eq!(v2(&looping)["code"], "loop_detected");
        assert_eq!(v2(&looping)["retryable"], false);
        let limited = Error::new(ErrorKind::RateLimited, "p", "m", "slow down");
        assert_eq!(
            v2(&Outcome::Provider(limited)),
            json!({
                "code": "provider_error",
                "message": "p (m): slow down; wait a little and try again, or use another model",
                "retryable": true,
                "details": null,
            })
        );
        let refused = Error::new(ErrorKind::Auth, "p", "m", "no").with_status(401);
        assert_eq!(
            v2(&Outcome::Provider(refused))["details"],
            json!({"status": 401, "permanent": true})
        );
        let internal = Outcome::Internal {
            message: "broken".to_owned(),
        };
        assert_eq!(
            v2(&internal),
            json!({"code": "tool_error", "message": "broken", "retryable": false})
        );
    }

    #[test]
    fn the_limit_of_iterations_has_a_code_of_its_own_from_0_5_on() {
        let limit = Outcome::MaxTurns { limit: 3 };
        let message = "stopped after 3 iterations; raise `max_iterations`";
        for (version, code) in [
            (Version::V0_2, "tool_error"),
            (Version::V0_5, "max_iterations"),
        ] {
            assert_eq!(
                frame(&limit, version),
                json!({"code": code, "message": message, "retryable": false})
            );
        }
    }
}
