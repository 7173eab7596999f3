//! Names of worktrees: safe as a directory, as part of a branch and in a command line.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::WorktreeError;

/// The longest name, in bytes.
const MAX: usize = 48;
/// What is kept of a description; the rest is for the digits that make it unique.
const MAX_SLUG: usize = 36;

/// A name: lower case letters, digits and dashes, not beginning with a dash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

impl Name {
    /// What something is about, and six digits that nobody else has.
    pub fn of(description: &str) -> Self {
        let id = uuid::Uuid::new_v4();
        let [a, b, c, ..] = *id.as_bytes();
        Self(format!("{}-{a:02x}{b:02x}{c:02x}", slug(description)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The branch of the worktree, as people write it.
    pub fn branch(&self) -> String {
        format!("caliban/{}", self.0)
    }
}

fn slug(description: &str) -> String {
    let mut slug = String::new();
    for letter in description.chars() {
        if slug.len() >= MAX_SLUG {
            break;
        }
        if letter.is_ascii_alphanumeric() {
            slug.push(letter.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() {
        "agent".to_owned()
    } else {
        slug.to_owned()
    }
}

impl FromStr for Name {
    type Err = WorktreeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let begins = text.bytes().next().is_some_and(is_plain);
        let is_name =
            begins && text.len() <= MAX && text.bytes().all(|byte| is_plain(byte) || byte == b'-');
        if is_name {
            Ok(Self(text.to_owned()))
        } else {
            Err(WorktreeError::BadName(text.to_owned()))
        }
    }
}

impl TryFrom<String> for Name {
    type Error = WorktreeError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_name_tells_what_it_is_about() {
        let name = Name::of("Fix the Parser (again), please");
        assert!(name.as_str().starts_with("fix-the-parser-again-please-"));
        assert_eq!(
            name.as_str().len(),
            "fix-the-parser-again-please-".len() + 6
        );
        assert!(Name::of("é —").as_str().starts_with("agent-"));
        assert_ne!(Name::of("x"), Name::of("x"));
        assert_eq!("a-1".parse::<Name>().unwrap().branch(), "caliban/a-1");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in [
            "",
            "-a",
            "A",
            "a/b",
            "..",
            "a.b",
            "a b",
            "é",
            &"a".repeat(MAX + 1),
        ] {
            assert!(text.parse::<Name>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_description_makes_a_name(text in "\\PC{0,80}") {
            let name = Name::of(&text);
            prop_assert_eq!(name.as_str().parse::<Name>().unwrap(), name);
        }
    }
}
