//! Names of plugins and of what they bring.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The longest name, in bytes.
const LONGEST: usize = 64;
/// The longest that every program takes.
const CONVENTIONAL: usize = 32;

/// The name of a plugin, which stands before everything that the plugin brings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PluginName(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not a name: letters, digits, `-`, `_` and `.`, at most {LONGEST} of them, a letter or digit first",
    .0.escape_debug()
)]
pub struct InvalidName(String);

impl PluginName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it has the form that is advised: lower case, digits, `-` and `_`, at most 32.
    pub fn is_conventional(&self) -> bool {
        self.0.len() <= CONVENTIONAL
            && self.0.bytes().all(|byte| {
                byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
            })
    }
}

/// Whether a name is safe in paths, tool names and lists.
pub(crate) fn is_plain(name: &str) -> bool {
    name.len() <= LONGEST
        && name.starts_with(|first: char| first.is_ascii_alphanumeric())
        && !name.contains("..")
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
}

impl FromStr for PluginName {
    type Err = InvalidName;

    fn from_str(text: &str) -> Result<Self, InvalidName> {
        if is_plain(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidName(text.chars().take(2 * LONGEST).collect()))
        }
    }
}

impl TryFrom<String> for PluginName {
    type Error = InvalidName;

    fn try_from(text: String) -> Result<Self, InvalidName> {
        text.parse()
    }
}

impl From<PluginName> for String {
    fn from(name: PluginName) -> Self {
        name.0
    }
}

impl fmt::Display for PluginName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_everywhere() {
        for good in ["a", "my-plugin", "A_1.x", "0"] {
            assert_eq!(good.parse::<PluginName>().unwrap().as_str(), good);
        }
        let long = "a".repeat(LONGEST + 1);
        for bad in [
            "", ".", "..", "../x", "a/b", "a..b", ".a", "-a", "é", "a b", "a:b", &long,
        ] {
            assert!(bad.parse::<PluginName>().is_err(), "{bad}");
        }
        assert!("my-plugin".parse::<PluginName>().unwrap().is_conventional());
        assert!(!"My.Plugin".parse::<PluginName>().unwrap().is_conventional());
    }
}
