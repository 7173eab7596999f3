//! What the Gemini API refuses.

use serde_json::Value;

use super::{field, generation, message, needs_signatures};
use crate::ask::Ask;
use crate::family::Memory;
use crate::fault::{ErrorKind, Rejection, Verdict, ensure};
use crate::json::{is_base64, text};

const FIELDS: [&str; 11] = [
    "contents",
    "systemInstruction",
    "tools",
    "toolConfig",
    "safetySettings",
    "generationConfig",
    "cachedContent",
    "continuationToken",
    "store",
    "labels",
    "serviceTier",
];
const PART_FIELDS: [&str; 11] = [
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "thought",
    "thoughtSignature",
    "executableCode",
    "codeExecutionResult",
    "videoMetadata",
    "partMetadata",
];
/// Schema keywords the `parameters` subset does not have.
const FOREIGN_KEYWORDS: [&str; 8] = [
    "$schema",
    "$ref",
    "$defs",
    "oneOf",
    "allOf",
    "const",
    "not",
    "additionalProperties",
];
/// The signature for calls that another model made.
const SENTINEL: &str = "skip_thought_signature_validator";

pub(crate) fn check(ask: &Ask, memory: &Memory) -> Verdict {
    if generation(&ask.model).is_some_and(|generation| generation < (2, 5)) {
        let kind = ErrorKind::ModelNotFound;
        return Err(Rejection::new(404, kind, message(kind, &ask.model)));
    }
    known_fields(&ask.body, &FIELDS, "")?;
    tools(ask)?;
    thinking(ask)?;
    let contents = items(&ask.body, "contents");
    ensure(!contents.is_empty(), || {
        "* GenerateContentRequest.contents: contents is not specified\n".into()
    })?;
    for (index, content) in contents.iter().enumerate() {
        shape(content, index)?;
    }
    ensure(
        text(&contents[0], "role").is_none_or(|role| role == "user"),
        || "Please ensure that the first content has the role user.".into(),
    )?;
    calls(ask, contents)?;
    signatures(ask, contents, memory)
}

fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    field(value, key)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn known_fields(value: &Value, known: &[&str], at: &str) -> Verdict {
    let fields = value
        .as_object()
        .into_iter()
        .flat_map(|fields| fields.keys());
    for key in fields {
        let accepted = known
            .iter()
            .any(|name| name == key || super::snake(name) == *key);
        ensure(accepted, || {
            let place = if at.is_empty() {
                String::new()
            } else {
                format!(" at '{at}'")
            };
            format!(
                "Invalid JSON payload received. Unknown name \"{key}\"{place}: Cannot find field."
            )
        })?;
    }
    Ok(())
}

fn shape(content: &Value, index: usize) -> Verdict {
    let role = text(content, "role").unwrap_or("user");
    ensure(["user", "model", "function"].contains(&role), || {
        "Please use a valid role: user, model.".into()
    })?;
    let parts = items(content, "parts");
    ensure(!parts.is_empty(), || {
        format!(
            "* GenerateContentRequest.contents[{index}].parts: contents.parts must not be empty.\n"
        )
    })?;
    for (position, part) in parts.iter().enumerate() {
        let at = format!("contents[{index}].parts[{position}]");
        known_fields(part, &PART_FIELDS, &at)?;
        data(part, &at)?;
    }
    let says_nothing = |part: &Value| {
        let signed = field(part, "thoughtSignature").is_some();
        part.as_object()
            .is_some_and(|f| f.keys().all(|key| key == "text" || key == "thought"))
            && !signed
            && text(part, "text").is_none_or(str::is_empty)
    };
    ensure(!parts.iter().all(says_nothing), || {
        format!(
            "Unable to submit request because contents[{index}] must have a non-empty text parameter."
        )
    })
}

