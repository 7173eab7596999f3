//! The short names of models in this dialect.

use caliban_settings::variables::Environment;
use serde_json::{Value, json};

/// A short name, the variable that says what it stands for, and what it stands for otherwise.
const ALIASES: [(&str, &str, &str); 3] = [
    ("opus", "ANTHROPIC_DEFAULT_OPUS_MODEL", "claude-opus-5-5"),
    (
        "sonnet",
        "ANTHROPIC_DEFAULT_SONNET_MODEL",
        "claude-sonnet-4-6",
    ),
    ("haiku", "ANTHROPIC_DEFAULT_HAIKU_MODEL", "claude-haiku-4-5"),
];

/// What a name stands for; nothing for the default.
pub(crate) fn resolve(name: &str, environment: &Environment) -> Option<String> {
    let plain = name.split_once('[').map_or(name, |(plain, _)| plain);
    if plain.is_empty() || plain == "default" {
        return None;
    }
    let alias = ALIASES.iter().find(|(alias, _, _)| *alias == plain);
    Some(match alias {
        Some((_, variable, model)) => environment
            .text(variable)
            .unwrap_or_else(|| (*model).to_owned()),
        None => plain.to_owned(),
    })
}

/// The models that a client may offer its user.
pub(crate) fn list(default: &str, environment: &Environment) -> Vec<Value> {
    let entry = |value: &str, display: &str, model: &str| {
        json!({
            "value": value,
            "displayName": display,
            "description": model,
        })
    };
    let first = entry("default", "Default", default);
    let others = ALIASES.iter().map(|(alias, _, _)| {
        let model = resolve(alias, environment).unwrap_or_default();
        entry(alias, alias, &model)
    });
    std::iter::once(first).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_stand_for_models() {
        let read =
            |name: &str| (name == "ANTHROPIC_DEFAULT_HAIKU_MODEL").then(|| "mini".to_owned());
        let environment = Environment::new(read);
        let resolve = |name: &str| resolve(name, &environment);
        assert_eq!(resolve("default"), None);
        assert_eq!(resolve("sonnet").as_deref(), Some("claude-sonnet-4-6"));
        assert_eq!(resolve("opus[1m]").as_deref(), Some("claude-opus-5-5"));
        assert_eq!(resolve("haiku").as_deref(), Some("mini"));
        assert_eq!(resolve("claude-x-9").as_deref(), Some("claude-x-9"));
        assert_eq!(list("m", &environment)[0]["value"], "default");
    }
}
