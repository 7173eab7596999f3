//! Command lines of git whose paths need not be text.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::entry::Entry;

/// Words, and a path after them.
pub(crate) fn with_path<'a>(words: &[&'a str], path: &'a Path) -> Vec<&'a OsStr> {
    let words = words.iter().map(|word| OsStr::new(*word));
    words.chain([path.as_os_str()]).collect()
}

/// Stages everything in a tree but the links that are ours.
pub(crate) fn add_everything(entry: &Entry) -> Vec<OsString> {
    let words = ["add", "--all", "--sparse", "--", ":(top)"];
    let links = entry.links.iter().map(|link| {
        let mut word = OsString::from(":(top,exclude,literal)");
        word.push(&link.path);
        word
    });
    words.map(OsString::from).into_iter().chain(links).collect()
}