fn data(part: &Value, at: &str) -> Verdict {
    let kinds = [
        "text",
        "inlineData",
        "fileData",
        "functionCall",
        "functionResponse",
        "executableCode",
        "codeExecutionResult",
    ];
    let present = kinds
        .iter()
        .filter(|kind| field(part, kind).is_some())
        .count();
    let signed = field(part, "thoughtSignature").is_some();
    ensure(present == 1 || (present == 0 && signed), || {
        format!("{at}.data: required oneof field 'data' must have one initialized field")
    })?;
    if let Some(inline) = field(part, "inlineData") {
        ensure(field(inline, "mimeType").is_some(), || {
            format!("{at}.inline_data.mime_type must not be empty")
        })?;
        ensure(is_base64(text(inline, "data").unwrap_or_default()), || {
            format!("Invalid value at '{at}.inline_data.data' (TYPE_BYTES), Base64 decoding failed")
        })?;
    }
    if let Some(call) = field(part, "functionCall") {
        ensure(text(call, "name").is_some_and(is_function_name), || {
            format!("{at}.function_call.name: Name cannot be empty.")
        })?;
        ensure(field(call, "args").is_none_or(Value::is_object), || {
            format!(
                "Invalid value at '{at}.function_call.args' (type.googleapis.com/google.protobuf.Struct)"
            )
        })?;
    }
    if let Some(response) = field(part, "functionResponse") {
        ensure(text(response, "name").is_some_and(is_function_name), || {
            format!("{at}.function_response.name: Name cannot be empty.")
        })?;
        ensure(
            field(response, "response").is_some_and(Value::is_object),
            || {
                format!(
                    "Invalid value at '{at}.function_response.response' (type.googleapis.com/google.protobuf.Struct)"
                )
            },
        )?;
    }
    Ok(())
}

fn is_function_name(name: &str) -> bool {
    (1..=128).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.:-".contains(c))
}

fn tools(ask: &Ask) -> Verdict {
    let mut declared = 0;
    for (index, tool) in items(&ask.body, "tools").iter().enumerate() {
        for (position, function) in items(tool, "functionDeclarations").iter().enumerate() {
            declared += 1;
            let at = format!("tools[{index}].function_declarations[{position}]");
            ensure(text(function, "name").is_some_and(is_function_name), || {
                format!(
                    "* GenerateContentRequest.{at}.name: Invalid function name. Must start with a letter or an underscore."
                )
            })?;
            let old = field(function, "parameters");
            ensure(
                old.is_none() || field(function, "parametersJsonSchema").is_none(),
                || format!("{at}: only one of parameters and parameters_json_schema can be set"),
            )?;
            if let Some(schema) = old {
                ensure(
                    schema
                        .get("properties")
                        .and_then(Value::as_object)
                        .is_none_or(|p| !p.is_empty()),
                    || {
                        format!(
                            "* GenerateContentRequest.{at}.parameters.properties: should be non-empty for OBJECT type"
                        )
                    },
                )?;
                openapi(schema, &format!("{at}.parameters"))?;
            }
        }
    }
    let config =
        field(&ask.body, "toolConfig").and_then(|config| field(config, "functionCallingConfig"));
    if let Some(mode) = config.and_then(|config| text(config, "mode")) {
        ensure(["AUTO", "ANY", "NONE", "VALIDATED"].contains(&mode), || {
            format!("Invalid value at 'tool_config.function_calling_config.mode': \"{mode}\"")
        })?;
    }
    let json_output = field(&ask.body, "generationConfig")
        .and_then(|config| field(config, "responseMimeType"))
        .is_some_and(|kind| kind == "application/json");
    let mixes = json_output && declared > 0 && !needs_signatures(&ask.model);
    ensure(!mixes, || {
        "Function calling with a response mime type: 'application/json' is unsupported".into()
    })
}

fn openapi(schema: &Value, at: &str) -> Verdict {
    if let Some(keyword) = FOREIGN_KEYWORDS
        .iter()
        .find(|keyword| schema.get(keyword).is_some())
    {
        return Err(Rejection::invalid(format!(
            "Invalid JSON payload received. Unknown name \"{keyword}\" at '{at}': Cannot find field."
        )));
    }
    ensure(!schema.get("type").is_some_and(Value::is_array), || {
        format!(
            "Invalid JSON payload received. Unknown name \"type\" at '{at}': Proto field is not repeating, cannot start list."
        )
    })?;
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, property) in properties.into_iter().flatten() {
        openapi(property, &format!("{at}.properties.{name}"))?;
    }
    schema
        .get("items")
        .map_or(Ok(()), |items| openapi(items, &format!("{at}.items")))
}

