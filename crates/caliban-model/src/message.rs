//! Messages and their blocks: the provider-neutral form in which history is kept.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Who speaks. System messages stand only at the start of a conversation; [`crate::Request::new`]
/// checks that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    System,
    User,
    Assistant,
}

/// One turn of one speaker. Shared as `Arc<Message>`: building a request copies pointers only.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    pub role: Role,
    pub content: Vec<Block>,
    /// Which model wrote this message. Reasoning and private fields are returned only to their
    /// origin; any other model gets the message without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Origin>,
}

/// The provider and model that produced an assistant message.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Origin {
    pub provider: Arc<str>,
    pub model: Arc<str>,
}

impl fmt::Display for Origin {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "{}/{}", self.provider, self.model)
    }
}

/// A piece of a message.
///
/// `private` holds a provider's own data that must return to it unchanged (signatures, encrypted
/// reasoning, native ids). It is opaque to everybody but the adapter that wrote it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    Text {
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        private: Option<Value>,
    },
    Thinking {
        #[serde(rename = "thinking")]
        text: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        signature: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        private: Option<Value>,
    },
    RedactedThinking {
        data: String,
    },
    ToolUse {
        id: String,
        name: String,
        /// Always an object, or a JSON string holding the raw text when the model's input did
        /// not parse, so that the tool layer can tell the model what was wrong.
        input: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        private: Option<Value>,
    },
    ToolResult {
        tool_use_id: String,
        content: Vec<ToolContent>,
        #[serde(default)]
        is_error: bool,
    },
    Image(Image),
    /// A block of a kind only its provider knows; returned to its origin verbatim.
    Opaque {
        value: Value,
    },
}

/// What a tool may answer with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToolContent {
    Text { text: String },
    Image(Image),
}

/// A picture shown to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    pub mime: ImageMime,
    pub source: ImageSource,
    /// Width and height in pixels, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dims: Option<(u32, u32)>,
}

/// What a token of an image covers, in pixels, as vendors count whose models see.
const PIXELS_PER_TOKEN: u64 = 750;
/// An image of unknown size: about the largest that is not made smaller.
const UNKNOWN_IMAGE_TOKENS: u64 = 1_500;

impl Image {
    /// About what it costs to show this to a model; what a provider reports is what counts.
    pub fn estimated_tokens(&self) -> u64 {
        self.dims.map_or(UNKNOWN_IMAGE_TOKENS, |(width, height)| {
            (u64::from(width) * u64::from(height)).div_ceil(PIXELS_PER_TOKEN)
        })
    }
}

/// The image formats every vision provider accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImageMime {
    #[serde(rename = "image/png")]
    Png,
    #[serde(rename = "image/jpeg")]
    Jpeg,
    #[serde(rename = "image/gif")]
    Gif,
    #[serde(rename = "image/webp")]
    Webp,
}

/// Where the bytes of an image are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ImageSource {
    /// Standard base64, shared because history holds it as long as the session lives.
    Base64 {
        data: Arc<str>,
    },
    Url {
        url: String,
    },
}

/// A media type outside the closed list of [`ImageMime`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("image type `{0}` is not supported; use png, jpeg, gif or webp")]
pub struct UnsupportedImage(pub String);

impl ImageMime {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }

    /// Recognises an image by its first bytes, whatever its name says.
    pub fn sniff(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'E',
                b'B',
                b'P',
                ..,
            ] => Some(Self::Webp),
            _ => None,
        }
    }
}

impl std::str::FromStr for ImageMime {
    type Err = UnsupportedImage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "image/png" => Ok(Self::Png),
            "image/jpeg" | "image/jpg" => Ok(Self::Jpeg),
            "image/gif" => Ok(Self::Gif),
            "image/webp" => Ok(Self::Webp),
            other => Err(UnsupportedImage(other.to_owned())),
        }
    }
}

impl Origin {
    pub fn new(provider: impl Into<Arc<str>>, model: impl Into<Arc<str>>) -> Self {
        Self {
            provider: provider.into(),
            model: model.into(),
        }
    }
}

impl Block {
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            private: None,
        }
    }
}

impl Message {
    pub fn new(role: Role, content: Vec<Block>) -> Self {
        Self {
            role,
            content,
            origin: None,
        }
    }

    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, vec![Block::text(text)])
    }

    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, vec![Block::text(text)])
    }

    pub fn assistant(text: impl Into<String>) -> Self {
        Self::new(Role::Assistant, vec![Block::text(text)])
    }

    /// All text blocks, joined without a separator.
    pub fn text(&self) -> String {
        self.content
            .iter()
            .filter_map(|block| match block {
                Block::Text { text, .. } => Some(text.as_str()),
                _ => None,
            })
            .collect()
    }

    /// The tool calls of this message, in the order the model made them.
    pub fn tool_uses(&self) -> impl Iterator<Item = (&str, &str, &Value)> {
        self.content.iter().filter_map(|block| match block {
            Block::ToolUse {
                id, name, input, ..
            } => Some((id.as_str(), name.as_str(), input)),
            _ => None,
        })
    }

    /// Whether `provider` running `model` wrote this message, and may therefore be given its
    /// reasoning and private fields back.
    pub fn written_by(&self, provider: &str, model: &str) -> bool {
        self.origin
            .as_ref()
            .is_some_and(|origin| &*origin.provider == provider && &*origin.model == model)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_serialise_in_the_readable_form_sessions_keep() {
        let message = Message {
            role: Role::Assistant,
            content: vec![
                Block::Thinking {
                    text: "hm".into(),
                    signature: Some("sig".into()),
                    private: None,
                },
                Block::text("hello"),
                Block::ToolUse {
                    id: "t1".into(),
                    name: "Bash".into(),
                    input: json!({"command": "ls"}),
                    private: None,
                },
            ],
            origin: Some(Origin::new("anthropic", "claude-sonnet-4-6")),
        };
        let value = serde_json::to_value(&message).unwrap();
        assert_eq!(
            value,
            json!({
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "sig"},
                    {"type": "text", "text": "hello"},
                    {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}},
                ],
                "origin": {"provider": "anthropic", "model": "claude-sonnet-4-6"},
            })
        );
        assert_eq!(serde_json::from_value::<Message>(value).unwrap(), message);
    }

    #[test]
    fn images_are_recognised_by_content() {
        assert_eq!(
            ImageMime::sniff(b"\x89PNG\r\n\x1a\nrest"),
            Some(ImageMime::Png)
        );
        assert_eq!(ImageMime::sniff(b"RIFF....WEBPVP8 "), Some(ImageMime::Webp));
        assert_eq!(ImageMime::sniff(b"plain text"), None);
    }
}
