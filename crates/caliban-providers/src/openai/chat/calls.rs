//! Puts tool calls together from fragments, whatever a server does with indexes, ids and names.

use caliban_model::{Error, ErrorKind};
use serde_json::{Value, json};

use super::wire::Fragment;
use crate::assembly::{Assembly, BlockId};
use crate::openai::lenient::filled;

/// The most calls one answer may make.
const MAX_CALLS: usize = 1024;
/// The most input that may wait for the names of its calls.
const MAX_WAITING: usize = 1024 * 1024;

#[derive(Debug, Default)]
pub(super) struct Calls {
    calls: Vec<Call>,
    /// Bytes of input that wait for a name.
    waiting: usize,
}

#[derive(Debug, Default)]
struct Call {
    index: Option<u64>,
    id: Option<String>,
    extra: Option<Value>,
    shape: Shape,
    state: State,
}

#[derive(Debug)]
enum State {
    /// The name has not come; a call that never gets one is dropped.
    Nameless {
        input: String,
    },
    Named {
        name: String,
        block: BlockId,
    },
}

impl Default for State {
    fn default() -> Self {
        Self::Nameless {
            input: String::new(),
        }
    }
}

impl Calls {
    pub(super) fn add(&mut self, from: Fragment, assembly: &mut Assembly) -> Result<(), Error> {
        let fragment = Piece {
            index: from.index,
            id: filled(from.id.as_deref()),
            name: filled(from.function.name.as_deref()),
            input: match from.function.arguments {
                Value::String(text) => text,
                Value::Null => String::new(),
                whole => whole.to_string(),
            },
        };
        let at = match self.find(&fragment) {
            Some(at) => at,
            None => self.start(assembly)?,
        };
        let Some(call) = self.calls.get_mut(at) else {
            return Ok(());
        };
        call.index = call.index.or(fragment.index);
        if call.id.is_none() {
            call.id = fragment.id.map(str::to_owned);
        }
        call.extra = from.extra_content.or_else(|| call.extra.take());
        call.shape.read(&fragment.input);
        match (&mut call.state, fragment.name) {
            (State::Nameless { input }, Some(name)) => {
                let id = call.id.as_deref().unwrap_or_default();
                let block = assembly.open_tool(id, name)?;
                assembly.push(block, input)?;
                assembly.push(block, &fragment.input)?;
                self.waiting -= input.len();
                call.state = State::Named {
                    name: name.to_owned(),
                    block,
                };
            }
            (State::Nameless { input }, None) => {
                input.push_str(&fragment.input);
                self.waiting += fragment.input.len();
                if self.waiting > MAX_WAITING {
                    return Err(assembly.error(
                        ErrorKind::Malformed,
                        "the answer holds tool calls without names",
                    ));
                }
            }
            (State::Named { block, .. }, _) => assembly.push(*block, &fragment.input)?,
        }
        if let (State::Named { block, .. }, Some(extra)) = (&call.state, &call.extra) {
            assembly.set_private(*block, json!({ "extra_content": extra }));
        }
        Ok(())
    }

    fn start(&mut self, assembly: &Assembly) -> Result<usize, Error> {
        if self.calls.len() >= MAX_CALLS {
            return Err(assembly.error(
                ErrorKind::Malformed,
                format!("the answer makes more than {MAX_CALLS} tool calls"),
            ));
        }
        self.calls.push(Call::default());
        Ok(self.calls.len() - 1)
    }

    /// The call a fragment continues: by id, else by index, else the one that is not complete.
    /// Nothing if it begins a new one.
    fn find(&self, fragment: &Piece<'_>) -> Option<usize> {
        let last = |wanted: &dyn Fn(&Call) -> bool| self.calls.iter().rposition(wanted);
        let by_id = fragment
            .id
            .and_then(|id| last(&|call| call.id.as_deref() == Some(id)));
        let at = by_id.or_else(|| match fragment.index {
            Some(_) => last(&|call| call.index == fragment.index),
            None => {
                last(&|call| !call.shape.is_complete()).or_else(|| self.calls.len().checked_sub(1))
            }
        })?;
        let call = self.calls.get(at)?;
        let other_id = by_id.is_none() && fragment.id.is_some() && call.id.is_some();
        let more = call.shape.is_complete() && !fragment.input.is_empty();
        let fresh = match (&call.state, fragment.name) {
            (State::Nameless { .. }, Some(_)) => other_id || more,
            (State::Named { name, .. }, Some(again)) => {
                let other_index = fragment.index.is_some()
                    && call.index.is_some()
                    && fragment.index != call.index;
                other_id || other_index || name != again || more
            }
            (_, None) => other_id && (call.shape.is_complete() || fragment.index.is_none()),
        };
        (!fresh).then_some(at)
    }
}

/// A fragment without its blanks.
struct Piece<'a> {
    index: Option<u64>,
    id: Option<&'a str>,
    name: Option<&'a str>,
    input: String,
}

