//! Lines that a client writes.

use std::sync::Arc;

use caliban_model::{Block, Image, ImageMime, ImageSource, Message, Role};
use serde::Deserialize;
use serde_json::Value;

use super::control::Request;
use super::permission::Choice;
use crate::line::parsed;

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
    /// A frame that nothing follows from; its author may want to know why.
    Odd {
        reason: String,
    },
}

/// The next prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct UserInput {
    pub message: Message,
    /// The client's own id of it.
    pub uuid: Option<String>,
    pub wording: Wording,
    /// Why it cannot be worked on: part of it cannot be sent to a model.
    pub unfit: Option<String>,
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
struct ControlAnswer {
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
    let frame: Value = parsed(line).map_err(not_json)?;
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
            let (message, unfit) = message(user.message.content);
            Ok(Some(Input::User(Box::new(UserInput {
                message,
                unfit,
                uuid: user.uuid,
                wording: match user.client_composed {
                    Some(true) => Wording::Composed,
                    Some(false) | None => Wording::Typed,
                },
            }))))
        }
        Some("control_request") => {
            let Some(id) = id() else {
                return Ok(Some(Input::Odd {
                    reason: "a request without `request_id` cannot be answered".to_owned(),
                }));
            };
            let request = frame.get("request").cloned().unwrap_or_default();
            Ok(Some(Input::Control {
                id,
                request: Box::new(Request::read(request)),
            }))
        }
        Some("control_response") => {
            let Ok(answer) = serde_json::from_value::<ControlAnswer>(frame.clone()) else {
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
        None if frame.is_object() => Ok(Some(Input::Odd {
            reason: "a frame without `type` says nothing".to_owned(),
        })),
        None => Err(wrong("it is no object".to_owned())),
    }
}

/// What is said, and why it cannot be worked on where a part of it cannot be sent: a prompt that lost
/// a part on the way would be another one.
fn message(content: Content) -> (Message, Option<String>) {
    let mut unfit = None;
    let blocks = match content {
        Content::Text(text) => vec![Block::text(text)],
        Content::Blocks(blocks) => blocks
            .iter()
            .filter_map(|value| {
                block(value).unwrap_or_else(|reason| {
                    unfit.get_or_insert(reason);
                    None
                })
            })
            .collect(),
    };
    (Message::new(Role::User, blocks), unfit)
}

/// A block of a prompt; nothing for one that says nothing.
fn block(value: &Value) -> Result<Option<Block>, String> {
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    match text("type") {
        Some("text") => Ok(text("text").map(Block::text)),
        Some("image") => image(value).map(|image| Some(Block::Image(image))),
        Some("document") => document(value).map(|text| Some(Block::text(text))),
        // What a tool of the client answered is something it says.
        Some("tool_result") => Ok(value.get("content").map(|content| {
            Block::text(
                content
                    .as_str()
                    .map_or_else(|| content.to_string(), str::to_owned),
            )
        })),
        Some(kind) => Err(format!(
            "a block of the type `{kind}` cannot be sent; use text, image or document"
        )),
        None => Err("a block without `type` cannot be sent".to_owned()),
    }
}

/// A document of text, as a text that says what it is.
fn document(value: &Value) -> Result<String, String> {
    let source = value.get("source").ok_or("a document without `source`")?;
    let text = |key: &str| source.get(key).and_then(Value::as_str);
    let (Some("text"), Some(data)) = (text("type"), text("data")) else {
        return Err(
            "a document can be sent if its source is of the type `text`; attach any other as a file"
                .to_owned(),
        );
    };
    let title = value.get("title").and_then(Value::as_str);
    let title = title.map_or_else(String::new, |title| {
        format!(" title=\"{}\"", title.replace('"', "'"))
    });
    Ok(format!(
        "<document{title}>\n{}\n</document>",
        data.trim_end()
    ))
}

