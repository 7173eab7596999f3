//! What Chat Completions refuses.

use serde_json::Value;

use crate::ask::Ask;
use crate::fault::{Rejection, Verdict, ensure};
use crate::json::{given, is_true, list, text};
use crate::openai::{
    ChatTools, check_effort, check_function, check_id, check_image_url, check_sampling, generation,
    invalid_value, missing_parameter, unsupported_parameter,
};

pub(crate) fn check(ask: &Ask) -> Verdict {
    let body = &ask.body;
    if ask.model.is_empty() {
        return Err(missing_parameter("model"));
    }
    if !body.get("messages").is_some_and(Value::is_array) {
        return Err(missing_parameter("messages"));
    }
    parameters(ask)?;
    tools(ask)?;
    let messages = list(body, "messages");
    if messages.is_empty() {
        return Err(invalid_value(
            "messages",
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
        ));
    }
    for (index, message) in messages.iter().enumerate() {
        shape(message, index)?;
    }
    pairs(messages)
}

fn parameters(ask: &Ask) -> Verdict {
    let body = &ask.body;
    if given(body, "stream_options").is_some() && !is_true(body, "stream") {
        return Err(invalid_value(
            "stream_options",
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        ));
    }
    let effort = given(body, "reasoning_effort");
    if let Some(effort) = effort {
        check_effort(&ask.model, effort, "reasoning_effort")?;
    }
    check_sampling(&ask.model, body, effort.and_then(Value::as_str))?;
    let range = given(body, "temperature").and_then(Value::as_f64);
    if range.is_some_and(|value| !(0.0..=2.0).contains(&value)) {
        return Err(invalid_value(
            "temperature",
            "Invalid 'temperature': decimal outside the range 0 to 2.",
        ));
    }
    if generation(&ask.model).is_some_and(|generation| generation.reasons()) {
        if given(body, "max_tokens").is_some() {
            let why = "is not supported with this model. Use 'max_completion_tokens' instead.";
            return Err(unsupported_parameter("max_tokens", why));
        }
        if given(body, "stop").is_some() {
            return Err(unsupported_parameter(
                "stop",
                "is not supported with this model.",
            ));
        }
    }
    if list(body, "stop").len() > 4 {
        return Err(invalid_value(
            "stop",
            "Invalid 'stop': array too long. Expected an array with maximum length 4.",
        ));
    }
    response_format(body)
}

fn response_format(body: &Value) -> Verdict {
    let Some(format) = given(body, "response_format") else {
        return Ok(());
    };
    match text(format, "type") {
        Some("text" | "json_object") => Ok(()),
        Some("json_schema") => {
            let schema = format.get("json_schema").unwrap_or(&Value::Null);
            match text(schema, "name") {
                Some(_) => Ok(()),
                None => Err(missing_parameter("response_format.json_schema.name")),
            }
        }
        _ => Err(invalid_value(
            "response_format.type",
            "Invalid value for 'response_format.type'.",
        )),
    }
}

fn tools(ask: &Ask) -> Verdict {
    let tools = list(&ask.body, "tools");
    for (index, tool) in tools.iter().enumerate() {
        if text(tool, "type") != Some("function") {
            let param = format!("tools[{index}].type");
            return Err(invalid_value(
                &param,
                format!("Invalid value for '{param}'. Supported values are: 'function'."),
            ));
        }
        let Some(function) = given(tool, "function") else {
            return Err(missing_parameter(&format!("tools[{index}].function")));
        };
        check_function(function, &format!("tools[{index}].function"))?;
    }
    if let Some(choice) = given(&ask.body, "tool_choice") {
        ensure(!tools.is_empty(), || {
            "'tool_choice' is only allowed when 'tools' are specified.".into()
        })?;
        tool_choice(choice, tools)?;
    }
    if given(&ask.body, "parallel_tool_calls").is_some() {
        ensure(!tools.is_empty(), || {
            "'parallel_tool_calls' is only allowed when 'tools' are specified.".into()
        })?;
    }
    if tools.is_empty() {
        Ok(())
    } else {
        tools_with_reasoning(ask)
    }
}

