//! One run of a helper.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// A helper that prints more than this prints no key.
const KEY_LIMIT: usize = 64 * 1024;
/// Complaints are kept up to this and then only read.
const COMPLAINT_LIMIT: usize = 4 * 1024;
/// A complaint is quoted up to this many characters.
const QUOTE_LIMIT: usize = 200;
/// No key takes longer.
const TIME_LIMIT: Duration = Duration::from_mins(1);
/// Once the helper has ended, what it wrote is there; a daemon it left behind may keep its pipes
/// open for ever.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Why a run gave no key. The texts never contain what was printed to standard output.
#[derive(Debug, thiserror::Error)]
pub(super) enum RunError {
    #[error("could not be started: {0}")]
    Start(io::Error),
    #[error("was lost: {0}")]
    Lost(io::Error),
    #[error("gave no key within {} s and was stopped", .0.as_secs())]
    TooSlow(Duration),
    #[error("failed ({status}){}", quoted(.complaint))]
    Failed {
        status: ExitStatus,
        complaint: String,
    },
    #[error("printed nothing")]
    Empty,
    #[error("printed more than {KEY_LIMIT} bytes")]
    TooLong,
    #[error("printed something that is not one line of text")]
    NotAKey,
}

fn quoted(complaint: &str) -> String {
    if complaint.is_empty() {
        String::new()
    } else {
        format!(": {complaint}")
    }
}

