//! Lines that a client writes.

use std::sync::Arc;

use caliban_model::{Block, Image, ImageSource, Message, Role};
use serde::Deserialize;
use serde_json::Value;

use super::control::Request;
use super::permission::Choice;

/// What a client says.
#[derive(Debug)]
pub enum Input {
    User(Box<UserInput>),
    /// It wants something; the answer names `id`.
    Control {
        id: String,
        request: Box<Request>,
    },
    /// It answers the request `id`.
    Answer {
        id: String,
        result: Result<Value, String>,
        /// The line as it was, for echoing.
        frame: Value,
    },
    /// It chooses one of the options of a question about a call.
    Choice {
        question: String,
        choice: Choice,
    },
    /// It does not wait for the answer to `id` any more.
    Cancelled {
        id: String,
    },
}

/// The next prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct UserInput {
    pub message: Message,
    /// The client's own id of it.
    pub uuid: Option<String>,
    pub wording: Wording,
}

/// Who wrote a prompt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wording {
    /// A person, who may name files with `@`.
    #[default]
    Typed,
    /// A program, whose text goes as it is.
    Composed,
}

/// A line that is no frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Error: input line {line} is not a frame: {reason}")]
pub struct InputError {
    pub line: u64,
    pub reason: String,
}

#[derive(Deserialize)]
struct User {
    message: UserMessage,
    #[serde(default)]
    uuid: Option<String>,
    #[serde(default)]
    client_composed: Option<bool>,
}

#[derive(Deserialize)]
struct UserMessage {
    role: UserRole,
    content: Content,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum UserRole {
    User,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Blocks(Vec<Value>),
}

#[derive(Deserialize)]
struct Answer {
    response: Answered,
}

#[derive(Deserialize)]
#[serde(tag = "subtype", rename_all = "lowercase")]
enum Answered {
    Success {
        request_id: String,
        #[serde(default)]
        response: Value,
    },
    Error {
        request_id: String,
        #[serde(default)]
        error: String,
    },
}

/// Reads the `number`-th line; nothing for one that says nothing to us.
pub fn decode(line: &str, number: u64) -> Result<Option<Input>, InputError> {
    let line = line.trim();
    if line.is_empty() {
        return Ok(None);
    }
    let wrong = |reason: String| InputError {
        line: number,
        reason,
    };
    let not_json = |error: serde_json::Error| wrong(error.to_string());
    let frame: Value = serde_json::from_str(line).map_err(not_json)?;
    let kind = frame.get("type").and_then(Value::as_str);
    let id = || {
        frame
            .get("request_id")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    match kind {
        Some("user") => {
            let user: User = serde_json::from_value(frame).map_err(not_json)?;
            let UserRole::User = user.message.role;
            let message = message(user.message.content).map_err(wrong)?;
            Ok(Some(Input::User(Box::new(UserInput {
                message,
                uuid: user.uuid,
                wording: match user.client_composed {
                    Some(true) => Wording::Composed,
                    Some(false) | None => Wording::Typed,
                },
            }))))
        }
        Some("control_request") => {
            let id = id().ok_or_else(|| wrong("a request without `request_id`".to_owned()))?;
            let request = frame.get("request").cloned().unwrap_or_default();
            Ok(Some(Input::Control {
                id,
                request: Box::new(Request::read(request)),
            }))
        }
        Some("control_response") => {
            let Ok(answer) = serde_json::from_value::<Answer>(frame.clone()) else {
                // Nobody waits for an answer that names no question.
                return Ok(None);
            };
            let (id, result) = match answer.response {
                Answered::Success {
                    request_id,
                    response,
                } => (request_id, Ok(response)),
                Answered::Error { request_id, error } => (request_id, Err(error)),
            };
            Ok(Some(Input::Answer { id, result, frame }))
        }
        Some("permission_response") => {
            let text = |key: &str| frame.get(key).and_then(Value::as_str).unwrap_or_default();
            Ok(Some(Input::Choice {
                question: text("question_id").to_owned(),
                choice: Choice::read(text("option_id")),
            }))
        }
        Some("control_cancel_request") => Ok(id().map(|id| Input::Cancelled { id })),
        Some(_) => Ok(None),
        None => Err(wrong("it has no `type`".to_owned())),
    }
}

fn message(content: Content) -> Result<Message, String> {
    let blocks = match content {
        Content::Text(text) => vec![Block::text(text)],
        Content::Blocks(blocks) => blocks
            .into_iter()
            .filter_map(|value| block(&value).transpose())
            .collect::<Result<_, _>>()?,
    };
    Ok(Message::new(Role::User, blocks))
}

/// A block of a prompt; nothing for a kind that prompts do not have here.
fn block(value: &Value) -> Result<Option<Block>, String> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    match text("type") {
        Some("text") => Ok(text("text").map(Block::text)),
        Some("image") => image(value).map(|image| Some(Block::Image(image))),
        // What a tool of the client answered is something it says.
        Some("tool_result") => Ok(value.get("content").map(|content| {
            Block::text(
                content
                    .as_str()
                    .map_or_else(|| content.to_string(), str::to_owned),
            )
        })),
        Some(_) | None => Ok(None),
    }
}

fn image(value: &Value) -> Result<Image, String> {
    let source = value.get("source").ok_or("an image without `source`")?;
    let text = |key: &str| source.get(key).and_then(Value::as_str);
    match (text("type"), text("media_type"), text("data"), text("url")) {
        (Some("base64"), Some(media_type), Some(data), _) => Ok(Image {
            mime: media_type
                .parse()
                .map_err(|error: caliban_model::UnsupportedImage| error.to_string())?,
            source: ImageSource::Base64 {
                data: Arc::from(data),
            },
            dims: None,
        }),
        _ => Err("an image must have a base64 source with `media_type` and `data`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn user(line: &str) -> UserInput {
        match decode(line, 1).unwrap() {
            Some(Input::User(input)) => *input,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn prompts_of_all_clients_are_read() {
        let py = user(
            r#"{"type":"user","session_id":"","message":{"role":"user","content":"PROMPT"},"parent_tool_use_id":null}"#,
        );
        assert_eq!(py.message.text(), "PROMPT");
        let ts = user(
            r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"A"},{"type":"odd"}]},"uuid":"u1","x":1}"#,
        );
        assert_eq!(
            (ts.message.text().as_str(), ts.uuid.as_deref()),
            ("A", Some("u1"))
        );
        let image = user(
            r#"{"type":"user","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}}"#,
        );
        assert!(matches!(image.message.content[..], [Block::Image(_)]));
    }

