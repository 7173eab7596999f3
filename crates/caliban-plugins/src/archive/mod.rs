//! Unpacks archives that strangers made: files and directories, inside one directory, within
//! bounds, and nothing else.

mod sink;
mod tarball;
mod zipped;

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

pub use sink::ArchiveError;
use sink::Sink;

/// The forms that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveKind {
    /// `tar`, compressed by gzip.
    Tarball,
    Zip,
}

impl ArchiveKind {
    /// By what a file begins with; names say nothing.
    fn of(file: &mut File) -> io::Result<Option<Self>> {
        let mut start = [0; 4];
        let read = file.read(&mut start)?;
        file.rewind()?;
        Ok(match &start[..read] {
            [0x1f, 0x8b, ..] => Some(Self::Tarball),
            [b'P', b'K', 3 | 5, 4 | 6] => Some(Self::Zip),
            _ => None,
        })
    }
}

/// Unpacks an archive into an empty directory. What was written before an error stays; whoever
/// made the directory removes it.
pub fn unpack(archive: &Path, into: &Path) -> Result<(), ArchiveError> {
    let damaged = |error: io::Error| ArchiveError::Damaged(error.to_string());
    let mut file = File::open(archive).map_err(damaged)?;
    let kind = ArchiveKind::of(&mut file).map_err(damaged)?;
    let mut sink = Sink::new(into);
    match kind {
        Some(ArchiveKind::Tarball) => tarball::unpack(file, &mut sink),
        Some(ArchiveKind::Zip) => zipped::unpack(file, &mut sink),
        None => Err(ArchiveError::Unknown),
    }
}

#[cfg(test)]
mod tests;
