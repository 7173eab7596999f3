//! The guardian: a small process between caliban and a shell that ends everything the shell
//! started, when the shell ends and also when caliban is gone, however it went.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Signal, WaitOptions, WaitStatus, getpid, getrlimit, kill_process,
    kill_process_group, setrlimit, setsid, wait,
};

use super::tree::descendants;

/// The first argument that makes the program a guardian.
pub const GUARD_ARGUMENT: &str = "__guard";

/// The variable that carries the last argument of the guarded program. In the guardian's own
/// arguments it would make `pkill -f` in a command find and kill the guardian too.
pub(super) const LAST_ARGUMENT: &str = "CALIBAN_GUARD_ARGUMENT";

/// The argument before the program's that makes the guardian pass its input on to the program.
pub(super) const RELAY_ARGUMENT: &str = "--relay";

/// How long a program that reads its input may take to end by itself at the end of it.
const FAREWELL: Duration = Duration::from_millis(500);
/// How long processes may take to end after they were asked to.
const GRACE: Duration = Duration::from_secs(2);
/// How long to wait for killed processes before looking for more.
const ROUND: Duration = Duration::from_millis(10);
/// How often to look: two seconds of rounds. What is left then cannot be killed.
const ROUNDS: usize = 200;

/// What shells answer when a program cannot be started.
const CANNOT_START: u8 = 126;
/// What shells add to a signal's number.
const SIGNALLED: i32 = 128;

/// Runs the program that `args` name, which are the arguments after [`GUARD_ARGUMENT`], and ends
/// as it ends: with its exit code, or by the signal that killed it. The end of standard input
/// means that the parent is gone or wants an end. The program's own input is empty, or with a
/// first argument `--relay` what arrives on the guardian's.
pub fn guard_main(args: impl Iterator<Item = OsString>) -> ExitCode {
    // A session of its own: neither the terminal's signals nor the terminal itself reach what
    // runs in it. This fails only where it already leads a group, which is as good.
    let _ = setsid();
    adopt_orphans();
    let mut args = args.peekable();
    let input = match args.next_if(|argument| argument == RELAY_ARGUMENT) {
        Some(_) => Stdio::piped(),
        None => Stdio::null(),
    };
    let Some(program) = args.next() else {
        return refuse("caliban: no program to guard");
    };
    let mut command = Command::new(&program);
    command.args(args).stdin(input).process_group(0);
    if let Some(argument) = std::env::var_os(LAST_ARGUMENT) {
        command.arg(argument).env_remove(LAST_ARGUMENT);
    }
    match command.spawn() {
        Ok(mut shell) => {
            let input = shell.stdin.take();
            report(Watch::start(Pid::from_child(&shell), input).finish())
        }
        Err(error) => refuse(&format!(
            "caliban: `{}` cannot be started: {error}",
            program.display()
        )),
    }
}

/// Makes orphans among the descendants children of this process instead of the system's first,
/// so that a double fork does not escape.
fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    {
        // An old kernel leaves the process group, which is what other systems have.
        let _ = rustix::process::set_child_subreaper(Some(getpid()));
    }
}

fn refuse(message: &str) -> ExitCode {
    // Nobody may be listening any more.
    let _ = writeln!(std::io::stderr(), "{message}");
    ExitCode::from(CANNOT_START)
}

fn report(status: Option<WaitStatus>) -> ExitCode {
    let Some(status) = status else {
        return ExitCode::from(CANNOT_START);
    };
    if let Some(signal) = status.terminating_signal() {
        die_by(signal);
    }
    let code = status
        .exit_status()
        .or_else(|| status.terminating_signal().map(|signal| SIGNALLED + signal))
        .and_then(|code| u8::try_from(code).ok());
    ExitCode::from(code.unwrap_or(CANNOT_START))
}

/// Ends this process by a signal where that is possible; returns where the signal is ignored or
/// has no name.
fn die_by(signal: i32) {
    let Some(signal) = Signal::from_named_raw(signal) else {
        return;
    };
    // The core of the guardian interests nobody.
    let mut core = getrlimit(Resource::Core);
    core.current = Some(0);
    let _ = setrlimit(Resource::Core, core);
    // The runtime catches a first `SIGSEGV` or `SIGBUS` to look for a stack overflow and then
    // restores the default; the second is deadly.
    for _ in 0..2 {
        let _ = kill_process(getpid(), signal);
    }
}

