//! Cassettes: a run's exchanges with its provider, kept in a file and played back without one.
//!
//! A cassette is JSON lines. The first line is a header, `{"cassette":1,…}`. Each exchange is a
//! `{"request":…}` line followed by the events of its answer, one per line, the last of which is
//! `stopped`, or by one `{"error":…}` line. A request line holds what is compared on playback:
//! the model, the tools' names and the messages since the model last spoke; the system prompt
//! stands there to be read but is not compared, because it names the machine.

mod difference;
mod masking;
mod record;
mod replay;

use std::path::PathBuf;

use caliban_model::{Block, Request, Role};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub use masking::Masking;
pub use record::Recording;
pub use replay::Replay;

/// The version of the format that is written; others are refused.
const VERSION: u64 = 1;

/// Why a cassette cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CassetteError {
    #[error("cassette `{}`: {source}", path.display())]
    Io {
        path: PathBuf,
        source: std::io::Error,
    },
    #[error("cassette `{}`, line {line}: {reason}", path.display())]
    Format {
        path: PathBuf,
        line: usize,
        reason: String,
    },
}

/// The compared part of a request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Asked {
    provider: String,
    model: String,
    purpose: String,
    tools: Vec<String>,
    /// How many messages came before, system messages not counted.
    after: usize,
    messages: Vec<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    system: Option<String>,
}

impl Asked {
    fn new(provider: &str, request: &Request) -> Self {
        let turns = request.turns();
        let after = turns
            .iter()
            .rposition(|turn| turn.role == Role::Assistant)
            .map_or(0, |position| position + 1);
        let system: Vec<String> = request
            .system()
            .iter()
            .map(|message| message.text())
            .collect();
        Self {
            provider: provider.to_owned(),
            model: request.model.to_string(),
            purpose: request.metadata.purpose.slug().to_owned(),
            tools: request.tools.iter().map(|tool| tool.name.clone()).collect(),
            after,
            messages: turns[after..]
                .iter()
                .map(|turn| json!({"role": turn.role, "content": readable(&turn.content)}))
                .collect(),
            system: (!system.is_empty()).then(|| system.join("\n\n")),
        }
    }

    /// What must be equal for a recorded answer to be given.
    fn compared(&self) -> Value {
        json!({
            "model": self.model,
            "purpose": self.purpose,
            "tools": self.tools,
            "after": self.after,
            "messages": self.messages,
        })
    }
}

/// Blocks as they are compared. Images are named by size: their bytes would make the file
/// unreadable and say no more.
fn readable(content: &[Block]) -> Value {
    let mut value = json!(content);
    shorten_images(&mut value);
    value
}

fn shorten_images(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(shorten_images),
        Value::Object(fields) => {
            if fields.get("type").and_then(Value::as_str) == Some("base64")
                && let Some(Value::String(data)) = fields.get_mut("data")
            {
                *data = format!("({} characters of base64)", data.len());
            }
            fields.values_mut().for_each(shorten_images);
        }
        _ => {}
    }
}
