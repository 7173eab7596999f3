//! A workspace with scripted servers in it, and somebody who listens to them.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use caliban_agent::{
    Confinement, OpenReading, Progress, ProgressReport, Tool, ToolContext, ToolOutput, ToolSource,
    Workspace,
};
use caliban_mcp::{Log, Parts, Reconnection, ServerConfig, Servers, Status, Timeouts, Variables};
use caliban_model::CancellationToken;
use caliban_process::Guard;
use caliban_settings::McpServer;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;

pub(crate) const FIXTURE: &str = env!("CARGO_BIN_EXE_mcp-fixture");

/// Everything that servers wrote and that was warned of.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) lines: Mutex<Vec<String>>,
    pub(crate) warnings: Mutex<Vec<String>>,
}

impl Log for Heard {
    fn line(&self, server: &str, line: &str) {
        self.lines.lock().unwrap().push(format!("{server}: {line}"));
    }

    fn warning(&self, server: &str, text: &str) {
        self.warnings
            .lock()
            .unwrap()
            .push(format!("{server}: {text}"));
    }
}

impl Heard {
    pub(crate) fn warnings(&self) -> String {
        self.warnings.lock().unwrap().join("\n")
    }
}

pub(crate) struct Place {
    pub(crate) root: TempDir,
    pub(crate) heard: Arc<Heard>,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            root: tempfile::tempdir().unwrap(),
            heard: Arc::default(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn parts(&self) -> Parts {
        let environment = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
        let mut parts = Parts::new(
            self.root.path().canonicalize().unwrap(),
            environment,
            Variables::new(|name| (name == "GIVEN").then(|| "given".to_owned())),
            Guard::ReExec(FIXTURE.into()),
        );
        parts.timeouts = Timeouts {
            connect: Duration::from_secs(30),
            call: Duration::from_secs(30),
        };
        parts.reconnection = Reconnection {
            pause: Duration::from_millis(1),
            attempts: 3,
            lasting: Duration::from_hours(1),
        };
        parts.log = Arc::clone(&self.heard) as Arc<dyn Log>;
        parts
    }

    /// One server, once it is known where it stands.
    pub(crate) async fn start(&self, script: Value) -> Servers {
        let servers = Servers::start([scripted("srv", &script)], self.parts());
        servers.settle(Duration::from_secs(30)).await;
        servers
    }

    pub(crate) fn context(&self) -> ToolContext {
        let workspace = Workspace::new(self.root.path(), &[], None, Confinement::Open).unwrap();
        ToolContext {
            call_id: "call".into(),
            session_id: "session".into(),
            workspace: Arc::new(workspace),
            reading: OpenReading::shared(),
            cancel: CancellationToken::new(),
            progress: Progress::silent(),
            trace: None,
        }
    }

    /// A context and what is reported in it.
    pub(crate) fn reporting(&self) -> (ToolContext, mpsc::Receiver<ProgressReport>) {
        let (sender, reports) = mpsc::channel(64);
        let context = ToolContext {
            progress: Progress::new(sender, "call".into()),
            ..self.context()
        };
        (context, reports)
    }

    pub(crate) async fn run(&self, servers: &Servers, name: &str, input: Value) -> ToolOutput {
        find(servers, name).await.run(input, self.context()).await
    }
}

pub(crate) async fn find(servers: &Servers, name: &str) -> Arc<dyn Tool> {
    servers
        .find(name)
        .await
        .unwrap_or_else(|| panic!("no tool {name}: {:?}", servers.status()))
}

pub(crate) fn settings(value: Value) -> ServerConfig {
    let server: McpServer = serde_json::from_value(value).unwrap();
    server.into()
}

pub(crate) fn scripted(name: &str, script: &Value) -> (String, ServerConfig) {
    let config = json!({"command": FIXTURE, "args": ["server", script.to_string()]});
    (name.to_owned(), settings(config))
}

pub(crate) fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description, "inputSchema": {"type": "object"}})
}

/// Simple tools by name.
pub(crate) fn tools(names: &[&str]) -> Value {
    names.iter().map(|name| tool(name, "A tool.")).collect()
}

pub(crate) fn names(servers: &Servers) -> Vec<String> {
    let mut names: Vec<String> = servers
        .tools()
        .iter()
        .map(|tool| tool.spec().name.clone())
        .collect();
    names.sort();
    names
}

/// Waits until something holds of the servers.
pub(crate) async fn until(servers: &Servers, holds: impl Fn(&Servers) -> bool) {
    let mut changes = servers.changes();
    let waiting = async {
        loop {
            changes.mark_unchanged();
            if holds(servers) {
                return;
            }
            changes.changed().await.unwrap();
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(30), waiting).await;
    assert!(waited.is_ok(), "{:?}", servers.status());
}

pub(crate) fn status(servers: &Servers) -> Status {
    servers.status()[0].status.clone()
}

pub(crate) fn is_running(pid: &str) -> bool {
    let stat = Path::new("/proc").join(pid).join("stat");
    std::fs::read_to_string(stat).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits until no process of the given ids runs any more.
pub(crate) fn await_death(pids: &str) {
    let deadline = Instant::now() + Duration::from_secs(15);
    for pid in pids.split_whitespace() {
        assert!(pid.parse::<u32>().is_ok(), "`{pid}` is no process id");
        while is_running(pid) {
            assert!(Instant::now() < deadline, "{pid} still runs");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Waits until a file ends with a whole line and returns it.
pub(crate) fn await_file(path: &Path) -> String {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        if let Ok(text) = std::fs::read_to_string(path)
            && text.ends_with('\n')
        {
            return text;
        }
        assert!(
            Instant::now() < deadline,
            "{} does not come",
            path.display()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}