enum Notice {
    ShellEnded(WaitStatus),
    /// No child is left. As orphans are adopted, no descendant is either.
    AllEnded,
    ParentGone,
}

enum Remaining {
    Nobody,
    Somebody,
}

/// What the guardian knows of the shell and of those it started.
struct Watch {
    shell: Pid,
    notices: Receiver<Notice>,
    status: Option<WaitStatus>,
    farewell: Duration,
}

impl Watch {
    fn start(shell: Pid, input: Option<ChildStdin>) -> Self {
        let (sender, notices) = mpsc::channel();
        let listener = sender.clone();
        let farewell = match input {
            None => {
                thread::spawn(move || listen(&listener));
                Duration::ZERO
            }
            Some(input) => {
                thread::spawn(move || relay(input));
                thread::spawn(move || await_hang_up(&listener));
                FAREWELL
            }
        };
        thread::spawn(move || reap(shell, &sender));
        Self {
            shell,
            notices,
            status: None,
            farewell,
        }
    }

    /// Waits for the shell or the end of the parent, then ends everybody.
    fn finish(mut self) -> Option<WaitStatus> {
        match self.notices.recv() {
            Ok(Notice::ShellEnded(status)) => self.status = Some(status),
            Ok(Notice::ParentGone) => {
                if let Remaining::Nobody = self.wait(self.farewell) {
                    return self.status;
                }
                self.ask();
                self.wait(GRACE);
            }
            Ok(Notice::AllEnded) | Err(_) => {}
        }
        self.kill();
        self.status
    }

    fn ask(&self) {
        self.signal_group(Signal::TERM);
        // Once each: many programs take a second request as an order to skip their clean-up.
        for member in descendants(getpid()) {
            if member.group != Some(self.shell) {
                member.signal(Signal::TERM);
            }
        }
    }

    fn kill(&mut self) {
        for _ in 0..ROUNDS {
            self.signal_group(Signal::KILL);
            if let Remaining::Nobody = self.wait(ROUND) {
                return;
            }
            for member in descendants(getpid()) {
                member.signal(Signal::KILL);
            }
        }
    }

    fn signal_group(&self, signal: Signal) {
        // An empty group is what is wanted.
        let _ = kill_process_group(self.shell, signal);
    }

    fn wait(&mut self, limit: Duration) -> Remaining {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.notices.recv_timeout(left) {
                Ok(Notice::ShellEnded(status)) => self.status = Some(status),
                Ok(Notice::ParentGone) => {}
                Ok(Notice::AllEnded) => return Remaining::Nobody,
                Err(_) => return Remaining::Somebody,
            }
        }
    }
}

/// Reads the parent's pipe, on which nothing is ever sent, to its end.
fn listen(sender: &Sender<Notice>) {
    let mut stdin = std::io::stdin().lock();
    let mut byte = [0];
    loop {
        match stdin.read(&mut byte) {
            Ok(0) => break,
            Err(error) if error.kind() != std::io::ErrorKind::Interrupted => break,
            Ok(_) | Err(_) => {}
        }
    }
    // The receiver is gone only when the process is about to be.
    let _ = sender.send(Notice::ParentGone);
}

/// Passes the parent's pipe on to the program, to the end of either.
fn relay(mut input: ChildStdin) {
    // A program that reads no more is free to; what is left for it is dropped with the pipe.
    let _ = std::io::copy(&mut std::io::stdin().lock(), &mut input);
}

/// Waits for the parent to close its pipe, also while a program that does not read holds up the
/// relay.
fn await_hang_up(sender: &Sender<Notice>) {
    let stdin = std::io::stdin();
    let mut pipe = [PollFd::new(&stdin, PollFlags::empty())];
    while let Err(Errno::INTR) = poll(&mut pipe, None) {}
    // The receiver is gone only when the process is about to be.
    let _ = sender.send(Notice::ParentGone);
}

/// Collects every child, adopted ones included, until none is left.
fn reap(shell: Pid, sender: &Sender<Notice>) {
    loop {
        let notice = match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == shell => Notice::ShellEnded(status),
            Ok(_) | Err(Errno::INTR) => continue,
            Err(_) => Notice::AllEnded,
        };
        let last = matches!(notice, Notice::AllEnded);
        if sender.send(notice).is_err() || last {
            return;
        }
    }
}
