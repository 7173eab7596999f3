//! One run of a helper.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::ExitStatus;
use std::time::Duration;

use caliban_process::{Beyond, Bound, Bounds, CaptureError, Guard, Invocation};
use tokio::time::timeout;

/// A helper that prints more than this prints no key.
const KEY_LIMIT: usize = 64 * 1024;
/// Complaints are kept up to this and then only read.
const COMPLAINT_LIMIT: usize = 4 * 1024;
const BOUNDS: Bounds = Bounds {
    stdout: Bound {
        bytes: KEY_LIMIT,
        beyond: Beyond::Stop,
    },
    stderr: Bound {
        bytes: COMPLAINT_LIMIT,
        beyond: Beyond::Forget,
    },
};
/// A complaint is quoted up to this many characters.
const QUOTE_LIMIT: usize = 200;
/// No key takes longer.
const TIME_LIMIT: Duration = Duration::from_mins(1);

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

impl From<CaptureError> for RunError {
    fn from(error: CaptureError) -> Self {
        match error {
            CaptureError::Start(error) => Self::Start(error),
            CaptureError::Lost(error) => Self::Lost(error),
            CaptureError::TooMuch => Self::TooLong,
        }
    }
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
pub(super) struct Run<'a, const N: usize> {
    pub(super) command: &'a [String],
    pub(super) directory: &'a Path,
    pub(super) environment: &'a [(OsString, OsString)],
    pub(super) guard: &'a Guard,
    pub(super) additions: [(&'static str, String); N],
}

impl<const N: usize> Run<'_, N> {
    /// Runs the helper and takes the key it prints. Dropping the future, or the time limit, ends
    /// the helper and what it started.
    pub(super) async fn key(self) -> Result<String, RunError> {
        let Ok(result) = timeout(TIME_LIMIT, self.complete()).await else {
            return Err(RunError::TooSlow(TIME_LIMIT));
        };
        result
    }

    async fn complete(self) -> Result<String, RunError> {
        let captured = self.invocation()?.capture(self.guard, &[], BOUNDS).await?;
        if !captured.status.success() {
            return Err(RunError::Failed {
                status: captured.status,
                complaint: first_line(&captured.stderr, &captured.stdout),
            });
        }
        let key = String::from_utf8(captured.stdout).map_err(|_| RunError::NotAKey)?;
        let key = key.trim_end_matches(['\r', '\n']);
        if key.trim().is_empty() {
            Err(RunError::Empty)
        } else if key.chars().any(char::is_control) {
            Err(RunError::NotAKey)
        } else {
            Ok(key.to_owned())
        }
    }

    pub(super) fn invocation(&self) -> Result<Invocation, RunError> {
        let (program, args) = self
            .command
            .split_first()
            .ok_or_else(|| RunError::Start(io::ErrorKind::NotFound.into()))?;
        // Where a relative program is looked for must not depend on how processes are started.
        let program = if program.contains('/') {
            self.directory.join(program).into()
        } else {
            program.into()
        };
        let additions = self.additions.iter();
        let additions = additions.map(|(name, value)| (name.into(), value.into()));
        Ok(Invocation {
            program,
            args: args.iter().map(OsString::from).collect(),
            directory: self.directory.to_owned(),
            environment: self.environment.iter().cloned().chain(additions).collect(),
        })
    }
}

/// The first line of a complaint, fit to be shown: short, without control characters, and without
/// anything that was printed as a key or looks like one.
pub(super) fn first_line(complaint: &[u8], printed: &[u8]) -> String {
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
