//! Running a program to its end and keeping what it writes, within bounds.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::guard::{self, Input};
use crate::invocation::{Guard, Invocation, Streams};
use crate::process::Process;

/// The most that is read at once.
const PIECE: usize = 16 * 1024;
/// How long the outputs are read after the end. Without a guardian, somebody who left the group
/// may hold them open.
const DRAIN: Duration = Duration::from_millis(500);

/// How much of an output is kept, and what happens to the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bound {
    pub bytes: usize,
    pub beyond: Beyond,
}

/// What happens to output beyond its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beyond {
    /// It is read and forgotten.
    Forget,
    /// The program is ended.
    Stop,
}

/// The bounds of both outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub stdout: Bound,
    pub stderr: Bound,
}

/// A program that ended, and the beginning of what it wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    pub status: ExitStatus,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

/// Why it is not known what a program wrote.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    #[error("it could not be started: {0}")]
    Start(#[source] io::Error),
    #[error("it was lost: {0}")]
    Lost(#[source] io::Error),
    #[error("it wrote more than it may")]
    TooMuch,
}

impl Invocation {
    /// Runs the program to its end, with an input that it need not read. Dropping the future ends
    /// the program and what it started. Needs a running tokio runtime.
    pub async fn capture(
        &self,
        guard: &Guard,
        input: &[u8],
        bounds: Bounds,
    ) -> Result<Captured, CaptureError> {
        let (process, streams) = self
            .piped(guard, Input::Given(input.len() as u64))
            .map_err(CaptureError::Start)?;
        let captured = captured(process, streams, guard, input, bounds).await?;
        match guard {
            Guard::ReExec(_) => {
                match guard::start_error(&self.program, captured.status, &captured.stderr) {
                    Some(error) => Err(CaptureError::Start(error)),
                    None => Ok(captured),
                }
            }
            Guard::None => Ok(captured),
        }
    }
}

/// Waits for the end of a process while its input and outputs are served. The process's end is
/// what counts, whoever still holds its pipes.
async fn captured(
    mut process: Process,
    streams: Streams,
    guard: &Guard,
    input: &[u8],
    bounds: Bounds,
) -> Result<Captured, CaptureError> {
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let mut stdin = streams.stdin;
    let write = async {
        // A program need not read what it is told.
        let _ = stdin.write_all(input).await;
        Ok(match guard {
            // The guardian knows the length. The end of this pipe would be the program's.
            Guard::ReExec(_) => Some(stdin),
            Guard::None => None,
        })
    };
    let status = {
        let mut transfer = std::pin::pin!(async {
            tokio::try_join!(
                write,
                keep(streams.stdout, &mut stdout, bounds.stdout),
                keep(streams.stderr, &mut stderr, bounds.stderr)
            )
        });
        let status = tokio::select! {
            biased;
            status = process.ended() => {
                // What is not there by then is not waited for.
                if let Ok(rest) = timeout(DRAIN, transfer).await {
                    rest?;
                }
                status
            }
            held = &mut transfer => {
                let (stdin, (), ()) = held?;
                let status = process.ended().await;
                drop(stdin);
                status
            }
        };
        status.map_err(CaptureError::Lost)?
    };
    Ok(Captured {
        status,
        stdout,
        stderr,
    })
}

/// Reads to the end, keeping the beginning. An output that fails has ended.
async fn keep(
    mut pipe: impl AsyncRead + Unpin,
    kept: &mut Vec<u8>,
    bound: Bound,
) -> Result<(), CaptureError> {
    let mut piece = vec![0; PIECE];
    while let Ok(length @ 1..) = pipe.read(&mut piece).await {
        let room = bound.bytes - kept.len();
        kept.extend_from_slice(&piece[..length.min(room)]);
        match bound.beyond {
            Beyond::Stop if length > room => return Err(CaptureError::TooMuch),
            Beyond::Stop | Beyond::Forget => {}
        }
    }
    Ok(())
}

impl From<CaptureError> for io::Error {
    fn from(error: CaptureError) -> Self {
        match error {
            CaptureError::Start(error) | CaptureError::Lost(error) => error,
            CaptureError::TooMuch => Self::other(error),
        }
    }
}
