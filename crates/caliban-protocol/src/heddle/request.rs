//! Lines that a client writes: each is one request. Fields that nobody knows are ignored.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::envelope::Envelope;
use crate::line::parsed;

/// What a client wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Request {
    Init(Init),
    Send(Send),
    Status {
        id: String,
    },
    Cancel {
        id: String,
        target_id: String,
    },
    Shutdown {
        id: String,
    },
    /// The answer to a `permission_request`.
    Permission(PermissionResponse),
}

/// Begins a session.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Init {
    pub id: String,
    #[serde(default)]
    pub protocol_version: Option<String>,
    pub config: Config,
}

/// What a session is to be.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Config {
    pub model: String,
    pub system_prompt: String,
    /// In the names of that world or in ours.
    pub tools: Vec<String>,
    #[serde(default)]
    pub max_iterations: Option<std::num::NonZeroU32>,
    #[serde(default)]
    pub task_id: Option<String>,
    #[serde(default)]
    pub worker_id: Option<String>,
    #[serde(default)]
    pub approval_mode: Option<ApprovalMode>,
}

/// A stricter way than approving everything that is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalMode {
    /// What changes anything is asked about.
    Suggest,
    /// Nothing is changed; the answer is a plan.
    Plan,
}

/// A message for the agent.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Send {
    pub id: String,
    pub message: String,
}

/// What the client says to a question.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct PermissionResponse {
    pub id: String,
    /// The question meant; without it, the oldest about `name`, else the oldest.
    #[serde(default)]
    pub request_id: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
    pub decision: Choice,
    /// Told to the model with a refusal.
    #[serde(default)]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Choice {
    Allow,
    Deny,
}

/// A line that is no request.
#[derive(Debug, Clone, PartialEq)]
pub struct BadRequest {
    /// Its id, as far as it has one.
    pub id: Option<String>,
    pub error: Envelope,
}

#[derive(Deserialize)]
struct Plain {
    id: String,
}

#[derive(Deserialize)]
struct Target {
    id: String,
    target_id: String,
}

/// Reads a line; nothing for a blank one.
pub fn request(line: &str) -> Result<Option<Request>, BadRequest> {
    let line = line.trim();
    if line.is_empty() {
        return Ok(None);
    }
    let bad = |id: Option<&str>, message: String| BadRequest {
        id: id.map(str::to_owned),
        error: Envelope::protocol(message),
    };
    let value: Value =
        parsed(line).map_err(|error| bad(None, format!("the line is not JSON: {error}")))?;
    let id = value.get("id").and_then(Value::as_str).map(str::to_owned);
    let id = id.as_deref();
    let Some(Value::String(kind)) = value.get("type") else {
        let message = "a request is an object whose `type` is a string";
        return Err(bad(id, message.to_owned()));
    };
    let kind = kind.clone();
    let wrong = |reason: String| bad(id, format!("`{kind}`: {reason}"));
    let request = match kind.as_str() {
        "init" => Request::Init(read(value).map_err(wrong)?),
        "send" => {
            let send: Send = read(value).map_err(wrong)?;
            if send.message.trim().is_empty() {
                return Err(wrong("the message is empty".to_owned()));
            }
            Request::Send(send)
        }
        "status" => Request::Status {
            id: read::<Plain>(value).map_err(wrong)?.id,
        },
        "cancel" => {
            let Target { id, target_id } = read(value).map_err(wrong)?;
            Request::Cancel { id, target_id }
        }
        "shutdown" => Request::Shutdown {
            id: read::<Plain>(value).map_err(wrong)?.id,
        },
        "permission_response" => Request::Permission(read(value).map_err(wrong)?),
        other => return Err(bad(id, format!("there is no request `{other}`"))),
    };
    Ok(Some(request))
}

fn read<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[test]
    fn requests_are_read_and_unknown_fields_ignored() {
        let init = r#"{"type":"init","id":"1","new":{},"config":{"model":"m","system_prompt":"s","tools":["bash"],"new":1}}"#;
        let Ok(Some(Request::Init(init))) = request(init) else {
            panic!("no init")
        };
        assert_eq!(init.config.tools, ["bash"]);
        assert_eq!(init.config.max_iterations, None);
        assert_eq!(
            request("{\"type\":\"cancel\",\"id\":\"4\",\"target_id\":\"2\"}\r\n"),
            Ok(Some(Request::Cancel {
                id: "4".to_owned(),
                target_id: "2".to_owned()
            }))
        );
        assert_eq!(request(" \r\n"), Ok(None));
    }

    #[rstest]
    #[case("nonsense", None, "the line is not JSON")]
    #[case("[1]", None, "a request is an object")]
    #[case(r#"{"id":"7"}"#, Some("7"), "a request is an object")]
    #[case(
        r#"{"type":"dance","id":"7"}"#,
        Some("7"),
        "there is no request `dance`"
    )]
    #[case(r#"{"type":"status"}"#, None, "`status`: missing field `id`")]
    #[case(r#"{"type":"status","id":7}"#, None, "`status`: invalid type")]
    #[case(
        r#"{"type":"send","id":"2"}"#,
        Some("2"),
        "`send`: missing field `message`"
    )]
    #[case(
        r#"{"type":"send","id":"2","message":" "}"#,
        Some("2"),
        "`send`: the message is empty"
    )]
    #[case(
        r#"{"type":"cancel","id":"4"}"#,
        Some("4"),
        "`cancel`: missing field `target_id`"
    )]
    #[case(
        r#"{"type":"init","id":"1"}"#,
        Some("1"),
        "`init`: missing field `config`"
    )]
    #[case(
        r#"{"type":"init","id":"1","config":{"model":"m","system_prompt":"s"}}"#,
        Some("1"),
        "`init`: missing field `tools`"
    )]
    #[case(
        r#"{"type":"init","id":"1","config":{"model":"m","system_prompt":"s","tools":[],"max_iterations":0}}"#,
        Some("1"),
        "`init`: invalid value: integer `0`"
    )]
    #[case(
        r#"{"type":"init","id":"1","config":{"model":"m","system_prompt":"s","tools":[],"approval_mode":"yolo"}}"#,
        Some("1"),
        "`init`: unknown variant `yolo`"
    )]
    #[case(
        r#"{"type":"permission_response","id":"9","decision":"maybe"}"#,
        Some("9"),
        "`permission_response`: unknown variant `maybe`"
    )]
    fn anything_else_is_an_error_with_its_id(
        #[case] line: &str,
        #[case] id: Option<&str>,
        #[case] message: &str,
    ) {
        let bad = request(line).unwrap_err();
        assert_eq!(bad.id.as_deref(), id);
        assert!(bad.error.message.starts_with(message), "{:?}", bad.error);
        assert!(!bad.error.retryable);
    }

    proptest! {
        #[test]
        fn no_line_is_too_strange(line in any::<String>()) {
            let _ = request(&line);
        }
    }
}
