//! Servers that are programs: one message a line on their standard streams.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::process::ExitStatus;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caliban_model::CancellationToken;
use caliban_process::{Exit, Guard, Invocation, Keepsake, Process, SignalNumber, start_error};
use rmcp::RoleClient;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWriteExt, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

use super::{MAX_MESSAGE, TooLarge, TransportError, broken};
use crate::log::ServerLog;
use crate::text;

/// Messages that may wait for the program to read them.
const WAITING: usize = 64;
/// The longest line of a server's own output that is passed on.
const MAX_LOG_LINE: usize = 2000;
/// How many of them are passed on in the life of a connection; the rest is read and dropped.
const MAX_LOG_LINES: usize = 10_000;
/// How many of the last are kept to explain an end.
const KEPT_LINES: usize = 3;
/// How long to wait for the program's end and last words once it has closed its output.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// A program that was started, without its streams. It ends when the transport is dropped.
#[derive(Debug)]
pub(crate) struct Program {
    name: OsString,
    process: Process,
    closing: CancellationToken,
    last_words: LastWords,
    /// Ends when everything the program wrote on its standard error has been read.
    errors: tokio::task::JoinHandle<()>,
    _kept: Keepsake,
}

/// What there is to say about a program that ended.
#[derive(Debug)]
pub(crate) enum Explanation {
    /// It never was one.
    Unstarted(String),
    Ended(String),
}

/// What is known about an end before it is looked into.
type LastWords = Arc<Mutex<Words>>;

#[derive(Debug, Default)]
struct Words {
    /// The last lines of the program's standard error.
    lines: VecDeque<String>,
    /// Why we ended it ourselves.
    fault: Option<String>,
}

/// The two streams that carry messages.
#[derive(Debug)]
pub(crate) struct Stdio {
    output: Lines<ChildStdout>,
    messages: mpsc::Sender<Vec<u8>>,
    log: ServerLog,
    last_words: LastWords,
    /// Closes the program's input when taken or dropped, whoever still waits to write.
    closing: Option<DropGuard>,
}

/// Starts a program and returns the way to it.
pub(crate) fn start(
    server: &Invocation,
    guard: &Guard,
    log: &ServerLog,
    kept: Keepsake,
) -> Result<(Program, Stdio), TransportError> {
    let started = server.serve(guard);
    let (process, streams) =
        started.map_err(|error| TransportError(unstarted(&server.program, &error)))?;
    let closing = CancellationToken::new();
    let (messages, waiting) = mpsc::channel(WAITING);
    tokio::spawn(write(streams.stdin, waiting, closing.clone()));
    let last_words = LastWords::default();
    let errors = tokio::spawn(pass_on(
        streams.stderr,
        log.clone(),
        Arc::clone(&last_words),
    ));
    let program = Program {
        name: server.program.clone(),
        process,
        closing: closing.clone(),
        last_words: Arc::clone(&last_words),
        errors,
        _kept: kept,
    };
    let stdio = Stdio {
        output: Lines::new(streams.stdout),
        messages,
        log: log.clone(),
        last_words,
        closing: Some(closing.drop_guard()),
    };
    Ok((program, stdio))
}

fn unstarted(program: &OsStr, error: &io::Error) -> String {
    format!("`{}` cannot be started: {error}", program.display())
}

