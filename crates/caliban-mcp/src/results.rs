//! What servers answer, as content for a model: cleaned, with everything that cannot be shown
//! described, and cut in the middle where it is too long.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use caliban_agent::{ToolOutput, ToolStatus};
use caliban_model::{Image, ImageMime, ImageSource, ToolContent};
use serde_json::Value;

use crate::text;

/// About how many bytes a token takes.
pub(crate) const BYTES_PER_TOKEN: usize = 4;
/// The largest picture that is passed on, as base64; it is made smaller on its way to the model.
const MAX_IMAGE: usize = 64 * 1024 * 1024;
/// How many pictures of one answer are passed on.
const MAX_IMAGES: usize = 16;
const MAX_LABEL: usize = 500;

/// The answer to a call.
pub(crate) fn output(result: &Value, max_tokens: usize) -> ToolOutput {
    let status = match result["isError"] {
        Value::Bool(true) => ToolStatus::Failed,
        _ => ToolStatus::Ok,
    };
    let blocks = match &result["content"] {
        Value::Array(blocks) => blocks.as_slice(),
        Value::Null => &[],
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            return ToolOutput::failed(
                "The server's result breaks the protocol: its `content` is not a list.",
            );
        }
    };
    let mut parts = content(blocks);
    if !parts.iter().any(is_substantial)
        && let Some(structured) = result.get("structuredContent").filter(|it| !it.is_null())
    {
        parts = vec![text_part(&structured.to_string())];
    }
    if parts.is_empty() {
        parts.push(text_part("(no content)"));
    }
    ToolOutput::of(status, bounded(parts, max_tokens))
}

/// The content of a resource.
pub(crate) fn resource(result: &Value, max_tokens: usize) -> Vec<ToolContent> {
    let parts = result["contents"]
        .as_array()
        .into_iter()
        .flatten()
        .map(embedded)
        .collect();
    bounded(parts, max_tokens)
}

/// The text of a prompt; messages that are not the user's are labelled.
pub(crate) fn prompt(result: &Value, max_tokens: usize) -> String {
    let parts = result["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|message| {
            let part = block(&message["content"]);
            match (message["role"].as_str(), part) {
                (Some("assistant"), ToolContent::Text { text }) => {
                    text_part(&format!("[assistant] {text}"))
                }
                (_, ToolContent::Image(_)) => text_part("[image]"),
                (_, part) => part,
            }
        })
        .collect();
    ToolOutput::of(ToolStatus::Ok, bounded(parts, max_tokens)).text()
}

fn content(blocks: &[Value]) -> Vec<ToolContent> {
    let mut images = 0;
    blocks
        .iter()
        .map(|value| match block(value) {
            ToolContent::Image(image) => {
                images += 1;
                if images > MAX_IMAGES {
                    text_part("[one more image, not shown]")
                } else {
                    ToolContent::Image(image)
                }
            }
            text @ ToolContent::Text { .. } => text,
        })
        .collect()
}

fn block(block: &Value) -> ToolContent {
    let kind = block["type"].as_str().unwrap_or_default();
    match kind {
        "text" => text_part(block["text"].as_str().unwrap_or_default()),
        "image" => blob("image", &block["data"], &block["mimeType"]),
        "audio" => described("audio", &block["data"], &block["mimeType"]),
        "resource" => embedded(&block["resource"]),
        "resource_link" => {
            let details: String = ["name", "description", "mimeType"]
                .into_iter()
                .filter(|key| block[*key].is_string())
                .flat_map(|key| {
                    [
                        "; ".to_owned(),
                        key.to_owned(),
                        ": ".to_owned(),
                        label(&block[key]),
                    ]
                })
                .collect();
            text_part(&format!("[resource {}{details}]", label(&block["uri"])))
        }
        other => text_part(&format!(
            "[content of the unknown type `{}`, not shown]",
            text::line(other, 80)
        )),
    }
}

fn embedded(resource: &Value) -> ToolContent {
    let uri = label(&resource["uri"]);
    match (&resource["text"], &resource["blob"]) {
        (Value::String(content), _) => text_part(&format!("[resource {uri}]\n{content}")),
        (_, data @ Value::String(_)) => {
            blob(&format!("resource {uri}"), data, &resource["mimeType"])
        }
        (_, _) => text_part(&format!("[resource {uri}, without content]")),
    }
}

/// A picture if it is one, whatever it says it is.
fn blob(what: &str, data: &Value, mime: &Value) -> ToolContent {
    let picture = data
        .as_str()
        .filter(|data| data.len() <= MAX_IMAGE)
        .and_then(|data| {
            let bytes = BASE64_STANDARD.decode(data).ok()?;
            Some((data, ImageMime::sniff(&bytes)?))
        });
    match picture {
        Some((data, mime)) => ToolContent::Image(Image {
            mime,
            source: ImageSource::Base64 {
                data: Arc::from(data),
            },
            dims: None,
        }),
        None => described(what, data, mime),
    }
}

fn described(what: &str, data: &Value, mime: &Value) -> ToolContent {
    let bytes = data.as_str().map_or(0, str::len) / 4 * 3;
    let mime = match mime {
        Value::String(_) => label(mime),
        _ => "unknown type".to_owned(),
    };
    text_part(&format!("[{what}, {mime}, about {bytes} bytes, not shown]"))
}

fn label(value: &Value) -> String {
    text::line(value.as_str().unwrap_or_default(), MAX_LABEL)
}

