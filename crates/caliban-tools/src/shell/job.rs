//! One background command: its output in a file, how far it was read, and how it ended.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use caliban_model::CancellationToken;
use caliban_process::{Finished, Sink};
use tokio::io::AsyncWriteExt;
use tokio::task::AbortHandle;

use super::text;

/// The most output one reading returns.
pub(super) const MAX_READING: usize = 256 * 1024;

/// One background command.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) id: Arc<str>,
    pub(super) command: String,
    pub(super) started: Instant,
    pub(super) path: PathBuf,
    pub(super) progress: Arc<Mutex<JobProgress>>,
    pub(super) cancel: CancellationToken,
    /// Cancelled when the job is over, whichever way.
    pub(super) ended: CancellationToken,
    pub(super) task: AbortHandle,
    /// How much was read. Held while reading, so that two readings never return the same.
    pub(super) offset: tokio::sync::Mutex<u64>,
}

/// What is known of a job.
#[derive(Debug, Clone)]
pub(super) struct JobProgress {
    pub(super) status: JobStatus,
    /// Output on disk.
    pub(super) written: u64,
    /// Output beyond the limit, or that could not be written.
    pub(super) dropped: u64,
    pub(super) last_output: Option<Instant>,
    pub(super) write_error: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum JobStatus {
    Running,
    Ended(Finished),
    /// The system did not tell how it ended.
    Lost(String),
}

/// New output of a job, and how the job is.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) bytes: Vec<u8>,
    /// Output on disk that was not returned yet.
    pub(super) left: u64,
    pub(super) progress: JobProgress,
}

/// Where a reading of output that is still growing may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Boundary {
    Character,
    Line,
}

impl Job {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    pub(super) fn age(&self) -> Duration {
        self.started.elapsed()
    }

    pub(super) fn progress(&self) -> JobProgress {
        lock(&self.progress).clone()
    }

    pub(super) fn is_running(&self) -> bool {
        lock(&self.progress).status == JobStatus::Running
    }

    /// Ends the job and waits for its end, which takes a few seconds at most.
    pub(super) async fn kill(&self) -> JobProgress {
        self.cancel.cancel();
        self.ended.cancelled().await;
        self.progress()
    }

    /// What was written since the last reading, up to a bound.
    pub(super) async fn read(&self, boundary: Boundary) -> io::Result<Reading> {
        let mut offset = self.offset.lock().await;
        let progress = self.progress();
        let unread = progress.written.saturating_sub(*offset);
        let length = usize::try_from(unread).map_or(MAX_READING, |unread| unread.min(MAX_READING));
        let mut bytes = read_at(self.path.clone(), *offset, length).await?;
        let rest = unread - bytes.len() as u64;
        if rest > 0 {
            bytes.truncate(readable_length(&bytes, Boundary::Line));
        } else if progress.status == JobStatus::Running {
            bytes.truncate(readable_length(&bytes, boundary));
        }
        *offset += bytes.len() as u64;
        Ok(Reading {
            left: match rest {
                // What was held back is not complete and therefore not there to be read.
                0 => 0,
                _ => unread - bytes.len() as u64,
            },
            bytes,
            progress,
        })
    }
}

async fn read_at(path: PathBuf, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let read = move || {
        let mut bytes = vec![0; length];
        File::open(path)?.read_exact_at(&mut bytes, offset)?;
        Ok(bytes)
    };
    tokio::task::spawn_blocking(read).await?
}

/// How much of `bytes` ends at the boundary; a full reading without a line's end is passed as
/// it is, up to its last whole character.
fn readable_length(bytes: &[u8], boundary: Boundary) -> usize {
    let line_end = bytes.iter().rposition(|byte| *byte == b'\n');
    match (boundary, line_end) {
        (Boundary::Line, Some(end)) => end + 1,
        (Boundary::Line, None) if bytes.len() < MAX_READING => 0,
        (Boundary::Line, None) | (Boundary::Character, _) => {
            bytes.len() - text::incomplete_end(bytes)
        }
    }
}

impl JobProgress {
    pub(super) fn new() -> Self {
        Self {
            status: JobStatus::Running,
            written: 0,
            dropped: 0,
            last_output: None,
            write_error: None,
        }
    }

    pub(super) fn finish(&mut self, finished: io::Result<Finished>) {
        self.status = match finished {
            Ok(finished) => JobStatus::Ended(finished),
            Err(error) => JobStatus::Lost(error.to_string()),
        };
    }
}

/// Writes a job's output to its file. What does not fit is dropped, never waited for.
pub(super) struct Log {
    pub(super) file: tokio::fs::File,
    pub(super) limit: u64,
    pub(super) progress: Arc<Mutex<JobProgress>>,
}

impl Sink for Log {
    async fn take(&mut self, bytes: &[u8]) {
        let room = {
            let progress = lock(&self.progress);
            match progress.write_error {
                Some(_) => 0,
                None => self.limit.saturating_sub(progress.written),
            }
        };
        let kept = usize::try_from(room).map_or(bytes.len(), |room| room.min(bytes.len()));
        let written = self.write(&bytes[..kept]).await;
        let mut progress = lock(&self.progress);
        progress.last_output = Some(Instant::now());
        match written {
            Ok(()) => {
                progress.written += kept as u64;
                progress.dropped += (bytes.len() - kept) as u64;
            }
            Err(error) => {
                progress.write_error = Some(error.to_string());
                progress.dropped += bytes.len() as u64;
            }
        }
    }
}

impl Log {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.file.write_all(bytes).await?;
        self.file.flush().await
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_end_where_they_should() {
        let whole = |text: &str, boundary| readable_length(text.as_bytes(), boundary);
        assert_eq!(whole("a\nbc", Boundary::Character), 4);
        assert_eq!(whole("a\nbc", Boundary::Line), 2);
        assert_eq!(whole("abc", Boundary::Line), 0);
        assert_eq!(readable_length(b"ab\xe2\x82", Boundary::Character), 2);
        let long = vec![b'x'; MAX_READING];
        assert_eq!(readable_length(&long, Boundary::Line), MAX_READING);
    }
}
