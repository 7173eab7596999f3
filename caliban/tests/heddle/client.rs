//! A client: writes requests, reads frames, and holds every stream of events to its numbering.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::support::{Bench, bare};

pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
}

/// What was left when the server was gone.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) frames: Vec<Value>,
    pub(crate) stderr: String,
}

impl Client {
    pub(crate) fn start(bench: &Bench) -> Self {
        Self::start_with(bench, |_| {})
    }

    /// Starts the server with what the operator adds; flags of a run come before `serve`.
    pub(crate) fn start_with(bench: &Bench, configure: impl FnOnce(&mut Command)) -> Self {
        let mut command = quiet(bench.command());
        configure(&mut command);
        Self::run(command)
    }

    /// Starts a server whose operator has not said who is asked.
    pub(crate) fn start_without_provider(bench: &Bench) -> Self {
        let mut command = quiet(bare(bench.home.path(), bench.workspace.path()));
        command.envs(bench.wire.variables(&bench.server.url()));
        Self::run(command)
    }

    fn run(mut command: Command) -> Self {
        let mut child = command
            .args(["serve", "heddle"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take(),
            lines: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn write(&mut self, request: &Value) {
        self.write_raw(format!("{request}\n").as_bytes());
    }

    pub(crate) fn write_raw(&mut self, bytes: &[u8]) {
        self.input.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn close_input(&mut self) {
        self.input = None;
    }

    pub(crate) fn next(&mut self) -> Value {
        let line = self.lines.next().expect("a frame").unwrap();
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line}"))
    }

    /// Writes a request and reads the next frame.
    pub(crate) fn ask(&mut self, request: &Value) -> Value {
        self.write(request);
        self.next()
    }

    /// Begins a session and returns its id.
    pub(crate) fn init(&mut self, request: &Value) -> String {
        let answer = self.ask(request);
        assert_eq!(answer["type"], "init_ok", "{answer}");
        answer["session_id"].as_str().unwrap().to_owned()
    }

    /// Sends a message and reads on to its result.
    pub(crate) fn exchange(&mut self, request: &Value) -> (Vec<Value>, Value) {
        self.write(request);
        self.until_result(request["id"].as_str().unwrap())
    }

    /// The payloads of all events of a send, and its result.
    pub(crate) fn until_result(&mut self, id: &str) -> (Vec<Value>, Value) {
        let mut payloads = Vec::new();
        loop {
            let frame = self.next();
            if frame["type"] == "result" {
                assert_eq!(frame["id"], id);
                return (payloads, frame);
            }
            payloads.push(payload(&frame, id, payloads.len()));
        }
    }

    /// Closes the input and waits for the end.
    pub(crate) fn end(mut self) -> Ended {
        self.close_input();
        let frames = self
            .lines
            .by_ref()
            .map(|line| serde_json::from_str(&line.unwrap()).unwrap())
            .collect();
        let mut stderr = String::new();
        let mut errors = self.child.stderr.take().unwrap();
        errors.read_to_string(&mut stderr).unwrap();
        Ended {
            code: self.child.wait().unwrap().code(),
            frames,
            stderr,
        }
    }
}

/// Without signs of life, which come when they come.
fn quiet(mut command: Command) -> Command {
    command.env("HEDDLE_HEARTBEAT_INTERVAL", "0");
    command
}

/// The payload of an event that must be the `seq`-th of this send.
pub(crate) fn payload(frame: &Value, id: &str, seq: usize) -> Value {
    assert_eq!(frame["type"], "event", "{frame}");
    assert_eq!(frame["send_id"], id, "{frame}");
    assert_eq!(frame["event_seq"], json!(seq), "{frame}");
    frame["event"].clone()
}

/// Takes the measured times out of a result, after a look at them.
pub(crate) fn without_times(mut result: Value) -> Value {
    let fields = result.as_object_mut().unwrap();
    let mut time = |name: &str| {
        let value = fields.shift_remove(name);
        value.and_then(|value| value.as_u64()).expect("a latency")
    };
    let (model, tool, total) = (
        time("model_latency_ms"),
        time("tool_latency_ms"),
        time("total_latency_ms"),
    );
    assert!(model + tool <= total + 2, "{model} {tool} {total}");
    result
}

/// The names of events.
pub(crate) fn names(payloads: &[Value]) -> Vec<&str> {
    payloads
        .iter()
        .map(|payload| payload["event"].as_str().unwrap())
        .collect()
}
