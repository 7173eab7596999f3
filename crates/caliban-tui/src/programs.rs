//! Programs that the face runs for what they print: the operator's own, and those that reach the
//! clipboard. They see the environment of every other program, which holds no keys, and nothing of
//! them outlives the look.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use caliban_process::{Beyond, Bound, Bounds, CaptureError, Guard, Invocation};
use tokio::time::timeout;

/// How programs are started.
#[derive(Debug, Clone)]
pub struct Programs {
    pub guard: Guard,
    pub environment: Vec<(OsString, OsString)>,
    pub directory: PathBuf,
}

impl Default for Programs {
    /// In an environment without anything.
    fn default() -> Self {
        Self {
            guard: Guard::None,
            environment: Vec::new(),
            directory: PathBuf::from("/"),
        }
    }
}

/// What came of a program.
#[derive(Debug)]
pub(crate) enum Printed {
    /// There is no such program.
    Missing,
    /// It failed, took too long or said nothing.
    Nothing,
    Bytes(Vec<u8>),
}

impl Programs {
    /// What a line of the shell prints.
    pub(crate) async fn shell(&self, line: &str, most: usize, patience: Duration) -> Printed {
        self.run(&["sh", "-c", line], most, patience).await
    }

    /// What a program prints, up to a bound, within a time.
    pub(crate) async fn run(&self, words: &[&str], most: usize, patience: Duration) -> Printed {
        let Some((program, arguments)) = words.split_first() else {
            return Printed::Missing;
        };
        let invocation = Invocation {
            program: program.into(),
            args: arguments.iter().map(OsString::from).collect(),
            directory: self.directory.clone(),
            environment: self.environment.clone(),
        };
        let bound = |bytes| Bound {
            bytes,
            beyond: Beyond::Forget,
        };
        let bounds = Bounds {
            stdout: bound(most),
            stderr: bound(0),
        };
        let running = invocation.capture(&self.guard, &[], bounds);
        match timeout(patience, running).await {
            Ok(Ok(captured)) if captured.status.success() && !captured.stdout.is_empty() => {
                Printed::Bytes(captured.stdout)
            }
            Ok(Err(CaptureError::Start(_))) => Printed::Missing,
            Ok(Ok(_) | Err(CaptureError::Lost(_) | CaptureError::TooMuch)) | Err(_) => {
                Printed::Nothing
            }
        }
    }
}