fn tool_choice(choice: &Value, tools: &[Value]) -> Verdict {
    let name = match choice {
        Value::String(mode) if ["none", "auto", "required"].contains(&mode.as_str()) => {
            return Ok(());
        }
        Value::Object(_) => choice
            .get("function")
            .and_then(|function| text(function, "name")),
        _ => None,
    };
    let offered = |name: &str| {
        tools
            .iter()
            .any(|tool| text(&tool["function"], "name") == Some(name))
    };
    if name.is_some_and(offered) {
        Ok(())
    } else {
        Err(invalid_value(
            "tool_choice",
            "Invalid value for 'tool_choice': no such function among 'tools'.",
        ))
    }
}

fn tools_with_reasoning(ask: &Ask) -> Verdict {
    let Some(generation) = generation(&ask.model) else {
        return Ok(());
    };
    let effort = given(&ask.body, "reasoning_effort").and_then(Value::as_str);
    let accepted = match generation.chat_tools {
        ChatTools::Always => true,
        ChatTools::UnlessReasoning => effort.is_none_or(|effort| effort == "none"),
        ChatTools::ExplicitNone => effort == Some("none"),
        ChatTools::Never => false,
    };
    let reason = || {
        format!(
            "Function tools with reasoning_effort are not supported for {} in /v1/chat/completions. Please use /v1/responses instead.",
            ask.model
        )
    };
    if accepted {
        Ok(())
    } else {
        Err(Rejection::invalid(reason()).param("reasoning_effort"))
    }
}

fn shape(message: &Value, index: usize) -> Verdict {
    let at = |field: &str| format!("messages[{index}].{field}");
    let content = given(message, "content");
    match text(message, "role") {
        Some("system" | "developer") => text_only(content, &at("content")),
        Some("user") => user(content, &at("content")),
        Some("assistant") => {
            let calls = list(message, "tool_calls");
            if content.is_none() && calls.is_empty() && given(message, "refusal").is_none() {
                let reason = format!(
                    "Invalid value for '{}': expected a string, got null.",
                    at("content")
                );
                return Err(invalid_value(&at("content"), reason));
            }
            if message.get("tool_calls").is_some_and(Value::is_array) && calls.is_empty() {
                let reason = format!("Invalid '{}': empty array.", at("tool_calls"));
                return Err(invalid_value(&at("tool_calls"), reason));
            }
            calls
                .iter()
                .enumerate()
                .try_for_each(|(i, call)| tool_call(call, &at(&format!("tool_calls[{i}]"))))
        }
        Some("tool") => {
            check_id(
                text(message, "tool_call_id").unwrap_or_default(),
                &at("tool_call_id"),
            )?;
            text_only(content, &at("content"))
        }
        role => {
            let role = role.unwrap_or_default();
            let reason = format!(
                "Invalid value: '{role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'."
            );
            Err(invalid_value(&at("role"), reason))
        }
    }
}

fn text_only(content: Option<&Value>, at: &str) -> Verdict {
    match content {
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(parts))
            if parts.iter().all(|part| text(part, "type") == Some("text")) =>
        {
            Ok(())
        }
        Some(Value::Array(_)) => Err(invalid_value(
            at,
            format!("Invalid '{at}': only text parts are supported in this message."),
        )),
        _ => Err(invalid_value(
            at,
            format!("Invalid value for '{at}': expected a string or an array of text parts."),
        )),
    }
}

