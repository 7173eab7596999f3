//! What the Messages API refuses about a request's parameters.

use serde_json::Value;

use super::models::{self, EFFORTS, Rules, Sampling, Support};
use super::{cache, conversation};
use crate::ask::Ask;
use crate::family::Memory;
use crate::fault::{Rejection, Verdict, ensure};
use crate::http::Request;
use crate::json::{self, given, is_name, list, text};

/// Which of the endpoints that take a conversation was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Create,
    Count,
}

const FIELDS: [&str; 21] = [
    "model",
    "max_tokens",
    "messages",
    "system",
    "stream",
    "tools",
    "tool_choice",
    "thinking",
    "output_config",
    "output_format",
    "stop_sequences",
    "metadata",
    "cache_control",
    "service_tier",
    "inference_geo",
    "speed",
    "container",
    "diagnostics",
    "temperature",
    "top_p",
    "top_k",
];
const NOT_COUNTED: [&str; 4] = ["max_tokens", "stream", "metadata", "stop_sequences"];

const BETAS: [&str; 10] = [
    "interleaved-thinking-2025-05-14",
    "fine-grained-tool-streaming-2025-05-14",
    "context-1m-2025-08-07",
    "thinking-binding-controls-2026-08-01",
    "thinking-display-updates-2026-08-18",
    "context-management-2025-06-27",
    "compact-2026-01-12",
    "task-budgets-2026-03-13",
    "fast-mode-2026-02-01",
    "server-side-fallback-2026-07-01",
];
/// Features that left beta; their values are still understood.
const OLD_BETAS: [&str; 6] = [
    "prompt-caching-",
    "extended-cache-ttl-",
    "structured-outputs-2025-11-13",
    "effort-2025-11-24",
    "token-efficient-tools-",
    "output-128k-",
];

/// The version without sampling parameters.
const VERSION_2026: &str = "2026-10-21";
const VERSIONS: [&str; 2] = ["2023-06-01", VERSION_2026];

/// What the parts of the check need to know about the request.
pub(super) struct Context<'a> {
    pub(super) body: &'a Value,
    pub(super) model: &'a str,
    pub(super) rules: Option<Rules>,
    pub(super) version: &'a str,
    pub(super) betas: Vec<&'a str>,
}

impl Context<'_> {
    pub(super) fn thinking_type(&self) -> Option<&str> {
        self.body
            .get("thinking")
            .and_then(|config| text(config, "type"))
    }

    /// Whether the model thinks on this request.
    pub(super) fn thinks(&self) -> bool {
        match self.thinking_type() {
            Some("disabled") => false,
            Some(_) => true,
            None => self
                .rules
                .is_some_and(|rules| rules.thinks_unasked == Support::Yes),
        }
    }

    fn effort(&self) -> Option<&Value> {
        self.body
            .get("output_config")
            .and_then(|config| given(config, "effort"))
    }
}

pub(crate) fn check(ask: &Ask, request: &Request, memory: &Memory, call: Call) -> Verdict {
    let version = request.header("anthropic-version").unwrap_or_default();
    ensure(!version.is_empty(), || {
        "anthropic-version: header is required".into()
    })?;
    ensure(VERSIONS.contains(&version), || {
        format!("anthropic-version: \"{version}\" is not a valid version")
    })?;
    let betas: Vec<_> = request
        .header("anthropic-beta")
        .map(|value| value.split(',').map(str::trim).collect())
        .unwrap_or_default();
    let context = Context {
        body: &ask.body,
        model: &ask.model,
        rules: models::rules(&ask.model),
        version,
        betas,
    };
    known_betas(&context)?;
    fields(&context, call)?;
    tools(&context)?;
    tool_choice(&context)?;
    thinking(&context)?;
    effort(&context)?;
    sampling(&context)?;
    cache::check(context.body)?;
    conversation::check(&context, memory)
}

fn known_betas(context: &Context<'_>) -> Verdict {
    let known =
        |beta: &&str| BETAS.contains(beta) || OLD_BETAS.iter().any(|old| beta.starts_with(old));
    match context.betas.iter().find(|beta| !known(beta)) {
        Some(beta) => Err(Rejection::invalid(format!(
            "Unexpected value(s) `{beta}` for the `anthropic-beta` header."
        ))),
        None => Ok(()),
    }
}

