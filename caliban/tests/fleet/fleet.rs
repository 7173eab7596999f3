//! A home with agents in it, and what can be seen of them from outside.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use caliban_testkit::{Reply, Script};
use serde_json::Value;

use crate::support::{Bench, Ran, Wire, run};

/// How long anything may take on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_mins(1);
/// Between two looks at something that cannot be waited for.
const LOOK: Duration = Duration::from_millis(10);

pub(crate) struct Fleet {
    pub(crate) bench: Bench,
    runtime: tempfile::TempDir,
}

impl Fleet {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::scripted(Script::new(replies))
    }

    pub(crate) fn scripted(script: Script) -> Self {
        let fleet = Self {
            bench: Bench::new(Wire::Anthropic, script),
            // Paths of sockets are short.
            runtime: tempfile::Builder::new().prefix("cf").tempdir().unwrap(),
        };
        std::fs::create_dir(fleet.bench.workspace.path().join(".git")).unwrap();
        fleet
    }

    pub(crate) fn settings(&self, text: &str) {
        let directory = self.bench.home.path().join(".config/caliban");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("settings.toml"), text).unwrap();
    }

    pub(crate) fn command(&self) -> Command {
        let mut command = self.bench.command();
        command.env("CALIBAN_DAEMON_RUNTIME_DIR", self.runtime());
        command
    }

    pub(crate) fn runtime(&self) -> PathBuf {
        self.runtime.path().join("r")
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        run(self.command().args(args))
    }

    /// The same, which must succeed; returns what it printed.
    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}\n{}{}", ran.stdout, ran.stderr);
        ran.stdout
    }

    /// Starts an agent; returns its id.
    pub(crate) fn spawn(&self, task: &str) -> String {
        let id = self.ok(&["--bg", task]).trim().to_owned();
        assert_eq!(id.len(), 8, "{id}");
        id
    }

    pub(crate) fn list(&self) -> Vec<Value> {
        let text = self.ok(&["agents", "list", "--json"]);
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) fn agent(&self, id: &str) -> Value {
        let agents = self.list();
        let found = agents.iter().find(|agent| agent["id"] == id);
        found
            .unwrap_or_else(|| panic!("{id} in {agents:?}"))
            .clone()
    }

    /// Waits until an agent is as wanted.
    pub(crate) fn until(&self, id: &str, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let agent = self.agent(id);
            if is_wanted(&agent) {
                return agent;
            }
            assert!(
                Instant::now() < deadline,
                "{agent}\n{}",
                self.worker_log(id)
            );
            std::thread::sleep(LOOK);
        }
    }

    pub(crate) fn until_state(&self, id: &str, state: &str) -> Value {
        self.until(id, |agent| agent["state"] == state)
    }

    pub(crate) fn directory(&self, id: &str) -> PathBuf {
        let data = self.bench.home.path().join(".local/share/caliban/agents");
        data.join(id)
    }

    fn worker_log(&self, id: &str) -> String {
        std::fs::read_to_string(self.directory(id).join("worker.log")).unwrap_or_default()
    }

    pub(crate) fn file(&self, id: &str, name: &str) -> Value {
        let text = std::fs::read_to_string(self.directory(id).join(name)).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) fn daemon(&self) -> Value {
        serde_json::from_str(&self.ok(&["daemon", "status", "--json"])).unwrap()
    }

    pub(crate) fn attach(&self, id: &str, args: &[&str]) -> Attached {
        let mut command = self.command();
        command.args(["attach", id]).args(args);
        Attached::start(&mut command)
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        let text = run(self.command().args(["agents", "list", "--json"])).stdout;
        let agents: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
        for agent in agents {
            if let Some(id) = agent["id"].as_str() {
                let _ = run(self.command().args(["rm", id, "--force"]));
            }
        }
        let _ = run(self.command().args(["daemon", "stop"]));
    }
}

/// Somebody who is attached.
pub(crate) struct Attached {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    pub(crate) heard: Vec<String>,
}

impl Attached {
    pub(crate) fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (said, lines) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if said.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            input: child.stdin.take(),
            child,
            lines,
            heard: Vec::new(),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn type_in(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{line}").unwrap();
        input.flush().unwrap();
    }

    /// Waits for a line; returns it.
    pub(crate) fn until(&mut self, is_wanted: impl Fn(&str) -> bool) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let Ok(line) = self.lines.recv_timeout(left) else {
                panic!("in vain, after {:#?}", self.heard);
            };
            self.heard.push(line.clone());
            if is_wanted(&line) {
                return line;
            }
        }
    }

    /// The same for frames.
    pub(crate) fn frame(&mut self, kind: &str) -> Value {
        let line = self.until(|line| {
            let frame: Value = serde_json::from_str(line).unwrap();
            frame["type"] == kind
        });
        serde_json::from_str(&line).unwrap()
    }

    /// Ctrl+D; returns the exit code and everything that was heard.
    pub(crate) fn detach(mut self) -> (Option<i32>, Vec<String>) {
        drop(self.input.take());
        let code = self.child.wait().unwrap().code();
        let rest: Vec<String> = self.lines.iter().collect();
        self.heard.extend(rest);
        (code, std::mem::take(&mut self.heard))
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ends a process at once.
pub(crate) fn kill(pid: &Value) {
    let pid = pid.as_i64().unwrap().to_string();
    let status = Command::new("kill").args(["-9", &pid]).status().unwrap();
    assert!(status.success(), "{pid}");
}

/// Whether there is such a process.
pub(crate) fn is_alive(pid: &Value) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(')')
        .map(|(_, rest)| rest.trim_start().to_owned());
    state.is_some_and(|state| !state.starts_with('Z'))
}
