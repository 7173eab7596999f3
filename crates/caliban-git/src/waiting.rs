//! Git for threads that may wait, and for answers of any length: they go through files, so that
//! neither side holds the other up.

use std::ffi::OsString;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::harmless;

/// The longest answer; one that is longer is an error.
const ANSWER: u64 = 512 << 20;
/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);
/// How often is looked whether it is there.
const PAUSE: Duration = Duration::from_millis(1);

/// Asks git and waits. What the repository configures is not run; filters are not looked up, so
/// only what reads no file of the workspace may be asked.
#[derive(Debug)]
pub struct WaitingGit {
    directory: PathBuf,
    environment: Vec<(OsString, OsString)>,
}

impl WaitingGit {
    /// For a directory. `environment` is all that git sees of ours; its own variables in it do not
    /// count.
    pub fn new(directory: PathBuf, environment: Vec<(OsString, OsString)>) -> Self {
        Self {
            directory,
            environment: harmless(environment, &[]),
        }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// What git says to this.
    pub fn ask(&self, args: &[&str], input: &[u8]) -> io::Result<Vec<u8>> {
        let mut stdin = tempfile::tempfile()?;
        stdin.write_all(input)?;
        stdin.rewind()?;
        let mut stdout = tempfile::tempfile()?;
        let mut child = Command::new("git")
            .args(args)
            .current_dir(&self.directory)
            .env_clear()
            .envs(self.environment.iter().cloned())
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout.try_clone()?))
            .stderr(Stdio::null())
            .spawn()?;
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if Instant::now() > deadline || stdout.metadata()?.len() > ANSWER {
                child.kill()?;
                child.wait()?;
                return Err(io::Error::from(io::ErrorKind::TimedOut));
            }
            std::thread::sleep(PAUSE);
        };
        if !status.success() {
            return Err(io::Error::other("git failed"));
        }
        stdout.rewind()?;
        let mut answer = Vec::new();
        stdout.take(ANSWER).read_to_end(&mut answer)?;
        Ok(answer)
    }
}
