//! Answers that cannot be read: nested too deeply, or on one line with something else. Whoever
//! waits for one is told at once, if it says which call it belongs to.

use rmcp::RoleClient;
use rmcp::service::RxJsonRpcMessage;
use serde_json::{Value, json};

/// At how many places of a text a message is looked for.
const MAX_STARTS: usize = 4;
/// JSON-RPC: what was received is not valid JSON.
const PARSE_ERROR: i32 = -32700;

/// The failure that a text which is no message stands for; `None` if it is no answer either.
pub(super) fn answer(text: &[u8]) -> Option<RxJsonRpcMessage<RoleClient>> {
    serde_json::from_value(answer_value(text)?).ok()
}

/// As [`answer`], in the words of the protocol.
pub(super) fn answer_value(text: &[u8]) -> Option<Value> {
    const MARK: &[u8] = b"\"jsonrpc\"";
    if !text.windows(MARK.len()).any(|window| window == MARK) {
        return None;
    }
    let is_start = |place: &usize| text[*place] == b'{';
    let mut starts = (0..text.len()).filter(is_start).take(MAX_STARTS);
    let id = starts.find_map(|start| Outline::of(&text[start..]).answers())?;
    let message = "the server's answer cannot be read: it is not one JSON object on a line of its \
                   own, or is nested too deeply";
    Some(json!({
        "jsonrpc": "2.0",
        "id": id,
        "error": {"code": PARSE_ERROR, "message": message},
    }))
}

/// What the members of an object tell about it, without reading what is in them.
#[derive(Debug, Default)]
struct Outline {
    id: Option<Value>,
    has_version: bool,
    has_method: bool,
}

impl Outline {
    /// Looks at a text that begins with an object, to its end or to that of the text.
    fn of(text: &[u8]) -> Self {
        let mut outline = Self::default();
        let mut depth = 0_usize;
        let mut place = 0;
        while let Some(byte) = text.get(place) {
            match byte {
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        break;
                    }
                }
                b'"' => {
                    let end = string_end(text, place);
                    let rest = text.get(end..).unwrap_or_default().trim_ascii_start();
                    if depth == 1
                        && let Some(value) = rest.strip_prefix(b":")
                    {
                        outline.note(&text[place..end], value.trim_ascii_start());
                    }
                    place = end;
                    continue;
                }
                _ => {}
            }
            place += 1;
        }
        outline
    }

    fn note(&mut self, key: &[u8], value: &[u8]) {
        match key {
            b"\"jsonrpc\"" => self.has_version = true,
            b"\"method\"" => self.has_method = true,
            b"\"id\"" => self.id = self.id.take().or_else(|| id(value)),
            _ => {}
        }
    }

    /// The id of the request that it is the answer to.
    fn answers(self) -> Option<Value> {
        self.id.filter(|_| self.has_version && !self.has_method)
    }
}

/// The place after the string that begins here.
fn string_end(text: &[u8], start: usize) -> usize {
    let mut place = start + 1;
    while let Some(byte) = text.get(place) {
        place += match byte {
            b'"' => return place + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    text.len()
}

/// The number or string that a text begins with.
fn id(text: &[u8]) -> Option<Value> {
    let end = match text.first()? {
        b'"' => string_end(text, 0),
        _ => text.iter().position(|byte| !byte.is_ascii_digit())?,
    };
    serde_json::from_slice(text.get(..end)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case::glued(r#"Loading {a} {"jsonrpc":"2.0","id":7,"result":{}}"#, Some(json!(7)))]
    #[case::order(r#"{"result":{"id":1,"x":"}"},"id" : "a\"b","jsonrpc":"2.0"} tail"#, Some(json!("a\"b")))]
    #[case::cut(r#"{"jsonrpc":"2.0","id":3,"resu{"jsonrpc":"2.0","id":4}"#, Some(json!(3)))]
    #[case::request(r#"noise {"jsonrpc":"2.0","id":3,"method":"ping"}"#, None)]
    #[case::notification(r#"noise {"jsonrpc":"2.0","result":{"id":3}}"#, None)]
    #[case::chatter(r#"{"level":"info","id":3}"#, None)]
    #[case::quoted(r#"said "{\"jsonrpc\":\"2.0\",\"id\":3}""#, None)]
    fn an_answer_is_known_by_its_outline(#[case] line: &str, #[case] id: Option<Value>) {
        let found = answer_value(line.as_bytes()).map(|answer| answer["id"].clone());
        assert_eq!(found, id, "{line}");
    }

    #[test]
    fn depth_does_not_matter() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        let line = format!(r#"{{"jsonrpc":"2.0","result":{deep},"id":5}}"#);
        assert!(answer(line.as_bytes()).is_some());
    }

    proptest! {
        #[test]
        fn any_text_is_looked_at(text in r#"(\{|\}|"|\\|:|,|"jsonrpc"|"id"|1|é|\[){0,24}"#) {
            answer_value(text.as_bytes());
        }
    }
}
