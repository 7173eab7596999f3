//! Files: those that `@` may name, and images that were dropped as paths.

use std::path::{Path, PathBuf};
use std::time::Duration;

use ignore::WalkBuilder;

use crate::programs::{Printed, Programs};

/// The most files that are offered.
const FILES: usize = 200_000;
const IMAGES: [&str; 5] = ["png", "jpg", "jpeg", "gif", "webp"];

/// The files of a workspace that its ignore rules leave, and its folders.
pub(crate) fn listed(workspace: &Path) -> Vec<String> {
    let walk = WalkBuilder::new(workspace)
        .hidden(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    let mut paths: Vec<String> = walk
        .filter_map(Result::ok)
        .filter_map(|entry| {
            let path = entry.path().strip_prefix(workspace).ok()?;
            let text = path.to_str().filter(|text| !text.is_empty())?;
            let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
            Some(if is_folder {
                format!("{text}/")
            } else {
                text.to_owned()
            })
        })
        .take(FILES)
        .collect();
    paths.sort_by(|a, b| depth(a).cmp(&depth(b)).then(a.cmp(b)));
    paths
}

fn depth(path: &str) -> usize {
    path.trim_end_matches('/').matches('/').count()
}

/// The image that a pasted text names, as terminals write a file that is dropped on them: plain,
/// quoted, with escaped blanks, or as an address.
pub(crate) fn pasted_image(text: &str) -> Option<PathBuf> {
    let text = text.trim();
    if text.is_empty() || text.lines().count() != 1 || text.len() > 4096 {
        return None;
    }
    let quoted = ['\'', '"']
        .iter()
        .find_map(|quote| text.strip_prefix(*quote)?.strip_suffix(*quote));
    let plain = match (quoted, text.strip_prefix("file://")) {
        (Some(inner), _) => inner.to_owned(),
        (None, Some(address)) => address.replace("%20", " "),
        (None, None) => text.replace("\\ ", " "),
    };
    let path = PathBuf::from(plain);
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    let is_image = IMAGES.contains(&extension.as_str()) && path.is_absolute();
    (is_image && path.is_file()).then_some(path)
}

/// The most that a program may say about files, and how long it may take.
const PRINTED: usize = 16 * 1024 * 1024;
const PATIENCE: Duration = Duration::from_secs(10);

/// What the operator's own program lists, one path a line.
pub(crate) async fn printed(line: &str, programs: &Programs) -> Vec<String> {
    match programs.shell(line, PRINTED, PATIENCE).await {
        Printed::Bytes(bytes) => {
            let text = String::from_utf8_lossy(&bytes);
            text.lines().take(FILES).map(ToOwned::to_owned).collect()
        }
        Printed::Missing | Printed::Nothing => Vec::new(),
    }
}
