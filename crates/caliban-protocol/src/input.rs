//! Lines that programs write to a run: each is one command.

use std::sync::Arc;

use caliban_agent::Reply;
use caliban_model::{Block, Message, Role};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;
use serde_json::Value;

use crate::line::parsed;

/// What a program wants.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// The next prompt.
    User(Message),
    /// Stop what is being done, and go on with the next prompt.
    Interrupt,
    /// What whoever attends says to a question about a call.
    Answer {
        question: Arc<str>,
        decision: Decision,
        input: Option<Value>,
        message: Option<String>,
    },
    /// What it says to a server.
    Reply { question: Arc<str>, reply: Reply },
}

/// Whether a call may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
pub enum Decision {
    Allow,
    /// This one and those like it, for the rest of the session.
    AllowSession,
    Deny,
}

/// A line that is no command.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("input line {line} is not a frame: {reason}")]
pub struct InputError {
    pub line: u64,
    pub reason: String,
}

/// A frame on standard input, with `--input-format stream-json`.
#[derive(Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum Frame {
    /// The next prompt.
    User {
        #[schemars(schema_with = "content")]
        content: Content,
    },
    /// Stops the exchange that is going on.
    Control { subtype: ControlSubtype },
    /// Answers a `question`: one about a call with `decision`, one of a server with `action`.
    Answer {
        question: String,
        decision: Option<Decision>,
        action: Option<Action>,
        /// The input to run with instead.
        input: Option<Value>,
        /// Why it may not run.
        message: Option<String>,
        /// What the server gets.
        content: Option<Value>,
    },
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum Action {
    Accept,
    Decline,
    Cancel,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub(crate) enum ControlSubtype {
    Interrupt,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "`content` must be a text or a list of `{\"type\":\"text\",\"text\":\"…\"}` blocks"
)]
pub(crate) enum Content {
    Text(String),
    Blocks(Vec<TextBlock>),
}

#[derive(Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase", deny_unknown_fields)]
#[schemars(inline)]
pub(crate) enum TextBlock {
    Text { text: String },
}

/// A text or blocks of text, not all of them blank.
fn content(generator: &mut SchemaGenerator) -> Schema {
    let block = generator.subschema_for::<TextBlock>();
    json_schema!({
        "anyOf": [
            {"type": "string", "pattern": r"\S"},
            {
                "type": "array",
                "items": block,
                "contains": {"properties": {"text": {"pattern": r"\S"}}},
            },
        ],
    })
}

/// Reads the `number`-th line; nothing for a blank one.
pub fn command(line: &str, number: u64) -> Result<Option<Command>, InputError> {
    let line = line.trim();
    if line.is_empty() {
        return Ok(None);
    }
    let wrong = |reason: String| InputError {
        line: number,
        reason,
    };
    if !line.starts_with('{') {
        return Err(wrong("a frame is a JSON object".to_owned()));
    }
    let frame: Frame = parsed(line).map_err(|error| wrong(error.to_string()))?;
    match frame {
        Frame::Control {
            subtype: ControlSubtype::Interrupt,
        } => Ok(Some(Command::Interrupt)),
        Frame::Answer {
            question,
            decision,
            action,
            input,
            message,
            content,
        } => {
            let question = Arc::from(question);
            let reply = |action| match action {
                Action::Accept => Reply::Accept(content.unwrap_or_default()),
                Action::Decline => Reply::Decline,
                Action::Cancel => Reply::Cancel,
            };
            match (decision, action) {
                (Some(decision), None) => Ok(Some(Command::Answer {
                    question,
                    decision,
                    input,
                    message,
                })),
                (None, Some(action)) => Ok(Some(Command::Reply {
                    question,
                    reply: reply(action),
                })),
                (Some(_), Some(_)) | (None, None) => Err(wrong(
                    "an answer has either a `decision` or an `action`".to_owned(),
                )),
            }
        }
        Frame::User { content } => {
            let texts = match content {
                Content::Text(text) => vec![text],
                Content::Blocks(blocks) => blocks
                    .into_iter()
                    .map(|TextBlock::Text { text }| text)
                    .collect(),
            };
            if texts.iter().all(|text| text.trim().is_empty()) {
                return Err(wrong("the content is empty".to_owned()));
            }
            let blocks = texts.into_iter().map(Block::text).collect();
            Ok(Some(Command::User(Message::new(Role::User, blocks))))
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[test]
    fn both_forms_of_content_are_read() {
        let prompt = |line: &str| match command(line, 1).unwrap() {
            Some(Command::User(message)) => message.text(),
            other => panic!("{other:?}"),
        };
        assert_eq!(prompt(r#"{"type":"user","content":"hi"}"#), "hi");
        assert_eq!(
            prompt("{\"type\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}]}\r\n"),
            "hi"
        );
        assert_eq!(
            command(r#"{"type":"control","subtype":"interrupt"}"#, 1),
            Ok(Some(Command::Interrupt))
        );
        assert_eq!(command("  \r\n", 1), Ok(None));
    }

    #[rstest]
    #[case("not json")]
    #[case(r#"{"type":"user"}"#)]
    #[case(r#"{"type":"user","content":""}"#)]
    #[case(r#"{"type":"user","content":[]}"#)]
    #[case(r#"{"type":"user","content":"x","extra":1}"#)]
    #[case(r#"{"type":"user","message":{"role":"user","content":"x"}}"#)]
    #[case(r#"{"type":"user","content":[{"type":"image"}]}"#)]
    #[case(r#"{"type":"user","content":[{"type":"text","text":"x","y":1}]}"#)]
    #[case(r#"{"type":"control","subtype":"stop"}"#)]
    #[case(r#"{"type":"control","subtype":"interrupt","x":1}"#)]
    #[case(r#"{"type":"other"}"#)]
    #[case("[]")]
    #[case(r#"{"type":"user","content":"x"} {"type":"user","content":"y"}"#)]
    fn anything_else_is_an_error_with_its_line(#[case] line: &str) {
        let error = command(line, 7).unwrap_err().to_string();
        assert!(
            error.starts_with("input line 7 is not a frame: "),
            "{error}"
        );
        // What the reader is called in the code helps nobody.
        for word in ["enum", "variant of", "Content"] {
            assert!(!error.contains(word), "{error}");
        }
    }
}
