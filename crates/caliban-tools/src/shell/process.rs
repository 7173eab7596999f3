//! Starting a command in the fixed shell, and holding on to it so that letting go ends it.

use std::ffi::OsString;
use std::io;
use std::mem;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, PoisonError, RwLock};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::net::unix::pipe;
use tokio::process::{Child, ChildStdin};

use super::guard::{GUARD_ARGUMENT, LAST_ARGUMENT};
use super::tree::descendants;

/// Variables that make a shell run a file before the command.
const START_FILES: [&str; 2] = ["BASH_ENV", "ENV"];

/// The shell that runs commands. It is fixed rather than the user's, since models write for it.
#[derive(Debug, Clone)]
pub struct Shell {
    program: PathBuf,
    guard: Guard,
    /// Shared with the clones of this shell.
    environment: Arc<RwLock<Vec<(OsString, OsString)>>>,
}

/// Who makes sure that nothing outlives a command.
#[derive(Debug, Clone)]
pub enum Guard {
    /// A guardian: the executable at this path, started with
    /// [`GUARD_ARGUMENT`](super::GUARD_ARGUMENT), must call [`guard_main`](super::guard_main).
    ReExec(PathBuf),
    /// This process alone: what leaves the command's process group escapes, and if this process
    /// is killed, the command stays.
    None,
}

/// Where bash may be.
const BASH: [&str; 3] = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];
/// Nothing of the user's own is read before the command.
const OPTIONS: [&str; 3] = ["--noprofile", "--norc", "-c"];

impl Shell {
    /// A shell whose commands see `environment` and nothing else of this process's.
    pub fn new(guard: Guard, environment: Vec<(OsString, OsString)>) -> Self {
        // Rules are judged by the grammar of bash; another shell would read a line differently.
        let program = BASH
            .into_iter()
            .map(Path::new)
            .find(|path| path.exists())
            .unwrap_or(Path::new(BASH[0]));
        Self {
            program: program.to_owned(),
            guard,
            environment: Arc::new(RwLock::new(without_start_files(environment))),
        }
    }

    /// Commands that start from now on see this environment instead.
    pub fn replace_environment(&self, environment: Vec<(OsString, OsString)>) {
        let environment = without_start_files(environment);
        let current = self.environment.write();
        *current.unwrap_or_else(PoisonError::into_inner) = environment;
    }

    /// Starts `command` in `directory`, with no input and both outputs in one pipe, which keeps
    /// their order. Needs a running tokio runtime.
    pub(super) fn start(
        &self,
        command: &str,
        directory: &Path,
    ) -> io::Result<(Process, pipe::Receiver)> {
        let (reader, writer) = io::pipe()?;
        let mut process = match &self.guard {
            Guard::ReExec(executable) => {
                let mut process = Command::new(executable);
                process.arg(GUARD_ARGUMENT).arg(&self.program);
                process
            }
            Guard::None => Command::new(&self.program),
        };
        let environment = self.environment.read();
        let environment = environment.unwrap_or_else(PoisonError::into_inner);
        process
            .args(OPTIONS)
            .current_dir(directory)
            .env_clear()
            .envs(environment.iter().map(|(name, value)| (name, value)))
            .stdout(writer.try_clone()?)
            .stderr(writer);
        match &self.guard {
            Guard::ReExec(_) => process.env(LAST_ARGUMENT, command).stdin(Stdio::piped()),
            Guard::None => process.arg(command).stdin(Stdio::null()).process_group(0),
        };
        let output = pipe::Receiver::from_owned_fd(reader.into())?;
        // The command goes, and with it this process's copies of the pipe's other end.
        let mut child = tokio::process::Command::from(process).spawn()?;
        let pid = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw)
            .ok_or_else(|| io::Error::other("the process has no id"))?;
        let hold = match child.stdin.take() {
            Some(stdin) => Hold::Guardian(stdin),
            None => Hold::Group,
        };
        Ok((Process { child, pid, hold }, output))
    }
}

fn without_start_files(mut environment: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
    environment.retain(|(name, _)| !START_FILES.iter().any(|file| name == file));
    environment
}

/// A command that runs. Dropping it ends the command and what it started.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    pid: Pid,
    hold: Hold,
}

#[derive(Debug)]
enum Hold {
    /// Closing its input tells the guardian to end everything and itself.
    Guardian(ChildStdin),
    /// The process leads a group.
    Group,
    /// It was told to end, or has ended.
    Released,
}

impl Process {
    /// Waits for the end of the process, whoever still holds its pipes. May be dropped and
    /// called again.
    pub(super) async fn ended(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.end();
        Ok(status)
    }

    /// Tells the process and everything it started to end.
    pub(super) fn end(&mut self) {
        match mem::replace(&mut self.hold, Hold::Released) {
            Hold::Guardian(stdin) => drop(stdin),
            Hold::Group => {
                // An empty group is what is wanted.
                let _ = kill_process_group(self.pid, Signal::KILL);
            }
            Hold::Released => {}
        }
    }

    /// The last resort against a guardian that does not end: kills it and what is beneath it.
    pub(super) fn kill(&mut self) {
        if self.child.id().is_some() {
            let members = descendants(self.pid);
            for member in members {
                member.signal(Signal::KILL);
            }
            // It may end by itself at this very moment.
            let _ = self.child.start_kill();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}
