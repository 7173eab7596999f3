//! A generation request, parsed as far as every family needs it.

use serde_json::Value;

use crate::fault::Rejection;
use crate::json;
use crate::record::Api;
use crate::script::{Match, Presence};

/// How the answer is to be delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Whole,
    Stream,
    /// Gemini's stream without `alt=sse`: the elements of one JSON array.
    Array,
    /// AWS's binary messages.
    EventStream,
}

#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) api: Api,
    pub(crate) model: String,
    pub(crate) mode: Mode,
    pub(crate) body: Value,
}

/// The fields that hold the conversation, over all families.
const CONVERSATION: [&str; 7] = [
    "messages",
    "input",
    "contents",
    "system",
    "instructions",
    "systemInstruction",
    "system_instruction",
];

impl Ask {
    /// Reads a body whose model and mode are fields of it, as in every family but Gemini.
    pub(crate) fn from_body(api: Api, body: &[u8]) -> Result<Self, Rejection> {
        let body = parse(body)?;
        let model = json::text(&body, "model").unwrap_or_default().to_owned();
        let streams = match body.get("stream").and_then(Value::as_bool) {
            Some(wish) => wish,
            None => api == Api::Ollama,
        };
        let mode = if streams { Mode::Stream } else { Mode::Whole };
        Ok(Self {
            api,
            model,
            mode,
            body,
        })
    }

    /// Reads a Gemini body; its model and mode are in the address.
    pub(crate) fn from_path(model: &str, mode: Mode, body: &[u8]) -> Result<Self, Rejection> {
        Ok(Self {
            api: Api::Gemini,
            model: model.to_owned(),
            mode,
            body: parse(body)?,
        })
    }

    pub(crate) fn matches(&self, condition: &Match) -> bool {
        let Match {
            last_user,
            any_text,
            tool_result,
            model,
        } = condition;
        last_user
            .as_ref()
            .is_none_or(|needle| self.last_user_text().contains(needle))
            && any_text.as_ref().is_none_or(|needle| self.any_text(needle))
            && tool_result.is_none_or(|presence| self.tool_result() == presence)
            && model.as_ref().is_none_or(|id| *id == self.model)
    }

    fn any_text(&self, needle: &str) -> bool {
        CONVERSATION
            .iter()
            .filter_map(|field| self.body.get(field))
            .any(|part| json::any_string_contains(part, needle))
    }

    fn entries(&self) -> impl DoubleEndedIterator<Item = &Value> {
        ["messages", "input", "contents"]
            .into_iter()
            .flat_map(|field| json::list(&self.body, field))
    }

    fn tool_result(&self) -> Presence {
        let holds = |entry: &Value| {
            json::text(entry, "role") == Some("tool")
                || json::text(entry, "type") == Some("function_call_output")
                || json::list(entry, "content").iter().any(|b| {
                    json::text(b, "type") == Some("tool_result") || b.get("toolResult").is_some()
                })
                || json::list(entry, "parts").iter().any(|p| {
                    p.get("functionResponse")
                        .or(p.get("function_response"))
                        .is_some()
                })
        };
        if self.entries().any(holds) {
            Presence::Present
        } else {
            Presence::Absent
        }
    }

    fn last_user_text(&self) -> String {
        if let Some(input) = json::text(&self.body, "input") {
            return input.to_owned();
        }
        self.entries()
            .rev()
            .filter(|entry| json::text(entry, "role") == Some("user"))
            .map(written_text)
            .find(|text| !text.is_empty())
            .unwrap_or_default()
    }
}

/// The text of an entry's own blocks, leaving tool results out.
fn written_text(entry: &Value) -> String {
    if let Some(text) = json::text(entry, "content") {
        return text.to_owned();
    }
    let blocks = json::list(entry, "content")
        .iter()
        .chain(json::list(entry, "parts"));
    blocks
        .filter_map(|block| json::text(block, "text"))
        .collect::<Vec<_>>()
        .join("\n")
}

fn parse(body: &[u8]) -> Result<Value, Rejection> {
    let value: Value = serde_json::from_slice(body).map_err(|error| {
        Rejection::invalid(format!("The request body is not valid JSON: {error}"))
    })?;
    if value.is_object() {
        Ok(value)
    } else {
        Err(Rejection::invalid("The request body is not a JSON object"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn ask(api: Api, body: &Value) -> Ask {
        Ask::from_body(api, body.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn conditions_hold_in_every_family() {
        let requests = [
            ask(Api::AnthropicMessages, &json!({"model": "m", "system": "be kind", "messages": [
                {"role": "user", "content": "list files"},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": "x.rs"}]}]})),
            ask(Api::OpenAiChat, &json!({"model": "m", "messages": [
                {"role": "system", "content": "be kind"},
                {"role": "user", "content": [{"type": "text", "text": "list files"}]},
                {"role": "tool", "tool_call_id": "a", "content": "x.rs"}]})),
            ask(Api::OpenAiResponses, &json!({"model": "m", "instructions": "be kind", "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "list files"}]},
                {"type": "function_call_output", "call_id": "a", "output": "x.rs"}]})),
            Ask::from_path("m", Mode::Stream, json!({"systemInstruction": {"parts": [{"text": "be kind"}]},
                "contents": [{"role": "user", "parts": [{"text": "list files"}]},
                {"role": "user", "parts": [{"functionResponse": {"name": "a", "response": {"output": "x.rs"}}}]}]})
                .to_string().as_bytes()).unwrap(),
        ];
        for request in requests {
            let all = Match {
                last_user: Some("list".into()),
                any_text: Some("be kind".into()),
                tool_result: Some(Presence::Present),
                model: Some("m".into()),
            };
            assert!(request.matches(&all), "{request:?}");
            assert!(request.matches(&Match::any_text("x.rs")));
            assert!(!request.matches(&Match::last_user("x.rs")), "{request:?}");
            assert!(!request.matches(&Match::model("other")));
            assert!(!request.matches(&Match::tool_result(Presence::Absent)));
        }
    }

    #[test]
    fn only_ollama_streams_unasked() {
        assert_eq!(ask(Api::Ollama, &json!({})).mode, Mode::Stream);
        assert_eq!(ask(Api::OpenAiChat, &json!({})).mode, Mode::Whole);
        assert_eq!(
            ask(Api::OpenAiChat, &json!({"stream": true})).mode,
            Mode::Stream
        );
    }

    #[test]
    fn a_body_must_be_an_object() {
        assert!(Ask::from_body(Api::OpenAiChat, b"[]").is_err());
        assert!(Ask::from_body(Api::OpenAiChat, b"{").is_err());
    }
}
