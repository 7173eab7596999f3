//! A person with a home, a workspace, a terminal and a model that says what a script says.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use caliban_testkit::terminal::{Ended, Profile, Screen, Terminal, TerminalOptions};
use caliban_testkit::{After, BlockingServer, Recorded, Reply, Script};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What stands at the draft when nothing is written and the session is there.
pub(crate) const READY: &str = "session: ";
/// The last of what a question shows, once it listens.
pub(crate) const LISTENS: &str = "[y] Allow once";

/// Somebody who starts the program, perhaps several times.
pub(crate) struct Person {
    home: TempDir,
    pub(crate) server: BlockingServer,
    args: Vec<String>,
    env: Vec<(String, String)>,
    absent: Vec<String>,
    size: (u16, u16),
    profile: Profile,
}

impl Person {
    /// The model gives these answers one after the other, the last one for ever.
    pub(crate) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::scripted(Script::new(replies).after(After::RepeatLast))
    }

    pub(crate) fn scripted(script: Script) -> Self {
        // Screens show this path, so that it is as long on every machine.
        let home = TempDir::with_prefix_in("home", "/tmp").unwrap();
        fs::create_dir(home.path().join("work")).unwrap();
        Self {
            home,
            server: BlockingServer::start(script).unwrap(),
            args: Vec::new(),
            env: Vec::new(),
            absent: Vec::new(),
            size: (80, 24),
            profile: Profile::Kitty,
        }
    }

    /// The model says this whatever it is asked.
    pub(crate) fn answered(text: &str) -> Self {
        Self::new([Reply::text(text)])
    }

    /// The model runs this line in the shell and then is done.
    pub(crate) fn commanding(line: &str) -> Self {
        Self::new([bash(line), Reply::text("All done.")])
    }

    #[must_use]
    pub(crate) fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.to_owned());
        self
    }

    #[must_use]
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.to_owned(), value.to_owned()));
        self
    }

    /// A variable that others have is not set.
    #[must_use]
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.absent.push(name.to_owned());
        self
    }

    #[must_use]
    pub(crate) fn sized(mut self, cols: u16, rows: u16) -> Self {
        self.size = (cols, rows);
        self
    }

    #[must_use]
    pub(crate) fn terminal(mut self, profile: Profile) -> Self {
        self.profile = profile;
        self
    }

    /// The settings of this person.
    #[must_use]
    pub(crate) fn settings(self, toml: &str) -> Self {
        write(&self.home().join(".config/caliban/settings.toml"), toml);
        self
    }

    /// The settings of the workspace.
    #[must_use]
    pub(crate) fn project(self, toml: &str) -> Self {
        write(&self.work().join(".caliban/settings.toml"), toml);
        self
    }

    /// A file of the workspace.
    #[must_use]
    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        write(&self.work().join(path), text);
        self
    }

    /// A program of this person's own, which `EDITOR` and others may name.
    #[must_use]
    pub(crate) fn program(self, name: &str, body: &str) -> Self {
        use std::os::unix::fs::PermissionsExt;
        let path = self.home().join("bin").join(name);
        write(&path, &format!("#!/bin/sh\n{body}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        self
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.home.path().to_owned()
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.home.path().join("work")
    }

    pub(crate) fn options(&self, args: &[&str]) -> TerminalOptions {
        let path = std::env::var("PATH").unwrap_or_default();
        let home = self.home().display().to_string();
        let usual = [
            ("HOME", home.clone()),
            ("PATH", format!("{home}/bin:{path}")),
            ("TERM", "xterm-256color".to_owned()),
            ("LANG", "C.UTF-8".to_owned()),
            ("ANTHROPIC_BASE_URL", self.server.url()),
            ("ANTHROPIC_API_KEY", "test-key".to_owned()),
            ("CALIBAN_RETRY_BASE_DELAY_MS", "1".to_owned()),
        ];
        let usual = usual
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        let usual = usual.filter(|(name, _)| self.env.iter().all(|(own, _)| own != name));
        let usual = usual.filter(|(name, _)| !self.absent.contains(name));
        let own = self.env.iter().cloned();
        let args = self
            .args
            .iter()
            .map(String::as_str)
            .chain(args.iter().copied());
        TerminalOptions {
            program: env!("CARGO_BIN_EXE_caliban").into(),
            args: args.map(ToOwned::to_owned).collect(),
            env: usual.chain(own).collect(),
            cwd: self.work(),
            size: self.size,
            profile: self.profile,
        }
    }

    /// Starts the program.
    #[track_caller]
    pub(crate) fn start(&self, args: &[&str]) -> Terminal {
        Terminal::start(self.options(args))
    }

    /// Starts the program and waits until a session is there.
    #[track_caller]
    pub(crate) fn sit_down(&self) -> Terminal {
        let terminal = self.start(&[]);
        terminal.until_text(READY);
        terminal
    }

    /// What the model was told, call by call.
    pub(crate) fn told(&self) -> Vec<Value> {
        let requests = self.server.model_requests();
        requests.iter().map(Recorded::json).collect()
    }

    /// The result of the last call that the model was told.
    #[track_caller]
    pub(crate) fn last_result(&self) -> String {
        let told = self.told();
        let messages = told.last().unwrap()["messages"].as_array().unwrap().clone();
        let blocks = messages
            .iter()
            .filter_map(|message| message["content"].as_array());
        let mut results = blocks
            .flatten()
            .filter(|block| block["type"] == "tool_result");
        results
            .next_back()
            .map(ToString::to_string)
            .unwrap_or_default()
    }

    /// What is written below the state directory under this name, wherever it is.
    pub(crate) fn kept(&self, name: &str) -> Option<PathBuf> {
        found(self.home.path(), name)
    }
}

/// A call of the shell.
pub(crate) fn bash(line: &str) -> Reply {
    Reply::tool("Bash", json!({"command": line}))
}

/// Types a prompt and sends it.
pub(crate) fn say(terminal: &Terminal, text: &str) {
    terminal.keys(text);
    terminal.key("enter");
}

/// Waits until the work has ended with this.
#[track_caller]
pub(crate) fn until_done(terminal: &Terminal, text: &str) -> Screen {
    terminal.until(|screen| screen.contains(text) && !screen.contains("Esc stops"))
}

/// Waits until something is so that the screen does not show.
#[track_caller]
pub(crate) fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < deadline, "waited for {what}");
        std::thread::yield_now();
    }
}

/// Leaves with the prompt empty, and sees that it went well.
#[track_caller]
pub(crate) fn leave(terminal: Terminal) -> Ended {
    terminal.key("ctrl+d");
    let ended = terminal.wait();
    assert_eq!(ended.code, Some(0), "{}", ended.after.drawn());
    ended
}

pub(crate) fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn found(folder: &Path, name: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(folder).ok()?.flatten();
    for entry in entries {
        let path = entry.path();
        if entry.file_name() == name {
            return Some(path);
        }
        if path.is_dir()
            && let Some(found) = found(&path, name)
        {
            return Some(found);
        }
    }
    None
}
