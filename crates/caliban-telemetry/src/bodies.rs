//! Calls of models as they are sent and answered, for who asks for that: in the logs, or as files
//! that only their owner reads.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use tokio::sync::mpsc;

/// Bodies that may wait to be logged; more are counted and let go.
const WAITING: usize = 256;

/// Where bodies go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// Into the logs themselves, cut like everything there.
    Logs,
    /// Into files, which the logs name.
    Directory(PathBuf),
}

/// Which half of a call a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    Request,
    /// With its status.
    Response(u16),
}

/// A body, without secrets.
#[derive(Debug, Clone)]
pub struct RawBody {
    pub half: Half,
    pub call: u64,
    pub provider: String,
    pub model: String,
    pub text: String,
}

/// Takes bodies from whoever calls models, and never holds that up.
#[derive(Debug)]
pub struct Bodies {
    sender: mpsc::Sender<(Timestamp, RawBody)>,
    receiver: Mutex<Option<mpsc::Receiver<(Timestamp, RawBody)>>>,
    next: AtomicU64,
    lost: AtomicU64,
}

impl Default for Bodies {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        Self {
            sender,
            receiver: Mutex::new(Some(receiver)),
            next: AtomicU64::new(1),
            lost: AtomicU64::new(0),
        }
    }
}

impl Bodies {
    /// The number of the next call.
    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub fn tell(&self, body: RawBody) {
        if self.sender.try_send((Timestamp::now(), body)).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What waits, for the one who exports it.
    pub(crate) fn waiting(&self) -> Option<mpsc::Receiver<(Timestamp, RawBody)>> {
        let mut receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
        receiver.take()
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}

/// Waits for the next body; for ever where nobody wants any.
pub(crate) async fn next(
    waiting: &mut Option<mpsc::Receiver<(Timestamp, RawBody)>>,
) -> Option<(Timestamp, RawBody)> {
    match waiting {
        Some(waiting) => waiting.recv().await,
        None => std::future::pending().await,
    }
}

/// Writes a body to a file of its own, which nobody else can read; returns its path.
pub(crate) async fn write(
    directory: PathBuf,
    at: Timestamp,
    body: Arc<RawBody>,
) -> io::Result<PathBuf> {
    let written = tokio::task::spawn_blocking(move || written(&directory, at, &body));
    written.await.map_err(io::Error::other)?
}

fn written(directory: &Path, at: Timestamp, body: &RawBody) -> io::Result<PathBuf> {
    let half = match body.half {
        Half::Request => "request",
        Half::Response(_) => "response",
    };
    let (process, call) = (std::process::id(), body.call);
    let at = at.strftime("%Y%m%dT%H%M%S");
    let path = directory.join(format!("{at}-{process}-{call:06}-{half}.txt"));
    let mut builder = DirBuilder::new();
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
        builder.mode(0o700);
        options.mode(0o600);
    }
    builder.recursive(true).create(directory)?;
    options.open(&path)?.write_all(body.text.as_bytes())?;
    Ok(path)
}
