//! A session's worth of shell tools in a temporary directory, under a real guardian.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use caliban_agent::{
    Confinement, OpenReading, Progress, Tool, ToolContext, ToolOutput, TypedTool, Workspace,
};
use caliban_model::CancellationToken;
use caliban_process::Guard;
use caliban_tools::{Bash, BashOutput, JobLimits, Jobs, KillShell, Shell};
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) const GUARD: &str = env!("CARGO_BIN_EXE_guard-fixture");

pub(crate) struct Session {
    pub(crate) root: TempDir,
    pub(crate) jobs: Arc<Jobs>,
    pub(crate) bash: Arc<dyn Tool>,
    pub(crate) output: Arc<dyn Tool>,
    pub(crate) kill: Arc<dyn Tool>,
    pub(crate) context: ToolContext,
}

impl Session {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let environment = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
        let shell = Arc::new(Shell::new(Guard::ReExec(GUARD.into()), environment));
        let jobs = Arc::new(Jobs::new(
            Arc::clone(&shell),
            root.path().join("jobs"),
            JobLimits::default(),
        ));
        let workspace = Workspace::new(root.path(), &[], None, Confinement::Restricted).unwrap();
        Self {
            bash: Bash::new(shell, Arc::clone(&jobs)).boxed(),
            output: BashOutput::new(Arc::clone(&jobs)).boxed(),
            kill: KillShell::new(Arc::clone(&jobs)).boxed(),
            jobs,
            context: ToolContext {
                call_id: "call".into(),
                session_id: "session".into(),
                workspace: Arc::new(workspace),
                reading: OpenReading::shared(),
                cancel: CancellationToken::new(),
                progress: Progress::silent(),
                trace: None,
            },
            root,
        }
    }

    pub(crate) async fn bash(&self, command: &str) -> ToolOutput {
        self.call(&self.bash, json!({"command": command})).await
    }

    pub(crate) async fn call(&self, tool: &Arc<dyn Tool>, input: Value) -> ToolOutput {
        tool.run(input, self.context.clone()).await
    }
}

/// Waits until no process of the given ids runs any more.
pub(crate) fn await_death(pids: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    for pid in pids.split_whitespace() {
        assert!(pid.parse::<u32>().is_ok(), "`{pid}` is no process id");
        while is_running(pid) {
            assert!(Instant::now() < deadline, "{pid} still runs");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

pub(crate) fn is_running(pid: &str) -> bool {
    let stat: PathBuf = Path::new("/proc").join(pid).join("stat");
    std::fs::read_to_string(stat).is_ok_and(|stat| !stat.contains(") Z "))
}

/// Waits until the file ends with the line `done`; returns the lines before.
pub(crate) fn await_file(path: &Path) -> String {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if let Some(text) = text.strip_suffix("done\n") {
            return text.to_owned();
        }
        assert!(Instant::now() < deadline, "`{text}` is not complete");
        std::thread::sleep(Duration::from_millis(10));
    }
}
