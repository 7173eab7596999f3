//! Turns located values into types, and what serde says about them into errors with a place.

use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use super::node::{Node, Step};
use crate::error::{Fault, SettingsError};

/// Deserialises a document; an error names the value it is about.
pub(crate) fn typed<T: DeserializeOwned>(root: &Node) -> Result<T, SettingsError> {
    serde_path_to_error::deserialize(root.to_value()).map_err(|error| {
        let path = steps(error.path());
        let message = in_words(&error.into_inner().to_string());
        let node = root.nearest(&path);
        let fault = Box::new(Fault::at(&node.place, message.as_str()).about(&path));
        if message.starts_with("invalid type") {
            SettingsError::Type(fault)
        } else {
            SettingsError::Value(fault)
        }
    })
}

/// What was expected, without the names of types that only we know.
fn in_words(message: &str) -> String {
    let Some((found, expected)) = message.split_once(", expected ") else {
        return message.to_owned();
    };
    let words = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "a nonzero u32" | "a nonzero u64" | "a nonzero usize" => "a whole number, 1 or more",
        "a sequence" => "a list",
        "a map" => "a table",
        other if other.starts_with("struct ") => "a table",
        other => other,
    };
    format!("{found}, expected {words}")
}

fn steps(path: &serde_path_to_error::Path) -> Vec<Step> {
    path.iter()
        .map_while(|segment| match segment {
            Segment::Seq { index } => Some(Step::Index(*index)),
            Segment::Map { key } => Some(Step::Key(key.clone())),
            Segment::Enum { .. } | Segment::Unknown => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_is_said_in_words() {
        for (said, told) in [
            (
                "invalid type: string \"x\", expected u64",
                "invalid type: string \"x\", expected a whole number, 0 or more",
            ),
            (
                "invalid value: integer `0`, expected a nonzero u32",
                "invalid value: integer `0`, expected a whole number, 1 or more",
            ),
            (
                "invalid type: integer `1`, expected struct Permissions",
                "invalid type: integer `1`, expected a table",
            ),
            (
                "unknown variant `x`, expected `vim` or `emacs`",
                "unknown variant `x`, expected `vim` or `emacs`",
            ),
            ("must not be empty", "must not be empty"),
        ] {
            assert_eq!(in_words(said), told);
        }
    }
}
