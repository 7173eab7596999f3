//! What may be shown of a server's configuration.

use serde_json::{Value, json};
use url::Url;

use caliban_settings::McpServer;

const MASK: &str = "****";
/// What stands before a secret and is none.
const SCHEMES: [&str; 4] = ["", "Bearer", "Basic", "token"];

/// A server as it is configured, without what it keeps secret.
pub(super) fn masked(server: &McpServer) -> Value {
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
pub(super) fn masked_url(text: &str) -> String {
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
