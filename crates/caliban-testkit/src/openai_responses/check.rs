//! What the Responses API refuses.

use serde_json::Value;

use super::{Adjacency, Issued};
use crate::ask::Ask;
use crate::family::Memory;
use crate::fault::{Rejection, Verdict, ensure};
use crate::json::{given, list, text};
use crate::openai::{
    check_effort, check_function, check_id, check_image_url, check_sampling, invalid_value,
    missing_parameter, unsupported_parameter,
};

/// Chat parameters and where they went.
const MOVED: [(&str, &str); 5] = [
    ("messages", "input"),
    ("max_tokens", "max_output_tokens"),
    ("max_completion_tokens", "max_output_tokens"),
    ("response_format", "text.format"),
    ("reasoning_effort", "reasoning.effort"),
];
const UNKNOWN: [&str; 6] = [
    "stop",
    "n",
    "seed",
    "functions",
    "function_call",
    "logit_bias",
];

pub(crate) fn check(ask: &Ask, memory: &Memory) -> Verdict {
    let body = &ask.body;
    for (param, now) in MOVED {
        if body.get(param).is_some() {
            let why = format!("has moved to '{now}' in the Responses API.");
            return Err(unsupported_parameter(param, &why));
        }
    }
    if let Some(param) = UNKNOWN.iter().find(|param| body.get(param).is_some()) {
        return Err(Rejection::invalid(format!("Unknown parameter: '{param}'."))
            .code("unknown_parameter")
            .param(*param));
    }
    if ask.model.is_empty() {
        return Err(missing_parameter("model"));
    }
    if let Some(id) = given(body, "previous_response_id").and_then(Value::as_str) {
        let reason = format!("Previous response with id '{id}' not found.");
        return Err(Rejection::invalid(reason)
            .code("previous_response_not_found")
            .param("previous_response_id"));
    }
    let effort = body
        .get("reasoning")
        .and_then(|reasoning| given(reasoning, "effort"));
    if let Some(effort) = effort {
        check_effort(&ask.model, effort, "reasoning.effort")?;
    }
    check_sampling(&ask.model, body, effort.and_then(Value::as_str))?;
    tools(body)?;
    match body.get("input") {
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(items)) => input(items, body, memory),
        _ => Err(missing_parameter("input")),
    }
}

fn tools(body: &Value) -> Verdict {
    let tools = list(body, "tools");
    for (index, tool) in tools.iter().enumerate() {
        let at = format!("tools[{index}]");
        match text(tool, "type") {
            Some("function") => {
                check_function(tool, &at)?;
                // Leaving it out means strict here, which no caller wants by accident.
                if !tool.get("strict").is_some_and(Value::is_boolean) {
                    return Err(missing_parameter(&format!("{at}.strict")));
                }
            }
            // Tools the API runs itself have shapes of their own.
            Some(_) => {}
            None => return Err(missing_parameter(&format!("{at}.type"))),
        }
    }
    match given(body, "tool_choice") {
        None => Ok(()),
        Some(Value::String(mode)) if ["none", "auto", "required"].contains(&mode.as_str()) => {
            Ok(())
        }
        Some(choice) => {
            let name = text(choice, "name");
            let offered = name.is_some() && tools.iter().any(|tool| text(tool, "name") == name);
            let reason = "Invalid value for 'tool_choice': no such function among 'tools'.";
            if offered {
                Ok(())
            } else {
                Err(invalid_value("tool_choice", reason))
            }
        }
    }
}

