//! What the texts of a plugin call its own places.

use std::path::Path;

use crate::origin::Origin;
use crate::source::Fence;

const ROOT: [&str; 2] = ["${CALIBAN_PLUGIN_ROOT}", "${CLAUDE_PLUGIN_ROOT}"];
const DIRECTORY: [&str; 2] = ["${CALIBAN_SKILL_DIR}", "${CLAUDE_SKILL_DIR}"];

/// A text with them filled in; texts of others stay as they are.
pub(crate) fn own_places(text: &str, origin: &Origin, path: &Path, fence: &Fence) -> String {
    let (Origin::Plugin(_), Fence::Within(root)) = (origin, fence) else {
        return text.to_owned();
    };
    let directory = path.parent().unwrap_or(root);
    let names = ROOT.map(|name| (name, root.as_path()));
    let names = names
        .into_iter()
        .chain(DIRECTORY.map(|name| (name, directory)));
    names.fold(text.to_owned(), |text, (name, place)| {
        text.replace(name, &place.display().to_string())
    })
}
