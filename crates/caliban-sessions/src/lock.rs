//! One writer at a time: a lock of the operating system on a small file that says who holds it.
//! The text is for people; only the lock counts, so a process that died holds nothing.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};

use crate::disk::{HeldLock, LockAttempt, private};

/// How often the lock file may be replaced under our hands before that is an error.
const ATTEMPTS: u32 = 16;
/// Bytes read of a lock file.
const TEXT: u64 = 32;

#[derive(Debug)]
struct Held {
    file: File,
    path: PathBuf,
}

impl HeldLock for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        // Removed while still locked: whoever waits on the removed file finds out that it is
        // not the one of that name any more. Elsewhere the file stays, which is harmless.
        if cfg!(unix) {
            let _ = fs::remove_file(&self.path);
        }
        let _ = self.file.unlock();
    }
}

/// Tries to lock the file at `path`, which is created where missing.
pub(crate) fn acquire(path: &Path) -> io::Result<LockAttempt> {
    for _ in 0..ATTEMPTS {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let file = private(&mut options).open(path)?;
        if let Some(attempt) = attempt(file, path)? {
            return Ok(attempt);
        }
    }
    Err(io::Error::new(
        io::ErrorKind::ResourceBusy,
        "other processes keep replacing it",
    ))
}

/// Tries to lock a file that was opened at `path`; nothing if it is not there any more.
fn attempt(mut file: File, path: &Path) -> io::Result<Option<LockAttempt>> {
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Some(LockAttempt::Busy(holder(&mut file)))),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    if !is_at(&file, path)? {
        return Ok(None);
    }
    // Without the text the lock holds all the same.
    let _ = write_holder(&mut file);
    Ok(Some(LockAttempt::Held(Box::new(Held {
        file,
        path: path.to_owned(),
    }))))
}

fn holder(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(TEXT).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn write_holder(file: &mut File) -> io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(format!("{}\n", std::process::id()).as_bytes())
}

/// Whether the file that was locked is the one that others will find.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let ours = file.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(there) => Ok((ours.dev(), ours.ino()) == (there.dev(), there.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(not(unix))]
#[expect(clippy::unnecessary_wraps, reason = "as on Unix")]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_lock_excludes_others_until_it_is_dropped() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("s.lock");
        fs::write(&path, "4711\n").unwrap();
        let LockAttempt::Held(held) = acquire(&path).unwrap() else {
            panic!("the text of a dead process is no lock");
        };
        let LockAttempt::Busy(pid) = acquire(&path).unwrap() else {
            panic!("held twice");
        };
        assert_eq!(pid, Some(std::process::id()));
        drop(held);
        assert!(matches!(acquire(&path).unwrap(), LockAttempt::Held(_)));
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_lost_its_name_is_not_the_lock() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("s.lock");
        let file = || File::create(&path).unwrap();
        assert!(attempt(file(), &path).unwrap().is_some());
        let late = file();
        fs::remove_file(&path).unwrap();
        assert!(attempt(late, &path).unwrap().is_none());
        let late = file();
        fs::remove_file(&path).unwrap();
        let _other = acquire(&path).unwrap();
        assert!(attempt(late, &path).unwrap().is_none());
    }

    #[test]
    fn removing_the_file_lets_no_two_hold_it() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("s.lock");
        let inside = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        if let Ok(LockAttempt::Held(held)) = acquire(&path) {
                            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0);
                            std::thread::yield_now();
                            inside.fetch_sub(1, Ordering::SeqCst);
                            drop(held);
                        }
                    }
                });
            }
        });
    }
}