fn text_part(text: &str) -> ToolContent {
    ToolContent::Text {
        text: text::clean(text),
    }
}

fn is_substantial(part: &ToolContent) -> bool {
    match part {
        ToolContent::Text { text } => !text.trim().is_empty(),
        ToolContent::Image(_) => true,
    }
}

/// Parts whose text together is not too long. Of a text that is, both ends are kept: what
/// matters tends to be at one of them.
fn bounded(parts: Vec<ToolContent>, max_tokens: usize) -> Vec<ToolContent> {
    let longest = max_tokens.saturating_mul(BYTES_PER_TOKEN);
    let length: usize = parts
        .iter()
        .map(|part| match part {
            ToolContent::Text { text } => text.len(),
            ToolContent::Image(_) => 0,
        })
        .sum();
    if length <= longest {
        return parts;
    }
    let mut texts = Vec::new();
    let mut images = Vec::new();
    for part in parts {
        match part {
            ToolContent::Text { text } => texts.push(text),
            ToolContent::Image(_) => images.push(part),
        }
    }
    let text = texts.join("\n");
    let head = floor(&text, longest / 2);
    let tail = ceil(&text, text.len().saturating_sub(longest / 2));
    let text = format!(
        "{}\n[… {} of {} bytes left out: a result may have {max_tokens} tokens \
         (CALIBAN_MAX_MCP_OUTPUT_TOKENS); ask for less at a time …]\n{}",
        &text[..head],
        tail - head,
        text.len(),
        &text[tail..]
    );
    let mut bounded = vec![ToolContent::Text { text }];
    bounded.extend(images);
    bounded
}

fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

fn ceil(text: &str, at: usize) -> usize {
    (at..=text.len())
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

    #[rstest]
    #[case(json!({"content": [{"type": "text", "text": "a\u{1b}[2Jb\u{200b}c"}]}), "abc")]
    #[case(json!({"content": [], "structuredContent": {"a": 1}}), r#"{"a":1}"#)]
    #[case(json!({"content": [{"type": "text", "text": ""}], "structuredContent": [1]}), "[1]")]
    #[case(json!({"content": [{"type": "text", "text": "t"}], "structuredContent": [1]}), "t")]
    #[case(json!({}), "(no content)")]
    #[case(json!({"content": [{"type": "audio", "data": "AAAA", "mimeType": "audio/wav"}]}), "[audio, audio/wav, about 3 bytes, not shown]")]
    #[case(json!({"content": [{"type": "hologram", "data": "AAAA"}]}), "[content of the unknown type `hologram`, not shown]")]
    #[case(json!({"content": [{"type": "image", "data": "AAAA", "mimeType": "image/png"}]}), "[image, image/png, about 3 bytes, not shown]")]
    #[case(json!({"content": [{"type": "image", "data": "!", "mimeType": 5}]}), "[image, unknown type, about 0 bytes, not shown]")]
    #[case(json!({"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "t"}}]}), "[resource a:b]\nt")]
    #[case(json!({"content": [{"type": "resource", "resource": {"uri": "a:b", "blob": "AAAA"}}]}), "[resource a:b, unknown type, about 3 bytes, not shown]")]
    #[case(json!({"content": [{"type": "resource_link", "uri": "a:b", "name": "n\nm"}]}), "[resource a:b; name: n m]")]
    fn every_kind_of_content_becomes_text(#[case] result: Value, #[case] expected: &str) {
        let output = output(&result, 1000);
        assert_eq!(output.status, ToolStatus::Ok);
        assert_eq!(output.text(), expected);
    }

    #[test]
    fn errors_are_failures() {
        let result = json!({"isError": true, "content": [{"type": "text", "text": "no"}]});
        assert_eq!(output(&result, 100), ToolOutput::failed("no"));
    }

    #[test]
    fn pictures_are_known_by_their_bytes_and_counted() {
        let picture = json!({"type": "image", "data": PIXEL, "mimeType": "application/x-lie"});
        let result = json!({"content": vec![picture; MAX_IMAGES + 1]});
        let output = output(&result, 100);
        let images = output.content.iter().filter(
            |part| matches!(part, ToolContent::Image(image) if image.mime == ImageMime::Png),
        );
        assert_eq!(images.count(), MAX_IMAGES);
        assert_eq!(output.text(), "[one more image, not shown]");
    }

    #[test]
    fn prompts_are_text_with_roles() {
        let result = json!({"messages": [
            {"role": "user", "content": {"type": "text", "text": "do"}},
            {"role": "assistant", "content": {"type": "text", "text": "done"}},
        ]});
        assert_eq!(prompt(&result, 100), "do\n[assistant] done");
    }

    proptest! {
        #[test]
        fn long_results_keep_both_ends(text in "[aé€😀\n]{0,400}", tokens in 1usize..50) {
            let result = json!({"content": [{"type": "text", "text": text}, {"type": "text", "text": "end"}]});
            let shown = output(&result, tokens).text();
            let whole = format!("{text}\nend");
            if text.len() + 3 <= tokens * BYTES_PER_TOKEN {
                prop_assert_eq!(shown, whole);
            } else {
                let (head, rest) = shown.split_once("\n[… ").unwrap();
                let (_, tail) = rest.split_once(" …]\n").unwrap();
                prop_assert!(whole.starts_with(head) && whole.ends_with(tail));
                prop_assert!(head.len() + tail.len() <= tokens * BYTES_PER_TOKEN);
            }
        }
    }
}
