//! What is known of one checkpoint: `manifest.json`.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::image::{Digest, Image};
use crate::lines::Lines;
use crate::platform;

/// Characters of a prompt that become its title.
const TITLE: usize = 80;
/// Shortfalls that a manifest names; the rest is counted by [`Coverage::more`].
const SHORTFALLS: usize = 32;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Monotonic within the session, 1-based.
    pub prompt_index: u32,
    pub kind: Kind,
    pub title: String,
    pub created_at: Timestamp,
    #[serde(default)]
    pub entries: Vec<Entry>,
    /// Some of what was changed could not be kept.
    #[serde(default)]
    pub partial: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Coverage>,
    /// Where the conversation stood when the prompt came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<Mark>,
    /// Where it stood when the prompt was over; nothing where it was cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Mark>,
    /// What it did to lines, as far as they were counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<Lines>,
    /// What names the prompt for whoever sent it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Where the repository stood when the prompt came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git_head: Option<String>,
    /// Of a rewind: the prompt at whose end the work goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rewound_to: Option<u32>,
}

/// A point of the conversation. What its numbers mean is the caller's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    pub epoch: u64,
    pub messages: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Files,
    /// A prompt under which nothing may be changed.
    Plan,
    /// Its contents were dropped to make room.
    Cleared,
    /// What a restore was about to overwrite.
    Rewind,
}

/// How far the changes of commands were looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Coverage {
    /// Entries of the workspace that were compared.
    pub compared: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortfalls: Vec<String>,
    /// Shortfalls beyond those named.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub more: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Coverage {
    pub(crate) fn lacks(&mut self, shortfall: String) {
        if self.shortfalls.contains(&shortfall) {
        } else if self.shortfalls.len() < SHORTFALLS {
            self.shortfalls.push(shortfall);
        } else {
            self.more = self.more.saturating_add(1);
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.shortfalls.is_empty()
    }
}

/// One path that a prompt changed, as it was before, and as it was left.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Relative to the workspace, or absolute where it lies outside. Readable rather than exact
    /// where `path_base64` stands beside it.
    path: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    path_base64: Option<String>,
    pub sha256: Option<Digest>,
    pub mode: Option<u32>,
    pub size: u64,
    pub exists_pre: bool,
    /// Which tool changed it.
    pub tool: String,
    #[serde(default, skip_serializing_if = "is_file")]
    kind: Form,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    target_base64: Option<String>,
    /// Where the bytes came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Why it cannot be brought back, where it cannot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uncovered: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    post: Option<Form>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    post_sha256: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    post_mode: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    post_size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    post_target_base64: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Form {
    Absent,
    #[default]
    File,
    Link,
    Directory,
    Special,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_file(form: &Form) -> bool {
    *form == Form::File
}

/// An image as the fields of an entry.
struct Fields {
    form: Form,
    sha256: Option<Digest>,
    mode: Option<u32>,
    size: u64,
    target: Option<String>,
}

impl Fields {
    fn of(image: &Image) -> Self {
        let plain = |form| Self {
            form,
            sha256: None,
            mode: None,
            size: 0,
            target: None,
        };
        match image {
            Image::Absent => plain(Form::Absent),
            Image::Special => plain(Form::Special),
            Image::File { digest, size, mode } => Self {
                sha256: *digest,
                mode: Some(*mode),
                size: *size,
                ..plain(Form::File)
            },
            Image::Directory { mode } => Self {
                mode: Some(*mode),
                ..plain(Form::Directory)
            },
            Image::Link { target } => Self {
                target: Some(STANDARD.encode(platform::bytes(target.as_os_str()))),
                ..plain(Form::Link)
            },
        }
    }

    fn image(self) -> Option<Image> {
        Some(match self.form {
            Form::Absent => Image::Absent,
            Form::Special => Image::Special,
            Form::File => Image::File {
                digest: self.sha256,
                size: self.size,
                mode: self.mode?,
            },
            Form::Directory => Image::Directory { mode: self.mode? },
            Form::Link => Image::Link {
                target: decoded(&self.target?)?,
            },
        })
    }
}

impl Entry {
    pub(crate) fn new(path: &Path, before: &Image, tool: &str) -> Self {
        let fields = Fields::of(before);
        let (path, path_base64) = match path.to_str() {
            Some(text) => (text.to_owned(), None),
            None => (
                path.to_string_lossy().into_owned(),
                Some(STANDARD.encode(platform::bytes(path.as_os_str()))),
            ),
        };
        Self {
            path,
            path_base64,
            sha256: fields.sha256,
            mode: fields.mode,
            size: fields.size,
            exists_pre: !matches!(before, Image::Absent),
            tool: tool.to_owned(),
            kind: match fields.form {
                Form::Absent => Form::File,
                other => other,
            },
            target_base64: fields.target,
            source: None,
            uncovered: None,
            post: None,
            post_sha256: None,
            post_mode: None,
            post_size: None,
            post_target_base64: None,
        }
    }

