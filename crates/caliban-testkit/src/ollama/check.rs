//! What an Ollama server refuses.

use serde_json::Value;

use super::message;
use crate::ask::Ask;
use crate::fault::{ErrorKind, Rejection, Verdict, ensure};
use crate::json::{given, is_base64, list, text};
use crate::listing;
use crate::script::ModelEntry;

pub(crate) fn check(ask: &Ask, models: &[ModelEntry]) -> Verdict {
    ensure(!ask.model.is_empty(), || "model is required".into())?;
    let Some(entry) = listing::find(models, &ask.model) else {
        let kind = ErrorKind::ModelNotFound;
        return Err(Rejection::new(404, kind, message(kind, &ask.model)));
    };
    let can = |capability: &str| entry.capabilities.iter().any(|name| name == capability);
    let tools = list(&ask.body, "tools");
    ensure(tools.is_empty() || can("tools"), || {
        format!("\"{}\" does not support tools", ask.model)
    })?;
    think(ask, can("thinking"))?;
    for tool in tools {
        let name = tool
            .get("function")
            .and_then(|function| text(function, "name"));
        ensure(
            text(tool, "type") == Some("function") && name.is_some_and(|name| !name.is_empty()),
            || "invalid tool: type must be function and function.name is required".into(),
        )?;
    }
    list(&ask.body, "messages").iter().try_for_each(turn)
}

fn think(ask: &Ask, capable: bool) -> Verdict {
    let levels = match given(&ask.body, "think") {
        None | Some(Value::Bool(false)) => return Ok(()),
        Some(Value::Bool(true)) => !ask.model.starts_with("gpt-oss"),
        Some(Value::String(level)) => ["low", "medium", "high", "max"].contains(&level.as_str()),
        Some(_) => false,
    };
    ensure(capable, || {
        format!("\"{}\" does not support thinking", ask.model)
    })?;
    ensure(levels, || {
        "invalid think value: must be a boolean (true/false) or string (\"high\", \"medium\", \"low\", \"max\")".into()
    })
}

fn turn(message: &Value) -> Verdict {
    let role = text(message, "role").unwrap_or_default();
    ensure(
        ["system", "user", "assistant", "tool"].contains(&role),
        || format!("invalid role: {role}, role must be one of [user, assistant, system, tool]"),
    )?;
    ensure(
        given(message, "content").is_none_or(Value::is_string),
        || {
            "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string".into()
        },
    )?;
    for call in list(message, "tool_calls") {
        let arguments = call
            .get("function")
            .and_then(|function| function.get("arguments"));
        ensure(arguments.is_some_and(Value::is_object), || {
            "json: cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function.arguments of type api.ToolCallFunctionArguments".into()
        })?;
    }
    ensure(
        role != "tool" || text(message, "tool_name").is_some_and(|name| !name.is_empty()),
        || "tool_name is required in messages with role tool".into(),
    )?;
    let decodes = list(message, "images")
        .iter()
        .all(|image| image.as_str().is_some_and(is_base64));
    ensure(decodes, || "illegal base64 data at input byte 0".into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::Api;

    fn verdict(body: &Value, models: &[ModelEntry]) -> Result<(), (u16, String)> {
        let ask = Ask::from_body(Api::Ollama, body.to_string().as_bytes()).unwrap();
        check(&ask, models).map_err(|rejection| (rejection.status, rejection.message))
    }

    fn good() -> Value {
        json!({"model": "qwen3", "think": "high",
            "tools": [{"type": "function", "function": {"name": "Bash", "parameters": {}}}],
            "messages": [
                {"role": "user", "content": "hi", "images": ["aGk="]},
                {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "Bash", "arguments": {}}}]},
                {"role": "tool", "tool_name": "Bash", "content": "x"}]})
    }

    fn models() -> Vec<ModelEntry> {
        vec![
            ModelEntry::new("qwen3").capabilities(["completion", "tools", "thinking"]),
            ModelEntry::new("plain").capabilities(["completion"]),
        ]
    }

    #[test]
    fn a_good_request_passes() {
        verdict(&good(), &models()).unwrap();
    }

    #[test]
    fn each_defect_is_named() {
        for (pointer, value, status, reason) in [
            ("/model", json!(""), 400, "model is required"),
            ("/model", json!("other"), 404, "model 'other' not found"),
            (
                "/model",
                json!("plain"),
                400,
                "\"plain\" does not support tools",
            ),
            ("/think", json!("extreme"), 400, "invalid think value"),
            (
                "/messages/0/images/0",
                json!("data:image/png;base64,aGk="),
                400,
                "illegal base64",
            ),
            (
                "/messages/0/role",
                json!("robot"),
                400,
                "invalid role: robot",
            ),
            (
                "/messages/0/content",
                json!([]),
                400,
                "cannot unmarshal array",
            ),
            (
                "/messages/1/tool_calls/0/function/arguments",
                json!("{}"),
                400,
                "cannot unmarshal string",
            ),
            (
                "/messages/2/tool_name",
                json!(null),
                400,
                "tool_name is required",
            ),
        ] {
            let mut body = good();
            *body.pointer_mut(pointer).unwrap() = value;
            let (found, message) = verdict(&body, &models()).expect_err(pointer);
            assert_eq!(found, status, "{pointer}");
            assert!(message.contains(reason), "{pointer}: {message}");
        }
    }

    #[test]
    fn thinking_needs_the_capability() {
        let body = json!({"model": "plain", "think": true, "messages": [{"role": "user", "content": "x"}]});
        let (_, message) = verdict(&body, &models()).unwrap_err();
        assert_eq!(message, "\"plain\" does not support thinking");
        verdict(
            &json!({"model": "any", "think": false, "messages": []}),
            &[],
        )
        .unwrap();
    }
}
