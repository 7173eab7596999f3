//! What both OpenAI APIs share: errors, model descriptions, and what each model generation accepts.

use serde_json::{Value, json};

use crate::fault::{ErrorKind, Rejection, Verdict};
use crate::json::{given, is_name, strict_violation, text};
use crate::script::ModelEntry;

/// Seconds since the epoch that every answer was "created" at.
pub(crate) const CREATED: u64 = 1_767_225_600;

pub(crate) fn error(rejection: &Rejection) -> Value {
    let (kind, code) = match rejection.kind {
        ErrorKind::InvalidRequest | ErrorKind::TooLarge => ("invalid_request_error", None),
        ErrorKind::Auth => ("invalid_request_error", Some("invalid_api_key")),
        ErrorKind::Permission => ("invalid_request_error", Some("permission_denied")),
        ErrorKind::Billing | ErrorKind::SpendLimit => {
            ("insufficient_quota", Some("insufficient_quota"))
        }
        ErrorKind::ModelNotFound => ("invalid_request_error", Some("model_not_found")),
        ErrorKind::ContextTooLong => ("invalid_request_error", Some("context_length_exceeded")),
        ErrorKind::RateLimit => ("requests", Some("rate_limit_exceeded")),
        ErrorKind::Server | ErrorKind::Timeout => ("server_error", Some("server_error")),
        ErrorKind::Overloaded => ("server_error", Some("server_is_overloaded")),
    };
    json!({"error": {
        "message": rejection.message,
        "type": kind,
        "param": rejection.param,
        "code": rejection.code.or(code),
    }})
}

pub(crate) fn message(kind: ErrorKind, model: &str) -> String {
    match kind {
        ErrorKind::InvalidRequest => "Invalid request.".into(),
        ErrorKind::Auth => "Incorrect API key provided.".into(),
        ErrorKind::Permission => "You are not allowed to use this model.".into(),
        ErrorKind::Billing | ErrorKind::SpendLimit => {
            "You exceeded your current quota, please check your plan and billing details.".into()
        }
        ErrorKind::ModelNotFound => format!("The model `{model}` does not exist or you do not have access to it."),
        ErrorKind::TooLarge => "The request body is too large.".into(),
        ErrorKind::ContextTooLong => {
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 140000 tokens. Please reduce the length of the messages.".into()
        }
        ErrorKind::RateLimit => format!("Rate limit reached for {model} on requests per min (RPM)."),
        ErrorKind::Server => "The server had an error while processing your request.".into(),
        ErrorKind::Overloaded => "The engine is currently overloaded, please try again later.".into(),
        ErrorKind::Timeout => "The request timed out.".into(),
    }
}

pub(crate) fn describe(entry: &ModelEntry) -> Value {
    json!({"id": entry.id, "object": "model", "created": CREATED, "owned_by": "openai", "shutdown_date": null})
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sampling {
    Free,
    /// Only while the model does not reason.
    AtNone,
    Never,
}

/// Function tools on the chat endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChatTools {
    Always,
    /// Effort absent or `none`.
    UnlessReasoning,
    ExplicitNone,
    Never,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Generation {
    pub(crate) efforts: &'static [&'static str],
    pub(crate) default_effort: &'static str,
    pub(crate) sampling: Sampling,
    pub(crate) chat_tools: ChatTools,
}

impl Generation {
    pub(crate) fn reasons(&self) -> bool {
        !self.efforts.is_empty()
    }
}

