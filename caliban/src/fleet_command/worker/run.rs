//! The process of a job, seen from its worker.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::time::Duration;

use caliban_fleet_nats::JobId;
use caliban_harness::Configuration;
use caliban_process::{Guard, Invocation, Process};
use caliban_settings::variables::names;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::time::timeout;

use super::super::job_process::{JOB_ARGUMENT, Orders};

/// Bytes of what the process says besides frames that are kept.
const LOG: u64 = 256 * 1024;
/// How variables begin that lead to the board.
const BOARD: &str = "CALIBAN_FLEET_";
/// How long a process may take to go that has nothing more to say.
const GOING: Duration = Duration::from_secs(10);

/// A process that runs a job. It ends when this is dropped.
pub(super) struct Run {
    process: Process,
    stdin: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    stderr: Option<ChildStderr>,
}

impl Run {
    pub(super) async fn start(
        orders: &Orders,
        job: JobId,
        directory: &Path,
        configuration: &Configuration,
    ) -> io::Result<Self> {
        let guard = &configuration.process.guard;
        let mut environment = configuration.process.variables.clone();
        // What the job starts must not come to the board in the worker's name, nor answer its own
        // questions.
        environment.retain(|(name, _)| !name.to_string_lossy().starts_with(BOARD));
        environment.push((names::CALIBAN_AGENT_ID.into(), job.to_string().into()));
        let program: OsString = match guard {
            Guard::ReExec(path) => path.into(),
            Guard::None => std::env::current_exe()?.into(),
        };
        let invocation = Invocation {
            program,
            args: vec![JOB_ARGUMENT.into()],
            directory: directory.to_owned(),
            environment,
        };
        let (process, streams) = invocation.serve(guard)?;
        let mut run = Self {
            process,
            stdin: Some(streams.stdin),
            lines: BufReader::new(streams.stdout).lines(),
            stderr: Some(streams.stderr),
        };
        let orders = serde_json::to_value(orders).map_err(io::Error::other)?;
        run.say(&orders).await?;
        Ok(run)
    }

    /// Writes a line to it.
    pub(super) async fn say(&mut self, frame: &Value) -> io::Result<()> {
        let Some(stdin) = &mut self.stdin else {
            return Ok(());
        };
        stdin.write_all(format!("{frame}\n").as_bytes()).await?;
        stdin.flush().await
    }

    /// Asks it to stop what it does and to go.
    pub(super) fn end(&mut self) {
        self.stdin = None;
    }

    /// The next line that it writes; may be dropped and called again.
    pub(super) async fn line(&mut self) -> io::Result<Option<String>> {
        self.lines.next_line().await
    }

    /// What it said besides, read while it runs so that it never waits for a reader.
    pub(super) fn log(&mut self) -> impl Future<Output = Vec<u8>> + use<> {
        let stderr = self.stderr.take();
        async move {
            let mut kept = Vec::new();
            let Some(stderr) = stderr else {
                return kept;
            };
            let mut first = stderr.take(LOG);
            // What cannot be read is not there.
            let _ = first.read_to_end(&mut kept).await;
            let _ = tokio::io::copy(&mut first.into_inner(), &mut tokio::io::sink()).await;
            kept
        }
    }

    /// Waits until it is gone; the exit code, if it ended by itself.
    pub(super) async fn gone(mut self) -> Option<u8> {
        self.stdin = None;
        let status = timeout(GOING, self.process.ended()).await.ok()?.ok()?;
        status.code().and_then(|code| u8::try_from(code).ok())
    }
}
