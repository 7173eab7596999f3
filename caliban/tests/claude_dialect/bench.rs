//! The program under the name `claude`, an empty home, an empty workspace and a scripted model.

use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use caliban_testkit::{BlockingServer, Script};
use serde_json::{Value, json};

pub(crate) struct Bench {
    pub(crate) home: tempfile::TempDir,
    pub(crate) workspace: tempfile::TempDir,
    pub(crate) server: BlockingServer,
}

/// What a run left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn frames(&self) -> Vec<Value> {
        self.stdout.lines().map(checked).collect()
    }

    pub(crate) fn result(&self) -> Value {
        let frames = self.frames();
        frames
            .into_iter()
            .rfind(|frame| frame["type"] == "result")
            .unwrap_or_else(|| panic!("no result: {self:?}"))
    }
}

/// The way clients start the program.
pub(crate) const STREAM: [&str; 5] = [
    "--output-format",
    "stream-json",
    "--verbose",
    "--input-format",
    "stream-json",
];

impl Bench {
    pub(crate) fn new(script: Script) -> Self {
        let bench = Self {
            home: tempfile::tempdir().unwrap(),
            workspace: tempfile::tempdir().unwrap(),
            server: BlockingServer::start(script).unwrap(),
        };
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_caliban"), bench.program()).unwrap();
        bench
    }

    /// The program by the name that clients know.
    pub(crate) fn program(&self) -> PathBuf {
        self.home.path().join("claude")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.home.path().join(".claude")
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(self.program());
        command
            .args(args)
            .env_clear()
            .envs(caliban_testkit::counting())
            .envs(self.variables())
            .current_dir(self.workspace.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    pub(crate) fn variables(&self) -> Vec<(String, String)> {
        [
            ("HOME", self.home.path().display().to_string()),
            ("PATH", std::env::var("PATH").unwrap_or_default()),
            ("ANTHROPIC_BASE_URL", self.server.url()),
            ("ANTHROPIC_API_KEY", "test-key".to_owned()),
            ("CALIBAN_RETRY_BASE_DELAY_MS", "1".to_owned()),
            ("IS_SANDBOX", "1".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        finish(self.command(args).spawn().unwrap())
    }

    pub(crate) fn run_with_input(&self, args: &[&str], input: &str) -> Ran {
        let mut child = self.command(args).stdin(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        // The program may stop reading early; that is its right.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        finish(child)
    }

    /// A client that speaks line by line.
    pub(crate) fn client(&self, args: &[&str]) -> Client {
        self.client_with(args, &[])
    }

    pub(crate) fn client_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Client {
        let mut command = self.command(&STREAM);
        let mut child = command
            .args(args)
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        Client {
            input: child.stdin.take(),
            lines: BufReader::new(child.stdout.take().unwrap()).lines(),
            child,
        }
    }

    /// The last request that the model got.
    pub(crate) fn last_request(&self) -> Value {
        self.server.model_requests().pop().unwrap().json()
    }
}

pub(crate) fn finish(child: Child) -> Ran {
    let output = child.wait_with_output().unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A line that is a frame: one object, `type` first, short enough for every reader.
fn checked(line: &str) -> Value {
    assert!(line.starts_with("{\"type\":"), "{line}");
    assert!(line.len() < 1024 * 1024);
    let frame: Value = serde_json::from_str(line).unwrap();
    if !frame["type"].as_str().unwrap().starts_with("control_") {
        for key in ["session_id", "uuid"] {
            assert!(frame[key].is_string(), "{key}: {frame}");
        }
    }
    frame
}

pub(crate) struct Client {
    input: Option<ChildStdin>,
    lines: Lines<BufReader<ChildStdout>>,
    child: Child,
}

impl Client {
    pub(crate) fn send(&mut self, frame: &Value) {
        writeln!(self.input.as_mut().unwrap(), "{frame}").unwrap();
    }

    pub(crate) fn say(&mut self, text: &str) {
        self.send(&json!({"type": "user", "message": {"role": "user", "content": text}}));
    }

    /// The next frame.
    pub(crate) fn next(&mut self) -> Option<Value> {
        self.lines.next().map(|line| checked(&line.unwrap()))
    }

    /// The frames up to one of this type, which is the last.
    pub(crate) fn until(&mut self, kind: &str) -> Vec<Value> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next() {
            let found = frame["type"] == kind;
            frames.push(frame);
            if found {
                return frames;
            }
        }
        panic!("no {kind}: {frames:#?}");
    }

    pub(crate) fn last_until(&mut self, kind: &str) -> Value {
        self.until(kind).pop().unwrap()
    }

    /// Asks for something; the answer, passing over other frames.
    pub(crate) fn ask(&mut self, request: &Value) -> Value {
        self.send(&json!({"type": "control_request", "request_id": "r1", "request": request}));
        loop {
            let frame = self.last_until("control_response");
            if frame["response"]["request_id"] == "r1" {
                return frame["response"].clone();
            }
        }
    }

    /// Answers a request of the program.
    pub(crate) fn answer(&mut self, request: &Value, response: &Value) {
        self.send(&json!({
            "type": "control_response",
            "response": {
                "subtype": "success",
                "request_id": request["request_id"],
                "response": response,
            },
        }));
    }

    /// Closes the input and waits for the end; what came meanwhile, and the exit code.
    pub(crate) fn close(mut self) -> (Vec<Value>, Option<i32>) {
        drop(self.input.take());
        let mut rest = Vec::new();
        while let Some(frame) = self.next() {
            rest.push(frame);
        }
        (rest, self.child.wait().unwrap().code())
    }

    /// The same; what came on standard error.
    pub(crate) fn close_with_errors(mut self) -> String {
        drop(self.input.take());
        while self.next().is_some() {}
        let mut errors = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut errors).unwrap();
        self.child.wait().unwrap();
        errors
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

pub(crate) fn kinds(frames: &[Value]) -> Vec<String> {
    frames
        .iter()
        .map(|frame| match frame["subtype"].as_str() {
            Some(subtype) => format!("{}/{subtype}", frame["type"].as_str().unwrap()),
            None => frame["type"].as_str().unwrap().to_owned(),
        })
        .collect()
}

pub(crate) fn of_type<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    frames
        .iter()
        .filter(|frame| frame["type"] == kind)
        .collect()
}
