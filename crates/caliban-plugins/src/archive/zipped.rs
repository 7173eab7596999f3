//! Archives of `zip`.

use std::fs::File;
use std::io::BufReader;

use zip::ZipArchive;

use super::sink::{ArchiveError, Sink, shown};
use caliban_settings::TREE_ENTRIES;

/// The bits of a mode that say what an entry is, and those of files and directories.
const KIND: u32 = 0o170_000;
const FILE: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;

pub(super) fn unpack(file: File, sink: &mut Sink<'_>) -> Result<(), ArchiveError> {
    let damaged = |error: zip::result::ZipError| ArchiveError::Damaged(error.to_string());
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(damaged)?;
    if archive.len() > TREE_ENTRIES {
        return Err(ArchiveError::TooMany);
    }
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(damaged)?;
        let name = String::from_utf8(entry.name_raw().to_vec())
            .map_err(|error| ArchiveError::Escapes(shown(&error.to_string())))?;
        let mode = entry.unix_mode().unwrap_or(0o644);
        match (mode & KIND, entry.is_dir()) {
            (0 | DIRECTORY, true) => sink.directory(&name)?,
            (0 | FILE, false) => sink.file(&name, mode, &mut entry)?,
            _ => return Err(ArchiveError::Special(shown(&name))),
        }
    }
    Ok(())
}
