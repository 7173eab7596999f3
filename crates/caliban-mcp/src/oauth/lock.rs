//! One process at a time. The kernel takes a lock back when its holder ends, however it ends, so
//! the files themselves stay and mean nothing.

use std::fmt::Write as _;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use caliban_settings::ensure_private_dir;
use sha2::{Digest, Sha256};

use super::record::Key;

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(20);
/// How long somebody else may renew a token: longer than any of the requests that takes.
const PATIENCE: Duration = Duration::from_secs(90);
/// How long somebody else may write the token file.
const WRITE_PATIENCE: Duration = Duration::from_secs(10);

/// The right to renew a token, until dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    _file: File,
}

/// Where the locks of logins are.
#[derive(Debug, Clone)]
pub(crate) struct Locks {
    directory: PathBuf,
}

impl Locks {
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Waits for the right to change a login.
    pub(crate) async fn take(&self, key: &Key) -> io::Result<Turn> {
        ensure_private_dir(&self.directory)?;
        let digest = Sha256::digest(key.as_str());
        let name = digest[..16].iter().fold(String::new(), |mut name, byte| {
            let _ = write!(name, "{byte:02x}");
            name
        });
        let path = self.directory.join(format!("{name}.lock"));
        let start = Instant::now();
        loop {
            if let Some(turn) = attempt(&path)? {
                return Ok(turn);
            }
            if start.elapsed() > PATIENCE {
                return Err(busy(&path, PATIENCE));
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}

/// Waits for the right to write a file. Blocks the thread.
pub(crate) fn take_blocking(path: &Path) -> io::Result<Turn> {
    let start = Instant::now();
    loop {
        if let Some(turn) = attempt(path)? {
            return Ok(turn);
        }
        if start.elapsed() > WRITE_PATIENCE {
            return Err(busy(path, WRITE_PATIENCE));
        }
        std::thread::sleep(PAUSE);
    }
}

fn attempt(path: &Path) -> io::Result<Option<Turn>> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let file = options.open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(Turn { _file: file })),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn busy(path: &Path, patience: Duration) -> io::Error {
    io::Error::new(
        io::ErrorKind::WouldBlock,
        format!(
            "another process has held `{}` for {} s; end it, or try again",
            path.display(),
            patience.as_secs()
        ),
    )
}
