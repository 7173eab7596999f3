//! The pieces of a conversation that both formats write alike.

use caliban_model::{
    Block, CachePolicy, Image, ImageSource, Message, Request, Role, ToolContent, ToolSpec,
};
use serde_json::{Map, Value, json};

use super::tool_id::digest;

/// What separates texts that become one.
pub(super) const PARAGRAPH: &str = "\n\n";
/// The longest name of a format, and the longest cache key.
const MAX_NAME: usize = 64;

/// The system messages as one text; nothing if they are empty.
pub(super) fn system(request: &Request) -> Option<String> {
    let texts: Vec<String> = request
        .system()
        .iter()
        .map(|message| message.text())
        .filter(|text| !text.is_empty())
        .collect();
    (!texts.is_empty()).then(|| texts.join(PARAGRAPH))
}

/// Neighbouring user messages stand for one turn: its tool results must all come before
/// anything else in it.
pub(super) fn turns<'a>(messages: impl Iterator<Item = &'a Message>) -> Vec<Turn<'a>> {
    let mut turns: Vec<Turn<'a>> = Vec::new();
    for message in messages {
        match (message.role, turns.last_mut()) {
            (Role::Assistant, _) => turns.push(Turn::Assistant(message)),
            (Role::User, Some(Turn::User(blocks))) => blocks.extend(&message.content),
            (Role::User, _) => turns.push(Turn::User(message.content.iter().collect())),
            // `Request` keeps these apart from the turns.
            (Role::System, _) => {}
        }
    }
    turns
}

#[derive(Debug)]
pub(super) enum Turn<'a> {
    Assistant(&'a Message),
    User(Vec<&'a Block>),
}

pub(super) fn image_url(image: &Image) -> String {
    match &image.source {
        ImageSource::Base64 { data } => format!("data:{};base64,{data}", image.mime.as_str()),
        ImageSource::Url { url } => url.clone(),
    }
}

/// The arguments of a call as the text the wire wants: the object, or what the model wrote
/// instead of one.
pub(super) fn arguments(input: &Value) -> String {
    match input {
        Value::String(raw) => raw.clone(),
        other => other.to_string(),
    }
}

/// A tool's result as text. Neither format can mark a failure, so the text says it.
pub(super) fn result_text(content: &[ToolContent], is_error: bool) -> String {
    let parts: Vec<&str> = content
        .iter()
        .map(|part| match part {
            ToolContent::Text { text } => text.as_str(),
            ToolContent::Image(_) => "[image]",
        })
        .filter(|text| !text.is_empty())
        .collect();
    let text = match parts.join("\n") {
        text if text.is_empty() => "(no output)".to_owned(),
        text => text,
    };
    if is_error {
        format!("Error: {text}")
    } else {
        text
    }
}

/// A tool's input schema; OpenAI refuses an object that does not list its properties.
pub(super) fn parameters(tool: &ToolSpec) -> Value {
    match &tool.input_schema {
        Value::Object(schema) => {
            let mut schema = schema.clone();
            schema.entry("type").or_insert_with(|| json!("object"));
            schema
                .entry("properties")
                .or_insert_with(|| Value::Object(Map::new()));
            Value::Object(schema)
        }
        _ => json!({"type": "object", "properties": {}}),
    }
}

/// A format's name in the alphabet the API allows.
pub(super) fn format_name(name: &str) -> String {
    let name: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '_'
            }
        })
        .take(MAX_NAME)
        .collect();
    if name.is_empty() {
        "answer".to_owned()
    } else {
        name
    }
}

/// What keeps the calls of one session on the same cache.
pub(super) fn cache_key(request: &Request) -> Option<String> {
    match request.cache {
        CachePolicy::Off => None,
        CachePolicy::Ephemeral(_) => request.metadata.session.as_ref().map(|session| {
            if session.len() <= MAX_NAME {
                session.clone()
            } else {
                digest(session, 32)
            }
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caliban_model::ImageMime;

    #[test]
    fn results_say_that_they_failed_and_are_never_empty() {
        let text = |text: &str| ToolContent::Text { text: text.into() };
        let image = ToolContent::Image(Image {
            mime: ImageMime::Png,
            source: ImageSource::Url {
                url: "https://x/y.png".into(),
            },
            dims: None,
        });
        assert_eq!(result_text(&[text("a"), image], false), "a\n[image]");
        assert_eq!(
            result_text(&[text("no such file")], true),
            "Error: no such file"
        );
        assert_eq!(result_text(&[text("")], false), "(no output)");
        assert_eq!(result_text(&[], true), "Error: (no output)");
    }

    #[test]
    fn names_and_keys_fit_their_limits() {
        assert_eq!(format_name("my schema/ä"), "my_schema__");
        assert_eq!(format_name(""), "answer");
        let mut request =
            Request::new("m", vec![std::sync::Arc::new(Message::user("x"))].into()).unwrap();
        request.metadata.session = Some("s".repeat(65));
        assert_eq!(cache_key(&request).map(|key| key.len()), Some(64));
        request.cache = CachePolicy::Off;
        assert_eq!(cache_key(&request), None);
    }

    #[test]
    fn a_schema_without_properties_gets_an_empty_list() {
        let spec = |input_schema| ToolSpec {
            name: "t".into(),
            description: String::new(),
            input_schema,
        };
        let empty = json!({"type": "object", "properties": {}});
        assert_eq!(parameters(&spec(json!({"type": "object"}))), empty);
        assert_eq!(parameters(&spec(json!(null))), empty);
    }
}
