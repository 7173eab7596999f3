//! Turns located values into types, and what serde says about them into errors with a place.

use serde::de::DeserializeOwned;
use serde_path_to_error::Segment;

use super::node::{Node, Step};
use crate::error::{Fault, SettingsError};

/// Deserialises a document; an error names the value it is about.
pub(crate) fn typed<T: DeserializeOwned>(root: &Node) -> Result<T, SettingsError> {
    serde_path_to_error::deserialize(root.to_value()).map_err(|error| {
        let path = steps(error.path());
        let message = error.into_inner().to_string();
        let node = root.nearest(&path);
        let fault = Box::new(Fault::at(&node.place, message.as_str()).about(&path));
        if message.starts_with("invalid type") {
            SettingsError::Type(fault)
        } else {
            SettingsError::Value(fault)
        }
    })
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
