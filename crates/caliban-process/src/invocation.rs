//! What to start, and the one place where it is started.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use crate::guard::{GUARD_ARGUMENT, Input, LAST_ARGUMENT};
use crate::process::{Hold, Process};

/// Who makes sure that nothing outlives a program.
#[derive(Debug, Clone)]
pub enum Guard {
    /// A guardian: the executable at this path, started with
    /// [`GUARD_ARGUMENT`](crate::GUARD_ARGUMENT), must call [`guard_main`](crate::guard_main).
    ReExec(PathBuf),
    /// This process alone: what leaves the program's process group escapes, and if this process
    /// is killed, the program stays.
    None,
}

/// A program to start. It sees `environment` and nothing else of this process's; of a variable
/// that is there twice, the later one.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// A path, or a name that is looked for in the `PATH` of `environment`.
    pub program: OsString,
    pub args: Vec<OsString>,
    pub directory: PathBuf,
    pub environment: Vec<(OsString, OsString)>,
}

/// The three streams of a program. Closing its input ends it: first it may go by itself, then
/// its guardian ends it and everything it started.
#[derive(Debug)]
pub struct Streams {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

impl Invocation {
    /// Starts the program with no input and both outputs in one pipe, which keeps their order.
    /// Needs a running tokio runtime.
    pub fn start(&self, guard: &Guard) -> io::Result<(Process, pipe::Receiver)> {
        let (reader, writer) = io::pipe()?;
        let output = pipe::Receiver::from_owned_fd(reader.into())?;
        let copy = writer.try_clone()?;
        let mut child = self.spawn(guard, Input::Empty, copy.into(), writer.into())?;
        let hold = match child.stdin.take() {
            Some(stdin) => Hold::Guardian(stdin),
            None => Hold::Group,
        };
        Ok((Process::new(child, hold)?, output))
    }

    /// Starts a program that is talked to over its standard streams. Needs a running tokio
    /// runtime.
    pub fn serve(&self, guard: &Guard) -> io::Result<(Process, Streams)> {
        self.piped(guard, Input::Relayed)
    }

    /// Starts the program with a pipe for each of its streams. With a guardian, whoever has the
    /// input has the program's life in hand.
    pub(crate) fn piped(&self, guard: &Guard, input: Input) -> io::Result<(Process, Streams)> {
        let mut child = self.spawn(guard, input, Stdio::piped(), Stdio::piped())?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = streams else {
            return Err(io::Error::other("the process has no streams"));
        };
        let hold = match guard {
            Guard::ReExec(_) => Hold::Released,
            Guard::None => Hold::Group,
        };
        let streams = Streams {
            stdin,
            stdout,
            stderr,
        };
        Ok((Process::new(child, hold)?, streams))
    }

    /// Starts a program that outlives this process: nobody guards it, and what it needs to be
    /// found and ended by is its own business. Needs a running tokio runtime.
    pub fn detach(&self, stdin: Stdio, stdout: Stdio, stderr: Stdio) -> io::Result<Child> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .current_dir(&self.directory)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(stdin)
            .stdout(stdout)
            .stderr(stderr);
        tokio::process::Command::from(command).spawn()
    }

    /// Every program starts here, but for those that outlive this one.
    fn spawn(
        &self,
        guard: &Guard,
        input: Input,
        stdout: Stdio,
        stderr: Stdio,
    ) -> io::Result<Child> {
        let mut command = match guard {
            Guard::ReExec(executable) => {
                let mut command = Command::new(executable);
                command.arg(GUARD_ARGUMENT).args(input.argument());
                command.arg(&self.program).stdin(Stdio::piped());
                command
            }
            Guard::None => {
                let mut command = Command::new(&self.program);
                command.process_group(0).stdin(input.stdio());
                command
            }
        };
        command
            .current_dir(&self.directory)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env_remove(LAST_ARGUMENT)
            .stdout(stdout)
            .stderr(stderr);
        match (guard, self.args.split_last()) {
            (Guard::ReExec(_), Some((last, others))) => {
                command.args(others).env(LAST_ARGUMENT, last)
            }
            (Guard::ReExec(_), None) | (Guard::None, _) => command.args(&self.args),
        };
        // The command goes, and with it this process's copies of the other ends of pipes.
        tokio::process::Command::from(command).spawn()
    }
}
