//! The program as a client has it: lines in, lines out. No wait is longer than [`PATIENCE`], and
//! one that was in vain shows everything that was said.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use serde_json::Value;

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at something that cannot be waited for.
const LOOK: Duration = Duration::from_millis(2);

pub(crate) struct Process {
    child: Child,
    /// Lines to write. They never wait for the program to read, however many there are.
    input: Option<Sender<String>>,
    lines: Receiver<String>,
    /// Reads a line, and holds it to what its protocol promises of every line.
    read: fn(&str) -> Value,
    /// Everything that was said so far.
    frames: Vec<Value>,
    errors: Option<JoinHandle<String>>,
}

/// What was left when the program was gone.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    /// Everything that was said from the beginning on.
    pub(crate) frames: Vec<Value>,
    pub(crate) stderr: String,
}

impl Ended {
    /// What the program warned of, on standard error or in its first frame.
    pub(crate) fn warnings(&self) -> Vec<String> {
        let told = self
            .frames
            .iter()
            .filter_map(|frame| frame["warnings"].as_array())
            .flatten()
            .filter_map(|warning| warning.as_str().map(str::to_owned));
        self.stderr.lines().map(str::to_owned).chain(told).collect()
    }
}

impl Process {
    pub(crate) fn start(command: &mut Command, read: fn(&str) -> Value) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let (input, to_write) = mpsc::channel::<String>();
        thread::spawn(move || {
            for line in to_write {
                // The program may stop reading early; that is its right.
                if stdin.write_all(line.as_bytes()).is_err() {
                    return;
                }
            }
        });
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (said, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if said.send(line).is_err() {
                    return;
                }
            }
        });
        let mut stderr = child.stderr.take().unwrap();
        let errors = thread::spawn(move || {
            let mut text = Vec::new();
            let _ = stderr.read_to_end(&mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        Self {
            child,
            input: Some(input),
            lines,
            read,
            frames: Vec::new(),
            errors: Some(errors),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn frames(&self) -> &[Value] {
        &self.frames
    }

    /// Writes a line. One that nobody reads any more is lost.
    pub(crate) fn write(&self, frame: &Value) {
        self.write_raw(&format!("{frame}\n"));
    }

    /// Writes this and nothing else.
    pub(crate) fn write_raw(&self, text: &str) {
        let input = self.input.as_ref().expect("the input is open");
        let _ = input.send(text.to_owned());
    }

    /// Reads on to the frame that is wanted. A frame that makes waiting for it vain fails at once.
    pub(crate) fn until(
        &mut self,
        what: &str,
        is_wanted: impl Fn(&Value) -> bool,
        is_vain: impl Fn(&Value) -> bool,
    ) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    let frame = (self.read)(&line);
                    self.frames.push(frame.clone());
                    if is_wanted(&frame) {
                        return frame;
                    }
                    if is_vain(&frame) {
                        self.fail(&format!(
                            "{what} did not come before the end of the exchange"
                        ));
                    }
                }
                Err(RecvTimeoutError::Timeout) => self.fail(&format!("{what} did not come")),
                Err(RecvTimeoutError::Disconnected) => {
                    self.fail(&format!("the output ended before {what} came"));
                }
            }
        }
    }

    /// Closes the input and waits for the end.
    pub(crate) fn finish(&mut self) -> Ended {
        self.input = None;
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.frames.push((self.read)(&line)),
                Err(RecvTimeoutError::Timeout) => self.fail("the end did not come"),
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        let code = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status.code();
            }
            if Instant::now() > deadline {
                self.fail("the output ended and the program did not");
            }
            thread::park_timeout(LOOK);
        };
        Ended {
            code,
            frames: self.frames.clone(),
            stderr: self.errors.take().unwrap().join().unwrap(),
        }
    }

    fn fail(&mut self, problem: &str) -> ! {
        // Nobody reads standard error to its end while the program lives.
        let _ = self.child.kill();
        let code = self.child.wait().unwrap();
        let stderr = self.errors.take().map(|errors| errors.join().unwrap());
        let frames: Vec<String> = self.frames.iter().map(ToString::to_string).collect();
        panic!(
            "{problem} ({code})\n--- frames\n{}\n--- standard error\n{}",
            frames.join("\n"),
            stderr.unwrap_or_default()
        );
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until a condition holds; files and processes come and go in their own time.
pub(crate) fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "{what} did not happen");
        thread::park_timeout(LOOK);
    }
}
