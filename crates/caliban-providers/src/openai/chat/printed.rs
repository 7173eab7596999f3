//! Calls that a model prints as text, where its server does not make calls of them.
//!
//! Only a call of a tool that was offered counts, at the very end of an answer that makes no other,
//! so that a model which quotes one from a file makes none.

use std::collections::HashSet;

use caliban_model::Request;
use serde_json::{Map, Value};

use crate::openai::profile::TextCalls;

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";
/// What a call may begin with.
const MARKS: [&str; 4] = [OPEN, "<function=", "[TOOL_CALLS]", "{"];
/// The longest text that is held back for it.
const MAX_HELD: usize = 256 * 1024;

/// A call.
#[derive(Debug, PartialEq)]
pub(super) struct Printed {
    pub(super) name: String,
    pub(super) input: Value,
}

/// Tells calls from text. Holds text back from a mark on, at the start of the answer or of a line.
#[derive(Debug, Default)]
pub(super) struct PrintedCalls {
    /// Nothing where no call would be understood.
    offered: Option<HashSet<String>>,
    held: String,
    /// Whether text was let through since the last line began.
    within_line: bool,
    has_text: bool,
}

/// What came of the text that was held back.
#[derive(Debug, PartialEq)]
pub(super) enum Ending {
    Text(String),
    Calls(Vec<Printed>),
}

impl PrintedCalls {
    pub(super) fn new(request: &Request, text_calls: TextCalls) -> Self {
        let offered = match text_calls {
            TextCalls::Understood if !request.tools.is_empty() => {
                Some(request.tools.iter().map(|tool| tool.name.clone()).collect())
            }
            TextCalls::Understood | TextCalls::Ignored => None,
        };
        Self {
            offered,
            ..Self::default()
        }
    }

    /// The part of the text that is no call for certain.
    pub(super) fn push(&mut self, text: &str) -> String {
        if self.offered.is_none() {
            return text.to_owned();
        }
        self.held.push_str(text);
        if self.held.len() > MAX_HELD {
            return self.let_go(self.held.len());
        }
        let mut from = 0;
        while from < self.held.len() {
            let line = &self.held[from..];
            let lead = line.len() - line.trim_start_matches([' ', '\t']).len();
            let begins = from > 0 || !self.within_line;
            let has_text = self.has_text || !self.held[..from].trim().is_empty();
            if begins && may_be_mark(&line[lead..], has_text) {
                break;
            }
            match line.find('\n') {
                Some(end) => from += end + 1,
                None => from = self.held.len(),
            }
        }
        self.let_go(from)
    }

    fn let_go(&mut self, until: usize) -> String {
        let rest = self.held.split_off(until);
        let said = std::mem::replace(&mut self.held, rest);
        if let Some(last) = said.chars().last() {
            self.within_line = last != '\n';
        }
        self.has_text |= !said.trim().is_empty();
        said
    }

    /// The answer is complete.
    pub(super) fn finish(&mut self) -> Ending {
        let held = std::mem::take(&mut self.held);
        let offered = self.offered.as_ref();
        let calls = offered.and_then(|offered| {
            let calls = read(held.trim())?;
            let is_offered = |call: &Printed| offered.contains(&call.name);
            (!calls.is_empty() && calls.iter().all(is_offered)).then_some(calls)
        });
        calls.map_or(Ending::Text(held), Ending::Calls)
    }
}

/// A bare object counts only where the answer is nothing else.
fn may_be_mark(line: &str, has_text: bool) -> bool {
    MARKS.iter().any(|mark| {
        let fits = line.starts_with(mark) || mark.starts_with(line);
        fits && !(*mark == "{" && has_text)
    })
}

/// The calls that a text consists of, and of nothing else.
fn read(text: &str) -> Option<Vec<Printed>> {
    if text.starts_with(OPEN) {
        return tagged(text);
    }
    if text.starts_with("<function=") {
        return function(text).map(|call| vec![call]);
    }
    let json = text.strip_prefix("[TOOL_CALLS]").unwrap_or(text);
    objects(&serde_json::from_str(json.trim()).ok()?)
}

fn tagged(mut text: &str) -> Option<Vec<Printed>> {
    let mut calls = Vec::new();
    while !text.is_empty() {
        let rest = text.strip_prefix(OPEN)?;
        // The last tag is sometimes left open.
        let (inner, rest) = rest.split_once(CLOSE).unwrap_or((rest, ""));
        let inner = inner.trim();
        if inner.starts_with("<function=") {
            calls.push(function(inner)?);
        } else {
            calls.extend(objects(&serde_json::from_str(inner).ok()?)?);
        }
        text = rest.trim_start();
    }
    Some(calls)
}