    #[rstest]
    #[case("not json")]
    #[case("[]")]
    #[case("{}")]
    #[case(r#"{"type":"user"}"#)]
    #[case(r#"{"type":"user","message":{"role":"assistant","content":"x"}}"#)]
    #[case(r#"{"type":"user","message":{"role":"user"}}"#)]
    #[case(r#"{"type":"control_request","request":{"subtype":"interrupt"}}"#)]
    fn what_is_no_frame_is_an_error(#[case] line: &str) {
        assert!(decode(line, 3).unwrap_err().to_string().contains("line 3"));
    }

    #[rstest]
    #[case("")]
    #[case("   ")]
    #[case(r#"{"type":"keep_alive"}"#)]
    #[case(r#"{"type":"update_environment_variables","variables":{}}"#)]
    #[case(r#"{"type":"control_response","response":{}}"#)]
    fn what_says_nothing_is_passed_over(#[case] line: &str) {
        assert!(decode(line, 1).unwrap().is_none());
    }

    #[test]
    fn answers_carry_the_id_of_their_question() {
        let line = r#"{"type":"control_response","response":{"subtype":"success","request_id":"a","response":{"b":1}}}"#;
        match decode(line, 1).unwrap() {
            Some(Input::Answer { id, result, .. }) => {
                assert_eq!(id, "a");
                assert_eq!(result.unwrap()["b"], 1);
            }
            other => panic!("{other:?}"),
        }
        let line = r#"{"type":"control_response","response":{"subtype":"error","request_id":"a","error":"no"}}"#;
        assert!(matches!(
            decode(line, 1).unwrap(),
            Some(Input::Answer { result: Err(error), .. }) if error == "no"
        ));
    }

    #[rstest]
    #[case("allow", Choice::Allow)]
    #[case("allow-session", Choice::AllowForSession)]
    #[case("deny", Choice::Deny)]
    #[case("perhaps", Choice::Unknown("perhaps".to_owned()))]
    fn an_option_is_chosen(#[case] option: &str, #[case] expected: Choice) {
        let line =
            format!(r#"{{"type":"permission_response","question_id":"q","option_id":"{option}"}}"#);
        match decode(&line, 1).unwrap() {
            Some(Input::Choice { question, choice }) => {
                assert_eq!((question.as_str(), choice), ("q", expected));
            }
            other => panic!("{other:?}"),
        }
    }

    proptest! {
        #[test]
        fn no_line_is_too_strange(line in ".{0,60}") {
            let _ = decode(&line, 1);
        }

        #[test]
        fn every_text_arrives_as_it_was(text in any::<String>()) {
            let line = serde_json::json!({
                "type": "user",
                "message": {"role": "user", "content": text},
            });
            prop_assert_eq!(user(&line.to_string()).message.text(), text);
        }
    }
}
