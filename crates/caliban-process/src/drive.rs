//! Driving a command to its end: its output is passed on all the time, and a timeout or a
//! cancellation ends it and everything it started.

use std::convert::Infallible;
use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use crate::process::{Exit, Process, SignalNumber};

/// The most that is read at once.
const PIECE: usize = 64 * 1024;
/// How long what is left in the pipe is read after the end. Somebody who escaped may hold the
/// pipe and write for ever.
const DRAIN: Duration = Duration::from_millis(50);
/// How long a guardian gets to end everything, more than the seconds it gives the processes.
const STOP: Duration = Duration::from_secs(6);
/// How long to wait for what was killed. After that the kernel holds it and nobody can help.
const KILL: Duration = Duration::from_secs(1);

/// How a command ended, and how long it took until it did or was stopped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Finished {
    pub ending: Ending,
    pub elapsed: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    Exited(i32),
    Signalled(SignalNumber),
    TimedOut,
    Cancelled,
}

/// Where output goes.
pub trait Sink: Send {
    /// Takes the next piece. The command waits, once its pipe is full, until this returns.
    fn take(&mut self, bytes: &[u8]) -> impl Future<Output = ()> + Send;
}

/// What became of a command that somebody else may take over.
#[derive(Debug)]
pub enum Driven<T> {
    Finished(Finished),
    /// It runs on, and is whoever's it is given to.
    HandedOver {
        process: Box<Process>,
        output: pipe::Receiver,
        /// What made it so.
        wanted: T,
    },
}

/// Runs a started command to its end. Dropping the future ends the command.
pub async fn drive(
    process: Process,
    output: pipe::Receiver,
    limit: Duration,
    cancel: &CancellationToken,
    sink: &mut impl Sink,
) -> io::Result<Finished> {
    let never = std::future::pending::<Infallible>();
    match drive_until(process, output, limit, cancel, sink, never).await? {
        Driven::Finished(finished) => Ok(finished),
        Driven::HandedOver { wanted, .. } => match wanted {},
    }
}

/// Runs a started command to its end, or until it is to be handed over.
pub async fn drive_until<T>(
    mut process: Process,
    output: pipe::Receiver,
    limit: Duration,
    cancel: &CancellationToken,
    sink: &mut impl Sink,
    hand_over: impl Future<Output = T>,
) -> io::Result<Driven<T>> {
    let started = Instant::now();
    let mut output = Output::new(output);
    let stop = async {
        tokio::select! {
            () = cancel.cancelled() => Err(Ending::Cancelled),
            () = tokio::time::sleep(limit) => Err(Ending::TimedOut),
            wanted = hand_over => Ok(wanted),
        }
    };
    let first = until_end(&mut process, &mut output, sink, stop).await;
    let elapsed = started.elapsed();
    let ending = match first {
        Step::Ended(status) => Exit::from(status?).into(),
        Step::Stopped(Ok(wanted)) => {
            let output = output.pipe;
            return Ok(Driven::HandedOver {
                process: Box::new(process),
                output,
                wanted,
            });
        }
        Step::Stopped(Err(reason)) => {
            process.end();
            let patience = tokio::time::sleep(STOP);
            if let Step::Stopped(()) = until_end(&mut process, &mut output, sink, patience).await {
                process.kill();
                // Whether or not the kernel lets go of it, the command is over for the caller.
                let _ = timeout(KILL, process.ended()).await;
            }
            reason
        }
    };
    output.drain(sink).await;
    Ok(Driven::Finished(Finished { ending, elapsed }))
}

enum Step<T> {
    Ended(io::Result<ExitStatus>),
    Stopped(T),
}

/// Passes output on until the process ends or `stop` does.
async fn until_end<T>(
    process: &mut Process,
    output: &mut Output,
    sink: &mut impl Sink,
    stop: impl Future<Output = T>,
) -> Step<T> {
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            // In this order: output that never ends must not delay an end.
            biased;
            status = process.ended() => return Step::Ended(status),
            reason = &mut stop => return Step::Stopped(reason),
            length = output.read() => sink.take(output.piece(length)).await,
        }
    }
}

/// The reading end of a command's pipe.
struct Output {
    pipe: pipe::Receiver,
    buffer: Vec<u8>,
    state: PipeState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum PipeState {
    Open,
    Closed,
}

impl Output {
    fn new(pipe: pipe::Receiver) -> Self {
        Self {
            pipe,
            buffer: vec![0; PIECE],
            state: PipeState::Open,
        }
    }

    /// Waits for output; for ever when there can be none, as only the process's end counts.
    async fn read(&mut self) -> usize {
        if self.state == PipeState::Open {
            match self.pipe.read(&mut self.buffer).await {
                Ok(length) if length > 0 => return length,
                Ok(_) | Err(_) => self.state = PipeState::Closed,
            }
        }
        std::future::pending().await
    }

    fn piece(&self, length: usize) -> &[u8] {
        &self.buffer[..length]
    }