/// A helper about to be run.
#[derive(Debug)]
pub(super) struct Run<'a> {
    pub(super) command: &'a [String],
    pub(super) directory: &'a Path,
    pub(super) environment: &'a [(OsString, OsString)],
    pub(super) additions: [(&'static str, String); 2],
}

impl Run<'_> {
    /// Runs the helper and takes the key it prints. Dropping the future, or the time limit, kills
    /// the helper and what it started.
    pub(super) async fn key(self) -> Result<String, RunError> {
        let Ok(result) = timeout(TIME_LIMIT, self.complete()).await else {
            return Err(RunError::TooSlow(TIME_LIMIT));
        };
        result
    }

    async fn complete(self) -> Result<String, RunError> {
        let mut group = self.start()?;
        let (Some(stdout), Some(stderr)) = (group.child.stdout.take(), group.child.stderr.take())
        else {
            return Err(RunError::Lost(io::ErrorKind::BrokenPipe.into()));
        };
        let (mut printed, mut complaint) = (Vec::new(), Vec::new());
        let status = {
            let mut printing = pin!(gather(stdout, &mut printed, KEY_LIMIT, Beyond::Stop));
            let mut complaining = pin!(gather(
                stderr,
                &mut complaint,
                COMPLAINT_LIMIT,
                Beyond::Discard
            ));
            let (mut open, mut heard) = (true, true);
            let status = loop {
                tokio::select! {
                    status = group.child.wait() => break status.map_err(RunError::Lost)?,
                    end = &mut printing, if open => match end {
                        End::Closed => open = false,
                        End::Full => return Err(RunError::TooLong),
                    },
                    _ = &mut complaining, if heard => heard = false,
                }
            };
            group.kill();
            let rest = async {
                let end = if open { printing.await } else { End::Closed };
                if heard {
                    complaining.await;
                }
                end
            };
            if let Ok(End::Full) = timeout(LAST_WORDS, rest).await {
                return Err(RunError::TooLong);
            }
            status
        };
        if !status.success() {
            return Err(RunError::Failed {
                status,
                complaint: first_line(&complaint, &printed),
            });
        }
        let key = String::from_utf8(printed).map_err(|_| RunError::NotAKey)?;
        let key = key.trim_end_matches(['\r', '\n']);
        if key.trim().is_empty() {
            Err(RunError::Empty)
        } else if key.chars().any(char::is_control) {
            Err(RunError::NotAKey)
        } else {
            Ok(key.to_owned())
        }
    }

    fn start(&self) -> Result<Group, RunError> {
        let (program, arguments) = self
            .command
            .split_first()
            .ok_or_else(|| RunError::Start(io::ErrorKind::NotFound.into()))?;
        // Where a relative program is looked for must not depend on how processes are started.
        let program = if program.contains('/') {
            self.directory.join(program)
        } else {
            PathBuf::from(program)
        };
        let child = Command::new(program)
            .args(arguments)
            .current_dir(self.directory)
            .env_clear()
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .envs(self.additions.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(RunError::Start)?;
        let leader = child
            .id()
            .and_then(|id| i32::try_from(id).ok())
            .and_then(Pid::from_raw);
        Ok(Group { child, leader })
    }
}

/// The helper and what it started; dropping it kills them.
struct Group {
    child: Child,
    leader: Option<Pid>,
}

impl Group {
    fn kill(&mut self) {
        if let Some(leader) = self.leader.take() {
            // An empty group is what is wanted.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// What to do with output beyond the limit.
#[derive(Clone, Copy)]
enum Beyond {
    Stop,
    Discard,
}

enum End {
    Closed,
    Full,
}

async fn gather(
    mut pipe: impl AsyncRead + Unpin,
    into: &mut Vec<u8>,
    limit: usize,
    beyond: Beyond,
) -> End {
    let mut chunk = [0; 1024];
    loop {
        // A pipe that fails has nothing more to say.
        let Ok(count @ 1..) = pipe.read(&mut chunk).await else {
            return End::Closed;
        };
        let room = limit - into.len();
        into.extend_from_slice(&chunk[..count.min(room)]);
        match beyond {
            Beyond::Stop if count > room => return End::Full,
            Beyond::Stop | Beyond::Discard => {}
        }
    }
}

/// The first line of a complaint, fit to be shown: short, without control characters, and without
/// anything that was printed as a key or looks like one.
fn first_line(complaint: &[u8], printed: &[u8]) -> String {
    let complaint = String::from_utf8_lossy(complaint);
    let printed = String::from_utf8_lossy(printed);
    let line = complaint
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty());
    let mut line = line.unwrap_or_default().replace(char::is_control, " ");
    for secret in printed.split_whitespace().filter(|word| word.len() >= 4) {
        line = line.replace(secret, "***");
    }
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-_.+=".contains(letter);
    let mut shown = String::new();
    for piece in line.split_inclusive(|letter| !is_part(letter)) {
        let token = piece.trim_end_matches(|letter| !is_part(letter));
        if looks_like_a_key(token) {
            shown.push_str("***");
            shown.push_str(&piece[token.len()..]);
        } else {
            shown.push_str(piece);
        }
    }
    shown.trim().chars().take(QUOTE_LIMIT).collect()
}

fn looks_like_a_key(token: &str) -> bool {
    token.len() >= 16
        && token.contains(|letter: char| letter.is_ascii_digit())
        && token.contains(|letter: char| letter.is_ascii_alphabetic())
        || token.len() > 3 && (token.starts_with("sk-") || token.starts_with("AIza"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("\n denied \nmore", "", "denied")]
    #[case("no access for s3cr3t!", "s3cr3t\n", "no access for ***!")]
    #[case("bad key sk-abc, sorry", "", "bad key ***, sorry")]
    #[case("token=a1b2c3d4e5f6a7b8c9 expired", "", "*** expired")]
    #[case("\u{1b}[31mred\u{7}", "", "[31mred")]
    #[case(
        "/usr/local/bin/authenticate: not logged in",
        "",
        "/usr/local/bin/authenticate: not logged in"
    )]
    fn complaints_are_shown_without_secrets(
        #[case] complaint: &str,
        #[case] printed: &str,
        #[case] shown: &str,
    ) {
        assert_eq!(first_line(complaint.as_bytes(), printed.as_bytes()), shown);
    }
}
