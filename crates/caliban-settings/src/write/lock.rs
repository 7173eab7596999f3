//! One writer at a time, across processes.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

use super::error::WriteError;
use super::file::Place;
use crate::private::ensure_private_dir;

/// The longest pause between two attempts.
const PAUSE: Duration = Duration::from_millis(20);

/// The right to write. The kernel takes it back when the process ends, however it ends, so the
/// lock file itself stays and means nothing.
#[derive(Debug)]
pub(super) struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the turn to write a file; `directory` holds the locks of all files.
    pub(super) fn take(
        directory: &Path,
        place: &Place,
        turn: Duration,
    ) -> Result<Self, WriteError> {
        ensure_private_dir(directory).map_err(WriteError::io("create", directory))?;
        let path = directory.join(place.lock_name());
        let start = Instant::now();
        let mut pause = Duration::from_millis(1);
        loop {
            let file = open(&path)?;
            match file.try_lock() {
                Ok(()) if is_at(&file, &path) => return Ok(Self { _file: file }),
                // Someone removed the lock file: others may already hold its successor.
                Ok(()) => continue,
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(source)) => {
                    return Err(WriteError::io("lock", &path)(source));
                }
            }
            if start.elapsed() >= turn {
                return Err(WriteError::Busy {
                    lock: path,
                    seconds: turn.as_secs(),
                });
            }
            thread::sleep(pause);
            pause = (pause * 2).min(PAUSE);
        }
    }
}

fn open(path: &Path) -> Result<File, WriteError> {
    OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
        .open(path)
        .map_err(WriteError::io("open", path))
}

fn is_at(file: &File, path: &Path) -> bool {
    match (file.metadata(), path.symlink_metadata()) {
        (Ok(held), Ok(there)) => held.dev() == there.dev() && held.ino() == there.ino(),
        _ => false,
    }
}
