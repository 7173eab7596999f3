//! The guardian: a small process between caliban and a program that ends everything the program
//! started, when the program ends and also when caliban is gone, however it went.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{
    Pid, Resource, Signal, WaitOptions, WaitStatus, getpid, getrlimit, kill_process,
    kill_process_group, setrlimit, setsid, wait,
};

use crate::tree::descendants;

/// The first argument that makes the program a guardian.
pub const GUARD_ARGUMENT: &str = "__guard";

/// The variable that carries the last argument of the guarded program. In the guardian's own
/// arguments it would make `pkill -f` in a command find and kill the guardian too.
pub(crate) const LAST_ARGUMENT: &str = "CALIBAN_GUARD_ARGUMENT";

/// How the argument begins that names the program's input.
const INPUT_ARGUMENT: &str = "--input=";
/// How it ends where that is all there is.
const ALL: &str = "all";

/// What a program's input is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    Empty,
    /// The first so many bytes on the guardian's own input, whose end then means what it always
    /// does: that the program is to end.
    Given(u64),
    /// All that arrives on the guardian's own input, to its end.
    Relayed,
}

impl Input {
    /// The argument, before the program's, that tells the guardian of it.
    pub(crate) fn argument(self) -> Option<String> {
        match self {
            Self::Empty => None,
            Self::Given(length) => Some(format!("{INPUT_ARGUMENT}{length}")),
            Self::Relayed => Some(format!("{INPUT_ARGUMENT}{ALL}")),
        }
    }

    fn read(argument: &OsStr) -> Option<Self> {
        match argument.to_str()?.strip_prefix(INPUT_ARGUMENT)? {
            ALL => Some(Self::Relayed),
            length => length.parse().ok().map(Self::Given),
        }
    }

    pub(crate) fn stdio(self) -> Stdio {
        match self {
            Self::Empty => Stdio::null(),
            Self::Given(_) | Self::Relayed => Stdio::piped(),
        }
    }
}

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
/// means that the parent is gone or wants an end. The program's own input is empty, or what the
/// first argument says.
pub fn guard_main(args: impl Iterator<Item = OsString>) -> ExitCode {
    // A session of its own: neither the terminal's signals nor the terminal itself reach what
    // runs in it. This fails only where it already leads a group, which is as good.
    let _ = setsid();
    adopt_orphans();
    let mut args = args.peekable();
    let input = args.peek().and_then(|argument| Input::read(argument));
    let input = match input {
        Some(input) => {
            args.next();
            input
        }
        None => Input::Empty,
    };
    let Some(program) = args.next() else {
        return refuse("caliban: no program to guard");
    };
    let mut command = Command::new(&program);
    command.args(args).stdin(input.stdio()).process_group(0);
    if let Some(argument) = std::env::var_os(LAST_ARGUMENT) {
        command.arg(argument).env_remove(LAST_ARGUMENT);
    }
    match command.spawn() {
        Ok(mut program) => {
            let pipe = program.stdin.take();
            let watch = Watch::start(Pid::from_child(&program), input, pipe);
            report(watch.finish(), input)
        }
        Err(error) => refuse(&format!("{}{error}", refusal(&program))),
    }
}

/// How the guardian begins when it says that a program cannot be started.
fn refusal(program: &OsStr) -> String {
    format!("caliban: `{}` cannot be started: ", program.display())
}

/// Why a guardian could not start its program, if that is how it ended. A program that says the
/// same is taken at its word, which does it no good.
pub fn start_error(program: &OsStr, status: ExitStatus, stderr: &[u8]) -> Option<io::Error> {
    if status.code() != Some(i32::from(CANNOT_START)) {
        return None;
    }
    let error = std::str::from_utf8(stderr).ok()?;
    let (_, number) = error
        .strip_prefix(&refusal(program))?
        .rsplit_once("(os error ")?;
    let number = number.trim_end().strip_suffix(')')?.parse().ok()?;
    Some(io::Error::from_raw_os_error(number))
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
    let _ = writeln!(io::stderr(), "{message}");
    ExitCode::from(CANNOT_START)
}