/// Writes messages until there are no more or the connection closes. The program's input is
/// closed with this.
async fn write(
    mut input: ChildStdin,
    mut waiting: mpsc::Receiver<Vec<u8>>,
    closing: CancellationToken,
) {
    let all = async {
        while let Some(message) = waiting.recv().await {
            // A program that is gone closes its output too, which is what is looked at.
            if input.write_all(&message).await.is_err() || input.flush().await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = all => {}
        () = closing.cancelled() => {}
    }
}

/// Passes a program's standard error on, line by line. It is read to its end in any case: a full
/// pipe would stop the program.
async fn pass_on(errors: ChildStderr, log: ServerLog, last_words: LastWords) {
    let mut lines = Lines::new(errors);
    let mut count = 0_usize;
    loop {
        match lines.next().await {
            Line::End => return,
            Line::TooLong => {}
            Line::Whole(bytes) => {
                count = count.saturating_add(1);
                if count > MAX_LOG_LINES {
                    continue;
                }
                let line = text::line(&String::from_utf8_lossy(&bytes), MAX_LOG_LINE);
                if line.is_empty() {
                    continue;
                }
                log.line(&line);
                if count == MAX_LOG_LINES {
                    log.line("(further output is not shown)");
                }
                let mut last = last_words.lock().unwrap_or_else(PoisonError::into_inner);
                if last.lines.len() == KEPT_LINES {
                    last.lines.pop_front();
                }
                last.lines.push_back(line);
            }
        }
    }
}

impl Program {
    /// Why the connection ended, once its output has: how the program ended and what it said
    /// last.
    pub(crate) async fn explain(&mut self) -> Option<Explanation> {
        let status = tokio::time::timeout(LAST_WORDS, self.process.ended()).await;
        // Somebody the program started may hold the pipe open.
        let _ = tokio::time::timeout(LAST_WORDS, &mut self.errors).await;
        let status = status.ok().and_then(Result::ok);
        let (fault, first) = {
            let last = self.last_words.lock();
            let last = last.unwrap_or_else(PoisonError::into_inner);
            (last.fault.clone(), last.lines.front().cloned())
        };
        if let (Some(status), Some(said)) = (status, first)
            && let Some(error) = start_error(&self.name, status, said.as_bytes())
        {
            return Some(Explanation::Unstarted(unstarted(&self.name, &error)));
        }
        let how = fault.or_else(|| status.map(describe));
        let ended = match (how, self.said()) {
            (how, None) => how,
            (None, Some(said)) => Some(said),
            (Some(how), Some(said)) => Some(format!("{how}; {said}")),
        };
        ended.map(Explanation::Ended)
    }

    /// What the program said last.
    pub(crate) fn said(&self) -> Option<String> {
        let last = self.last_words.lock();
        let last = last.unwrap_or_else(PoisonError::into_inner);
        let lines: Vec<&str> = last.lines.iter().map(String::as_str).collect();
        (!lines.is_empty()).then(|| format!("it said: {}", lines.join(" / ")))
    }

    /// Ends the program: its input is closed, and what is left after `grace` is killed.
    pub(crate) async fn end(mut self, grace: Duration) {
        self.closing.cancel();
        if tokio::time::timeout(grace, self.process.ended())
            .await
            .is_err()
        {
            self.process.kill();
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

fn describe(status: ExitStatus) -> String {
    match Exit::from(status) {
        Exit::Code(code) => format!("the program ended with exit code {code}"),
        Exit::Signal(SignalNumber(signal)) => format!("the program was killed by signal {signal}"),
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = TransportError;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), TransportError>> + Send + 'static {
        let messages = self.messages.clone();
        async move {
            let mut line =
                serde_json::to_vec(&message).map_err(|error| TransportError(error.to_string()))?;
            line.push(b'\n');
            messages
                .send(line)
                .await
                .map_err(|_| TransportError("the program reads no more".to_owned()))
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            match self.output.next().await {
                Line::End => return None,
                // Which call it belongs to cannot be known, so none may wait for it.
                Line::TooLong => {
                    let mut last = self
                        .last_words
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner);
                    last.fault = Some(TooLarge.to_string());
                    return None;
                }
                Line::Whole(line) => match serde_json::from_slice(&line) {
                    Ok(message) => return Some(message),
                    Err(_) if line.iter().all(u8::is_ascii_whitespace) => {}
                    // Programs print to their output what belongs elsewhere.
                    Err(_) => {
                        let shown = text::line(&String::from_utf8_lossy(&line), MAX_LOG_LINE);
                        self.log.line(&format!("(not a message) {shown}"));
                        if let Some(failure) = broken::answer(&line) {
                            return Some(failure);
                        }
                    }
                },
            }
        }
    }

    async fn close(&mut self) -> Result<(), TransportError> {
        drop(self.closing.take());
        Ok(())
    }
}

/// Reads lines of at most [`MAX_MESSAGE`] bytes. Dropping a read loses nothing.
#[derive(Debug)]
struct Lines<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    is_too_long: bool,
}

enum Line {
    Whole(Vec<u8>),
    /// It was read to its end and dropped.
    TooLong,
    End,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    fn new(reader: R) -> Self {
        Self {
            reader: BufReader::with_capacity(64 * 1024, reader),
            line: Vec::new(),
            is_too_long: false,
        }
    }

    async fn next(&mut self) -> Line {
        loop {
            let Ok(bytes) = self.reader.fill_buf().await else {
                return Line::End;
            };
            if bytes.is_empty() {
                // What is not ended is still worth reading in a log.
                let rest = std::mem::take(&mut self.line);
                return if rest.is_empty() {
                    Line::End
                } else {
                    Line::Whole(rest)
                };
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let piece = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + piece.len() > MAX_MESSAGE {
                self.is_too_long = true;
                self.line = Vec::new();
            }
            if !self.is_too_long {
                self.line.extend_from_slice(piece);
            }
            let used = piece.len() + usize::from(end.is_some());
            self.reader.consume(used);
            if end.is_some() {
                if std::mem::take(&mut self.is_too_long) {
                    return Line::TooLong;
                }
                return Line::Whole(std::mem::take(&mut self.line));
            }
        }
    }
}
