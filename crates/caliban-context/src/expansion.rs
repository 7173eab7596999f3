//! What the texts of a plugin call its own places.

use std::path::{Path, PathBuf};

const ROOT: [&str; 2] = ["${CALIBAN_PLUGIN_ROOT}", "${CLAUDE_PLUGIN_ROOT}"];
const DATA: [&str; 2] = ["${CALIBAN_PLUGIN_DATA}", "${CLAUDE_PLUGIN_DATA}"];
const DIRECTORY: [&str; 2] = ["${CALIBAN_SKILL_DIR}", "${CLAUDE_SKILL_DIR}"];

/// Where a plugin lies, and where it keeps what it writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PluginHome {
    pub(crate) root: PathBuf,
    pub(crate) data: PathBuf,
}

/// A text of a file with them filled in; texts of others than plugins stay as they are.
pub(crate) fn own_places(text: &str, home: Option<&PluginHome>, path: &Path) -> String {
    let Some(home) = home else {
        return text.to_owned();
    };
    let directory = path.parent().unwrap_or(&home.root);
    let at = |names: [&'static str; 2], place| names.map(|name| (name, place));
    let names = [
        at(ROOT, home.root.as_path()),
        at(DATA, home.data.as_path()),
        at(DIRECTORY, directory),
    ];
    let names = names.into_iter().flatten();
    names.fold(text.to_owned(), |text, (name, place)| {
        text.replace(name, &place.display().to_string())
    })
}