fn report(status: Option<WaitStatus>, input: Input) -> ExitCode {
    let Some(status) = status else {
        return ExitCode::from(CANNOT_START);
    };
    if let Some(signal) = status.terminating_signal() {
        die_by(signal);
        match input {
            // Who gives an input waits for a decision: a code is one, and a signal is not.
            Input::Given(_) => die_as_another(signal),
            Input::Empty | Input::Relayed => {}
        }
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

/// Ends this process by a signal that the runtime ignores, which is `SIGPIPE`: another program
/// takes its place, and starting one restores the default. Returns where there is no such program.
fn die_as_another(signal: i32) {
    let _ = Command::new("/bin/sh")
        .args(["-c", &format!("kill -{signal} $$")])
        .exec();
}

enum Notice {
    ProgramEnded(WaitStatus),
    /// No child is left. As orphans are adopted, no descendant is either.
    AllEnded,
    ParentGone,
}

enum Remaining {
    Nobody,
    Somebody,
}

/// What the guardian knows of the program and of those it started.
struct Watch {
    program: Pid,
    notices: Receiver<Notice>,
    status: Option<WaitStatus>,
    farewell: Duration,
}

impl Watch {
    fn start(program: Pid, input: Input, pipe: Option<ChildStdin>) -> Self {
        let (sender, notices) = mpsc::channel();
        let listener = sender.clone();
        match pipe {
            None => {
                thread::spawn(move || listen(&listener));
            }
            Some(pipe) => {
                thread::spawn(move || relay(input, pipe));
                thread::spawn(move || await_hang_up(&listener));
            }
        }
        thread::spawn(move || reap(program, &sender));
        Self {
            program,
            notices,
            status: None,
            farewell: match input {
                Input::Relayed => FAREWELL,
                Input::Empty | Input::Given(_) => Duration::ZERO,
            },
        }
    }

    /// Waits for the program or the end of the parent, then ends everybody.
    fn finish(mut self) -> Option<WaitStatus> {
        match self.notices.recv() {
            Ok(Notice::ProgramEnded(status)) => self.status = Some(status),
            Ok(Notice::ParentGone) => {
                if let Remaining::Nobody = self.wait(self.farewell) {
                    return self.status;
                }
                self.ask();
                if let Remaining::Nobody = self.wait(GRACE) {
                    return self.status;
                }
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
            if member.group != Some(self.program) {
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
        let _ = kill_process_group(self.program, signal);
    }

    fn wait(&mut self, limit: Duration) -> Remaining {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.notices.recv_timeout(left) {
                Ok(Notice::ProgramEnded(status)) => self.status = Some(status),
                Ok(Notice::ParentGone) => {}
                // Whoever collects children stops only when there are none.
                Ok(Notice::AllEnded) | Err(RecvTimeoutError::Disconnected) => {
                    return Remaining::Nobody;
                }
                Err(RecvTimeoutError::Timeout) => return Remaining::Somebody,
            }
        }
    }
}

/// Reads the parent's pipe, on which nothing is ever sent, to its end.
fn listen(sender: &Sender<Notice>) {
    let mut stdin = io::stdin().lock();
    let mut byte = [0];
    loop {
        match stdin.read(&mut byte) {
            Ok(0) => break,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => break,
            Ok(_) | Err(_) => {}
        }
    }
    // The receiver is gone only when the process is about to be.
    let _ = sender.send(Notice::ParentGone);
}

/// Passes what the program is to read on to it, and then the end of it.
fn relay(input: Input, mut pipe: ChildStdin) {
    let length = match input {
        Input::Empty => 0,
        Input::Given(length) => length,
        Input::Relayed => u64::MAX,
    };
    let mut stdin = io::stdin().lock().take(length);
    // A program that reads no more is free to; what is left for it is dropped with the pipe.
    let _ = io::copy(&mut stdin, &mut pipe);
}

/// Waits for the parent to close its pipe, also while a program that does not read holds up the
/// relay.
fn await_hang_up(sender: &Sender<Notice>) {
    let stdin = io::stdin();
    let mut pipe = [PollFd::new(&stdin, PollFlags::empty())];
    while let Err(Errno::INTR) = poll(&mut pipe, None) {}
    // The receiver is gone only when the process is about to be.
    let _ = sender.send(Notice::ParentGone);
}

/// Collects every child, adopted ones included, until none is left.
fn reap(program: Pid, sender: &Sender<Notice>) {
    loop {
        let notice = match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == program => Notice::ProgramEnded(status),
            Ok(_) | Err(Errno::INTR) => continue,
            Err(_) => Notice::AllEnded,
        };
        let last = matches!(notice, Notice::AllEnded);
        if sender.send(notice).is_err() || last {
            return;
        }
    }
}
