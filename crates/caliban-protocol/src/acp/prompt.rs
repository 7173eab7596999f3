//! What a client sends as a prompt, as a message of ours.

use agent_client_protocol_schema::v1::{
    ContentBlock, EmbeddedResourceResource, Error, ImageContent, ResourceLink,
};
use caliban_model::{Block, Image, ImageMime, ImageSource, Message, Role};

/// A prompt's message. The first block is what was typed; files that were linked are named in it
/// with `@`, and go along if they lie in the workspace and may be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Content {
    pub message: Message,
    /// What was typed, for a title.
    pub typed: String,
}

/// Reads the content of a prompt.
pub fn content(blocks: &[ContentBlock]) -> Result<Content, Error> {
    let mut typed = String::new();
    let mut further = Vec::new();
    for block in blocks {
        match block {
            ContentBlock::Text(text) => typed.push_str(&text.text),
            ContentBlock::ResourceLink(link) => {
                // A name ends at white space, and begins behind some.
                if !typed.is_empty() && !typed.ends_with(char::is_whitespace) {
                    typed.push(' ');
                }
                typed.push_str(&named(link));
                typed.push(' ');
            }
            ContentBlock::Resource(resource) => match &resource.resource {
                EmbeddedResourceResource::TextResourceContents(text) => {
                    let uri = attribute(&text.uri);
                    further.push(Block::text(format!(
                        "<resource uri=\"{uri}\">\n{}\n</resource>",
                        text.text
                    )));
                }
                EmbeddedResourceResource::BlobResourceContents(blob) => {
                    let mime = blob.mime_type.as_deref().unwrap_or_default();
                    further.push(match mime.parse::<ImageMime>() {
                        Ok(mime) => picture(mime, &blob.blob),
                        Err(_) => Block::text(format!(
                            "<resource uri=\"{}\" type=\"{}\">left out: it is neither text nor an image</resource>",
                            attribute(&blob.uri),
                            attribute(mime)
                        )),
                    });
                }
                _ => return Err(refused("a resource of this kind")),
            },
            ContentBlock::Image(shown) => further.push(image(shown)?),
            ContentBlock::Audio(_) => return Err(refused("audio")),
            _ => return Err(refused("content of this kind")),
        }
    }
    let typed = typed.trim_end_matches(' ').to_owned();
    if typed.trim().is_empty() && further.is_empty() {
        return Err(Error::new(-32602, "the prompt is empty"));
    }
    let mut content = vec![Block::text(typed.clone())];
    if typed.trim().is_empty() {
        content.clear();
    }
    content.append(&mut further);
    let message = Message::new(Role::User, content);
    Ok(Content { message, typed })
}

fn refused(what: &str) -> Error {
    let reason = format!("{what} cannot be sent to the model");
    Error::new(-32602, reason)
}

fn image(shown: &ImageContent) -> Result<Block, Error> {
    let mime = shown.mime_type.parse::<ImageMime>();
    let mime = mime.map_err(|error| Error::new(-32602, error.to_string()))?;
    Ok(picture(mime, &shown.data))
}

fn picture(mime: ImageMime, data: &str) -> Block {
    Block::Image(Image {
        mime,
        source: ImageSource::Base64 { data: data.into() },
        dims: None,
    })
}

/// How a link is named in what was typed.
fn named(link: &ResourceLink) -> String {
    match file(&link.uri) {
        Some(path) if path.contains('"') => link.uri.clone(),
        Some(path) if path.contains(char::is_whitespace) => format!("@\"{path}\""),
        Some(path) => format!("@{path}"),
        None if link.name.is_empty() || link.name == link.uri => link.uri.clone(),
        None => format!("{} ({})", link.name, link.uri),
    }
}

/// The path of a `file:` address on this machine.
fn file(uri: &str) -> Option<String> {
    let rest = uri.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    let path = path
        .split(['?', '#'])
        .next()
        .filter(|path| path.starts_with('/'))?;
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            other => other,
        });
    }
    let path = String::from_utf8(bytes).ok()?;
    (!path.contains(char::is_control)).then_some(path)
}

/// Text that ends no attribute.
fn attribute(text: &str) -> String {
    text.replace(['"', '<', '>', '\n'], " ")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    fn read(blocks: Value) -> Result<Content, Error> {
        let blocks: Vec<ContentBlock> = serde_json::from_value(blocks).unwrap();
        content(&blocks)
    }

    #[test]
    fn links_stand_where_they_were_put() {
        let read = read(json!([
            {"type": "text", "text": "look at"},
            {"type": "resource_link", "name": "a b.rs", "uri": "file:///w/a%20b.rs#L3"},
            {"type": "text", "text": "and "},
            {"type": "resource_link", "name": "c", "uri": "file:///w/c.rs"},
            {"type": "resource_link", "name": "page", "uri": "https://h/p"},
        ]));
        let typed = "look at @\"/w/a b.rs\" and @/w/c.rs page (https://h/p)";
        assert_eq!(read.unwrap().typed, typed);
    }

    #[test]
    fn what_comes_along_follows_what_was_typed() {
        let read = read(json!([
            {"type": "resource", "resource": {"uri": "file:///w/x", "text": "inside"}},
            {"type": "image", "mimeType": "image/png", "data": "AAAA"},
            {"type": "text", "text": "what is this?"},
            {"type": "resource", "resource": {"uri": "x:y", "blob": "AAAA", "mimeType": "application/pdf"}},
        ]));
        let content = read.unwrap().message.content;
        assert_eq!(content.len(), 4);
        assert_eq!(content[0], Block::text("what is this?"));
        assert_eq!(
            content[1],
            Block::text("<resource uri=\"file:///w/x\">\ninside\n</resource>")
        );
        assert!(matches!(content[2], Block::Image(_)));
        assert!(format!("{:?}", content[3]).contains("left out"));
    }

    #[rstest]
    #[case(json!([]))]
    #[case(json!([{"type": "text", "text": "  "}]))]
    #[case(json!([{"type": "audio", "mimeType": "audio/wav", "data": "AAAA"}]))]
    #[case(json!([{"type": "image", "mimeType": "image/tiff", "data": "AAAA"}]))]
    fn what_cannot_be_sent_is_refused(#[case] blocks: Value) {
        assert_eq!(i32::from(read(blocks).unwrap_err().code), -32602);
    }

    #[rstest]
    #[case("file:///a/b", Some("/a/b"))]
    #[case("file://localhost/a%C3%A9", Some("/aé"))]
    #[case("file://other/a", None)]
    #[case("file:///a%0Ab", None)]
    #[case("file:///a%zz", None)]
    #[case("https://h/a", None)]
    fn addresses_of_files(#[case] uri: &str, #[case] path: Option<&str>) {
        assert_eq!(file(uri).as_deref(), path);
    }
}
