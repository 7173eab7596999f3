//! Has git answer and work without letting a repository run anything: what a directory says in
//! `.git/config` and `.gitattributes` is the word of whoever made it, and nobody need have trusted
//! that.

mod fetching;
mod harmless;
mod waiting;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::Duration;

use caliban_process::{Beyond, Bound, Bounds, CaptureError, Guard, Invocation};
use tokio::time::timeout;

pub use fetching::Reach;
pub use harmless::harmless;
pub use waiting::WaitingGit;

/// The most that [`Git::ask`] keeps of an answer; the rest is cut.
pub const ANSWER_BYTES: usize = 256 * 1024;
/// The most that [`Git::run`] takes. Beyond it the answer is an error: who decides by half a list
/// decides wrongly.
const WORK_BYTES: usize = 64 << 20;
const COMPLAINT_BYTES: usize = 16 * 1024;
/// How long an answer may take; a network directory may never give one.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long work may take: a large tree is written in seconds, and one on a slow disk in minutes.
const WORK_PATIENCE: Duration = Duration::from_mins(5);

/// Who asks, and where.
#[derive(Debug, Clone)]
pub struct Git {
    directory: PathBuf,
    environment: Vec<(OsString, OsString)>,
    guard: Guard,
}

/// What git said and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Nothing where a signal ended it.
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    complaint: String,
}

/// Why git did not do what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GitError {
    /// Its own words, the first line of them.
    #[error("git: {0}")]
    Refused(String),
    #[error("git could not be run: {0}")]
    NotRun(String),
    #[error("git did not end within {} s", .0.as_secs())]
    TooLong(Duration),
    #[error("git said more than {} MiB", WORK_BYTES >> 20)]
    TooMuch,
}

impl GitError {
    /// What it is about, without saying that it is git's word.
    pub fn reason(&self) -> String {
        match self {
            Self::Refused(line) => line.clone(),
            Self::NotRun(_) | Self::TooLong(_) | Self::TooMuch => self.to_string(),
        }
    }
}

impl Said {
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    /// The first line of what it complained about.
    pub fn complaint(&self) -> String {
        /// Files that a complaint is about and that are named.
        const SHOWN: usize = 5;
        let mut lines = self.complaint.lines();
        let line = lines.find(|line| !line.trim().is_empty());
        let line = line.unwrap_or("it failed and did not say why");
        let line = line.trim_start_matches("fatal: ");
        let line = line.trim_start_matches("error: ");
        // Files stand below it, one in a line.
        let files = lines.map_while(|line| line.strip_prefix('\t'));
        let files: Vec<String> = files.take(SHOWN).map(|file| format!("`{file}`")).collect();
        if files.is_empty() {
            return line.to_owned();
        }
        format!("{line} {}", files.join(", "))
    }

    /// The answer without the line break at its end.
    pub fn text(&self) -> String {
        let text = String::from_utf8_lossy(&self.stdout);
        text.trim_end_matches(['\n', '\r']).to_owned()
    }
}

impl Git {
    /// For a directory. `environment` is all that git sees of ours; its own variables in it do not
    /// count. The programs that the repository configures are looked up and left out.
    pub async fn new(
        directory: PathBuf,
        environment: Vec<(OsString, OsString)>,
        guard: Guard,
    ) -> Self {
        let mut git = Self {
            directory,
            environment: harmless(environment.clone(), &[]),
            guard,
        };
        let programs = git.programs().await;
        if !programs.is_empty() {
            git.environment = harmless(environment, &programs);
        }
        git
    }

    /// For an empty directory of our own, into which somebody wants a repository to be fetched.
    pub fn fetching(
        directory: PathBuf,
        environment: Vec<(OsString, OsString)>,
        guard: Guard,
        reach: Reach,
    ) -> Self {
        Self {
            directory,
            environment: fetching::fetching(environment, reach),
            guard,
        }
    }

    /// The same, somewhere else in the same repository.
    #[must_use]
    pub fn at(&self, directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
            ..self.clone()
        }
    }

    /// The same with further variables.
    #[must_use]
    pub fn with(mut self, variables: &[(&str, &str)]) -> Self {
        let pair = |(name, value): &(&str, &str)| (name.into(), value.into());
        self.environment.extend(variables.iter().map(pair));
        self
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What the repository says to this, or why it says nothing. Answers beyond the bound are cut.
    pub async fn ask(&self, args: &[&str]) -> Result<String, String> {
        let bound = Bound {
            bytes: ANSWER_BYTES,
            beyond: Beyond::Forget,
        };
        let args: Vec<OsString> = args.iter().map(OsString::from).collect();
        let said = self.invoke(args, &[], bound, PATIENCE).await;
        let said = said.map_err(|error| error.reason())?;
        if said.is_success() {
            return Ok(String::from_utf8_lossy(&said.stdout).into_owned());
        }
        Err(said.complaint())
    }

    /// Has git do this, however it ends.
    pub async fn attempt(
        &self,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        input: &[u8],
    ) -> Result<Said, GitError> {
        let bound = Bound {
            bytes: WORK_BYTES,
            beyond: Beyond::Stop,
        };
        let args = args.into_iter().map(|arg| arg.as_ref().to_owned());
        self.invoke(args.collect(), input, bound, WORK_PATIENCE)
            .await
    }

    /// Has git do this; the error is its complaint.
    pub async fn run(
        &self,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
    ) -> Result<Said, GitError> {
        self.run_with(args, &[]).await
    }

    /// The same with an input.
    pub async fn run_with(
        &self,
        args: impl IntoIterator<Item = impl AsRef<OsStr>>,
        input: &[u8],
    ) -> Result<Said, GitError> {
        let said = self.attempt(args, input).await?;
        if said.is_success() {
            Ok(said)
        } else {
            Err(GitError::Refused(said.complaint()))
        }
    }

    async fn invoke(
        &self,
        args: Vec<OsString>,
        input: &[u8],
        stdout: Bound,
        patience: Duration,
    ) -> Result<Said, GitError> {
        let invocation = Invocation {
            program: "git".into(),
            args,
            directory: self.directory.clone(),
            environment: self.environment.clone(),
        };
        let stderr = Bound {
            bytes: COMPLAINT_BYTES,
            beyond: Beyond::Forget,
        };
        let bounds = Bounds { stdout, stderr };
        let running = invocation.capture(&self.guard, input, bounds);
        match timeout(patience, running).await {
            Ok(Ok(captured)) => Ok(Said {
                code: captured.status.code(),
                stdout: captured.stdout,
                complaint: String::from_utf8_lossy(&captured.stderr).into_owned(),
            }),
            Ok(Err(CaptureError::TooMuch)) => Err(GitError::TooMuch),
            Ok(Err(error)) => Err(GitError::NotRun(error.to_string())),
            Err(_) => Err(GitError::TooLong(patience)),
        }
    }

    /// The keys under which the repository names programs that change files on their way in or
    /// out, or merge them.
    async fn programs(&self) -> Vec<String> {
        let args = [
            "config",
            "--null",
            "--name-only",
            "--get-regexp",
            r"^(filter|merge)\.",
        ];
        // Without any, git says so by failing.
        let names = self.ask(&args).await.unwrap_or_default();
        names
            .split('\0')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

#[cfg(test)]
mod tests;
