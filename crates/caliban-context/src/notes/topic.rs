//! A note on one subject and the file it is kept in.

use std::fmt::Write as _;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::frontmatter;
use crate::invisible::visible;
use crate::names::is_plain;

/// The longest note, in bytes.
pub(crate) const MAX_BODY: usize = 64 * 1024;
/// The longest summary, in characters.
const MAX_DESCRIPTION: usize = 120;

/// The name of a note, which is also that of its file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTopic {
    #[error(
        "`{0}` is not a name for a topic: use letters, digits, `-`, `_` and `.`, at most 64 of \
         them, and not `memory`"
    )]
    Name(String),
    #[error("the description must be one line of 1 to {MAX_DESCRIPTION} characters")]
    Description,
    #[error("the text is empty or longer than {MAX_BODY} bytes; split it into several topics")]
    Body,
    #[error("the file is not a topic: {0}")]
    File(String),
}

impl FromStr for TopicName {
    type Err = InvalidTopic;

    fn from_str(name: &str) -> Result<Self, InvalidTopic> {
        // The index has this name; on some systems in any case of letters.
        if is_plain(name) && !name.eq_ignore_ascii_case("memory") {
            Ok(Self(name.to_owned()))
        } else {
            Err(InvalidTopic::Name(visible(name).text))
        }
    }
}

impl TopicName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn file_name(&self) -> String {
        format!("{}.md", self.0)
    }
}

/// What a note is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TopicType {
    // Documented where the model reads it, at the field: a schema of plain words is shorter, and
    // says which words there are when another one is used.
    User,
    Feedback,
    Project,
    Reference,
}

impl TopicType {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Feedback => "feedback",
            Self::Project => "project",
            Self::Reference => "reference",
        }
    }
}

/// A note that fits its limits and has nothing hidden in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topic {
    description: String,
    kind: TopicType,
    body: String,
    author: Option<Author>,
}

/// Which call of which session wrote a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    pub session: String,
    pub call: String,
}

#[derive(Debug, Deserialize)]
struct Fields {
    name: String,
    description: String,
    metadata: Metadata,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    #[serde(rename = "type")]
    kind: TopicType,
    #[serde(default)]
    session: Option<String>,
    #[serde(default)]
    call: Option<String>,
}

impl Topic {
    pub fn new(description: &str, kind: TopicType, body: &str) -> Result<Self, InvalidTopic> {
        let description = visible(description.trim()).text;
        let length = description.chars().count();
        if !(1..=MAX_DESCRIPTION).contains(&length) || description.contains(is_line_end) {
            return Err(InvalidTopic::Description);
        }
        let body = visible(body).text.trim().to_owned();
        if body.is_empty() || body.len() > MAX_BODY {
            return Err(InvalidTopic::Body);
        }
        Ok(Self {
            description,
            kind,
            body,
            author: None,
        })
    }

    #[must_use]
    pub fn by(mut self, author: Author) -> Self {
        self.author = Some(author);
        self
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    pub fn kind(&self) -> TopicType {
        self.kind
    }

    pub fn body(&self) -> &str {
        &self.body
    }

    /// Who wrote it, where that was recorded.
    pub fn author(&self) -> Option<&Author> {
        self.author.as_ref()
    }

    /// The content of its file.
    pub(super) fn to_file(&self, name: &TopicName) -> String {
        let mut text = format!(
            "---\nname: {}\ndescription: {}\nmetadata:\n  node_type: memory\n  type: {}\n",
            name.as_str(),
            quoted(&self.description),
            self.kind.as_str(),
        );
        if let Some(author) = &self.author {
            // Writing to a string cannot fail.
            let _ = write!(
                text,
                "  session: {}\n  call: {}\n",
                quoted(&author.session),
                quoted(&author.call)
            );
        }
        let _ = write!(text, "---\n\n{}\n", self.body);
        text
    }

    pub(super) fn from_file(name: &TopicName, text: &str) -> Result<Self, InvalidTopic> {
        let invalid = |error: &dyn std::fmt::Display| InvalidTopic::File(error.to_string());
        let (fields, body) = frontmatter::parse::<Fields>(text).map_err(|error| invalid(&error))?;
        if fields.name != name.as_str() {
            return Err(InvalidTopic::File(format!(
                "its name is `{}` and its file's `{}`",
                fields.name,
                name.as_str()
            )));
        }
        let author = match (fields.metadata.session, fields.metadata.call) {
            (Some(session), Some(call)) => Some(Author { session, call }),
            _ => None,
        };
        let topic = Self::new(&fields.description, fields.metadata.kind, body)?;
        Ok(Self { author, ..topic })
    }
}

fn is_line_end(character: char) -> bool {
    matches!(character, '\n' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

/// A string in the quotes that JSON and YAML share.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_cannot_leave_the_directory() {
        for bad in [
            "", "../x", "a/b", "..", ".hidden", "a\\b", "MEMORY", "memory", "a\0b", "é",
        ] {
            assert!(bad.parse::<TopicName>().is_err(), "{bad}");
        }
        assert_eq!(
            "build-commands".parse::<TopicName>().unwrap().file_name(),
            "build-commands.md"
        );
    }

    #[test]
    fn files_look_as_documented() {
        let name: TopicName = "sprint-mode".parse().unwrap();
        let topic =
            Topic::new("prefers \"one\" pass", TopicType::Feedback, "\nOne pass.\n").unwrap();
        let author = Author {
            session: "s".to_owned(),
            call: "c".to_owned(),
        };
        assert_eq!(
            topic.by(author).to_file(&name),
            "---\nname: sprint-mode\ndescription: \"prefers \\\"one\\\" pass\"\nmetadata:\n  \
             node_type: memory\n  type: feedback\n  session: \"s\"\n  call: \"c\"\n---\n\nOne pass.\n"
        );
        assert!(Topic::new("a\nb", TopicType::User, "x").is_err());
        assert!(Topic::new(&"a".repeat(121), TopicType::User, "x").is_err());
        assert!(Topic::new("a", TopicType::User, " ").is_err());
        assert!(Topic::new("a", TopicType::User, &"x".repeat(MAX_BODY + 1)).is_err());
        for text in [
            "x",
            "---\nname: other\ndescription: d\nmetadata:\n  type: user\n---\nx",
        ] {
            assert!(Topic::from_file(&name, text).is_err());
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(description in "[^\\pC\u{2028}\u{2029}]{1,60}", body in "\\PC{1,80}(\n---\n\\PC{0,20})?") {
            let name: TopicName = "n".parse().unwrap();
            if let Ok(topic) = Topic::new(&description, TopicType::Project, &body) {
                prop_assert_eq!(Topic::from_file(&name, &topic.to_file(&name)).unwrap(), topic);
            }
        }
    }
}