fn input(items: &[Value], body: &Value, memory: &Memory) -> Verdict {
    ensure(!items.is_empty(), || "Invalid 'input': empty array.".into())?;
    for (index, item) in items.iter().enumerate() {
        let at = format!("input[{index}]");
        match text(item, "type") {
            None | Some("message") => message(item, &at)?,
            Some("function_call") => function_call(item, &at)?,
            Some("function_call_output") => function_output(item, &at)?,
            Some("reasoning") => reasoning(items, index, body, memory)?,
            Some("item_reference") => {
                let id = text(item, "id").unwrap_or_default();
                return Err(not_persisted(id));
            }
            Some(other) => {
                let reason = format!(
                    "Invalid value: '{other}'. Supported values are: 'message', 'function_call', 'function_call_output', 'reasoning'."
                );
                return Err(invalid_value(&format!("{at}.type"), reason));
            }
        }
        accompanied(items, index, memory.responses())?;
    }
    pairs(items)
}

fn message(item: &Value, at: &str) -> Verdict {
    let role = text(item, "role").unwrap_or_default();
    let accepted: &[&str] = match role {
        "assistant" => &["output_text", "refusal"],
        "user" | "system" | "developer" => &["input_text", "input_image", "input_file"],
        _ => {
            let reason = format!(
                "Invalid value: '{role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'."
            );
            return Err(invalid_value(&format!("{at}.role"), reason));
        }
    };
    match item.get("content") {
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) => content(parts, accepted, &format!("{at}.content")),
        _ => Err(missing_parameter(&format!("{at}.content"))),
    }
}

fn content(parts: &[Value], accepted: &[&str], at: &str) -> Verdict {
    for (index, part) in parts.iter().enumerate() {
        let at = format!("{at}[{index}]");
        let kind = text(part, "type").unwrap_or_default();
        if !accepted.contains(&kind) {
            let values: Vec<_> = accepted.iter().map(|value| format!("'{value}'")).collect();
            let reason = format!(
                "Invalid value: '{kind}'. Supported values are: {}.",
                values.join(", ")
            );
            return Err(invalid_value(&at, reason));
        }
        let missing = match kind {
            "input_text" | "output_text" => text(part, "text").is_none().then_some("text"),
            "refusal" => text(part, "refusal").is_none().then_some("refusal"),
            _ => None,
        };
        if let Some(field) = missing {
            return Err(missing_parameter(&format!("{at}.{field}")));
        }
        if kind == "input_image" && part.get("file_id").is_none() {
            check_image_url(
                text(part, "image_url").unwrap_or_default(),
                &format!("{at}.image_url"),
            )?;
        }
    }
    Ok(())
}

fn function_call(item: &Value, at: &str) -> Verdict {
    check_id(
        text(item, "call_id").unwrap_or_default(),
        &format!("{at}.call_id"),
    )?;
    check_function(&serde_json::json!({"name": item.get("name")}), at)?;
    if let Some(id) = given(item, "id").and_then(Value::as_str) {
        check_id(id, &format!("{at}.id"))?;
        if !id.starts_with("fc_") {
            let reason =
                format!("Invalid '{at}.id': '{id}'. Expected an ID that begins with 'fc'.");
            return Err(invalid_value(&format!("{at}.id"), reason));
        }
    }
    if item.get("arguments").is_some_and(Value::is_string) {
        return Ok(());
    }
    let param = format!("{at}.arguments");
    Err(invalid_value(
        &param,
        format!("Invalid type for '{param}': expected a string."),
    )
    .code("invalid_type"))
}

fn function_output(item: &Value, at: &str) -> Verdict {
    check_id(
        text(item, "call_id").unwrap_or_default(),
        &format!("{at}.call_id"),
    )?;
    match item.get("output") {
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) => content(
            parts,
            &["input_text", "input_image", "input_file"],
            &format!("{at}.output"),
        ),
        _ => Err(missing_parameter(&format!("{at}.output"))),
    }
}

fn not_persisted(id: &str) -> Rejection {
    Rejection::new(
        404,
        crate::fault::ErrorKind::InvalidRequest,
        format!("Item with id '{id}' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."),
    )
    .param("input")
}