fn fields(context: &Context<'_>, call: Call) -> Verdict {
    let body = context.body;
    let permitted =
        |key: &str| FIELDS.contains(&key) && (call == Call::Create || !NOT_COUNTED.contains(&key));
    let extra = body
        .as_object()
        .and_then(|fields| fields.keys().find(|key| !permitted(key)));
    if let Some(key) = extra {
        return Err(Rejection::invalid(format!(
            "{key}: Extra inputs are not permitted"
        )));
    }
    ensure(body.get("model").is_some(), || {
        "model: Field required".into()
    })?;
    ensure(!context.model.is_empty(), || {
        "model: Input should be a non-empty string".into()
    })?;
    if call == Call::Create {
        ensure(body.get("max_tokens").is_some(), || {
            "max_tokens: Field required".into()
        })?;
        let whole = body.get("max_tokens").and_then(Value::as_u64);
        ensure(whole.is_some(), || {
            "max_tokens: Input should be a non-negative integer".into()
        })?;
        let warms = whole == Some(0);
        ensure(!(warms && json::is_true(body, "stream")), || {
            "max_tokens: 0 is only allowed on requests that do not stream".into()
        })?;
    }
    for (index, sequence) in list(body, "stop_sequences").iter().enumerate() {
        let blank = sequence.as_str().is_none_or(|s| s.trim().is_empty());
        ensure(!blank, || {
            format!("stop_sequences.{index}: each stop sequence must contain non-whitespace")
        })?;
    }
    if let Some(metadata) = body.get("metadata").and_then(Value::as_object) {
        let extra = metadata.keys().find(|key| *key != "user_id");
        ensure(extra.is_none(), || {
            "metadata: Extra inputs are not permitted".into()
        })?;
    }
    system(body)
}

fn system(body: &Value) -> Verdict {
    match given(body, "system") {
        None | Some(Value::String(_)) => Ok(()),
        Some(Value::Array(blocks)) => {
            for (index, block) in blocks.iter().enumerate() {
                ensure(text(block, "type") == Some("text"), || {
                    format!("system.{index}.type: Input should be 'text'")
                })?;
                let blank = text(block, "text").is_none_or(|text| text.trim().is_empty());
                ensure(!blank, || {
                    format!("system.{index}: text content blocks must be non-empty")
                })?;
            }
            Ok(())
        }
        Some(_) => Err(Rejection::invalid(
            "system: Input should be a valid string or a list of text blocks",
        )),
    }
}

const TOOL_FIELDS: [&str; 9] = [
    "type",
    "name",
    "description",
    "input_schema",
    "strict",
    "cache_control",
    "eager_input_streaming",
    "defer_loading",
    "input_examples",
];

