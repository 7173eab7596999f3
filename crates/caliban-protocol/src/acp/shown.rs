//! Content as a client shows it.

use agent_client_protocol_schema::v1::{
    Content, ContentBlock, ImageContent, ResourceLink, TextContent, ToolCallContent,
};
use caliban_model::{Image, ImageSource, ToolContent};

/// The longest text of a call's output that is shown: its end.
pub(super) const OUTPUT: usize = 64 * 1024;

pub(super) fn text(text: impl Into<String>) -> ContentBlock {
    ContentBlock::Text(TextContent::new(text))
}

pub(super) fn image(image: &Image) -> ContentBlock {
    match &image.source {
        ImageSource::Base64 { data } => {
            ContentBlock::Image(ImageContent::new(&**data, image.mime.as_str()))
        }
        ImageSource::Url { url } => {
            ContentBlock::ResourceLink(ResourceLink::new(url.clone(), url.clone()))
        }
    }
}

/// Text as the content of a call; nothing where there is none.
pub(super) fn output(shown: &str) -> Option<ToolCallContent> {
    let block = text(tail(shown));
    (!shown.trim().is_empty()).then(|| ToolCallContent::Content(Content::new(block)))
}

/// What a call came to, as its content.
pub(super) fn outputs(content: &[ToolContent]) -> Vec<ToolCallContent> {
    content
        .iter()
        .filter_map(|part| match part {
            ToolContent::Text { text } => output(text),
            ToolContent::Image(shown) => Some(ToolCallContent::Content(Content::new(image(shown)))),
        })
        .collect()
}

/// The texts of what a call came to.
pub(super) fn texts(content: &[ToolContent]) -> String {
    let texts = content.iter().filter_map(|part| match part {
        ToolContent::Text { text } => Some(text.as_str()),
        ToolContent::Image(_) => None,
    });
    tail(&texts.collect::<Vec<_>>().join("\n")).to_owned()
}

/// The end of a text, as much of it as is shown.
pub(super) fn tail(text: &str) -> &str {
    let mut start = text.len().saturating_sub(OUTPUT);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_text_is_shown_in_whole_characters() {
        let long = "é".repeat(OUTPUT);
        let shown = tail(&format!("{long}x")).to_owned();
        assert!(
            shown.ends_with("éx") && shown.len() <= OUTPUT,
            "{}",
            shown.len()
        );
        assert_eq!(tail("short"), "short");
    }

    #[test]
    fn nothing_is_not_shown() {
        assert_eq!(output(" \n"), None);
    }
}