/// A reasoning item must be one this server issued, unchanged, and something must follow it.
fn reasoning(items: &[Value], index: usize, body: &Value, memory: &Memory) -> Verdict {
    let item = &items[index];
    let id = text(item, "id").unwrap_or_default();
    if id.is_empty() {
        return Err(missing_parameter(&format!("input[{index}].id")));
    }
    if !item.get("summary").is_some_and(Value::is_array) {
        return Err(missing_parameter(&format!("input[{index}].summary")));
    }
    let known = memory.responses().reasoning.get(id);
    match given(item, "encrypted_content").and_then(Value::as_str) {
        Some(encrypted) if memory.trusts(encrypted) => {}
        Some(encrypted) => {
            let unchanged = known.is_some_and(|known| {
                let summary: String = list(item, "summary")
                    .iter()
                    .filter_map(|part| text(part, "text"))
                    .collect();
                known.encrypted == encrypted && known.summary == summary
            });
            if !unchanged {
                let reason = format!("The encrypted content for item {id} could not be verified.");
                return Err(Rejection::invalid(reason).code("invalid_encrypted_content"));
            }
        }
        None if body.get("store") == Some(&Value::Bool(false)) || known.is_none() => {
            return Err(not_persisted(id));
        }
        None => {}
    }
    let followed = items.get(index + 1).is_some_and(|next| {
        matches!(text(next, "type"), Some("function_call" | "reasoning"))
            || text(next, "role") == Some("assistant")
    });
    ensure(followed, || {
        format!("Item '{id}' of type 'reasoning' was provided without its required following item.")
    })
}

/// An item this server issued after reasoning must still come after it.
fn accompanied(items: &[Value], index: usize, issued: &Issued) -> Verdict {
    let item = &items[index];
    let Some(id) = given(item, "id").and_then(Value::as_str) else {
        return Ok(());
    };
    let Some(origin) = issued.items.get(id) else {
        return Ok(());
    };
    let is_origin = |item: &Value| text(item, "id") == Some(&origin.reasoning);
    let before = &items[..index];
    let present = match origin.adjacency {
        Adjacency::Direct => before.last().is_some_and(is_origin),
        Adjacency::Later => before.iter().any(is_origin),
    };
    ensure(present, || {
        let kind = text(item, "type").unwrap_or("message");
        format!(
            "Item '{id}' of type '{kind}' was provided without its required 'reasoning' item: '{}'.",
            origin.reasoning
        )
    })
}