    /// Passes on what is in the pipe, without waiting for more. It asks the kernel: the runtime
    /// may not have noticed yet that there is something.
    async fn drain(&mut self, sink: &mut impl Sink) {
        let deadline = Instant::now() + DRAIN;
        while self.state == PipeState::Open && Instant::now() < deadline {
            match rustix::io::read(&self.pipe, &mut self.buffer) {
                Ok(length) if length > 0 => sink.take(self.piece(length)).await,
                Ok(_) | Err(_) => self.state = PipeState::Closed,
            }
        }
    }
}

impl From<Exit> for Ending {
    fn from(exit: Exit) -> Self {
        match exit {
            Exit::Code(code) => Self::Exited(code),
            Exit::Signal(signal) => Self::Signalled(signal),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Guard, Invocation};
    use rstest::rstest;
    use std::path::{Path, PathBuf};

    #[derive(Default)]
    struct Text(Vec<u8>);

    impl Sink for Text {
        async fn take(&mut self, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }
    }

    fn invocation(command: &str) -> Invocation {
        let environment = [
            ("PATH", std::env::var_os("PATH").unwrap()),
            ("GIVEN", "given".into()),
        ];
        Invocation {
            program: "bash".into(),
            args: vec!["-c".into(), command.into()],
            directory: PathBuf::from("/"),
            environment: environment.map(|(name, value)| (name.into(), value)).into(),
        }
    }

    async fn run(
        command: &str,
        limit: Duration,
        cancel: &CancellationToken,
        sink: &mut impl Sink,
    ) -> Ending {
        let (process, output) = invocation(command).start(&Guard::None).unwrap();
        let finished = drive(process, output, limit, cancel, sink).await;
        finished.unwrap().ending
    }

    async fn outcome(command: &str) -> (Ending, String) {
        let mut text = Text::default();
        let cancel = CancellationToken::new();
        let ending = run(command, Duration::from_mins(1), &cancel, &mut text).await;
        (ending, String::from_utf8(text.0).unwrap())
    }

    #[rstest]
    #[case(
        "echo out; echo err >&2; echo out",
        Ending::Exited(0),
        "out\nerr\nout\n"
    )]
    #[case("exit 101", Ending::Exited(101), "")]
    #[case("kill -9 $$", Ending::Signalled(SignalNumber(9)), "")]
    #[case("cat", Ending::Exited(0), "")]
    #[case("pwd", Ending::Exited(0), "/\n")]
    #[case("echo $GIVEN$HOME", Ending::Exited(0), "given\n")]
    #[tokio::test]
    async fn a_command_ends_with_its_output(
        #[case] command: &str,
        #[case] ending: Ending,
        #[case] text: &str,
    ) {
        assert_eq!(outcome(command).await, (ending, text.to_owned()));
    }

    #[tokio::test]
    async fn output_written_last_is_never_lost() {
        for _ in 0..50 {
            let (_, text) = outcome("head -c 60000 /dev/zero | tr '\\0' x; echo end").await;
            assert!(
                text.len() == 60_004 && text.ends_with("xend\n"),
                "{}",
                text.len()
            );
        }
    }

    #[tokio::test]
    async fn who_escaped_with_the_pipe_delays_nothing() {
        let (ending, text) = outcome("setsid sleep 5 & echo hi").await;
        assert_eq!((ending, text.as_str()), (Ending::Exited(0), "hi\n"));
    }

    #[tokio::test]
    async fn who_escaped_and_writes_for_ever_delays_little() {
        let started = Instant::now();
        let (ending, _) = outcome("setsid timeout 5 yes '' & true").await;
        assert_eq!(ending, Ending::Exited(0));
        assert!(started.elapsed() < Duration::from_secs(4));
    }

    #[tokio::test]
    async fn a_timeout_keeps_the_output() {
        let mut text = Text::default();
        let (limit, cancel) = (Duration::from_millis(300), CancellationToken::new());
        let ending = run("echo early; sleep 100", limit, &cancel, &mut text).await;
        assert_eq!(ending, Ending::TimedOut);
        assert_eq!(text.0, b"early\n");
    }

    #[tokio::test]
    async fn output_without_end_does_not_hide_a_cancellation() {
        struct Cancelling(CancellationToken);
        impl Sink for Cancelling {
            async fn take(&mut self, _bytes: &[u8]) {
                self.0.cancel();
            }
        }
        let cancel = CancellationToken::new();
        let mut sink = Cancelling(cancel.clone());
        let ending = run("yes", Duration::from_mins(1), &cancel, &mut sink).await;
        assert_eq!(ending, Ending::Cancelled);
    }

    #[tokio::test]
    async fn dropping_the_future_ends_the_command() {
        /// Drops the run as soon as the command has said who it is.
        struct Reporting(tokio::sync::mpsc::UnboundedSender<Vec<u8>>);
        impl Sink for Reporting {
            async fn take(&mut self, bytes: &[u8]) {
                self.0.send(bytes.to_owned()).unwrap();
            }
        }
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let mut sink = Reporting(sender);
        let (limit, cancel) = (Duration::from_mins(1), CancellationToken::new());
        let line = tokio::select! {
            ending = run("echo $$; exec sleep 100", limit, &cancel, &mut sink) => panic!("{ending:?}"),
            line = receiver.recv() => line.unwrap(),
        };
        let pid = String::from_utf8(line).unwrap();
        let stat = Path::new("/proc").join(pid.trim()).join("stat");
        let deadline = Instant::now() + Duration::from_secs(5);
        // The runtime collects it in its own time; until then it is a zombie.
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            assert!(Instant::now() < deadline, "{pid} still runs");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test]
    async fn a_missing_directory_is_an_error() {
        let invocation = Invocation {
            directory: PathBuf::from("/nonexistent"),
            ..invocation("true")
        };
        assert!(invocation.start(&Guard::None).is_err());
    }
}
