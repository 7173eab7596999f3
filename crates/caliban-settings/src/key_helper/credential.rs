//! A program that prints credentials, whatever their form.

use std::time::Duration;

use caliban_process::{Beyond, Bound, Bounds, CaptureError};
use tokio::time::timeout;

use super::argv::split;
use super::key::Surroundings;
use super::run::{Run, first_line};

const BOUNDS: Bounds = Bounds {
    stdout: Bound {
        bytes: 256 * 1024,
        beyond: Beyond::Stop,
    },
    stderr: Bound {
        bytes: 4 * 1024,
        beyond: Beyond::Forget,
    },
};

/// A command line, split into words. No shell is involved.
#[derive(Debug)]
pub struct Credential(Vec<String>);

impl Credential {
    pub fn parse(line: &str) -> Result<Self, String> {
        let words = split(line).map_err(|error| format!("`{line}`: {error}"))?;
        if words.is_empty() {
            return Err("the command is empty".to_owned());
        }
        Ok(Self(words))
    }

    /// Runs it within `limit` and takes what it prints, which no error repeats.
    pub async fn printed(
        &self,
        surroundings: &Surroundings,
        limit: Duration,
    ) -> Result<String, String> {
        let program = &self.0[0];
        let run = Run {
            command: &self.0,
            directory: &surroundings.directory,
            environment: &surroundings.environment,
            guard: &surroundings.guard,
            additions: [],
        };
        let invocation = run.invocation();
        let invocation = invocation.map_err(|error| format!("`{program}` {error}"))?;
        let capturing = invocation.capture(&surroundings.guard, &[], BOUNDS);
        let Ok(captured) = timeout(limit, capturing).await else {
            let seconds = limit.as_secs();
            return Err(format!("`{program}` did not end within {seconds} s"));
        };
        let captured = captured.map_err(|error| match error {
            CaptureError::Start(error) => format!("`{program}` could not be started: {error}"),
            CaptureError::Lost(error) => format!("`{program}` was lost: {error}"),
            CaptureError::TooMuch => format!("`{program}` printed too much"),
        })?;
        if !captured.status.success() {
            let complaint = first_line(&captured.stderr, &captured.stdout);
            return Err(format!(
                "`{program}` failed ({}): {complaint}",
                captured.status
            ));
        }
        String::from_utf8(captured.stdout).map_err(|_| format!("`{program}` printed no text"))
    }
}
