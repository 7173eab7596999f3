//! An empty home, an empty workspace and a scripted model; each scenario has its own.

use std::path::{Path, PathBuf};
use std::process::Command;

use caliban_testkit::{BlockingServer, Reply, Script};
use serde_json::{Value, json};

use crate::process::{PATIENCE, eventually};
use crate::support::bare;

pub(crate) struct Bench {
    home: tempfile::TempDir,
    workspace: tempfile::TempDir,
    pub(crate) server: BlockingServer,
}

impl Bench {
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::with(Script::new(replies))
    }

    pub(crate) fn with(script: Script) -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            workspace: tempfile::tempdir().unwrap(),
            server: BlockingServer::start(script).unwrap(),
        }
    }

    /// A bench whose user allows all commands.
    pub(crate) fn permitting(replies: impl IntoIterator<Item = Reply>) -> Self {
        let bench = Self::new(replies);
        bench.settings(&json!({"permissions": {"allow": ["Bash"]}}));
        bench
    }

    /// The program in this home, with this model; nothing of the real environment gets through.
    pub(crate) fn command(&self) -> Command {
        let mut command = bare(self.home.path(), self.workspace.path());
        command
            .env("ANTHROPIC_BASE_URL", self.server.url())
            .env("ANTHROPIC_API_KEY", "test-key")
            .env("CALIBAN_RETRY_BASE_DELAY_MS", "1");
        command
    }

    /// Writes the settings of the user, in one step as editors do.
    pub(crate) fn settings(&self, settings: &Value) {
        let directory = self.home.path().join(".config/caliban");
        std::fs::create_dir_all(&directory).unwrap();
        let draft = directory.join("settings.toml.new");
        std::fs::write(&draft, toml::to_string(settings).unwrap()).unwrap();
        std::fs::rename(draft, directory.join("settings.toml")).unwrap();
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.workspace.path().join(name)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.file(name).exists()
    }

    pub(crate) fn debug_log(&self) -> PathBuf {
        self.home.path().join(".cache/caliban/debug.log")
    }

    /// The body of the `n`-th request to the model, counted from 1, as soon as it has arrived.
    pub(crate) fn request(&self, n: usize) -> Value {
        let requests = self.server.wait_for_requests_within(n, PATIENCE);
        let requests = requests.unwrap_or_else(|| panic!("the model was not asked {n} times"));
        requests[n - 1].json()
    }

    /// How often the model was asked.
    pub(crate) fn requests(&self) -> usize {
        self.server.model_requests().len()
    }

    /// The process that wrote its id into this file, once it did.
    pub(crate) fn process(&self, file: &str) -> Running {
        let path = self.file(file);
        let id = || {
            std::fs::read_to_string(&path)
                .ok()?
                .strip_suffix('\n')?
                .parse()
                .ok()
        };
        eventually("a process with its id in a file", || id().is_some());
        Running(id().unwrap())
    }
}

/// A command that writes down its id and lasts longer than any test.
pub(crate) const SLEEPER: &str = "echo $$ > id; exec sleep 600";

/// A process that somebody else started.
pub(crate) struct Running(u32);

impl Running {
    /// What is dead and was only not fetched yet does not live.
    pub(crate) fn lives(&self) -> bool {
        let stat = Path::new("/proc").join(self.0.to_string()).join("stat");
        let stat = std::fs::read_to_string(stat).unwrap_or_default();
        // The name of the program, which stands before its state, may hold anything.
        let state = stat
            .rsplit_once(") ")
            .and_then(|(_, rest)| rest.chars().next());
        state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
    }

    pub(crate) fn is_gone_soon(&self) {
        eventually("the end of a process", || !self.lives());
    }
}

/// A call of the shell.
pub(crate) fn shell(command: &str) -> Reply {
    Reply::tool("Bash", json!({"command": command}))
}
