//! Asks git about the workspace without letting the repository run anything: what a directory says
//! in `.git/config` is the word of whoever made it, and nobody has trusted that yet.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use caliban_process::{Beyond, Bound, Bounds, Guard, Invocation};
use tokio::time::timeout;

use crate::configuration::Configuration;

/// The most that is kept of an answer.
pub(crate) const ANSWER_BYTES: usize = 256 * 1024;
const COMPLAINT_BYTES: usize = 4 * 1024;
/// How long an answer may take; a network directory may never give one.
const PATIENCE: Duration = Duration::from_secs(10);

/// Configuration that would have git run a program or reach for a network, set so that it does
/// not.
const HARMLESS: [(&str, &str); 7] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("diff.ignoreSubmodules", "all"),
    ("submodule.recurse", "false"),
    ("protocol.allow", "never"),
    ("log.showSignature", "false"),
];

/// Variables with the same purpose.
const QUIET: [(&str, &str); 4] = [
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("LC_ALL", "C"),
];

/// Who asks, and where.
#[derive(Debug)]
pub(crate) struct Git {
    directory: PathBuf,
    environment: Vec<(OsString, OsString)>,
    guard: Guard,
}

impl Git {
    /// For the workspace of a configuration.
    pub(crate) async fn new(configuration: &Configuration) -> Self {
        let is_git = |name: &OsString| name.to_string_lossy().starts_with("GIT_");
        let mut environment = configuration.child_environment();
        environment.retain(|(name, _)| !is_git(name));
        let pair = |(name, value): (&str, &str)| (name.into(), value.into());
        environment.extend(QUIET.map(pair));
        let mut git = Self {
            directory: configuration.workspace.clone(),
            environment,
            guard: configuration.process.guard.clone(),
        };
        let plain = git.environment.clone();
        git.configure(&[]);
        let filters = git.filters().await;
        git.environment = plain;
        git.configure(&filters);
        git
    }

    /// What the repository says to this, or why it says nothing. Answers beyond the bound are cut.
    pub(crate) async fn ask(&self, args: &[&str]) -> Result<String, String> {
        let invocation = Invocation {
            program: "git".into(),
            args: args.iter().map(OsString::from).collect(),
            directory: self.directory.clone(),
            environment: self.environment.clone(),
        };
        let bound = |bytes| Bound {
            bytes,
            beyond: Beyond::Forget,
        };
        let bounds = Bounds {
            stdout: bound(ANSWER_BYTES),
            stderr: bound(COMPLAINT_BYTES),
        };
        let running = invocation.capture(&self.guard, &[], bounds);
        let captured = match timeout(PATIENCE, running).await {
            Ok(Ok(captured)) => captured,
            Ok(Err(error)) => return Err(format!("git: {error}")),
            Err(_) => return Err("git did not answer in time".to_owned()),
        };
        if captured.status.success() {
            return Ok(String::from_utf8_lossy(&captured.stdout).into_owned());
        }
        let complaint = String::from_utf8_lossy(&captured.stderr);
        let line = complaint.lines().next().unwrap_or("git failed");
        Err(line.trim_start_matches("fatal: ").to_owned())
    }

    /// The names of programs that would change files on their way in or out.
    async fn filters(&self) -> Vec<String> {
        let args = [
            "config",
            "--null",
            "--name-only",
            "--get-regexp",
            r"^filter\.",
        ];
        // Without any, git says so by failing.
        let names = self.ask(&args).await.unwrap_or_default();
        let names = names.split('\0').filter_map(|name| {
            let (filter, _) = name.strip_prefix("filter.")?.rsplit_once('.')?;
            Some(filter.to_owned())
        });
        names.collect()
    }

    fn configure(&mut self, filters: &[String]) {
        let harmless = HARMLESS.map(|(key, value)| (key.to_owned(), value));
        let unfiltered = filters.iter().flat_map(|filter| {
            [
                ("clean", ""),
                ("smudge", ""),
                ("process", ""),
                ("required", "false"),
            ]
            .map(|(key, value)| (format!("filter.{filter}.{key}"), value))
        });
        let all: Vec<(String, &str)> = harmless.into_iter().chain(unfiltered).collect();
        let mut set = |name: String, value: String| {
            self.environment.push((name.into(), value.into()));
        };
        set("GIT_CONFIG_COUNT".to_owned(), all.len().to_string());
        for (index, (key, value)) in all.into_iter().enumerate() {
            set(format!("GIT_CONFIG_KEY_{index}"), key);
            set(format!("GIT_CONFIG_VALUE_{index}"), value.to_owned());
        }
    }
}
