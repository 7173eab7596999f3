//! Pictures by their digest: uploaded before the prompt that shows them, and fetched apart from the
//! messages that hold them, which stay short.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use caliban_model::{Block, ImageSource as Source, Message, ToolContent};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::Arc;

use crate::content::{Content, ContentBlock, ImageSource, MediaType};

/// Bytes of uploads that are kept for prompts to come; the oldest go.
const KEPT: usize = 64 * 1024 * 1024;
/// A picture longer than this is left out of messages, as its digest.
const SHORT: usize = 16 * 1024;

/// A picture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    pub media_type: MediaType,
    pub bytes: Arc<[u8]>,
}

/// What was uploaded and belongs to no prompt yet.
#[derive(Debug, Default)]
pub(crate) struct Uploads(Mutex<VecDeque<(String, Blob)>>);

impl Uploads {
    /// Keeps a picture and returns its digest.
    pub(crate) fn keep(&self, blob: Blob) -> String {
        let digest = digest(&blob.bytes);
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|(known, _)| *known != digest);
        kept.push_back((digest.clone(), blob));
        let mut bytes: usize = kept.iter().map(|(_, blob)| blob.bytes.len()).sum();
        while bytes > KEPT
            && let Some((_, oldest)) = kept.pop_front()
        {
            bytes -= oldest.bytes.len();
        }
        digest
    }

    pub(crate) fn find(&self, digest: &str) -> Option<Blob> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = kept.iter().find(|(known, _)| known == digest);
        found.map(|(_, blob)| blob.clone())
    }

    /// Puts what was uploaded in its place; the error is the digest of what is not there.
    pub(crate) fn resolve(&self, content: Content) -> Result<Content, String> {
        let Content::Blocks(blocks) = content else {
            return Ok(content);
        };
        let resolved = blocks.into_iter().map(|block| match block {
            ContentBlock::Image {
                source: ImageSource::Blob { digest },
            } => match self.find(&digest) {
                Some(blob) => Ok(ContentBlock::Image {
                    source: ImageSource::Base64 {
                        media_type: blob.media_type,
                        data: STANDARD.encode(&blob.bytes),
                    },
                }),
                None => Err(digest),
            },
            block => Ok(block),
        });
        Ok(Content::Blocks(resolved.collect::<Result<_, _>>()?))
    }
}

fn digest(bytes: &[u8]) -> String {
    caliban_settings::hex(&Sha256::digest(bytes))
}

/// The picture of this digest, where a conversation has it.
pub(crate) fn find(messages: &[Arc<Message>], wanted: &str) -> Option<Blob> {
    let images = messages.iter().flat_map(|message| &message.content);
    let images = images.flat_map(|block| match block {
        Block::Image(image) => vec![image],
        Block::ToolResult { content, .. } => {
            let images = content.iter().filter_map(|part| match part {
                ToolContent::Image(image) => Some(image),
                ToolContent::Text { .. } => None,
            });
            images.collect()
        }
        _ => Vec::new(),
    });
    images.into_iter().find_map(|image| {
        let Source::Base64 { data } = &image.source else {
            return None;
        };
        let bytes = STANDARD.decode(data.as_bytes()).ok()?;
        let media_type = MediaType::named(image.mime.as_str())?;
        (digest(&bytes) == wanted).then(|| Blob {
            media_type,
            bytes: bytes.into(),
        })
    })
}

/// Puts a digest in the place of every long picture of a frame.
pub(crate) fn shorten(frame: &mut Value) {
    for block in frame["content"].as_array_mut().into_iter().flatten() {
        if let Some(source) = block.get_mut("source") {
            shorten_source(source);
        }
        let parts = block.get_mut("content").and_then(Value::as_array_mut);
        for part in parts.into_iter().flatten() {
            if let Some(source) = part.get_mut("source") {
                shorten_source(source);
            }
        }
    }
}

fn shorten_source(source: &mut Value) {
    let Some(data) = source["data"].as_str().filter(|data| data.len() > SHORT) else {
        return;
    };
    // What is no Base64 has no digest, and stays.
    if let Ok(bytes) = STANDARD.decode(data.as_bytes()) {
        *source = json!({
            "type": "blob",
            "digest": digest(&bytes),
            "media_type": source["media_type"],
            "bytes": bytes.len(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uploads_are_bounded_and_take_their_place_in_a_prompt() {
        let uploads = Uploads::default();
        let blob = |fill: u8, bytes: usize| Blob {
            media_type: MediaType::Png,
            bytes: vec![fill; bytes].into(),
        };
        let first = uploads.keep(blob(1, 10));
        assert_eq!(uploads.keep(blob(1, 10)), first);
        let prompt = |digest: &str| {
            Content::Blocks(vec![ContentBlock::Image {
                source: ImageSource::Blob {
                    digest: digest.to_owned(),
                },
            }])
        };
        let resolved = serde_json::to_value(uploads.resolve(prompt(&first)).unwrap()).unwrap();
        assert_eq!(resolved[0]["source"]["type"], "base64");
        assert_eq!(uploads.resolve(prompt("x")), Err("x".to_owned()));
        uploads.keep(blob(2, KEPT));
        assert!(uploads.find(&first).is_none());
    }

    #[test]
    fn long_pictures_are_left_out_and_found_by_their_digest() {
        let data = STANDARD.encode(vec![7; SHORT]);
        let source = json!({"type": "base64", "media_type": "image/png", "data": data});
        let mut frame = json!({"type": "user", "content": [{"type": "image", "source": source}]});
        shorten(&mut frame);
        let short = &frame["content"][0]["source"];
        assert_eq!(short["bytes"], SHORT);
        let content: Content =
            serde_json::from_value(json!([{"type": "image", "source": source}])).unwrap();
        let message = Arc::new(content.prompt("p").message);
        let found = find(&[message], short["digest"].as_str().unwrap()).unwrap();
        assert_eq!(found.bytes.len(), SHORT);
    }

    #[test]
    fn what_is_no_picture_stays_as_it_is() {
        let frame = json!({"content": [
            {"type": "text", "text": "x"},
            {"type": "tool_result", "content": [{"type": "text", "text": "y"}]},
        ]});
        let mut shortened = frame.clone();
        shorten(&mut shortened);
        assert_eq!(shortened, frame);
    }
}