fn user(content: Option<&Value>, at: &str) -> Verdict {
    let Some(Value::Array(parts)) = content else {
        return text_only(content, at);
    };
    ensure(!parts.is_empty(), || {
        format!("Invalid '{at}': empty array.")
    })?;
    for (index, part) in parts.iter().enumerate() {
        let at = format!("{at}[{index}]");
        match text(part, "type") {
            Some("text") if text(part, "text").is_some() => {}
            Some("image_url") => {
                let url = part
                    .get("image_url")
                    .and_then(|image| text(image, "url"))
                    .unwrap_or_default();
                check_image_url(url, &format!("{at}.image_url.url"))?;
            }
            Some("input_audio" | "file") => {}
            _ => {
                return Err(invalid_value(
                    &format!("{at}.type"),
                    format!("Invalid value for '{at}.type'."),
                ));
            }
        }
    }
    Ok(())
}

fn tool_call(call: &Value, at: &str) -> Verdict {
    check_id(text(call, "id").unwrap_or_default(), &format!("{at}.id"))?;
    if text(call, "type") != Some("function") {
        return Err(missing_parameter(&format!("{at}.type")));
    }
    let function = call.get("function").unwrap_or(&Value::Null);
    check_function(
        &serde_json::json!({"name": function.get("name")}),
        &format!("{at}.function"),
    )?;
    if function.get("arguments").is_some_and(Value::is_string) {
        return Ok(());
    }
    let param = format!("{at}.function.arguments");
    Err(invalid_value(
        &param,
        format!("Invalid type for '{param}': expected a string."),
    )
    .code("invalid_type"))
}