fn objects(value: &Value) -> Option<Vec<Printed>> {
    match value {
        Value::Array(values) => values.iter().map(object).collect(),
        Value::Object(_) => object(value).map(|call| vec![call]),
        _ => None,
    }
}

/// `{"name": …, "arguments": {…}}`; some say `parameters`, and some write the object as a text.
fn object(value: &Value) -> Option<Printed> {
    let name = value.get("name")?.as_str()?.to_owned();
    let input = value.get("arguments").or_else(|| value.get("parameters"))?;
    let input = match input {
        Value::String(text) => serde_json::from_str(text).ok()?,
        other => other.clone(),
    };
    input.is_object().then_some(Printed { name, input })
}

/// `<function=NAME><parameter=KEY>VALUE</parameter>…</function>`.
fn function(text: &str) -> Option<Printed> {
    let (name, rest) = text.strip_prefix("<function=")?.split_once('>')?;
    let (body, after) = rest.split_once("</function>")?;
    if !after.trim().is_empty() {
        return None;
    }
    let mut input = Map::new();
    let mut body = body.trim();
    while !body.is_empty() {
        let (key, rest) = body.strip_prefix("<parameter=")?.split_once('>')?;
        let (value, rest) = rest.split_once("</parameter>")?;
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        let parsed = match serde_json::from_str(value) {
            Ok(
                parsed @ (Value::Number(_) | Value::Bool(_) | Value::Array(_) | Value::Object(_)),
            ) => parsed,
            Ok(_) | Err(_) => value.into(),
        };
        input.insert(key.to_owned(), parsed);
        body = rest.trim_start();
    }
    Some(Printed {
        name: name.to_owned(),
        input: Value::Object(input),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn calls() -> PrintedCalls {
        PrintedCalls {
            offered: Some(HashSet::from(["Bash".to_owned()])),
            ..PrintedCalls::default()
        }
    }

    /// What is shown, and how it ends, whatever pieces it comes in.
    fn read_in(text: &str, size: usize) -> (String, Ending) {
        let mut reader = calls();
        let letters: Vec<char> = text.chars().collect();
        let shown = letters
            .chunks(size)
            .map(|piece| reader.push(&piece.iter().collect::<String>()))
            .collect();
        (shown, reader.finish())
    }

    #[rstest]
    #[case(
        "<tool_call>\n{\"name\": \"Bash\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>",
        ""
    )]
    #[case(
        "I look.\n<tool_call>{\"name\":\"Bash\",\"arguments\":\"{\\\"command\\\":\\\"ls\\\"}\"}</tool_call>\n",
        "I look.\n"
    )]
    #[case(
        "<tool_call>\n<function=Bash>\n<parameter=command>\nls\n</parameter>\n</function>\n</tool_call>",
        ""
    )]
    #[case(
        "[TOOL_CALLS][{\"name\": \"Bash\", \"arguments\": {\"command\": \"ls\"}}]",
        ""
    )]
    #[case("{\"name\": \"Bash\", \"parameters\": {\"command\": \"ls\"}}", "")]
    fn printed_calls_are_calls(#[case] text: &str, #[case] before: &str) {
        for size in [1, 3, 1000] {
            let (shown, ending) = read_in(text, size);
            assert_eq!(shown, before);
            let call = Printed {
                name: "Bash".to_owned(),
                input: json!({"command": "ls"}),
            };
            assert_eq!(ending, Ending::Calls(vec![call]), "{text}");
        }
    }

    #[rstest]
    #[case("plain words { and } more")]
    #[case("quoted: <tool_call>{\"name\":\"Bash\",\"arguments\":{}}</tool_call>")]
    #[case("<tool_call>{\"name\":\"Bash\",\"arguments\":{}}</tool_call>\nis how it is written")]
    #[case("<tool_call>{\"name\":\"Steal\",\"arguments\":{}}</tool_call>")]
    #[case("Here:\n{\"name\": \"Bash\", \"arguments\": {}}")]
    #[case("{\"answer\": 42}")]
    #[case("a\n\n<b>c</b>\n<")]
    fn everything_else_stays_text(#[case] text: &str) {
        for size in [1, 3, 1000] {
            let (shown, ending) = read_in(text, size);
            let Ending::Text(rest) = ending else {
                panic!("{ending:?}");
            };
            assert_eq!(shown + &rest, text);
        }
    }
}