fn pairs(items: &[Value]) -> Verdict {
    let mut open: Vec<&str> = Vec::new();
    for item in items {
        let call = text(item, "call_id").unwrap_or_default();
        match text(item, "type") {
            Some("function_call") => {
                ensure(!open.contains(&call), || {
                    format!("Duplicate function call with call_id {call}.")
                })?;
                open.push(call);
            }
            Some("function_call_output") => {
                let Some(position) = open.iter().position(|open| *open == call) else {
                    let reason =
                        format!("No tool call found for function call output with call_id {call}.");
                    return Err(Rejection::invalid(reason).param("input"));
                };
                open.remove(position);
            }
            _ => {}
        }
    }
    match open.first() {
        Some(call) => Err(Rejection::invalid(format!(
            "No tool output found for function call {call}."
        ))
        .param("input")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::record::Api;
    use crate::script::Reply;
    use crate::turn::{Ids, Turn};

    fn ask(body: &Value) -> Ask {
        Ask::from_body(Api::OpenAiResponses, body.to_string().as_bytes()).unwrap()
    }

    /// A server's memory of one thinking turn with two calls, and the request that continues it.
    fn exchange() -> (Memory, Value) {
        let first = json!({"model": "gpt-5.5", "store": false, "include": ["reasoning.encrypted_content"],
            "reasoning": {"effort": "high", "summary": "auto"}, "instructions": "be kind",
            "tools": [{"type": "function", "name": "Bash", "parameters": {"type": "object"}, "strict": false}],
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]});
        let ask = ask(&first);
        let reply =
            Reply::tools([("Bash", json!({"a": 1})), ("Bash", json!({"a": 2}))]).thinking("Plan");
        let turn = Turn::resolve(&reply, &ask, &Ids::default());
        let mut memory = Memory::default();
        memory.remember(&ask, &turn);
        let answer = super::super::document(&ask, &turn);
        let mut next = first;
        let input = next["input"].as_array_mut().unwrap();
        input.extend(answer["output"].as_array().unwrap().iter().cloned());
        for call in ["call_0001", "call_0002"] {
            input.push(json!({"type": "function_call_output", "call_id": call, "output": "x"}));
        }
        (memory, next)
    }

    #[test]
    fn a_faithful_continuation_passes() {
        let (memory, body) = exchange();
        check(&ask(&body), &memory).unwrap();
    }

    #[test]
    fn each_defect_is_named() {
        for (pointer, value, reason) in [
            ("/model", json!(""), "Missing required parameter: 'model'"),
            (
                "/input/0/content/0/type",
                json!("output_text"),
                "Supported values are: 'input_text'",
            ),
            (
                "/input/0/content/0/type",
                json!("text"),
                "Supported values are: 'input_text'",
            ),
            (
                "/input/0/role",
                json!("tool"),
                "Supported values are: 'assistant'",
            ),
            (
                "/input/1/encrypted_content",
                json!("forged"),
                "could not be verified",
            ),
            ("/input/1/summary", json!([]), "could not be verified"),
            (
                "/input/1/encrypted_content",
                json!(null),
                "not found. Items are not persisted",
            ),
            ("/input/2/arguments", json!({}), "expected a string"),
            ("/input/2/id", json!("call_1"), "begins with 'fc'"),
            (
                "/input/4/call_id",
                json!("zzz"),
                "No tool call found for function call output",
            ),
            (
                "/input/5",
                json!({"role": "user", "content": "x"}),
                "No tool output found for function call call_0002",
            ),
            (
                "/tools/0",
                json!({"type": "function", "function": {"name": "Bash"}}),
                "'tools[0].name'",
            ),
            ("/tools/0/strict", json!(null), "'tools[0].strict'"),
            (
                "/reasoning/effort",
                json!("minimal"),
                "Supported values are",
            ),
        ] {
            let (memory, mut body) = exchange();
            *body.pointer_mut(pointer).unwrap() = value;
            let rejection = check(&ask(&body), &memory).expect_err(pointer);
            assert!(
                rejection.message.contains(reason),
                "{pointer}: {}",
                rejection.message
            );
        }
    }

    #[test]
    fn reasoning_stays_with_its_items() {
        let (memory, mut body) = exchange();
        body["input"].as_array_mut().unwrap().remove(1);
        let rejection = check(&ask(&body), &memory).unwrap_err();
        assert!(
            rejection
                .message
                .contains("was provided without its required 'reasoning' item: 'rs_0001_0'")
        );
        // Without ids the items stand for themselves.
        for index in [1, 2] {
            body["input"][index].as_object_mut().unwrap().remove("id");
        }
        check(&ask(&body), &memory).unwrap();
        let (memory, mut body) = exchange();
        body["input"]
            .as_array_mut()
            .unwrap()
            .insert(2, json!({"role": "user", "content": "x"}));
        assert!(
            check(&ask(&body), &memory)
                .unwrap_err()
                .message
                .contains("required following item")
        );
    }

    #[test]
    fn parameters_of_the_other_api_are_refused() {
        for (param, value) in [
            ("max_tokens", json!(1)),
            ("stop", json!(["a"])),
            ("temperature", json!(0.1)),
            ("previous_response_id", json!("r")),
        ] {
            let mut body = json!({"model": "gpt-6-sol", "input": "hi"});
            body[param] = value;
            let rejection = check(&ask(&body), &Memory::default()).expect_err(param);
            assert_eq!(rejection.param.as_deref(), Some(param));
        }
    }
}