/// Every call is answered before anything else is said, and nothing else is answered.
fn pairs(messages: &[Value]) -> Verdict {
    let mut open: Vec<&str> = Vec::new();
    let unanswered = |open: &[&str]| {
        ensure(open.is_empty(), || {
            format!(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
                open.join(", ")
            )
        })
    };
    for (index, message) in messages.iter().enumerate() {
        if text(message, "role") == Some("tool") {
            let id = text(message, "tool_call_id").unwrap_or_default();
            let Some(position) = open.iter().position(|open| *open == id) else {
                let reason = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.";
                return Err(Rejection::invalid(reason).param(format!("messages.[{index}].role")));
            };
            open.remove(position);
            continue;
        }
        unanswered(&open)?;
        open = list(message, "tool_calls")
            .iter()
            .filter_map(|call| text(call, "id"))
            .collect();
        let unique = open
            .iter()
            .enumerate()
            .all(|(at, id)| !open[..at].contains(id));
        ensure(unique, || {
            format!("Invalid 'messages[{index}].tool_calls': duplicate ids.")
        })?;
    }
    unanswered(&open)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::Api;

    fn good() -> Value {
        json!({"model": "gpt-4.1", "max_tokens": 100, "temperature": 0.2, "stream": true,
            "stream_options": {"include_usage": true},
            "messages": [
                {"role": "system", "content": "be kind"},
                {"role": "user", "content": [{"type": "text", "text": "hi"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}]},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "Bash", "arguments": "{}"}},
                    {"id": "b", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "b", "content": "x"},
                {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "y"}]}],
            "tools": [{"type": "function", "function": {"name": "Bash", "parameters": {"type": "object"}}}],
            "tool_choice": "auto"})
    }

    fn verdict(body: &Value) -> Verdict {
        check(&Ask::from_body(Api::OpenAiChat, body.to_string().as_bytes()).unwrap())
    }

    #[test]
    fn a_good_request_passes() {
        verdict(&good()).unwrap();
    }

    #[test]
    fn each_defect_is_named() {
        let message = |role: &str, content: Value| json!({"role": role, "content": content});
        for (pointer, value, reason) in [
            ("/model", json!(""), "Missing required parameter: 'model'"),
            ("/messages", json!([]), "empty array"),
            (
                "/messages/0/role",
                json!("robot"),
                "Supported values are: 'system'",
            ),
            (
                "/messages/1/content/1/image_url/url",
                json!("data:image/bmp;base64,aGk="),
                "valid URL",
            ),
            (
                "/messages/1/content/1/image_url/url",
                json!("data:image/png;base64,?"),
                "valid URL",
            ),
            (
                "/messages/2/tool_calls/0/function/arguments",
                json!({}),
                "expected a string",
            ),
            (
                "/messages/2/tool_calls/0/id",
                json!("x".repeat(65)),
                "maximum length 64",
            ),
            ("/messages/2/tool_calls/1/id", json!("a"), "duplicate ids"),
            (
                "/messages/3",
                message("user", json!("wait")),
                "must be followed by tool messages",
            ),
            (
                "/messages/3/tool_call_id",
                json!("zzz"),
                "must be a response to a preceeding message",
            ),
            (
                "/messages/4/content",
                json!([{"type": "image_url"}]),
                "only text parts",
            ),
            (
                "/messages/4",
                message("user", json!("stop")),
                "did not have response messages: a",
            ),
            (
                "/tools/0/function/name",
                json!("bad name"),
                "does not match pattern",
            ),
            (
                "/tools/0/function/parameters",
                json!({"type": "string"}),
                "type: \"object\"",
            ),
            (
                "/tool_choice",
                json!({"type": "function", "function": {"name": "Nope"}}),
                "no such function",
            ),
            (
                "/stream",
                json!(false),
                "'stream_options' parameter is only allowed",
            ),
            ("/temperature", json!(3.0), "outside the range"),
            (
                "/model",
                json!("gpt-5"),
                "'temperature' does not support 0.2",
            ),
        ] {
            let mut body = good();
            *body.pointer_mut(pointer).unwrap() = value;
            let rejection = verdict(&body).expect_err(pointer);
            assert!(
                rejection.message.contains(reason),
                "{pointer}: {}",
                rejection.message
            );
        }
    }

    #[test]
    fn reasoning_models_have_their_own_rules() {
        let body = |model: &str, extra: Value| {
            let mut body = json!({"model": model, "messages": [{"role": "user", "content": "hi"}]});
            body.as_object_mut()
                .unwrap()
                .extend(extra.as_object().unwrap().clone());
            body
        };
        let tools = json!([{"type": "function", "function": {"name": "Bash"}}]);
        for (model, extra, reason) in [
            (
                "o3",
                json!({"max_tokens": 5}),
                Some("Use 'max_completion_tokens' instead"),
            ),
            (
                "gpt-5",
                json!({"stop": ["END"]}),
                Some("'stop' is not supported"),
            ),
            (
                "gpt-5.1",
                json!({"reasoning_effort": "minimal"}),
                Some("Supported values are"),
            ),
            (
                "gpt-4.1",
                json!({"reasoning_effort": "low"}),
                Some("not supported with this model"),
            ),
            ("gpt-5.1", json!({"temperature": 0.1}), None),
            (
                "gpt-5.1",
                json!({"temperature": 0.1, "reasoning_effort": "low"}),
                Some("temperature"),
            ),
            ("gpt-5.4", json!({"tools": tools}), None),
            (
                "gpt-5.4",
                json!({"tools": tools, "reasoning_effort": "low"}),
                Some("/v1/responses instead"),
            ),
            (
                "gpt-5.5",
                json!({"tools": tools}),
                Some("not supported for gpt-5.5 in /v1/chat/completions"),
            ),
            (
                "gpt-5.5",
                json!({"tools": tools, "reasoning_effort": "none"}),
                None,
            ),
            (
                "gpt-6.1-sol",
                json!({"tools": tools}),
                Some("/v1/responses instead"),
            ),
            (
                "llama3.1",
                json!({"tools": tools, "max_tokens": 5, "temperature": 0.1}),
                None,
            ),
        ] {
            let found = verdict(&body(model, extra))
                .err()
                .map(|rejection| rejection.message);
            match reason {
                Some(reason) => assert!(
                    found.as_ref().is_some_and(|m| m.contains(reason)),
                    "{model}: {found:?}"
                ),
                None => assert_eq!(found, None, "{model}"),
            }
        }
    }
}