const CLASSIC: Generation = Generation {
    efforts: &[],
    default_effort: "none",
    sampling: Sampling::Free,
    chat_tools: ChatTools::Always,
};
const O_SERIES: Generation = Generation {
    efforts: &["low", "medium", "high"],
    default_effort: "medium",
    sampling: Sampling::Never,
    chat_tools: ChatTools::Always,
};
const GPT_5: Generation = Generation {
    efforts: &["minimal", "low", "medium", "high"],
    ..O_SERIES
};
const GPT_5_1: Generation = Generation {
    efforts: &["none", "low", "medium", "high"],
    default_effort: "none",
    sampling: Sampling::AtNone,
    chat_tools: ChatTools::Always,
};
const GPT_5_2: Generation = Generation {
    efforts: &["none", "low", "medium", "high", "xhigh"],
    chat_tools: ChatTools::UnlessReasoning,
    ..GPT_5_1
};
const GPT_5_5: Generation = Generation {
    default_effort: "medium",
    chat_tools: ChatTools::ExplicitNone,
    ..GPT_5_2
};
const GPT_5_6: Generation = Generation {
    efforts: &["none", "low", "medium", "high", "xhigh", "max"],
    ..GPT_5_5
};
/// Also what later generations nobody has described yet are held to.
const GPT_6: Generation = Generation {
    sampling: Sampling::Never,
    ..GPT_5_6
};
const RESPONSES_ONLY: Generation = Generation {
    efforts: &["low", "medium", "high", "xhigh", "max"],
    chat_tools: ChatTools::Never,
    ..GPT_6
};