fn image(value: &Value) -> Result<Image, String> {
    let source = value.get("source").ok_or("an image without `source`")?;
    let text = |key: &str| source.get(key).and_then(Value::as_str);
    match (text("type"), text("media_type"), text("data"), text("url")) {
        (Some("url"), media_type, _, Some(url)) => Ok(Image {
            mime: media_type
                .map_or(Ok(named(url)), str::parse)
                .map_err(|error: caliban_model::UnsupportedImage| error.to_string())?,
            source: ImageSource::Url {
                url: url.to_owned(),
            },
            dims: None,
        }),
        (Some("base64"), Some(media_type), Some(data), _) => Ok(Image {
            mime: media_type
                .parse()
                .map_err(|error: caliban_model::UnsupportedImage| error.to_string())?,
            source: ImageSource::Base64 {
                data: Arc::from(data),
            },
            dims: None,
        }),
        _ => Err(
            "an image must have a base64 source with `media_type` and `data`, or one with a `url`"
                .to_owned(),
        ),
    }
}

/// The type that the name of a picture tells; most are such as the web shows.
fn named(url: &str) -> ImageMime {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let ending = path.rsplit('.').next().unwrap_or_default();
    match ending.to_ascii_lowercase().as_str() {
        "jpg" | "jpeg" => ImageMime::Jpeg,
        "gif" => ImageMime::Gif,
        "webp" => ImageMime::Webp,
        _ => ImageMime::Png,
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
            r#"{"type":"user","message":{"role":"user","content":[{"type":"text","text":"A"}]},"uuid":"u1","x":1}"#,
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
    #[case(r#"{"type":"user"}"#)]
    #[case(r#"{"type":"user","message":{"role":"assistant","content":"x"}}"#)]
    #[case(r#"{"type":"user","message":{"role":"user"}}"#)]
    fn what_is_no_frame_is_an_error(#[case] line: &str) {
        assert!(decode(line, 3).unwrap_err().to_string().contains("line 3"));
    }

    #[rstest]
    #[case("{}")]
    #[case(r#"{"type":"control_request","request":{"subtype":"interrupt"}}"#)]
    fn what_nothing_follows_from_is_told(#[case] line: &str) {
        assert!(matches!(decode(line, 1).unwrap(), Some(Input::Odd { .. })));
    }

    fn asked(block: &str) -> UserInput {
        user(&format!(
            r#"{{"type":"user","message":{{"role":"user","content":[{block},{{"type":"text","text":"see"}}]}}}}"#
        ))
    }

    #[test]
    fn a_document_of_text_is_text() {
        let block = r#"{"type":"document","title":"a \"b\"","source":{"type":"text","media_type":"text/plain","data":"hello\n"}}"#;
        let input = asked(block);
        assert_eq!(
            input.message.content[0],
            Block::text("<document title=\"a 'b'\">\nhello\n</document>")
        );
        assert_eq!(input.unfit, None);
    }

    #[rstest]
    #[case(r#"{"type":"odd"}"#, "`odd`")]
    #[case(r#"{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":""}}"#, "document")]
    #[case(r#"{"type":"image","source":{"type":"file"}}"#, "image")]
    #[case("{}", "without `type`")]
    fn a_prompt_with_a_part_that_cannot_be_sent_is_unfit(#[case] block: &str, #[case] why: &str) {
        assert!(asked(block).unfit.unwrap().contains(why));
    }

    #[rstest]
    #[case("https://x/a.JPG?b=c", ImageMime::Jpeg)]
    #[case("https://x/a", ImageMime::Png)]
    fn an_image_may_be_an_address(#[case] url: &str, #[case] mime: ImageMime) {
        let input = asked(&format!(
            r#"{{"type":"image","source":{{"type":"url","url":"{url}"}}}}"#
        ));
        match &input.message.content[0] {
            Block::Image(image) => assert_eq!(image.mime, mime),
            other => panic!("{other:?}"),
        }
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
