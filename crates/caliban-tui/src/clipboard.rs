//! The clipboard of this machine, by the programs that reach it.

use std::path::Path;
use std::time::Duration;

use caliban_compose::ImageAtom;

use crate::app::Clipboard;
use crate::host::Host;
use crate::programs::{Printed, Programs};
use crate::setup::Variables;

/// The most that is read of an image or a text.
const MOST: usize = 64 * 1024 * 1024;
/// How long the clipboard may take to be read.
const PATIENCE: Duration = Duration::from_secs(5);

/// Programs that print the image in the clipboard.
const IMAGES: &[&[&str]] = &[
    &["wl-paste", "--no-newline", "--type", "image/png"],
    &["xclip", "-selection", "clipboard", "-t", "image/png", "-o"],
    &["pngpaste", "-"],
];

/// Programs that print the text in the clipboard.
const TEXTS: &[&[&str]] = &[
    &["wl-paste", "--no-newline"],
    &["xclip", "-selection", "clipboard", "-o"],
    &["xsel", "--clipboard", "--output"],
    &["pbpaste"],
];

/// Programs that take a text into the clipboard, the ones that fit the session first.
pub(crate) fn writers(environment: &Variables) -> Vec<&'static [&'static str]> {
    let mut writers: Vec<&'static [&'static str]> = Vec::new();
    if environment("WAYLAND_DISPLAY").is_some() {
        writers.push(&["wl-copy"]);
    }
    if environment("DISPLAY").is_some() {
        writers.push(&["xclip", "-selection", "clipboard"]);
        writers.push(&["xsel", "--clipboard", "--input"]);
    }
    if cfg!(target_os = "macos") {
        writers.push(&["pbcopy"]);
    }
    if environment("TMUX").is_some() {
        writers.push(&["tmux", "load-buffer", "-w", "-"]);
    }
    writers
}

/// What the clipboard holds: an image before a text.
pub(crate) async fn read(host: &dyn Host, programs: &Programs) -> Result<Clipboard, String> {
    let mut is_reachable = false;
    for words in IMAGES {
        match programs.run(words, MOST, PATIENCE).await {
            Printed::Missing => {}
            Printed::Nothing => is_reachable = true,
            Printed::Bytes(bytes) => return host.ingest(&bytes).map(image),
        }
    }
    for words in TEXTS {
        match programs.run(words, MOST, PATIENCE).await {
            Printed::Missing => {}
            Printed::Nothing => is_reachable = true,
            Printed::Bytes(bytes) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                return Ok(Clipboard::Text(text));
            }
        }
    }
    if is_reachable {
        Ok(Clipboard::Nothing)
    } else {
        Err("The clipboard cannot be read: install wl-clipboard, xclip or pngpaste, or drop the file".to_owned())
    }
}

/// An image that was dropped as a path.
pub(crate) fn read_file(path: &Path, host: &dyn Host) -> Result<Clipboard, String> {
    let unreadable = |error: std::io::Error| format!("`{}`: {error}", path.display());
    let length = std::fs::metadata(path).map_err(unreadable)?.len();
    if length > MOST as u64 {
        return Err(format!("`{}` is larger than 64 MiB", path.display()));
    }
    let bytes = std::fs::read(path).map_err(unreadable)?;
    host.ingest(&bytes).map(image)
}

fn image(image: ImageAtom) -> Clipboard {
    Clipboard::Image(image)
}