    /// The exact path; nothing where it cannot be one on this system.
    pub fn path(&self) -> Option<PathBuf> {
        match &self.path_base64 {
            Some(encoded) => decoded(encoded),
            None => Some(PathBuf::from(&self.path)),
        }
    }

    /// The path for people.
    pub fn shown(&self) -> &str {
        &self.path
    }

    /// What was there before; nothing where the fields do not say.
    pub fn before(&self) -> Option<Image> {
        if !self.exists_pre {
            return Some(Image::Absent);
        }
        Fields {
            form: self.kind,
            sha256: self.sha256,
            mode: self.mode,
            size: self.size,
            target: self.target_base64.clone(),
        }
        .image()
    }

    /// What the prompt left there; nothing where that is not known.
    pub fn after(&self) -> Option<Image> {
        Fields {
            form: self.post?,
            sha256: self.post_sha256,
            mode: self.post_mode,
            size: self.post_size.unwrap_or(0),
            target: self.post_target_base64.clone(),
        }
        .image()
    }

    /// What was left there is not known any more.
    pub(crate) fn unsettle(&mut self) {
        self.post = None;
    }

    pub(crate) fn left(&mut self, after: &Image) {
        let fields = Fields::of(after);
        self.post = Some(fields.form);
        self.post_sha256 = fields.sha256;
        self.post_mode = fields.mode;
        self.post_size = matches!(after, Image::File { .. }).then_some(fields.size);
        self.post_target_base64 = fields.target;
    }
}

fn decoded(encoded: &str) -> Option<PathBuf> {
    Some(PathBuf::from(platform::name(
        STANDARD.decode(encoded).ok()?,
    )?))
}

/// Names as text, exact where they are text and exact where they are not.
pub(crate) mod name {
    use base64::Engine as _;

    use super::{Path, PathBuf, STANDARD, decoded, platform};
    use serde::de::Error as _;
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        match path.to_str() {
            Some(text) => to.collect_str(&format_args!("={text}")),
            None => to.serialize_str(&STANDARD.encode(platform::bytes(path.as_os_str()))),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        let text = String::deserialize(from)?;
        match text.strip_prefix('=') {
            Some(text) => Ok(PathBuf::from(text)),
            None => decoded(&text).ok_or_else(|| D::Error::custom("it is no name")),
        }
    }
}

/// The beginning of a prompt, on one line.
pub(crate) fn title(prompt: &str) -> String {
    let mut title = String::new();
    for word in prompt.split_whitespace() {
        if !title.is_empty() {
            title.push(' ');
        }
        // A word may be as long as the prompt.
        title.extend(word.chars().take(TITLE));
        if title.chars().count() >= TITLE {
            break;
        }
    }
    title.chars().take(TITLE).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case(Image::Absent)]
    #[case(Image::File { digest: Some(Digest::of(b"x")), size: 1, mode: 0o755 })]
    #[case(Image::File { digest: None, size: 1 << 40, mode: 0 })]
    #[case(Image::Link { target: "../out".into() })]
    #[case(Image::Directory { mode: 0o700 })]
    #[case(Image::Special)]
    fn images_survive_being_written(#[case] image: Image) {
        let mut entry = Entry::new(Path::new("a\nb"), &image, "Bash");
        entry.left(&image);
        let text = serde_json::to_string(&entry).unwrap();
        let read: Entry = serde_json::from_str(&text).unwrap();
        assert_eq!(read.before(), Some(image.clone()));
        assert_eq!(read.after(), Some(image));
        assert_eq!(read.path(), Some(PathBuf::from("a\nb")));
    }

    #[cfg(unix)]
    #[test]
    fn names_that_are_not_text_are_exact_and_readable() {
        let path = PathBuf::from(platform::name(b"caf\xe9".to_vec()).unwrap());
        let entry = Entry::new(&path, &Image::Absent, "Write");
        let text = serde_json::to_string(&entry).unwrap();
        let read: Entry = serde_json::from_str(&text).unwrap();
        assert_eq!(read.path(), Some(path));
        assert_eq!(read.shown(), "caf\u{fffd}");
    }

    #[rstest]
    #[case("", "")]
    #[case("  one\n two ", "one two")]
    fn titles_are_one_line(#[case] prompt: &str, #[case] expected: &str) {
        assert_eq!(title(prompt), expected);
        assert_eq!(title(&"ä".repeat(1000)).chars().count(), TITLE);
    }
}
