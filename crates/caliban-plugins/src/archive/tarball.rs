//! Archives of `tar`.

use std::fs::File;
use std::io::BufReader;

use flate2::read::GzDecoder;
use tar::{Archive, EntryType};

use super::sink::{ArchiveError, Sink, shown};

pub(super) fn unpack(file: File, sink: &mut Sink<'_>) -> Result<(), ArchiveError> {
    let damaged = |error: std::io::Error| ArchiveError::Damaged(error.to_string());
    let mut archive = Archive::new(GzDecoder::new(BufReader::new(file)));
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        let name = entry.path_bytes().into_owned();
        let name = String::from_utf8(name)
            .map_err(|error| ArchiveError::Escapes(shown(&error.to_string())))?;
        let mode = entry.header().mode().unwrap_or(0o644);
        match entry.header().entry_type() {
            EntryType::Directory => sink.directory(&name)?,
            EntryType::Regular | EntryType::Continuous => sink.file(&name, mode, &mut entry)?,
            // What git writes about a whole archive.
            EntryType::XGlobalHeader => {}
            _ => return Err(ArchiveError::Special(shown(&name))),
        }
    }
    Ok(())
}
