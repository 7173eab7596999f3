//! The name of a session: part of file names, therefore narrow.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// Bytes in a name.
const LONGEST: usize = 64;

/// A name that is safe in a path: 1 to 64 of `a-z`, `A-Z`, `0-9`, `_` and `-`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionName(String);

/// A text that is not a session name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a session name: use 1 to {LONGEST} letters (a-z, A-Z), digits, `_` or `-`",
    .0.escape_debug()
)]
pub struct InvalidName(pub String);

impl SessionName {
    pub fn new(text: &str) -> Result<Self, InvalidName> {
        let is_valid = (1..=LONGEST).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
        if is_valid {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidName(text.chars().take(2 * LONGEST).collect()))
        }
    }

    /// The name of a session to which nobody gave one.
    pub fn from_id(id: Uuid) -> Self {
        Self(id.to_string())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for SessionName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_rule_is_kept_and_told() {
        for text in ["a", "my-project", "A_1", &"x".repeat(64)] {
            assert_eq!(SessionName::new(text).unwrap().as_str(), text);
        }
        for text in ["", ".", "..", "a/b", "a.b", "a b", "ä", &"x".repeat(65)] {
            let error = SessionName::new(text).unwrap_err().to_string();
            assert!(error.contains("1 to 64 letters"), "{error}");
        }
        let id = Uuid::nil();
        assert_eq!(SessionName::from_id(id).as_str(), id.to_string());
    }

    proptest! {
        #[test]
        fn a_name_never_leaves_its_directory(text in ".{0,80}") {
            if let Ok(name) = SessionName::new(&text) {
                let path = std::path::Path::new(name.as_str());
                prop_assert_eq!(path.components().count(), 1);
                prop_assert_eq!(path.extension(), None);
                prop_assert!(!name.as_str().starts_with('.'));
            }
        }
    }
}
