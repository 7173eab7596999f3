//! The fixed shell that commands run in.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use caliban_process::{Guard, Invocation, Process};
use caliban_sandbox::{Call, Sandbox};
use tokio::net::unix::pipe;

/// Variables that make a shell run a file before the command.
const START_FILES: [&str; 2] = ["BASH_ENV", "ENV"];

/// The shell that runs commands. It is fixed rather than the user's, since models write for it.
#[derive(Debug, Clone)]
pub struct Shell {
    program: PathBuf,
    guard: Guard,
    sandbox: Option<Arc<Sandbox>>,
    /// Shared with the clones of this shell.
    environment: Arc<RwLock<Vec<(OsString, OsString)>>>,
}

/// Where a command runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// In the sandbox, where there is one and the settings do not say otherwise.
    Usual,
    /// Outside of it: somebody has consented to that.
    Outside,
}

/// Where bash may be.
const BASH: [&str; 3] = ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"];
/// Nothing of the user's own is read before the command.
const OPTIONS: [&str; 3] = ["--noprofile", "--norc", "-c"];

impl Shell {
    /// A shell whose commands see `environment` and nothing else of this process's.
    pub fn new(guard: Guard, environment: Vec<(OsString, OsString)>) -> Self {
        // Rules are judged by the grammar of bash; another shell would read a line differently.
        let program = BASH
            .into_iter()
            .map(Path::new)
            .find(|path| path.exists())
            .unwrap_or(Path::new(BASH[0]));
        Self {
            program: program.to_owned(),
            guard,
            sandbox: None,
            environment: Arc::new(RwLock::new(without_start_files(environment))),
        }
    }

    /// The same within a sandbox.
    #[must_use]
    pub fn with_sandbox(self, sandbox: Option<Arc<Sandbox>>) -> Self {
        Self { sandbox, ..self }
    }

    pub fn guard(&self) -> &Guard {
        &self.guard
    }

    /// What the model is told about the sandbox.
    pub(super) fn confinement(&self) -> String {
        let sandbox = self.sandbox.as_ref();
        sandbox.map(|it| it.description()).unwrap_or_default()
    }

    /// Whether commands are confined, unless the settings or a person say otherwise.
    pub(super) fn is_confined(&self) -> bool {
        // Whatever is true of all lines is true of one without words.
        let sandbox = self.sandbox.as_ref();
        sandbox.is_some_and(|sandbox| sandbox.confines(""))
    }

    /// Commands that start from now on see this environment instead.
    pub fn replace_environment(&self, environment: Vec<(OsString, OsString)>) {
        let environment = without_start_files(environment);
        let current = self.environment.write();
        *current.unwrap_or_else(PoisonError::into_inner) = environment;
    }

    /// Starts `command` in `directory`, with no input and both outputs in one pipe, which keeps
    /// their order. What has a place in a trace is told so. Needs a running tokio runtime.
    pub(super) fn start(
        &self,
        command: &str,
        directory: &Path,
        room: Room,
        trace: Option<&str>,
    ) -> io::Result<Started> {
        let environment = self.environment.read();
        let mut environment = environment.unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(trace) = trace {
            environment.retain(|(name, _)| name != TRACEPARENT && name != TRACESTATE);
            environment.push((TRACEPARENT.into(), trace.into()));
        }
        let invocation = Invocation {
            program: self.program.clone().into(),
            args: OPTIONS
                .into_iter()
                .chain([command])
                .map(OsString::from)
                .collect(),
            directory: directory.to_owned(),
            environment,
        };
        let sandbox = self.sandbox.as_ref().filter(|it| match room {
            Room::Usual => !it.runs_outside(command),
            Room::Outside => false,
        });
        let (invocation, call) = match sandbox {
            None => (invocation, None),
            Some(sandbox) => {
                let confined = sandbox.confine(invocation).map_err(io::Error::other)?;
                (confined.invocation, Some(confined.call))
            }
        };
        let (process, output) = invocation.start(&self.guard)?;
        Ok(Started {
            process,
            output,
            call,
        })
    }
}

/// A command that runs.
#[derive(Debug)]
pub(super) struct Started {
    pub(super) process: Process,
    pub(super) output: pipe::Receiver,
    /// Where it is confined.
    pub(super) call: Option<Call>,
}

/// Where programs find the trace that they belong to.
const TRACEPARENT: &str = "TRACEPARENT";
const TRACESTATE: &str = "TRACESTATE";

fn without_start_files(mut environment: Vec<(OsString, OsString)>) -> Vec<(OsString, OsString)> {
    environment.retain(|(name, _)| !START_FILES.iter().any(|file| name == file));
    environment
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::time::Duration;

    use caliban_process::{Sink, drive};

    use super::*;

    #[derive(Default)]
    struct Text(Vec<u8>);

    impl Sink for Text {
        async fn take(&mut self, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }
    }

    async fn output(shell: &Shell, command: &str) -> String {
        let started = shell
            .start(command, Path::new("/"), Room::Usual, None)
            .unwrap();
        let mut text = Text::default();
        let cancel = caliban_model::CancellationToken::new();
        let (process, output) = (started.process, started.output);
        let finished = drive(process, output, Duration::from_mins(1), &cancel, &mut text).await;
        finished.unwrap();
        String::from_utf8(text.0).unwrap()
    }

    #[tokio::test]
    async fn commands_see_what_is_given_but_no_start_files() {
        let environment = |given: &str| {
            [("BASH_ENV", "/dev/stdin"), ("ENV", "x"), ("GIVEN", given)]
                .map(|(name, value)| (name.into(), OsStr::new(value).to_owned()))
                .into()
        };
        let shell = Shell::new(Guard::None, environment("given"));
        let command = "echo $GIVEN$BASH_ENV$ENV$HOME";
        assert_eq!(output(&shell, command).await, "given\n");
        shell.replace_environment(environment("changed"));
        assert_eq!(output(&shell, command).await, "changed\n");
    }
}