fn tools(context: &Context<'_>) -> Verdict {
    let mut names = Vec::new();
    for (index, tool) in list(context.body, "tools").iter().enumerate() {
        let name = text(tool, "name").unwrap_or_default();
        ensure(is_name(name, 128), || {
            format!(
                "tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            )
        })?;
        ensure(!names.contains(&name), || {
            "tools: Tool names must be unique.".into()
        })?;
        names.push(name);
        // Tools the API runs itself have shapes of their own.
        if !matches!(text(tool, "type"), None | Some("custom")) {
            continue;
        }
        let extra = tool
            .as_object()
            .and_then(|f| f.keys().find(|key| !TOOL_FIELDS.contains(&key.as_str())));
        if let Some(key) = extra {
            return Err(Rejection::invalid(format!(
                "tools.{index}.custom.{key}: Extra inputs are not permitted"
            )));
        }
        let schema = given(tool, "input_schema");
        ensure(schema.is_some(), || {
            format!("tools.{index}.custom.input_schema: Field required")
        })?;
        ensure(
            schema.and_then(|s| text(s, "type")) == Some("object"),
            || format!("tools.{index}.custom.input_schema.type: Input should be 'object'"),
        )?;
    }
    Ok(())
}

fn tool_choice(context: &Context<'_>) -> Verdict {
    let Some(choice) = given(context.body, "tool_choice") else {
        return Ok(());
    };
    let tools = list(context.body, "tools");
    ensure(!tools.is_empty(), || {
        "tool_choice: tool_choice may only be specified while providing tools".into()
    })?;
    let kind = text(choice, "type").unwrap_or_default();
    match kind {
        "auto" | "none" => return Ok(()),
        "any" => {}
        "tool" => {
            let name = text(choice, "name").unwrap_or_default();
            ensure(
                tools.iter().any(|tool| text(tool, "name") == Some(name)),
                || format!("tool_choice: Tool '{name}' not found in provided tools"),
            )?;
        }
        _ => {
            return Err(Rejection::invalid(format!(
                "tool_choice: Input tag '{kind}' found using 'type' does not match any of the expected tags: 'auto', 'any', 'tool', 'none'"
            )));
        }
    }
    ensure(context.thinking_type() != Some("enabled"), || {
        "Thinking may not be enabled when tool_choice forces tool use.".into()
    })?;
    ensure(
        context
            .rules
            .is_none_or(|rules| rules.forced_tool == Support::Yes),
        || format!("tool_choice: \"{kind}\" is not supported for this model."),
    )
}

fn thinking(context: &Context<'_>) -> Verdict {
    let Some(config) = given(context.body, "thinking") else {
        return Ok(());
    };
    let kind = text(config, "type").unwrap_or_default();
    ensure(
        ["enabled", "disabled", "adaptive", "between_tools"].contains(&kind),
        || {
            format!(
                "thinking: Input tag '{kind}' found using 'type' does not match any of the expected tags: 'adaptive', 'between_tools', 'disabled', 'enabled'"
            )
        },
    )?;
    if let Some(rules) = context.rules {
        ensure(rules.thinking.contains(&kind), || {
            unsupported_thinking(kind)
        })?;
        let effort = context.effort().and_then(Value::as_str);
        let strong = matches!(effort, Some("xhigh" | "max"));
        ensure(!(rules.gentle.contains(&kind) && strong), || {
            format!(
                "\"thinking.type.{kind}\" requires an effort of at most \"high\" for this model."
            )
        })?;
    }
    let displays = ["summarized", "omitted", "updates"];
    ensure(
        given(config, "display").is_none_or(|d| d.as_str().is_some_and(|d| displays.contains(&d))),
        || "thinking.display: Input should be 'summarized' or 'omitted'".into(),
    )?;
    let controls = context
        .betas
        .contains(&"thinking-binding-controls-2026-08-01");
    ensure(config.get("block_binding").is_none() || controls, || {
        "thinking.block_binding: Extra inputs are not permitted".into()
    })?;
    if kind == "enabled" {
        budget(context, config)
    } else {
        no_budget(config, kind)
    }
}

fn unsupported_thinking(kind: &str) -> String {
    match kind {
        "enabled" => "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking behavior.".into(),
        "adaptive" => "adaptive thinking is not supported on this model".into(),
        _ => format!("\"thinking.type.{kind}\" is not supported for this model."),
    }
}

fn budget(context: &Context<'_>, config: &Value) -> Verdict {
    let budget = config.get("budget_tokens").and_then(Value::as_u64);
    ensure(config.get("budget_tokens").is_some(), || {
        "thinking.enabled.budget_tokens: Field required".into()
    })?;
    ensure(budget.is_some_and(|budget| budget >= 1024), || {
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024".into()
    })?;
    let interleaved = context.betas.contains(&"interleaved-thinking-2025-05-14");
    let limit = context.body.get("max_tokens").and_then(Value::as_u64);
    ensure(
        interleaved || limit.is_none_or(|limit| budget < Some(limit)),
        || "`max_tokens` must be greater than `thinking.budget_tokens`.".into(),
    )
}

fn no_budget(config: &Value, kind: &str) -> Verdict {
    ensure(config.get("budget_tokens").is_none(), || {
        format!("thinking.{kind}.budget_tokens: Extra inputs are not permitted")
    })
}

fn effort(context: &Context<'_>) -> Verdict {
    let Some(effort) = context.effort() else {
        return Ok(());
    };
    let level = effort.as_str().unwrap_or_default();
    let accepted = context.rules.map_or(&EFFORTS[..], |rules| rules.efforts);
    ensure(!accepted.is_empty(), || {
        "This model does not support the effort parameter.".into()
    })?;
    ensure(accepted.contains(&level), || {
        let values: Vec<_> = accepted.iter().map(|value| format!("'{value}'")).collect();
        format!(
            "output_config.effort: Input should be one of {} for this model",
            values.join(", ")
        )
    })
}

fn sampling(context: &Context<'_>) -> Verdict {
    let body = context.body;
    let present: Vec<_> = ["temperature", "top_p", "top_k"]
        .into_iter()
        .filter(|key| given(body, key).is_some())
        .collect();
    let Some(first) = present.first() else {
        return Ok(());
    };
    ensure(context.version != VERSION_2026, || {
        format!("{first}: Extra inputs are not permitted")
    })?;
    let temperature = body.get("temperature").and_then(Value::as_f64);
    let top_p = body.get("top_p").and_then(Value::as_f64);
    let is_one = |value: Option<f64>| value.is_none_or(|value| (value - 1.0).abs() < f64::EPSILON);
    let no_top_k = !present.contains(&"top_k");
    if let Some(rules) = context.rules {
        let default = is_one(temperature) && is_one(top_p) && no_top_k;
        let accepted = match rules.sampling {
            Sampling::Free => true,
            Sampling::DefaultOnly => default,
            Sampling::Never => false,
        };
        ensure(accepted, || {
            format!("`{first}` is not supported for this model.")
        })?;
        ensure(
            temperature.is_none() || top_p.is_none() || rules.sampling != Sampling::Free,
            || {
                "`temperature` and `top_p` cannot both be specified for this model. Please use only one.".into()
            },
        )?;
    }
    ensure(
        temperature.is_none_or(|value| (0.0..=1.0).contains(&value)),
        || "temperature: range: 0..1".into(),
    )?;
    if context.thinks() {
        ensure(is_one(temperature), || {
            "`temperature` may only be set to 1 when thinking is enabled.".into()
        })?;
        ensure(no_top_k, || {
            "`top_k` must be unset when thinking is enabled.".into()
        })?;
        ensure(
            top_p.is_none_or(|value| (0.95..=1.0).contains(&value)),
            || {
                "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled."
                    .into()
            },
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::anthropic::tests::verdict;

    fn good() -> Value {
        json!({"model": "claude-sonnet-4-6", "max_tokens": 8192, "stream": true,
            "system": [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [{"name": "Bash", "description": "runs", "input_schema": {"type": "object"}}],
            "tool_choice": {"type": "auto"}, "thinking": {"type": "adaptive"},
            "output_config": {"effort": "high"}, "stop_sequences": ["END"], "metadata": {"user_id": "u"}})
    }

    #[test]
    fn a_good_request_passes() {
        verdict(&good(), &Memory::default()).unwrap();
    }

    #[test]
    fn each_defect_is_named() {
        for (pointer, value, reason) in [
            ("/model", json!(""), "model"),
            ("/max_tokens", json!(-1), "max_tokens: Input should be"),
            (
                "/system/0/text",
                json!(" "),
                "text content blocks must be non-empty",
            ),
            (
                "/system/0/cache_control/ttl",
                json!("2h"),
                "Input should be '5m' or '1h'",
            ),
            ("/tools/0/name", json!("bad name"), "tools.0.custom.name"),
            (
                "/tools/0/input_schema/type",
                json!("string"),
                "input_schema.type: Input should be 'object'",
            ),
            (
                "/tool_choice",
                json!({"type": "tool", "name": "Nope"}),
                "Tool 'Nope' not found",
            ),
            (
                "/tool_choice",
                json!({"type": "required"}),
                "does not match any of the expected tags",
            ),
            (
                "/thinking",
                json!({"type": "enabled", "budget_tokens": 100}),
                "greater than or equal to 1024",
            ),
            (
                "/thinking",
                json!({"type": "enabled", "budget_tokens": 8192}),
                "`max_tokens` must be greater",
            ),
            (
                "/thinking",
                json!({"type": "between_tools"}),
                "is not supported for this model",
            ),
            (
                "/output_config/effort",
                json!("xhigh"),
                "output_config.effort",
            ),
            ("/stop_sequences/0", json!(" "), "stop_sequences.0"),
            ("/metadata", json!({"name": "x"}), "metadata: Extra inputs"),
        ] {
            let mut body = good();
            *body.pointer_mut(pointer).unwrap() = value;
            let message = verdict(&body, &Memory::default()).expect_err(pointer);
            assert!(message.contains(reason), "{pointer}: {message}");
        }
    }

    #[test]
    fn missing_and_extra_fields_are_named() {
        for field in ["model", "max_tokens", "messages"] {
            let mut body = good();
            body.as_object_mut().unwrap().remove(field);
            assert_eq!(
                verdict(&body, &Memory::default()),
                Err(format!("{field}: Field required"))
            );
        }
        let mut body = good();
        body["frequency_penalty"] = json!(1);
        let expected = "frequency_penalty: Extra inputs are not permitted";
        assert_eq!(verdict(&body, &Memory::default()), Err(expected.to_owned()));
    }

    #[test]
    fn models_differ_as_documented() {
        let forced = json!({"tools": [{"name": "a", "input_schema": {"type": "object"}}], "tool_choice": {"type": "any"}});
        let enabled = json!({"thinking": {"type": "enabled", "budget_tokens": 1024}});
        let effort = |level: &str| json!({"output_config": {"effort": level}});
        for (model, extra, reason) in [
            ("claude-sonnet-4-5", json!({"temperature": 0.2}), None),
            (
                "claude-sonnet-4-5",
                json!({"temperature": 0.2, "top_p": 0.9}),
                Some("cannot both be specified"),
            ),
            (
                "claude-sonnet-4-5",
                json!({"temperature": 1.5}),
                Some("temperature: range"),
            ),
            (
                "claude-sonnet-4-5",
                effort("low"),
                Some("does not support the effort parameter"),
            ),
            (
                "claude-sonnet-4-5",
                json!({"thinking": {"type": "adaptive"}}),
                Some("adaptive thinking is not supported on this model"),
            ),
            (
                "claude-opus-4-7",
                json!({"temperature": 1.0}),
                Some("`temperature` is not supported"),
            ),
            (
                "claude-opus-4-7",
                enabled.clone(),
                Some("Use \"thinking.type.adaptive\" and \"output_config.effort\""),
            ),
            ("claude-opus-4-7", effort("xhigh"), None),
            ("claude-sonnet-5", json!({"temperature": 1.0}), None),
            (
                "claude-sonnet-5",
                json!({"temperature": 0.5}),
                Some("not supported"),
            ),
            (
                "claude-opus-5",
                json!({"thinking": {"type": "disabled"}, "output_config": {"effort": "max"}}),
                Some("at most \"high\""),
            ),
            (
                "claude-fable-5",
                json!({"thinking": {"type": "disabled"}}),
                Some("\"thinking.type.disabled\" is not supported"),
            ),
            ("claude-opus-5-5", forced.clone(), Some("tool_choice")),
            ("claude-haiku-5-5", forced.clone(), None),
            (
                "claude-sonnet-5-5",
                json!({"thinking": {"type": "between_tools"}}),
                None,
            ),
            (
                "claude-sonnet-4-6",
                json!({"thinking": {"type": "enabled", "budget_tokens": 1024}, "temperature": 0.5}),
                Some("may only be set to 1"),
            ),
            (
                "test-model",
                json!({"temperature": 0.5, "output_config": {"effort": "max"}}),
                None,
            ),
        ] {
            let mut body = json!({"model": model, "max_tokens": 4096, "messages": [{"role": "user", "content": "hi"}]});
            body.as_object_mut()
                .unwrap()
                .extend(extra.as_object().unwrap().clone());
            let found = verdict(&body, &Memory::default()).err();
            match reason {
                Some(reason) => assert!(
                    found.as_ref().is_some_and(|m| m.contains(reason)),
                    "{model}: {found:?}"
                ),
                None => assert_eq!(found, None, "{model}"),
            }
        }
        let mut both = forced;
        both.as_object_mut()
            .unwrap()
            .extend(enabled.as_object().unwrap().clone());
        both["model"] = json!("claude-sonnet-4-6");
        both["max_tokens"] = json!(4096);
        both["messages"] = json!([{"role": "user", "content": "hi"}]);
        assert!(
            verdict(&both, &Memory::default())
                .unwrap_err()
                .contains("forces tool use")
        );
    }
}
