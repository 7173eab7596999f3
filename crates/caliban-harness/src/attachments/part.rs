//! A part of a file, and what is in a folder, for prompts that name them.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use crate::error::LaunchError;

/// How far into a file lines are looked for.
const FARTHEST: u64 = 64 * 1024 * 1024;
/// How many entries of a folder are listed.
const ENTRIES: usize = 500;

/// Lines of a file, counted from one, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lines {
    first: usize,
    last: usize,
}

impl Lines {
    /// The name before `:10-20` or `:10`, and those lines.
    pub(super) fn behind(name: &str) -> Option<(&str, Self)> {
        let (name, range) = name.rsplit_once(':')?;
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (1 <= first && first <= last && !name.is_empty()).then_some((name, Self { first, last }))
    }

    /// The lines of a file, up to so many bytes.
    pub(super) fn of(self, name: &str, file: File, most: u64) -> Result<String, LaunchError> {
        let unreadable =
            |error| LaunchError::configuration(format!("`@{name}` cannot be read: {error}"));
        let mut reader = BufReader::new(file.take(FARTHEST));
        let mut text = Vec::new();
        let mut skipped = Vec::new();
        for number in 1..=self.last {
            let is_wanted = number >= self.first;
            let line = if is_wanted { &mut text } else { &mut skipped };
            let read = reader.read_until(b'\n', line).map_err(unreadable)?;
            skipped.clear();
            if text.len() as u64 > most {
                return Err(LaunchError::configuration(format!(
                    "`@{name}` has more than {most} bytes, and no more are attached: raise `--max-attach-bytes` or name fewer lines"
                )));
            }
            if read == 0 {
                break;
            }
        }
        if text.ends_with(b"\n") {
            text.pop();
        }
        String::from_utf8(text)
            .ok()
            .filter(|text| !text.contains('\0'))
            .ok_or_else(|| LaunchError::configuration(format!("`@{name}` is not a text file")))
    }
}

/// What is in a folder, one name a line, folders with a slash.
pub(super) fn listing(folder: &Path) -> std::io::Result<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)?
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            Some(if is_folder { format!("{name}/") } else { name })
        })
        .collect();
    names.sort();
    let more = names.len().saturating_sub(ENTRIES);
    names.truncate(ENTRIES);
    if more > 0 {
        names.push(format!("({more} more)"));
    }
    Ok(names.join("\n"))
}
