//! Files that a prompt names with `@path`: their content goes along with it.
//!
//! Only files of the workspace are attached: a prompt may carry text of strangers, who must not be
//! able to name a key file.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use caliban_model::{Block, Image, ImageMime, ImageSource, Message, Role};

use crate::exit::Failure;

/// An image beyond this is refused by providers.
const MAX_IMAGE: u64 = 5 * 1024 * 1024;

/// How much may go along.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) one: u64,
    pub(crate) all: u64,
}

impl Limits {
    pub(crate) const DEFAULT: Self = Self {
        one: 256 * 1024,
        all: 1024 * 1024,
    };
}

/// The prompt with what it names. `roots` are canonical.
pub(crate) fn attach(prompt: &str, roots: &[PathBuf], limits: Limits) -> Result<Message, Failure> {
    let mut blocks = vec![Block::text(prompt)];
    let mut total = 0;
    let mut attached: Vec<PathBuf> = Vec::new();
    for name in references(prompt) {
        let Some((name, path)) = find(name, roots) else {
            continue;
        };
        if attached.contains(&path) {
            continue;
        }
        let size = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        let image = mime(&path);
        let most = if image.is_some() {
            MAX_IMAGE
        } else {
            limits.one
        };
        if size > most {
            let flag = match image {
                Some(_) => "make it smaller",
                None => "raise `--max-attach-bytes` or name a smaller file",
            };
            return Err(Failure::Config(format!(
                "`@{name}` has {size} bytes; at most {most} are attached: {flag}"
            )));
        }
        if image.is_none() {
            total += size;
            if total > limits.all {
                return Err(Failure::Config(format!(
                    "the attachments of the prompt have more than {} bytes together; raise `--attach-budget-bytes` or name fewer",
                    limits.all
                )));
            }
        }
        blocks.push(block(name, &path, image, most)?);
        attached.push(path);
    }
    Ok(Message::new(Role::User, blocks))
}

fn block(name: &str, path: &Path, image: Option<ImageMime>, most: u64) -> Result<Block, Failure> {
    let unreadable =
        |error: std::io::Error| Failure::Config(format!("`@{name}` cannot be read: {error}"));
    let mut bytes = Vec::new();
    File::open(path)
        .map_err(unreadable)?
        .take(most)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    if image.is_some() {
        let mime = ImageMime::sniff(&bytes).ok_or_else(|| {
            Failure::Config(format!("`@{name}` is not a png, jpeg, gif or webp image"))
        })?;
        let data = base64::engine::general_purpose::STANDARD.encode(&bytes);
        return Ok(Block::Image(Image {
            mime,
            source: ImageSource::Base64 {
                data: Arc::from(data),
            },
            dims: None,
        }));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Failure::Config(format!("`@{name}` is not a text file")))?;
    Ok(Block::text(format!(
        "<file path=\"{name}\">\n{text}\n</file>"
    )))
}

fn mime(path: &Path) -> Option<ImageMime> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    match extension.as_str() {
        "png" => Some(ImageMime::Png),
        "jpg" | "jpeg" => Some(ImageMime::Jpeg),
        "gif" => Some(ImageMime::Gif),
        "webp" => Some(ImageMime::Webp),
        _ => None,
    }
}

/// The names after each `@` that begins a word; `@"a b"` for names with blanks.
pub(crate) fn references(prompt: &str) -> impl Iterator<Item = &str> {
    prompt.match_indices('@').filter_map(|(at, _)| {
        let begins = prompt[..at]
            .chars()
            .next_back()
            .is_none_or(|before| before.is_whitespace() || "([{'\"`".contains(before));
        let rest = &prompt[at + 1..];
        let name = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split('"').next().unwrap_or_default(),
            None => rest.split(char::is_whitespace).next().unwrap_or_default(),
        };
        (begins && !name.is_empty()).then_some(name)
    })
}

/// The regular file of the workspace that a name means; punctuation behind it is not part of it.
fn find<'a>(name: &'a str, roots: &[PathBuf]) -> Option<(&'a str, PathBuf)> {
    let base = roots.first()?;
    let shorter =
        name.trim_end_matches([',', '.', ';', ':', '!', '?', ')', ']', '}', '\'', '"', '`']);
    [name, shorter].into_iter().find_map(|name| {
        let path = base.join(name).canonicalize().ok()?;
        let inside = roots.iter().any(|root| path.starts_with(root));
        (inside && path.is_file()).then_some((name, path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(message: &Message) -> Vec<String> {
        message
            .content
            .iter()
            .map(|block| match block {
                Block::Text { text, .. } => text.clone(),
                Block::Image(image) => image.mime.as_str().to_owned(),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn files_of_the_workspace_go_along_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap().join("w");
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(root.join("a.txt"), "alpha").unwrap();
        std::fs::write(root.join("b c.md"), "beta").unwrap();
        std::fs::write(root.join("p.png"), b"\x89PNG\r\n\x1a\nrest").unwrap();
        std::fs::write(folder.path().join("secret"), "s").unwrap();
        std::os::unix::fs::symlink("../secret", root.join("link")).unwrap();
        let attach = |prompt: &str, limits| attach(prompt, std::slice::from_ref(&root), limits);
        let prompt =
            "see @a.txt, @a.txt and @\"b c.md\" (@p.png); mail me@a.txt @nobody @../secret @link";
        let message = attach(prompt, Limits::DEFAULT).unwrap();
        assert_eq!(
            texts(&message),
            [
                prompt,
                "<file path=\"a.txt\">\nalpha\n</file>",
                "<file path=\"b c.md\">\nbeta\n</file>",
                "image/png"
            ]
        );
        let tight = Limits { one: 4, all: 100 };
        assert!(attach("@a.txt", tight).is_err());
        let budget = Limits { one: 100, all: 8 };
        assert!(attach("@a.txt @\"b c.md\"", budget).is_err());
    }
}
