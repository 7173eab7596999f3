//! What a prompt consists of, as applications write it.

use caliban_model::{Block, Image, ImageMime, Message, Role};
use caliban_session::{Attach, Prompt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A text, or pieces of text and images.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(
    untagged,
    expecting = "`content` must be a text or a list of `text` and `image` blocks"
)]
pub enum Content {
    Text(String),
    Blocks(Vec<ContentBlock>),
}

/// A piece of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ContentBlock {
    Text { text: String },
    Image { source: ImageSource },
}

/// Where an image is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum ImageSource {
    Base64 {
        media_type: MediaType,
        data: String,
    },
    /// Uploaded before; over HTTP.
    Blob {
        digest: String,
    },
}

/// The formats that every provider takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum MediaType {
    #[serde(rename = "image/png")]
    Png,
    #[serde(rename = "image/jpeg")]
    Jpeg,
    #[serde(rename = "image/gif")]
    Gif,
    #[serde(rename = "image/webp")]
    Webp,
}

impl Content {
    /// Whether there is nothing in it to work on.
    pub(crate) fn is_blank(&self) -> bool {
        match self {
            Self::Text(text) => text.trim().is_empty(),
            Self::Blocks(blocks) => blocks.iter().all(|block| match block {
                ContentBlock::Text { text } => text.trim().is_empty(),
                ContentBlock::Image { .. } => false,
            }),
        }
    }

    /// The same content has the same digest, however it was spelled.
    pub(crate) fn digest(&self) -> String {
        // Only a map with keys that are no texts could fail, and there is none.
        let text = serde_json::to_string(&self.blocks()).unwrap_or_default();
        caliban_settings::hex(&Sha256::digest(text.as_bytes()))
    }

    fn blocks(&self) -> Vec<ContentBlock> {
        match self {
            Self::Text(text) => vec![ContentBlock::Text { text: text.clone() }],
            Self::Blocks(blocks) => blocks.clone(),
        }
    }

    /// The prompt that it is to a session. What was typed may name files with `@`.
    pub(crate) fn prompt(&self, id: &str) -> Prompt {
        let blocks = self.blocks().into_iter().map(|block| match block {
            ContentBlock::Text { text } => Block::text(text),
            // Its place was taken by the picture itself before the prompt was acknowledged.
            ContentBlock::Image {
                source: ImageSource::Blob { digest },
            } => Block::text(format!("[the picture {digest} is not there]")),
            ContentBlock::Image {
                source: ImageSource::Base64 { media_type, data },
            } => Block::Image(Image {
                mime: media_type.into(),
                source: caliban_model::ImageSource::Base64 { data: data.into() },
                dims: None,
            }),
        });
        Prompt {
            id: id.into(),
            message: Message::new(Role::User, blocks.collect()),
            attach: Attach::Named,
        }
    }
}

impl MediaType {
    /// The type of this name.
    pub fn named(name: &str) -> Option<Self> {
        let types = [Self::Png, Self::Jpeg, Self::Gif, Self::Webp];
        types.into_iter().find(|it| it.as_str() == name)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }
}

impl From<MediaType> for ImageMime {
    fn from(media_type: MediaType) -> Self {
        match media_type {
            MediaType::Png => Self::Png,
            MediaType::Jpeg => Self::Jpeg,
            MediaType::Gif => Self::Gif,
            MediaType::Webp => Self::Webp,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_does_not_make_another_content() {
        let text = Content::Text("hi".to_owned());
        let blocks: Content = serde_json::from_str(r#"[{"type":"text","text":"hi"}]"#).unwrap();
        assert_eq!(text.digest(), blocks.digest());
        assert_ne!(text.digest(), Content::Text("ho".to_owned()).digest());
        assert!(Content::Blocks(Vec::new()).is_blank() && !text.is_blank());
    }
}
