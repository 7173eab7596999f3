//! What may be shown of a configuration.

use serde_json::{Value, json};
use url::Url;

use caliban_permissions::looks_like_key;
use caliban_settings::McpServer;

const MASK: &str = "****";
/// What stands before a secret and is none.
const SCHEMES: [&str; 4] = ["", "Bearer", "Basic", "token"];

/// Whether secrets are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Secrets {
    Masked,
    Shown,
}

/// Parts of names whose values are secrets.
const NAMES: [&str; 9] = [
    "auth",
    "cookie",
    "credential",
    "key",
    "passphrase",
    "passwd",
    "password",
    "secret",
    "token",
];
impl Secrets {
    pub(crate) fn shown_if(is_shown: bool) -> Self {
        if is_shown { Self::Shown } else { Self::Masked }
    }

    /// Masks what looks like a secret, or is named as one, in settings.
    pub(crate) fn mask(self, settings: &mut Value) {
        match self {
            Self::Shown => {}
            Self::Masked => mask(settings, &Named::Setting),
        }
    }
}

/// What a value's name says about it.
enum Named {
    /// A key of ours, whose name is no hint.
    Setting,
    /// A header, of which any may be a secret.
    Header,
    /// A variable, named by the user.
    Variable,
    /// A secret.
    Secret,
}

fn mask(value: &mut Value, named: &Named) {
    match value {
        Value::Object(table) => {
            for (name, value) in table {
                let named = match (named, name.as_str()) {
                    (Named::Setting, "env") => Named::Variable,
                    (Named::Setting, "headers") | (Named::Header, _) => Named::Header,
                    (Named::Setting, "client_secret") | (Named::Secret, _) => Named::Secret,
                    (Named::Variable, name) if names_secret(name) => Named::Secret,
                    (Named::Setting | Named::Variable, _) => Named::Setting,
                };
                mask(value, &named);
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| mask(value, named)),
        Value::String(text) => {
            *text = match named {
                Named::Header | Named::Secret => masked_text(text),
                Named::Setting | Named::Variable => masked_words(&masked_url(text)),
            };
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn names_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    NAMES.iter().any(|part| name.contains(part))
}

/// A text without the words in it that are secrets, or are set to one.
fn masked_words(text: &str) -> String {
    let mask_word = |word: &str| {
        let (name, value) = word.split_once('=').unwrap_or(("", word));
        let plain = value.trim_matches(['"', '\'']);
        match (
            looks_like_key(plain) || (names_secret(name) && !plain.is_empty()),
            name,
        ) {
            (false, _) => word.to_owned(),
            (true, "") => MASK.to_owned(),
            (true, name) => format!("{name}={MASK}"),
        }
    };
    let words: Vec<String> = text.split(' ').map(mask_word).collect();
    words.join(" ")
}

/// A server as it is configured, without what it keeps secret.
pub(crate) fn masked(server: &McpServer) -> Value {
    let mut shown = json!(server);
    for table in ["env", "headers"] {
        let values = shown.get_mut(table).and_then(Value::as_object_mut);
        for value in values.into_iter().flat_map(|table| table.values_mut()) {
            *value = masked_text(value.as_str().unwrap_or_default()).into();
        }
    }
    if let Some(secret) = shown.pointer_mut("/oauth_config/client_secret") {
        *secret = masked_text(secret.as_str().unwrap_or_default()).into();
    }
    if let Some(url) = &server.url {
        shown["url"] = masked_url(url).into();
    }
    shown
}

/// The name of a variable tells nothing; anything else may be the secret itself.
fn masked_text(text: &str) -> String {
    let mut around = String::new();
    let mut rest = text;
    while let Some((before, reference)) = rest.split_once("${") {
        match reference.split_once('}') {
            Some((name, after)) if !name.contains(":-") => {
                around.push_str(before);
                rest = after;
            }
            Some(_) | None => return MASK.to_owned(),
        }
    }
    let is_reference = rest.len() < text.len();
    around.push_str(rest);
    if is_reference && SCHEMES.contains(&around.trim()) {
        text.to_owned()
    } else {
        MASK.to_owned()
    }
}

/// An address without passwords and without the values of its query.
pub(crate) fn masked_url(text: &str) -> String {
    let Ok(mut url) = Url::parse(text) else {
        return text.to_owned();
    };
    if url.password().is_none() && url.username().is_empty() && url.query().is_none() {
        return text.to_owned();
    }
    if url.password().is_some() || !url.username().is_empty() {
        // Only addresses without a host have no place for them.
        let _ = url.set_username(MASK);
        let _ = url.set_password(None);
    }
    let names: Vec<String> = url
        .query_pairs()
        .map(|(name, _)| name.into_owned())
        .collect();
    if !names.is_empty() {
        url.query_pairs_mut()
            .clear()
            .extend_pairs(names.iter().map(|name| (name, MASK)));
    }
    url.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_and_names_are_not() {
        for (text, shown) in [
            ("hush", MASK),
            ("", MASK),
            ("${TOKEN}", "${TOKEN}"),
            ("Bearer ${TOKEN}", "Bearer ${TOKEN}"),
            ("Bearer hush", MASK),
            ("hush${TOKEN}", MASK),
            ("${TOKEN:-hush}", MASK),
            ("${TOKEN", MASK),
        ] {
            assert_eq!(masked_text(text), shown, "{text}");
        }
    }

    #[test]
    fn settings_keep_what_is_no_secret() {
        let mut settings = json!({
            "model": "claude-opus-4-7",
            "env": {"RUST_LOG": "info", "MY_TOKEN": "hush", "PLAIN": "sk-0123456789abcdef"},
            "api_key_helper": "vault read --token=hush /key",
            "mcp_servers": {"x": {"headers": {"X-Any": "hush"}, "env": {"A_KEY": "${A_KEY}", "B": "2"}}},
            "hooks": {"Stop": [{"handlers": [{"command": "curl -H sk-0123456789abcdef ./x"}]}]},
        });
        Secrets::Shown.mask(&mut settings);
        assert_eq!(settings["env"]["MY_TOKEN"], "hush");
        Secrets::Masked.mask(&mut settings);
        assert_eq!(
            settings,
            json!({
                "model": "claude-opus-4-7",
                "env": {"RUST_LOG": "info", "MY_TOKEN": MASK, "PLAIN": MASK},
                "api_key_helper": format!("vault read --token={MASK} /key"),
                "mcp_servers": {"x": {"headers": {"X-Any": MASK}, "env": {"A_KEY": "${A_KEY}", "B": "2"}}},
                "hooks": {"Stop": [{"handlers": [{"command": format!("curl -H {MASK} ./x")}]}]},
            })
        );
    }

    #[test]
    fn addresses_lose_passwords_and_queries() {
        for (text, shown) in [
            ("https://a.example/mcp", "https://a.example/mcp"),
            (
                "https://a.example/mcp?key=hush&x=1",
                "https://a.example/mcp?key=****&x=****",
            ),
            ("https://me:hush@a.example/", "https://****@a.example/"),
            ("${URL}", "${URL}"),
        ] {
            assert_eq!(masked_url(text), shown);
        }
    }
}
