//! How what a checkpoint holds gets to disk: contents under their digests, entries as lines.

use std::io;
use std::path::Path;

use super::{Content, Durability, JournalState, Prompt};
use crate::disk;
use crate::error::Error;
use crate::image::Digest;
use crate::journal::{self, Record};
use crate::store::{blob_path, blobs_path, journal_path};

impl Prompt {
    /// Makes everything durable that was only written: one wait for the disk serves all of it.
    pub(crate) fn secure(&mut self) -> Result<(), Error> {
        let (blobs, journal) = (blobs_path(&self.directory), journal_path(&self.directory));
        for path in &self.unsynced {
            self.disk.sync(path).map_err(Error::io("sync", path))?;
        }
        self.disk
            .sync_directory(&blobs)
            .map_err(Error::io("sync", &blobs))?;
        self.unsynced.clear();
        self.disk
            .sync(&journal)
            .map_err(Error::io("sync", &journal))
    }

    /// Keeps a content under its digest.
    pub(super) fn keep(
        &mut self,
        digest: Digest,
        size: u64,
        content: &Content,
        durability: Durability,
    ) -> Result<(), Error> {
        let path = blob_path(&self.directory, digest);
        let added = self
            .store(&path, digest, size, content, durability)
            .map_err(Error::io("keep a copy as", &path))?;
        self.added = self.added.saturating_add(added);
        if durability == Durability::Written {
            self.unsynced.insert(path.clone());
        }
        self.kept.insert(digest, path);
        Ok(())
    }

    /// How many bytes more there are for it.
    fn store(
        &self,
        path: &Path,
        digest: Digest,
        size: u64,
        content: &Content,
        durability: Durability,
    ) -> io::Result<u64> {
        let whole = |path: &Path| {
            let stored = self.disk.stat(path)?;
            io::Result::Ok(stored.is_some_and(|stored| stored.len == size))
        };
        if whole(path)? {
            return Ok(0);
        }
        let directory = blobs_path(&self.directory);
        if let Some(earlier) = self.kept.get(&digest)
            && whole(earlier).unwrap_or(false)
            && self.disk.link(earlier, path).is_ok()
        {
            return match durability {
                Durability::Synced => self.disk.sync_directory(&directory).map(|()| 0),
                Durability::Written => Ok(0),
            };
        }
        match content {
            Content::Bytes(bytes) => match durability {
                Durability::Synced => disk::replace(&*self.disk, path, bytes),
                Durability::Written => disk::place(&*self.disk, path, bytes),
            },
            Content::Stored(stored) => {
                self.disk.link(stored, path)?;
                match durability {
                    Durability::Synced => self
                        .disk
                        .sync(path)
                        .and_then(|()| self.disk.sync_directory(&directory)),
                    Durability::Written => Ok(()),
                }
            }
        }
        .map(|()| size)
    }

    pub(super) fn note(&mut self, record: &Record, durability: Durability) -> Result<(), Error> {
        let path = journal_path(&self.directory);
        let written = match self.journal {
            JournalState::Whole => encoded(record).and_then(|line| self.disk.append(&path, &line)),
            JournalState::Torn => self.rewrite(&path, record),
        };
        self.journal = if written.is_ok() {
            JournalState::Whole
        } else {
            JournalState::Torn
        };
        written
            .and_then(|()| match durability {
                Durability::Synced => self.disk.sync(&path),
                Durability::Written => Ok(()),
            })
            .map_err(Error::io("write", &path))
    }

    fn rewrite(&self, path: &Path, last: &Record) -> io::Result<()> {
        let mut bytes = encoded(&Record::Head(self.head.clone()))?;
        for entry in self.entries.values() {
            bytes.extend(encoded(&Record::Entry(Box::new(entry.clone())))?);
        }
        bytes.extend(encoded(last)?);
        disk::replace(&*self.disk, path, &bytes)
    }
}

fn encoded(record: &Record) -> io::Result<Vec<u8>> {
    journal::line(record).map_err(io::Error::from)
}
