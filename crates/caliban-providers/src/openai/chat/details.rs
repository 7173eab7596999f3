//! OpenRouter's `reasoning_details`: readable text for us, and a sequence to hand back as it
//! was. Streamed pieces of one entry are joined, since only the whole entry can be verified.

use caliban_model::{Error, ErrorKind};
use serde_json::{Map, Value};

use crate::assembly::Assembly;

/// The most that is kept, in entries and in bytes.
const MAX_ENTRIES: usize = 1024;
const MAX_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct Details {
    entries: Vec<Value>,
    bytes: usize,
}

impl Details {
    /// Keeps the pieces and returns what they say.
    pub(super) fn add(&mut self, pieces: Vec<Value>, assembly: &Assembly) -> Result<String, Error> {
        let mut said = String::new();
        for piece in pieces {
            for name in ["text", "summary"] {
                said.push_str(piece.get(name).and_then(Value::as_str).unwrap_or(""));
            }
            self.bytes += piece.to_string().len();
            match (self.entries.last_mut(), piece) {
                (Some(Value::Object(last)), Value::Object(piece)) if continues(last, &piece) => {
                    join(last, piece);
                }
                (_, piece) => self.entries.push(piece),
            }
            if self.bytes > MAX_BYTES || self.entries.len() > MAX_ENTRIES {
                return Err(assembly.error(
                    ErrorKind::Malformed,
                    "the reasoning details of the answer are too large",
                ));
            }
        }
        Ok(said)
    }

    pub(super) fn take(&mut self) -> Option<Value> {
        let entries = std::mem::take(&mut self.entries);
        (!entries.is_empty()).then_some(Value::Array(entries))
    }
}

/// Pieces of one entry share its type and its index; entries without an index are whole.
fn continues(last: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    piece.get("index").is_some_and(|index| !index.is_null())
        && last.get("index") == piece.get("index")
        && last.get("type") == piece.get("type")
}

fn join(last: &mut Map<String, Value>, piece: Map<String, Value>) {
    for (name, value) in piece {
        match (last.get_mut(&name), value) {
            (_, Value::Null) => {}
            (Some(Value::String(whole)), Value::String(more))
                if matches!(name.as_str(), "text" | "summary" | "data") =>
            {
                whole.push_str(&more);
            }
            (_, value) => {
                last.insert(name, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caliban_model::Origin;
    use serde_json::json;

    fn assembly() -> Assembly {
        Assembly::new(Origin::new("openai", "m"))
    }

    #[test]
    fn pieces_of_one_entry_are_joined_and_whole_entries_left_alone() {
        let mut details = Details::default();
        let mut add = |pieces: Value| {
            let pieces = pieces.as_array().cloned().unwrap();
            details.add(pieces, &assembly()).unwrap()
        };
        let said = add(
            json!([{"type": "reasoning.text", "index": 0, "text": "Let ", "signature": null}]),
        ) + &add(
            json!([{"type": "reasoning.text", "index": 0, "text": "me", "signature": null}]),
        ) + &add(json!([{"type": "reasoning.text", "index": 0, "signature": "sig"}]))
            + &add(
                json!([{"type": "reasoning.encrypted", "data": "x"}, {"type": "reasoning.encrypted", "data": "y"}]),
            );
        assert_eq!(said, "Let me");
        assert_eq!(
            details.take(),
            Some(json!([
                {"type": "reasoning.text", "index": 0, "text": "Let me", "signature": "sig"},
                {"type": "reasoning.encrypted", "data": "x"},
                {"type": "reasoning.encrypted", "data": "y"},
            ]))
        );
        assert_eq!(details.take(), None);
    }

    #[test]
    fn endless_details_are_refused() {
        let mut details = Details::default();
        let large = json!({"index": 0, "data": "x".repeat(1024 * 1024)});
        assert!((0..9).any(|_| details.add(vec![large.clone()], &assembly()).is_err()));
        let mut details = Details::default();
        assert!((0..=MAX_ENTRIES).any(|_| details.add(vec![json!(1)], &assembly()).is_err()));
    }
}
