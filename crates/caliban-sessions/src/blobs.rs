//! Large contents in files of their own, named by their digest: `<session>/blobs/<sha256>.bin`.

use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use crate::disk::Disk;
use crate::paths::Paths;
use crate::replace::replace;

/// Bytes of a blob that is read back.
const LARGEST: u64 = 256 << 20;

/// The blobs of one session.
#[derive(Debug)]
pub(crate) struct Blobs {
    disk: Arc<dyn Disk>,
    paths: Paths,
    directory: DirectoryState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DirectoryState {
    Unknown,
    Durable,
}

/// Why a blob cannot be had.
#[derive(Debug)]
pub(crate) struct Unavailable {
    pub(crate) path: PathBuf,
    pub(crate) problem: String,
}

impl Blobs {
    pub(crate) fn new(disk: Arc<dyn Disk>, paths: Paths) -> Self {
        Self {
            disk,
            paths,
            directory: DirectoryState::Unknown,
        }
    }

    /// Makes a content durable and returns its digest. One that is there already is not written
    /// again.
    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<String> {
        let digest = digest(bytes);
        let path = self.path(&digest);
        let exists = self
            .disk
            .stat(&path)?
            .is_some_and(|stat| stat.len == bytes.len() as u64);
        if exists && self.directory == DirectoryState::Durable {
            return Ok(digest);
        }
        self.make_directory()?;
        if !exists {
            let temporary = Paths::replacement(&path);
            // Until this is through, a name may be there that is not durable.
            self.directory = DirectoryState::Unknown;
            replace(&*self.disk, &path, &temporary, |file| file.write_all(bytes))?;
            self.directory = DirectoryState::Durable;
        }
        Ok(digest)
    }

    /// The content with a digest, which is checked.
    pub(crate) fn get(&self, digest: &str) -> Result<Vec<u8>, Unavailable> {
        let unavailable = |problem: String| Unavailable {
            path: self.path(digest),
            problem,
        };
        if !is_digest(digest) {
            return Err(Unavailable {
                path: self.paths.blobs(),
                problem: "was asked for something that is not a digest".to_owned(),
            });
        }
        let reader = self.disk.read(&self.path(digest)).map_err(|error| {
            unavailable(match error.kind() {
                io::ErrorKind::NotFound => "is missing".to_owned(),
                _ => format!("cannot be read: {error}"),
            })
        })?;
        let mut bytes = Vec::new();
        reader
            .take(LARGEST)
            .read_to_end(&mut bytes)
            .map_err(|error| unavailable(format!("cannot be read: {error}")))?;
        if self::digest(&bytes) != digest {
            return Err(unavailable("is damaged".to_owned()));
        }
        Ok(bytes)
    }

    /// Takes over the blobs of another session where the file system can share files; what it
    /// cannot share is written when it is first stored.
    pub(crate) fn share(&mut self, source: &Paths) -> io::Result<()> {
        let names = self.disk.list(&source.blobs())?;
        let blobs = names
            .iter()
            .filter(|name| name.strip_suffix(".bin").is_some_and(is_digest));
        let mut shared = 0_usize;
        for name in blobs {
            if shared == 0 {
                self.make_directory()?;
            }
            let (from, to) = (source.blobs().join(name), self.paths.blobs().join(name));
            if self.disk.link(&from, &to).is_err() {
                return Ok(());
            }
            shared += 1;
        }
        match shared {
            0 => Ok(()),
            _ => self.disk.sync_directory(&self.paths.blobs()),
        }
    }

    fn make_directory(&mut self) -> io::Result<()> {
        if self.directory == DirectoryState::Durable {
            return Ok(());
        }
        self.disk.make_directory(&self.paths.own())?;
        self.disk.make_directory(&self.paths.blobs())?;
        // Whoever wrote the blobs that are there may not have come to this.
        self.disk.sync_directory(&self.paths.blobs())?;
        self.directory = DirectoryState::Durable;
        Ok(())
    }

    fn path(&self, digest: &str) -> PathBuf {
        self.paths.blobs().join(format!("{digest}.bin"))
    }
}

fn is_digest(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}
