//! OpenAI Responses: what was issued, and errors within a stream.

mod check;
mod stream;

use std::collections::HashMap;

use serde_json::{Value, json};

pub(crate) use check::check;
pub(crate) use stream::{document, events};

use crate::ask::Ask;
use crate::fault::Rejection;
use crate::frame::Event;
use crate::json::{given, list};
use crate::openai;
use crate::turn::{Part, Thoughts, Turn};

/// A reasoning item as it left this server.
#[derive(Debug)]
struct Reasoning {
    encrypted: String,
    summary: String,
}

/// The reasoning an item was issued with.
#[derive(Debug)]
struct Origin {
    reasoning: String,
    adjacency: Adjacency,
}

/// Whether the item stood directly after its reasoning or later in the same turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Adjacency {
    Direct,
    Later,
}

#[derive(Debug, Default)]
pub(crate) struct Issued {
    reasoning: HashMap<String, Reasoning>,
    items: HashMap<String, Origin>,
}

impl Issued {
    pub(crate) fn remember(&mut self, turn: &Turn) {
        let mut latest: Option<(String, Adjacency)> = None;
        for (index, part) in turn.parts.iter().enumerate() {
            let Some(id) = item_id(turn, index, part) else {
                continue;
            };
            if let Part::Thinking { text, signature } = part {
                let reasoning = Reasoning {
                    encrypted: signature.clone(),
                    summary: text.clone(),
                };
                self.reasoning.insert(id.clone(), reasoning);
                latest = Some((id, Adjacency::Direct));
            } else if let Some((reasoning, adjacency)) = latest.as_mut() {
                let origin = Origin {
                    reasoning: reasoning.clone(),
                    adjacency: *adjacency,
                };
                self.items.insert(id, origin);
                *adjacency = Adjacency::Later;
            }
        }
    }
}

/// The id of the output item a part becomes; `None` for parts this API cannot express.
fn item_id(turn: &Turn, index: usize, part: &Part) -> Option<String> {
    let prefix = match part {
        Part::Text { .. } => "msg",
        Part::Thinking { .. } => "rs",
        Part::Call { .. } => "fc",
        Part::Redacted { .. } => return None,
    };
    Some(format!("{prefix}_{:04}_{index}", turn.serial))
}

/// Summaries come only on request.
pub(crate) fn thoughts(ask: &Ask) -> Thoughts {
    let reasoning = ask.body.get("reasoning").unwrap_or(&Value::Null);
    let asked = given(reasoning, "summary").or(given(reasoning, "generate_summary"));
    if asked.is_some() {
        Thoughts::Shown
    } else {
        Thoughts::Emptied
    }
}

fn includes_encrypted(ask: &Ask) -> bool {
    list(&ask.body, "include")
        .iter()
        .any(|value| value == "reasoning.encrypted_content")
}

pub(crate) fn error_event(rejection: &Rejection, position: usize) -> Event {
    let error = openai::error(rejection);
    let data = json!({
        "type": "error",
        "sequence_number": position,
        "code": error["error"]["code"],
        "message": rejection.message,
        "param": rejection.param,
    });
    Event::named("error", &data)
}
