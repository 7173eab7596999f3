//! Holding on to a program that runs, so that letting go ends it.

use std::fmt;
use std::io;
use std::mem;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::{Child, ChildStdin};

use crate::tree::descendants;

/// A program that runs. Dropping it ends the program and what it started; where others have its
/// [`Streams`](crate::Streams) and a guardian watches it, closing the input does.
#[derive(Debug)]
pub struct Process {
    child: Child,
    pid: Pid,
    hold: Hold,
}

/// What ends a program.
#[derive(Debug)]
pub(crate) enum Hold {
    /// Closing its input tells the guardian to end everything and itself.
    Guardian(ChildStdin),
    /// The process leads a group.
    Group,
    /// That is in other hands, or the process was told to end, or has ended.
    Released,
}

/// How a program ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(SignalNumber),
}

/// A signal that prints as its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalNumber(pub i32);

impl Process {
    pub(crate) fn new(child: Child, hold: Hold) -> io::Result<Self> {
        let pid = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw)
            .ok_or_else(|| io::Error::other("the process has no id"))?;
        Ok(Self { child, pid, hold })
    }

    /// Waits for the end of the process, whoever still holds its pipes. May be dropped and
    /// called again.
    pub async fn ended(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.end();
        Ok(status)
    }

    /// Tells the process and everything it started to end.
    pub(crate) fn end(&mut self) {
        match mem::replace(&mut self.hold, Hold::Released) {
            Hold::Guardian(stdin) => drop(stdin),
            Hold::Group => {
                // An empty group is what is wanted.
                let _ = kill_process_group(self.pid, Signal::KILL);
            }
            Hold::Released => {}
        }
    }

    /// The last resort: kills the process, which may be a guardian that does not end, and
    /// everything beneath it at once.
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

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(SignalNumber(signal)),
            // Waiting reports only these two.
            (None, None) => Self::Code(-1),
        }
    }
}

impl fmt::Display for SignalNumber {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(Signal, &str); 16] = [
            (Signal::HUP, "SIGHUP"),
            (Signal::INT, "SIGINT"),
            (Signal::QUIT, "SIGQUIT"),
            (Signal::ILL, "SIGILL"),
            (Signal::TRAP, "SIGTRAP"),
            (Signal::ABORT, "SIGABRT"),
            (Signal::BUS, "SIGBUS"),
            (Signal::FPE, "SIGFPE"),
            (Signal::KILL, "SIGKILL"),
            (Signal::USR1, "SIGUSR1"),
            (Signal::SEGV, "SIGSEGV"),
            (Signal::USR2, "SIGUSR2"),
            (Signal::PIPE, "SIGPIPE"),
            (Signal::ALARM, "SIGALRM"),
            (Signal::TERM, "SIGTERM"),
            (Signal::XCPU, "SIGXCPU"),
        ];
        match NAMES.iter().find(|(signal, _)| signal.as_raw() == self.0) {
            Some((_, name)) => formatter.write_str(name),
            None => write!(formatter, "signal {}", self.0),
        }
    }
}