/// The generation of a model; `None` for models OpenAI does not offer.
pub(crate) fn generation(model: &str) -> Option<Generation> {
    let is = |name: &str| {
        model
            .strip_prefix(name)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    Some(
        if is("gpt-4o") || is("gpt-4.1") || is("gpt-4") || is("gpt-4-turbo") {
            CLASSIC
        } else if is("o1") || is("o3") || is("o4") {
            O_SERIES
        } else if is("gpt-5") {
            GPT_5
        } else if is("gpt-5.1") {
            GPT_5_1
        } else if is("gpt-5.2") || is("gpt-5.4") {
            GPT_5_2
        } else if is("gpt-5.5") {
            GPT_5_5
        } else if is("gpt-5.6") {
            GPT_5_6
        } else if is("gpt-6-astra") || is("gpt-6.1-sol") {
            RESPONSES_ONLY
        } else if model.starts_with("gpt-5") || model.starts_with("gpt-6") {
            GPT_6
        } else {
            return None;
        },
    )
}

/// The effort must be one the model has; `param` is where the request put it.
pub(crate) fn check_effort(model: &str, effort: &Value, param: &str) -> Verdict {
    let Some(generation) = generation(model) else {
        return Ok(());
    };
    if !generation.reasons() {
        return Err(unsupported_parameter(
            param,
            "is not supported with this model.",
        ));
    }
    let level = effort.as_str().unwrap_or_default();
    if generation.efforts.contains(&level) {
        return Ok(());
    }
    let values: Vec<_> = generation
        .efforts
        .iter()
        .map(|value| format!("'{value}'"))
        .collect();
    let reason = format!(
        "Unsupported value: '{level}' is not supported with the '{model}' model. Supported values are: {}.",
        values.join(", ")
    );
    Err(Rejection::invalid(reason)
        .code("unsupported_value")
        .param(param))
}

/// `temperature` and `top_p` must be absent or at their default while the model reasons.
pub(crate) fn check_sampling(model: &str, body: &Value, effort: Option<&str>) -> Verdict {
    let Some(generation) = generation(model) else {
        return Ok(());
    };
    let free = match generation.sampling {
        Sampling::Free => true,
        Sampling::AtNone => effort.unwrap_or(generation.default_effort) == "none",
        Sampling::Never => false,
    };
    if free {
        return Ok(());
    }
    for param in ["temperature", "top_p"] {
        let value = given(body, param).and_then(Value::as_f64);
        if let Some(value) = value.filter(|value| (value - 1.0).abs() > f64::EPSILON) {
            let reason = format!(
                "Unsupported value: '{param}' does not support {value} with this model. Only the default (1) value is supported."
            );
            return Err(Rejection::invalid(reason)
                .code("unsupported_value")
                .param(param));
        }
    }
    Ok(())
}

pub(crate) fn unsupported_parameter(param: &str, why: &str) -> Rejection {
    Rejection::invalid(format!("Unsupported parameter: '{param}' {why}"))
        .code("unsupported_parameter")
        .param(param)
}

pub(crate) fn missing_parameter(param: &str) -> Rejection {
    Rejection::invalid(format!("Missing required parameter: '{param}'."))
        .code("missing_required_parameter")
        .param(param)
}

pub(crate) fn invalid_value(param: &str, reason: impl Into<String>) -> Rejection {
    Rejection::invalid(reason)
        .code("invalid_value")
        .param(param)
}

/// A function's name, parameters and strictness, wherever the API puts them.
pub(crate) fn check_function(function: &Value, at: &str) -> Verdict {
    let Some(name) = text(function, "name") else {
        return Err(missing_parameter(&format!("{at}.name")));
    };
    let param = format!("{at}.name");
    if !is_name(name, 64) {
        let reason = format!(
            "Invalid '{param}': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
        );
        return Err(invalid_value(&param, reason));
    }
    let Some(parameters) = given(function, "parameters") else {
        return Ok(());
    };
    let violation = if text(parameters, "type") == Some("object") {
        (function.get("strict") == Some(&Value::Bool(true)))
            .then(|| strict_violation(parameters))
            .flatten()
    } else {
        Some("schema must be a JSON Schema of 'type: \"object\"'.".into())
    };
    match violation {
        Some(why) => Err(Rejection::invalid(format!(
            "Invalid schema for function '{name}': {why}"
        ))
        .code("invalid_function_parameters")
        .param(format!("{at}.parameters"))),
        None => Ok(()),
    }
}

pub(crate) fn check_image_url(url: &str, at: &str) -> Verdict {
    let valid = match url.strip_prefix("data:") {
        Some(data) => data.split_once(";base64,").is_some_and(|(kind, data)| {
            ["image/jpeg", "image/png", "image/gif", "image/webp"].contains(&kind)
                && crate::json::is_base64(data)
        }),
        None => url.starts_with("http://") || url.starts_with("https://"),
    };
    if valid {
        return Ok(());
    }
    let reason = format!(
        "Invalid '{at}'. Expected a valid URL or a base64-encoded data URL of a supported image type."
    );
    Err(invalid_value(at, reason))
}

pub(crate) fn check_id(id: &str, at: &str) -> Verdict {
    if id.is_empty() {
        return Err(missing_parameter(at));
    }
    if id.len() <= 64 {
        return Ok(());
    }
    let reason = format!(
        "Invalid '{at}': string too long. Expected a string with maximum length 64, but got a string with length {} instead.",
        id.len()
    );
    Err(Rejection::invalid(reason)
        .code("string_above_max_length")
        .param(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generations_are_told_apart() {
        assert!(!generation("gpt-4.1-2025-04-14").unwrap().reasons());
        assert_eq!(generation("o4-mini").unwrap().sampling, Sampling::Never);
        assert_eq!(generation("gpt-5-mini").unwrap().efforts[0], "minimal");
        assert_eq!(
            generation("gpt-5.4").unwrap().chat_tools,
            ChatTools::UnlessReasoning
        );
        assert_eq!(
            generation("gpt-5.5").unwrap().chat_tools,
            ChatTools::ExplicitNone
        );
        assert_eq!(
            generation("gpt-6.1-sol").unwrap().chat_tools,
            ChatTools::Never
        );
        assert!(generation("llama3.1").is_none());
    }

    #[test]
    fn efforts_name_the_supported_ones() {
        let rejection = check_effort("gpt-5.1", &json!("minimal"), "reasoning_effort").unwrap_err();
        assert!(rejection.message.starts_with(
            "Unsupported value: 'minimal' is not supported with the 'gpt-5.1' model. Supported values are: 'none'"
        ));
        assert_eq!(rejection.code, Some("unsupported_value"));
    }
}
