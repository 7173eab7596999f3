//! Pieces of an answer: what may be merged with its neighbour, and dropped where nobody keeps up.

use serde_json::Value;

/// Whether a line may be condensed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Calls, results, questions, states: never dropped.
    Kept,
    /// A piece of what the model writes; the whole follows.
    Piece,
}

impl Weight {
    pub(crate) fn of(event: &Value) -> Self {
        if piece(event).is_some() {
            Self::Piece
        } else {
            Self::Kept
        }
    }
}

/// Where the text of a piece is.
fn piece(event: &Value) -> Option<&str> {
    match event["type"].as_str()? {
        "text" | "thinking" => event["delta"].as_str(),
        "stream_event" if event["event"]["type"] == "content_block_delta" => {
            let delta = &event["event"]["delta"];
            field(delta).and_then(|field| delta[field].as_str())
        }
        _ => None,
    }
}

/// The field that holds the text of a delta in the other dialect.
fn field(delta: &Value) -> Option<&'static str> {
    match delta["type"].as_str()? {
        "text_delta" => Some("text"),
        "thinking_delta" => Some("thinking"),
        "input_json_delta" => Some("partial_json"),
        _ => None,
    }
}

/// Puts the text of the next piece at the end of one, where both belong to the same block.
pub(crate) fn merge(event: &mut Value, next: &Value) -> bool {
    let Some(added) = piece(next) else {
        return false;
    };
    if event["type"] != next["type"] {
        return false;
    }
    let place = if event["type"] == "stream_event" {
        let is_same = |name: &str| event["event"][name] == next["event"][name];
        let kinds = (
            &event["event"]["delta"]["type"],
            &next["event"]["delta"]["type"],
        );
        let parents = (&event["parent_tool_use_id"], &next["parent_tool_use_id"]);
        if !is_same("index") || !is_same("type") || kinds.0 != kinds.1 || parents.0 != parents.1 {
            return false;
        }
        let Some(name) = field(&event["event"]["delta"]) else {
            return false;
        };
        &mut event["event"]["delta"][name]
    } else {
        &mut event["delta"]
    };
    match place {
        Value::String(text) => {
            text.push_str(added);
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_of_one_block_become_one() {
        let mut text = json!({"type": "text", "delta": "a"});
        assert!(merge(&mut text, &json!({"type": "text", "delta": "b"})));
        assert_eq!(text["delta"], "ab");
        assert!(!merge(
            &mut text,
            &json!({"type": "thinking", "delta": "b"})
        ));
        assert!(!merge(&mut text, &json!({"type": "result"})));
        let stream = |index: u32, text: &str| {
            json!({"type": "stream_event", "event": {"type": "content_block_delta", "index": index,
                   "delta": {"type": "text_delta", "text": text}}})
        };
        let mut first = stream(0, "a");
        assert!(merge(&mut first, &stream(0, "b")));
        assert_eq!(first["event"]["delta"]["text"], "ab");
        assert!(!merge(&mut first, &stream(1, "c")));
        assert_eq!(Weight::of(&first), Weight::Piece);
        assert_eq!(Weight::of(&json!({"type": "tool_use"})), Weight::Kept);
    }
}