fn thinking(ask: &Ask) -> Verdict {
    let config =
        field(&ask.body, "generationConfig").and_then(|config| field(config, "thinkingConfig"));
    let Some(config) = config else { return Ok(()) };
    let level = field(config, "thinkingLevel").and_then(Value::as_str);
    let budget = field(config, "thinkingBudget").and_then(Value::as_i64);
    ensure(level.is_none() || budget.is_none(), || {
        "You can only set one of thinking_budget and thinking_level.".into()
    })?;
    let Some(generation) = generation(&ask.model) else {
        return Ok(());
    };
    let older = generation < (3, 0);
    if let Some(level) = level {
        ensure(!older, || {
            "Thinking level is not supported for this model.".into()
        })?;
        let level = level.to_ascii_uppercase();
        ensure(
            levels(&ask.model, generation).contains(&level.as_str()),
            || format!("Thinking level {level} is not supported for this model."),
        )?;
    }
    if let Some(budget) = budget {
        ensure(older, || {
            "Thinking budget is not supported for this model.".into()
        })?;
        let (least, most) = if ask.model.contains("pro") {
            (128, 32_768)
        } else if ask.model.contains("lite") {
            (512, 24_576)
        } else {
            (0, 24_576)
        };
        let off = budget == 0 && !ask.model.contains("pro");
        ensure(
            budget == -1 || off || (least..=most).contains(&budget),
            || {
                format!(
                    "The thinking budget {budget} is invalid. Please choose a value between {least} and {most}."
                )
            },
        )?;
    }
    Ok(())
}

fn levels(model: &str, generation: (u32, u32)) -> &'static [&'static str] {
    let lite = model.contains("flash-lite");
    if (model.contains("flash") && generation <= (3, 6)) || lite {
        &["MINIMAL", "LOW", "MEDIUM", "HIGH"]
    } else {
        &["LOW", "MEDIUM", "HIGH"]
    }
}

fn parts_of<'a>(content: &'a Value, kind: &str) -> Vec<&'a Value> {
    items(content, "parts")
        .iter()
        .filter_map(|part| field(part, kind))
        .collect()
}

/// Calls follow a user turn and are answered one for one by the next turn.
fn calls(ask: &Ask, contents: &[Value]) -> Verdict {
    let mut open: Vec<&Value> = Vec::new();
    for (index, content) in contents.iter().enumerate() {
        let role = text(content, "role").unwrap_or("user");
        let made = parts_of(content, "functionCall");
        let answers = parts_of(content, "functionResponse");
        ensure(made.is_empty() || role == "model", || {
            "Please ensure that function calls are made by the model role.".into()
        })?;
        ensure(answers.is_empty() || role != "model", || {
            "Please ensure that function responses come from the user role.".into()
        })?;
        if !answers.is_empty() {
            ensure(!open.is_empty(), || {
                "Please ensure that function response turn comes immediately after a function call turn.".into()
            })?;
        }
        ensure(answers.len() == open.len(), || {
            "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.".into()
        })?;
        matched(&open, &answers)?;
        let previous = index
            .checked_sub(1)
            .map(|before| text(&contents[before], "role").unwrap_or("user"));
        ensure(
            made.is_empty() || matches!(previous, Some("user" | "function")),
            || {
                "Please ensure that function call turn comes immediately after a user turn or after a function response turn.".into()
            },
        )?;
        open = made;
    }
    ensure(open.is_empty(), || {
        format!(
            "Please ensure that {} does not end with a function call turn.",
            ask.model
        )
    })
}