/// How far a JSON object has been read; knows its end without parsing it again and again.
#[derive(Debug, Default)]
struct Shape {
    depth: usize,
    text: Text,
    begun: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Text {
    #[default]
    Outside,
    Inside,
    Escaped,
}

impl Shape {
    fn read(&mut self, json: &str) {
        for byte in json.bytes() {
            match self.text {
                Text::Outside if byte == b'"' => self.text = Text::Inside,
                Text::Outside => match byte {
                    b'{' | b'[' => {
                        self.depth += 1;
                        self.begun = true;
                    }
                    b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                    _ => {}
                },
                Text::Inside if byte == b'\\' => self.text = Text::Escaped,
                Text::Inside if byte == b'"' => self.text = Text::Outside,
                Text::Inside => {}
                Text::Escaped => self.text = Text::Inside,
            }
        }
    }

    fn is_complete(&self) -> bool {
        self.begun && self.depth == 0 && self.text == Text::Outside
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caliban_model::{Block, Origin, StopReason, StreamEvent};
    use rstest::rstest;

    /// Ids that we make up are shown as `new`.
    fn calls(fragments: &Value) -> Vec<(String, String, Value)> {
        let mut calls = Calls::default();
        let mut assembly = Assembly::new(Origin::new("openai", "m"));
        for fragment in fragments.as_array().unwrap() {
            let fragment = serde_json::from_value(fragment.clone()).unwrap();
            calls.add(fragment, &mut assembly).unwrap();
        }
        assembly.stop(StopReason::EndTurn, None);
        assembly
            .take_events()
            .into_iter()
            .filter_map(|event| match event {
                StreamEvent::BlockEnded {
                    block:
                        Block::ToolUse {
                            id, name, input, ..
                        },
                    ..
                } => {
                    let id = if id.len() == 37 { "new".into() } else { id };
                    Some((id, name, input))
                }
                _ => None,
            })
            .collect()
    }

    #[rstest]
    #[case::by_index(json!([
        {"index": 0, "id": "a", "type": "function", "function": {"name": "A", "arguments": ""}},
        {"index": 0, "function": {"arguments": "{\"x\""}},
        {"index": 1, "id": "b", "function": {"name": "B", "arguments": ""}},
        {"index": 0, "function": {"arguments": ":1}"}},
        {"index": 1, "function": {"arguments": "{\"y\":2}"}},
    ]), &["a", "b"])]
    #[case::index_missing_and_whole(json!([
        {"id": "a", "function": {"name": "A", "arguments": "{\"x\":1}"}},
        {"id": "b", "function": {"name": "B", "arguments": "{\"y\":2}"}},
    ]), &["a", "b"])]
    #[case::index_and_id_missing(json!([
        {"function": {"name": "A", "arguments": "{\"x\":1}"}},
        {"function": {"name": "B", "arguments": "{\"y\""}},
        {"function": {"arguments": ":2}"}},
    ]), &["new", "new"])]
    #[case::index_always_zero(json!([
        {"index": 0, "id": "a", "function": {"name": "A", "arguments": "{\"x\":1}"}},
        {"index": 0, "id": "b", "function": {"name": "B", "arguments": "{\"y\""}},
        {"index": 0, "function": {"arguments": ":2}"}},
    ]), &["a", "b"])]
    #[case::index_zero_without_ids(json!([
        {"index": 0, "function": {"name": "A", "arguments": "{\"x\":1}"}},
        {"index": 0, "function": {"name": "B", "arguments": "{\"y\":2}"}},
    ]), &["new", "new"])]
    #[case::indexes_with_gaps(json!([
        {"index": 3, "id": "a", "function": {"name": "A", "arguments": "{\"x\":1}"}},
        {"index": 7, "id": "b", "function": {"name": "B", "arguments": "{\"y\":2}"}},
    ]), &["a", "b"])]
    #[case::id_and_name_repeated(json!([
        {"index": 0, "id": "a", "function": {"name": "A", "arguments": "{\"x\""}},
        {"index": 0, "id": "a", "function": {"name": "A", "arguments": ":1}"}},
        {"index": 0, "id": "a", "function": {"name": "A", "arguments": ""}},
        {"index": 1, "id": "b", "function": {"name": "B", "arguments": "{\"y\""}},
        {"index": 1, "id": "b", "function": {"name": "", "arguments": ":2}"}},
    ]), &["a", "b"])]
    #[case::id_reused(json!([
        {"index": 0, "id": "a", "function": {"name": "A", "arguments": "{\"x\":1}"}},
        {"index": 1, "id": "a", "function": {"name": "B", "arguments": ""}},
        {"index": 1, "id": "a", "function": {"arguments": "{\"y\":2}"}},
    ]), &["a", "new"])]
    #[case::id_blank(json!([
        {"index": 0, "id": "", "function": {"name": "A", "arguments": "{\"x\":1}"}},
        {"index": 1, "id": " ", "function": {"name": "B", "arguments": "{\"y\":2}"}},
    ]), &["new", "new"])]
    #[case::id_new_in_every_fragment(json!([
        {"index": 0, "id": "a", "function": {"name": "A", "arguments": "{\"x\""}},
        {"index": 0, "id": "z", "function": {"arguments": ":1}"}},
        {"index": 1, "id": "b", "function": {"name": "B", "arguments": "{\"y\":2}"}},
    ]), &["a", "b"])]
    #[case::name_late(json!([
        {"index": 0, "id": "a", "function": {"arguments": "{\"x\""}},
        {"index": 0, "function": {"name": "A", "arguments": ":1"}},
        {"index": 0, "function": {"arguments": "}"}},
        {"index": 1, "id": "b"},
        {"index": 1, "function": {"name": "B", "arguments": "{\"y\":2}"}},
    ]), &["a", "b"])]
    #[case::name_never(json!([
        {"index": 0, "id": "a", "function": {"name": "A", "arguments": "{\"x\":1}"}},
        {"index": 5, "id": "ghost", "function": {"name": " ", "arguments": "{}"}},
        {"index": 1, "id": "b", "function": {"name": "B", "arguments": "{\"y\":2}"}},
    ]), &["a", "b"])]
    #[case::nameless_and_complete(json!([
        {"function": {"arguments": "{}"}},
        {"id": "a", "function": {"name": "A", "arguments": "{\"x\":1}"}},
        {"function": {"name": "B", "arguments": "{\"y\":2}"}},
    ]), &["a", "new"])]
    #[case::arguments_as_objects(json!([
        {"index": 0, "id": "a", "function": {"name": "A", "arguments": {"x": 1}}},
        {"index": 1, "id": "b", "function": {"name": "B", "arguments": null}},
        {"index": 1, "function": {"arguments": {"y": 2}}},
    ]), &["a", "b"])]
    fn two_calls_are_told_apart(#[case] fragments: Value, #[case] ids: &[&str]) {
        let expected = [
            (ids[0].to_owned(), "A".to_owned(), json!({"x": 1})),
            (ids[1].to_owned(), "B".to_owned(), json!({"y": 2})),
        ];
        assert_eq!(calls(&fragments), expected);
    }

    #[test]
    fn the_same_tool_twice_without_ids_is_two_calls() {
        let fragments = json!([
            {"index": 0, "function": {"name": "A", "arguments": "{\"x\":\"}\\\"\"}"}},
            {"index": 0, "function": {"name": "A", "arguments": "{}"}},
            {"index": 0, "function": {"name": "List", "arguments": ""}},
        ]);
        assert_eq!(
            calls(&fragments),
            [
                ("new".to_owned(), "A".to_owned(), json!({"x": "}\""})),
                ("new".to_owned(), "A".to_owned(), json!({})),
                ("new".to_owned(), "List".to_owned(), json!({})),
            ]
        );
    }

    #[test]
    fn the_same_tool_under_one_id_and_two_indexes_is_two_calls() {
        let fragments = json!([
            {"index": 0, "id": "a", "function": {"name": "A", "arguments": "{}"}},
            {"index": 1, "id": "a", "function": {"name": "A", "arguments": ""}},
            {"index": 1, "function": {"arguments": "{\"x\":1}"}},
        ]);
        assert_eq!(
            calls(&fragments),
            [
                ("a".to_owned(), "A".to_owned(), json!({})),
                ("new".to_owned(), "A".to_owned(), json!({"x": 1})),
            ]
        );
    }

    #[test]
    fn an_unknown_id_without_an_index_begins_a_call_even_before_its_name() {
        let fragments = json!([
            {"id": "a", "function": {"name": "List", "arguments": ""}},
            {"id": "b", "function": {"arguments": "{\"x\""}},
            {"id": "b", "function": {"name": "A", "arguments": ":1}"}},
        ]);
        assert_eq!(
            calls(&fragments),
            [
                ("a".to_owned(), "List".to_owned(), json!({})),
                ("b".to_owned(), "A".to_owned(), json!({"x": 1})),
            ]
        );
    }

    #[test]
    fn input_that_does_not_parse_is_kept_for_the_model_to_see() {
        let fragments = json!([{"index": 0, "id": "a", "function": {"name": "A", "arguments": "{\"x\": oops"}}]);
        assert_eq!(
            calls(&fragments),
            [("a".to_owned(), "A".to_owned(), json!("{\"x\": oops"))]
        );
    }

    #[test]
    fn endless_calls_are_refused() {
        let mut assembly = Assembly::new(Origin::new("openai", "m"));
        let refused = |fragment: &dyn Fn(usize) -> Value, assembly: &mut Assembly| {
            let mut calls = Calls::default();
            (0..=MAX_CALLS).any(|at| {
                let fragment = serde_json::from_value(fragment(at)).unwrap();
                calls.add(fragment, assembly).is_err()
            })
        };
        let many = |at| json!({"index": at, "function": {"arguments": "x"}});
        assert!(refused(&many, &mut assembly));
        let long = |_| json!({"index": 0, "function": {"arguments": "x".repeat(2048)}});
        assert!(refused(&long, &mut assembly));
    }
}
