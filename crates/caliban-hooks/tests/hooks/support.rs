//! A session with handlers in a directory of its own, and everything that was told about them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use caliban_agent::{Effect, Opinion, ToolCall};
use caliban_hooks::{
    CallPattern, EventName, ExternalHooks, Firing, FiringSink, HookConfig, HookLayer, HookParts,
    HookSwitch, ParseWith, Runners, SessionFacts,
};
use caliban_process::Guard;
use caliban_settings::{PermissionMode, Scope};
use serde_json::{Value, json};

/// What was told, in order.
#[derive(Debug, Default)]
pub(crate) struct Heard(Mutex<Vec<Firing>>);

impl FiringSink for Heard {
    fn fired(&self, firing: Firing) {
        self.0.lock().unwrap().push(firing);
    }

    fn passed(&self, _: EventName, _: Option<&str>) {}
}

impl Heard {
    pub(crate) fn all(&self) -> Vec<Firing> {
        self.0.lock().unwrap().clone()
    }
}

/// Counts how often somebody wants to know.
#[derive(Debug)]
pub(crate) struct Facts {
    cwd: PathBuf,
    asked: AtomicUsize,
}

impl Facts {
    /// How many events have been written down.
    pub(crate) fn payloads(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

impl SessionFacts for Facts {
    fn session_id(&self) -> Arc<str> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        "abc-123".into()
    }

    fn cwd(&self) -> PathBuf {
        self.cwd.clone()
    }

    fn permission_mode(&self) -> PermissionMode {
        PermissionMode::Default
    }

    fn transcript_path(&self) -> Option<PathBuf> {
        Some("/path/to/transcript.jsonl".into())
    }
}

pub(crate) struct Session {
    pub(crate) hooks: ExternalHooks,
    pub(crate) heard: Arc<Heard>,
    pub(crate) facts: Arc<Facts>,
    pub(crate) dir: tempfile::TempDir,
}

impl Session {
    pub(crate) fn new(hooks: Value) -> Self {
        Self::made(&[layer(Scope::Cli, hooks)], Runners::default())
    }

    pub(crate) fn with_runners(hooks: Value, runners: Runners) -> Self {
        Self::made(&[layer(Scope::User, hooks)], runners)
    }

    pub(crate) fn made(layers: &[HookLayer], runners: Runners) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let heard = Arc::new(Heard::default());
        let facts = Arc::new(Facts {
            cwd: dir.path().to_owned(),
            asked: AtomicUsize::new(0),
        });
        let hooks = ExternalHooks::new(HookParts {
            config: parsed(layers),
            facts: facts.clone(),
            project_dir: dir.path().to_owned(),
            environment: environment(),
            confiner: None,
            guard: Guard::None,
            runners,
            sink: heard.clone(),
        });
        Self {
            hooks,
            heard,
            facts,
            dir,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn firing(&self) -> Firing {
        let all = self.heard.all();
        let [firing] = all.as_slice() else {
            panic!("{all:?}");
        };
        firing.clone()
    }
}

/// What a program may see here: the way to other programs.
fn environment() -> Vec<(OsString, OsString)> {
    vec![("PATH".into(), std::env::var_os("PATH").unwrap())]
}

pub(crate) fn parsed(layers: &[HookLayer]) -> HookConfig {
    let with = ParseWith {
        switch: HookSwitch::On,
        pattern: &|text: &str| Ok(Box::new(FirstArg(text.to_owned())) as Box<dyn CallPattern>),
        variable: &|name| (name == "AUDIT_TOKEN").then(|| "t0ken".to_owned()),
    };
    HookConfig::parse(layers, &with).unwrap()
}

/// Stands for the real patterns: the start of the argument that identifies a call.
#[derive(Debug)]
struct FirstArg(String);

impl CallPattern for FirstArg {
    fn matches(&self, call: &ToolCall) -> bool {
        let command = call.input["command"].as_str().unwrap_or_default();
        command.starts_with(&self.0)
    }
}

pub(crate) fn layer(scope: Scope, hooks: Value) -> HookLayer {
    HookLayer {
        hooks: serde_json::from_value(hooks).unwrap(),
        ..HookLayer::empty(scope)
    }
}

/// A handler that runs a script.
pub(crate) fn script(text: &str) -> Value {
    json!({"type": "command", "command": "/bin/sh", "args": ["-c", text]})
}

pub(crate) fn with(mut handler: Value, key: &str, value: Value) -> Value {
    handler[key] = value;
    handler
}

pub(crate) fn bash(command: &str) -> ToolCall {
    tool("Bash", json!({"command": command}))
}

pub(crate) fn tool(name: &str, input: Value) -> ToolCall {
    ToolCall {
        id: "toolu_xyz".into(),
        agent: None,
        name: name.into(),
        input,
        effect: Effect::Executes,
        first_arg: None,
        turn: 1,
        opinion: Opinion::None,
    }
}

/// Waits for something another process does.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !holds() {
        assert!(Instant::now() < deadline, "{what} never happened");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Whether a process runs; one that was killed may still wait to be collected.
pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = Path::new("/proc").join(pid.trim()).join("stat");
    !pid.trim().is_empty() && std::fs::read_to_string(stat).is_ok_and(|stat| !stat.contains(") Z "))
}