fn matched(open: &[&Value], answers: &[&Value]) -> Verdict {
    for (position, answer) in answers.iter().enumerate() {
        let call = match text(answer, "id") {
            Some(id) => open.iter().find(|call| text(call, "id") == Some(id)),
            None => open.get(position),
        };
        ensure(
            call.is_some_and(|call| text(call, "name") == text(answer, "name")),
            || {
                format!(
                    "Please ensure that function response '{}' answers a function call of the preceding turn.",
                    text(answer, "name").unwrap_or_default()
                )
            },
        )?;
    }
    Ok(())
}

/// On Gemini 3 and later the first call of each model turn comes back with its signature.
fn signatures(ask: &Ask, contents: &[Value], memory: &Memory) -> Verdict {
    if !needs_signatures(&ask.model) {
        return Ok(());
    }
    for (index, content) in contents.iter().enumerate() {
        let parts = items(content, "parts");
        let first = parts
            .iter()
            .position(|part| field(part, "functionCall").is_some());
        for (position, part) in parts.iter().enumerate() {
            let call = field(part, "functionCall");
            let Some(signature) = field(part, "thoughtSignature").and_then(Value::as_str) else {
                ensure(first != Some(position), || {
                    let name = call.and_then(|call| text(call, "name")).unwrap_or_default();
                    format!(
                        "Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly. Function call `{name}`, position {}.",
                        index + 1
                    )
                })?;
                continue;
            };
            if signature == SENTINEL || memory.trusts(signature) {
                continue;
            }
            ensure(is_base64(signature), || {
                "Corrupted thought signature.".into()
            })?;
            let Some(issued) = memory.gemini().signatures.get(signature) else {
                return Err(Rejection::invalid("Invalid thought signature"));
            };
            let unchanged = match (issued, call) {
                (Some(issued), Some(call)) => {
                    let empty = Value::Object(serde_json::Map::new());
                    issued["name"] == call["name"]
                        && issued["args"] == *field(call, "args").unwrap_or(&empty)
                }
                (None, None) => true,
                (Some(_), None) | (None, Some(_)) => false,
            };
            ensure(unchanged, || "Invalid thought signature".into())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ask::Mode;
    use crate::script::Reply;
    use crate::turn::{Ids, Turn};

    fn ask(model: &str, body: &Value) -> Ask {
        Ask::from_path(model, Mode::Stream, body.to_string().as_bytes()).unwrap()
    }

    fn exchange() -> (Memory, Value) {
        let mut body = json!({
            "systemInstruction": {"parts": [{"text": "be kind"}]},
            "contents": [{"role": "user", "parts": [{"text": "hi"}, {"inlineData": {"mimeType": "image/png", "data": "aGk="}}]}],
            "tools": [{"functionDeclarations": [{"name": "Bash", "parametersJsonSchema": {"type": "object"}}]}],
            "generationConfig": {"thinkingConfig": {"includeThoughts": true, "thinkingLevel": "HIGH"}}});
        let request = ask("gemini-3.8-flash", &body);
        let reply = Reply::tools([("Bash", json!({"a": 1})), ("Bash", json!({"a": 2}))]);
        let turn = Turn::resolve(&reply, &request, &Ids::default());
        let mut memory = Memory::default();
        memory.remember(&request, &turn);
        let contents = body["contents"].as_array_mut().unwrap();
        contents.push(super::super::document(&turn)["candidates"][0]["content"].clone());
        let answer = |id: &str| json!({"functionResponse": {"id": id, "name": "Bash", "response": {"output": "x"}}});
        contents.push(json!({"role": "user", "parts": [answer("fn-0001"), answer("fn-0002")]}));
        (memory, body)
    }

    #[test]
    fn a_faithful_continuation_passes() {
        let (memory, mut body) = exchange();
        check(&ask("gemini-3.8-flash", &body), &memory).unwrap();
        body["contents"][1]["parts"][0]["thoughtSignature"] = json!(SENTINEL);
        check(&ask("gemini-3.8-flash", &body), &memory).unwrap();
    }

    #[test]
    fn each_defect_is_named() {
        for (pointer, value, reason) in [
            ("/contents", json!([]), "contents is not specified"),
            (
                "/contents/0/role",
                json!("model"),
                "first content has the role user",
            ),
            ("/contents/0/parts", json!([]), "must not be empty"),
            ("/contents/0/parts", json!([{"text": ""}]), "non-empty text"),
            ("/contents/0/parts/0", json!({}), "required oneof field"),
            (
                "/contents/0/parts/0",
                json!({"txt": "a"}),
                "Unknown name \"txt\"",
            ),
            (
                "/contents/0/parts/1/inlineData/data",
                json!("?"),
                "Base64 decoding failed",
            ),
            (
                "/contents/1/parts/0/thoughtSignature",
                json!(null),
                "missing a thought_signature",
            ),
            (
                "/contents/1/parts/0/thoughtSignature",
                json!("aGVsbG8="),
                "Invalid thought signature",
            ),
            (
                "/contents/1/parts/0/thoughtSignature",
                json!("%%"),
                "Corrupted thought signature",
            ),
            (
                "/contents/1/parts/0/functionCall/args",
                json!({"a": 9}),
                "Invalid thought signature",
            ),
            (
                "/contents/2/parts/0/functionResponse/response",
                json!("x"),
                "function_response.response",
            ),
            (
                "/contents/2/parts/0/functionResponse/name",
                json!("Other"),
                "answers a function call",
            ),
            (
                "/contents/2/parts/1",
                json!({"text": "x"}),
                "number of function response parts",
            ),
            (
                "/contents/1",
                json!({"role": "model", "parts": [{"text": "x"}]}),
                "comes immediately after a function call turn",
            ),
            (
                "/tools/0/functionDeclarations/0/name",
                json!("1bad"),
                "Invalid function name",
            ),
            (
                "/generationConfig/thinkingConfig/thinkingLevel",
                json!("MINIMAL"),
                "not supported for this model",
            ),
            (
                "/generationConfig/thinkingConfig",
                json!({"thinkingLevel": "LOW", "thinkingBudget": 5}),
                "only set one of",
            ),
            (
                "/generationConfig/thinkingConfig",
                json!({"thinkingBudget": 512}),
                "Thinking budget is not supported",
            ),
        ] {
            let (memory, mut body) = exchange();
            *body.pointer_mut(pointer).unwrap() = value;
            let rejection = check(&ask("gemini-3.8-flash", &body), &memory).expect_err(pointer);
            assert!(
                rejection.message.contains(reason),
                "{pointer}: {}",
                rejection.message
            );
        }
    }

    #[test]
    fn generations_differ() {
        let thinking = |config: Value| json!({"contents": [{"parts": [{"text": "x"}]}], "generationConfig": {"thinkingConfig": config}});
        let passes = |model: &str, config: Value| {
            check(&ask(model, &thinking(config)), &Memory::default()).is_ok()
        };
        assert!(passes("gemini-2.5-flash", json!({"thinkingBudget": 0})));
        assert!(!passes("gemini-2.5-pro", json!({"thinkingBudget": 0})));
        assert!(!passes("gemini-2.5-pro", json!({"thinkingLevel": "LOW"})));
        assert!(passes(
            "gemini-3.5-flash",
            json!({"thinkingLevel": "MINIMAL"})
        ));
        assert!(!passes(
            "gemini-4-argon",
            json!({"thinkingLevel": "MINIMAL"})
        ));
        let gone = check(
            &ask("gemini-2.0-flash", &thinking(json!({}))),
            &Memory::default(),
        )
        .unwrap_err();
        assert_eq!(gone.status, 404);
    }

    #[test]
    fn the_old_schema_field_is_a_subset() {
        for schema in [
            json!({"type": "object", "properties": {}}),
            json!({"type": "object", "additionalProperties": false}),
            json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}),
        ] {
            let body = json!({"contents": [{"parts": [{"text": "x"}]}],
                "tools": [{"functionDeclarations": [{"name": "a", "parameters": schema}]}]});
            assert!(
                check(&ask("gemini-3.8-flash", &body), &Memory::default()).is_err(),
                "{schema}"
            );
        }
    }
}
