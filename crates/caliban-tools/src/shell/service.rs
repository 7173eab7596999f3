//! Programs that are talked to over their standard streams for as long as a session lives.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout};

use super::guard::{GUARD_ARGUMENT, LAST_ARGUMENT, RELAY_ARGUMENT};
use super::process::Guard;
use super::tree::descendants;

/// A program to start. It sees `environment` and nothing else of this process's.
#[derive(Debug, Clone)]
pub struct Service {
    pub program: OsString,
    pub args: Vec<OsString>,
    pub directory: PathBuf,
    pub environment: Vec<(OsString, OsString)>,
}

/// The three streams of a program. Closing its input ends it: first it may go by itself, then
/// its guardian ends it and everything it started.
#[derive(Debug)]
pub struct ServiceStreams {
    pub stdin: ChildStdin,
    pub stdout: ChildStdout,
    pub stderr: ChildStderr,
}

/// A program that runs. Without a guardian, dropping this kills its process group; with one, the
/// end of the input does.
#[derive(Debug)]
pub struct ServiceProcess {
    child: Child,
    pid: Pid,
    hold: Hold,
}

#[derive(Debug, Clone, Copy)]
enum Hold {
    Guardian,
    Group,
}

impl Service {
    /// Starts the program. Needs a running tokio runtime.
    pub fn start(&self, guard: &Guard) -> io::Result<(ServiceProcess, ServiceStreams)> {
        let (mut command, hold) = match guard {
            Guard::ReExec(executable) => {
                let mut command = Command::new(executable);
                command
                    .args([GUARD_ARGUMENT, RELAY_ARGUMENT])
                    .arg(&self.program);
                (command, Hold::Guardian)
            }
            Guard::None => {
                let mut command = Command::new(&self.program);
                command.process_group(0);
                (command, Hold::Group)
            }
        };
        command
            .args(&self.args)
            .current_dir(&self.directory)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env_remove(LAST_ARGUMENT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = tokio::process::Command::from(command).spawn()?;
        let pid = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(pid), (Some(stdin), Some(stdout), Some(stderr))) = (pid, streams) else {
            return Err(io::Error::other("the process has no id or no streams"));
        };
        let streams = ServiceStreams {
            stdin,
            stdout,
            stderr,
        };
        Ok((ServiceProcess { child, pid, hold }, streams))
    }
}

impl ServiceProcess {
    /// Waits for the end of the process. May be dropped and called again.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// The last resort: kills the process and everything beneath it at once.
    pub fn kill(&mut self) {
        if self.child.id().is_none() {
            return;
        }
        for member in descendants(self.pid) {
            member.signal(Signal::KILL);
        }
        // It may end by itself at this very moment.
        let _ = self.child.start_kill();
    }
}

impl Drop for ServiceProcess {
    fn drop(&mut self) {
        // Once the leader is collected its number may be somebody else's.
        let is_there = self.child.id().is_some();
        match self.hold {
            Hold::Group if is_there => {
                // An empty group is what is wanted.
                let _ = kill_process_group(self.pid, Signal::KILL);
            }
            Hold::Group | Hold::Guardian => {}
        }
    }
}
