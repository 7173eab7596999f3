//! The `Bash` tool: runs a command and returns what it wrote, or starts it as a background job.

use std::convert::Infallible;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caliban_agent::{
    Details, Effect, Progress, ToolContext, ToolOutput, ToolStatus, TypedTool, Workspace,
    input_schema,
};
use caliban_model::ToolContent;
use caliban_process::{Driven, Ending, Finished, Sink, drive_until};
use caliban_sandbox::{Call, Success};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::MissedTickBehavior;

use super::capture::Capture;
use super::interpreter::{Room, Shell, Started};
use super::jobs::{Jobs, StartError};
use super::text;

const DEFAULT_TIMEOUT: Duration = Duration::from_mins(2);
/// What takes longer belongs into the background.
const MAX_TIMEOUT: Duration = Duration::from_mins(10);
/// The kernel takes arguments and variables up to 128 KiB, their names and ends included.
const MAX_COMMAND: usize = 127 * 1024;
/// How often output is shown while a command runs, and how much of it each time.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);
const PROGRESS_BYTES: usize = 4 * 1024;

/// Runs commands in a fresh shell each.
#[derive(Debug)]
pub struct Bash {
    shell: Arc<Shell>,
    jobs: Arc<Jobs>,
}

impl Bash {
    pub fn new(shell: Arc<Shell>, jobs: Arc<Jobs>) -> Self {
        Self { shell, jobs }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashInput {
    /// The command line.
    command: String,
    /// When to kill it: default 120, at most 600; in background default 12 hours.
    #[serde(default)]
    timeout_seconds: Option<u64>,
    /// Directory to run in; default the workspace root.
    #[serde(default)]
    cwd: Option<String>,
    /// What it does, in 5 to 10 words.
    #[serde(default)]
    #[expect(dead_code, reason = "people read it in the call itself")]
    description: Option<String>,
    /// Return at once with an id for `BashOutput` and `KillShell`.
    #[serde(default, alias = "run_in_background")]
    background: bool,
    /// Only for a command that the sandbox made fail: why it must run outside. The user is asked.
    #[serde(default)]
    without_sandbox: Option<String>,
    /// Elsewhere the way out of the sandbox; here it takes a reason that the user reads, so without
    /// one the command stays inside.
    #[serde(default, rename = "dangerouslyDisableSandbox")]
    #[schemars(skip)]
    _outside: bool,
}

impl BashInput {
    /// Where it is to run. By the time a call runs, somebody has consented to what it says.
    fn room(&self) -> Room {
        match self.without_sandbox {
            Some(_) => Room::Outside,
            None => Room::Usual,
        }
    }
}

impl TypedTool for Bash {
    type Input = BashInput;

    const NAME: &'static str = "Bash";
    const DESCRIPTION: &'static str = "Runs a command in a fresh `bash -c`: directory and \
        variables do not persist between calls, stdin is empty, there is no terminal. What it \
        started is killed when it ends; use `background` for servers and long work. Returns \
        stdout and stderr together, then the exit code.";
    const EFFECT: Effect = Effect::Executes;

    fn description(&self) -> String {
        format!("{}{}", Self::DESCRIPTION.trim(), self.shell.confinement())
    }

    /// Without a sandbox nothing is said of one.
    fn schema(&self) -> Value {
        let mut schema = input_schema::<BashInput>();
        if !self.shell.is_confined()
            && let Some(Value::Object(properties)) = schema.get_mut("properties")
        {
            properties.remove(WITHOUT_SANDBOX);
        }
        schema
    }

    fn first_arg(&self, input: &BashInput) -> Option<String> {
        Some(input.command.clone())
    }

    async fn run(&self, input: BashInput, context: ToolContext) -> ToolOutput {
        if let Err(problem) = check_command(&input.command) {
            return ToolOutput::invalid(problem);
        }
        if input.timeout_seconds == Some(0) {
            return ToolOutput::invalid("timeout_seconds must be at least 1.");
        }
        let directory = match directory(input.cwd.as_deref(), &context.workspace) {
            Ok(directory) => directory,
            Err(problem) => return ToolOutput::invalid(problem),
        };
        let asked = input.timeout_seconds.map(Duration::from_secs);
        if input.background {
            let trace = context.trace.as_deref();
            return self.start(&input, &directory, asked, trace);
        }
        let limit = asked.unwrap_or(DEFAULT_TIMEOUT).min(MAX_TIMEOUT);
        let output = self.finish(&input, &directory, limit, &context).await;
        match asked {
            Some(asked) if asked > MAX_TIMEOUT => with_clamp_note(output),
            Some(_) | None => output,
        }
    }
}

impl Bash {
    fn start(
        &self,
        input: &BashInput,
        directory: &Path,
        limit: Option<Duration>,
        trace: Option<&str>,
    ) -> ToolOutput {
        let (command, room) = (&input.command, input.room());
        let error = match self.jobs.start(command, directory, limit, room, trace) {
            Ok(id) => {
                return ToolOutput::ok(format!(
                    "Started in background as {id}. Read its output with BashOutput, end it \
                     with KillShell."
                ));
            }
            Err(error) => error,
        };
        let status = match error {
            StartError::TooMany(_) | StartError::Closed => ToolStatus::Failed,
            StartError::Io(_) => ToolStatus::CouldNotRun,
        };
        ToolOutput::new(
            status,
            format!("The command was not started in background: {error}."),
        )
    }

    async fn finish(
        &self,
        input: &BashInput,
        directory: &Path,
        limit: Duration,
        context: &ToolContext,
    ) -> ToolOutput {
        let mut attempt = 1;
        loop {
            match self.once(input, directory, limit, context).await {
                Once::Done(output) => return output,
                Once::NotBegun(problem) if attempt >= ATTEMPTS => {
                    return could_not_run(&format!("the sandbox could not be made: {problem}"));
                }
                Once::NotBegun(_) => attempt += 1,
            }
        }
    }

    async fn once(
        &self,
        input: &BashInput,
        directory: &Path,
        limit: Duration,
        context: &ToolContext,
    ) -> Once {
        let mut live = Live::default();
        let recent = Arc::clone(&live.recent);
        let trace = context.trace.as_deref();
        let started = match self
            .shell
            .start(&input.command, directory, input.room(), trace)
        {
            Ok(started) => started,
            Err(error) => return Once::Done(could_not_run(&error)),
        };
        let (process, output, call) = (started.process, started.output, started.call);
        let cancel = &context.cancel;
        let run = drive_until(process, output, limit, cancel, &mut live, self.moved_away());
        let finished = tokio::select! {
            finished = run => finished,
            never = show(&recent, &context.progress) => match never {},
        };
        match finished {
            Ok(Driven::Finished(finished)) => {
                let text = live.capture.text();
                match call {
                    None => Once::Done(result(&text, finished)),
                    Some(call) => confined(&text, finished, call),
                }
            }
            Ok(Driven::HandedOver {
                process, output, ..
            }) => {
                let started = Started {
                    process: *process,
                    output,
                    call,
                };
                Once::Done(self.hand_over(&input.command, started, &live.capture.text()))
            }
            Err(error) => Once::Done(could_not_run(&error)),
        }
    }
}

/// The input that asks for a run outside the sandbox.
pub const WITHOUT_SANDBOX: &str = "without_sandbox";

/// How often a command is started whose sandbox could not be made: what was to be covered may have
/// vanished meanwhile.
const ATTEMPTS: usize = 3;

/// What became of one attempt to run a command.
enum Once {
    Done(ToolOutput),
    /// It never began, for this reason.
    NotBegun(String),
}

fn could_not_run(error: &dyn std::fmt::Display) -> ToolOutput {
    ToolOutput::new(
        ToolStatus::CouldNotRun,
        format!("The command could not be run: {error}."),
    )
}

/// The result of a command that was confined, with what the sandbox has to say about it.
fn confined(text: &str, finished: Finished, call: Call) -> Once {
    let success = match finished.ending {
        Ending::Exited(0) => Success::Yes,
        Ending::Exited(_) | Ending::Signalled(_) | Ending::TimedOut | Ending::Cancelled => {
            Success::No
        }
    };
    match finished.ending {
        Ending::Exited(_) => {
            if let Some(problem) = call.start_failure(success, text) {
                return Once::NotBegun(problem);
            }
        }
        Ending::Signalled(_) | Ending::TimedOut | Ending::Cancelled => {}
    }
    let mut remarks = call.finish(success, text);
    if success == Success::No && !remarks.is_empty() {
        remarks.push(format!(
            "if it must run outside the sandbox, make the same call again with `{WITHOUT_SANDBOX}` and the reason; the user is asked"
        ));
    }
    let remarks = remarks.iter().map(|line| format!("\n[{line}]"));
    let remarks: String = remarks.collect();
    Once::Done(with_remark(result(text, finished), &remarks))
}

impl Bash {
    /// Waits until the operator wants the command in background, and there is room for it.
    async fn moved_away(&self) {
        loop {
            self.jobs.wanted_in_background().await;
            if self.jobs.has_room() {
                return;
            }
        }
    }

    fn hand_over(&self, command: &str, started: Started, said: &str) -> ToolOutput {
        match self.jobs.adopt(command, started, said.as_bytes().to_vec()) {
            Ok(id) => ToolOutput::ok(format!(
                "{said}\n[the user moved it to the background as {id}; it runs on. Read its output \
                 with BashOutput, end it with KillShell.]"
            )),
            Err(error) => ToolOutput::new(
                ToolStatus::CouldNotRun,
                format!("{said}\n[it could not be moved to the background and was ended: {error}]"),
            ),
        }
    }
}

fn check_command(command: &str) -> Result<(), String> {
    if command.trim().is_empty() {
        return Err("The command is empty.".to_owned());
    }
    if command.contains('\0') {
        return Err("The command holds a NUL character, which no shell accepts.".to_owned());
    }
    if command.len() > MAX_COMMAND {
        return Err(format!(
            "The command is {} bytes long and the limit is {MAX_COMMAND}. Write a script to a \
             file and run that.",
            command.len()
        ));
    }
    Ok(())
}

fn directory(cwd: Option<&str>, workspace: &Workspace) -> Result<PathBuf, String> {
    let Some(cwd) = cwd else {
        return Ok(workspace.root().to_owned());
    };
    let path = workspace
        .resolve_directory(cwd)
        .map_err(|error| format!("The cwd cannot be used: {error}."))?
        .real;
    if path.is_dir() {
        Ok(path)
    } else {
        Err(format!(
            "The cwd `{}` is not an existing directory.",
            path.display()
        ))
    }
}

fn result(output: &str, finished: Finished) -> ToolOutput {
    let seconds = finished.elapsed.as_secs_f64();
    let (status, line) = match finished.ending {
        Ending::Exited(0) => (ToolStatus::Ok, format!("exit 0 in {seconds:.1} s")),
        Ending::Exited(code) => (ToolStatus::Failed, format!("exit {code} in {seconds:.1} s")),
        Ending::Signalled(signal) => (
            ToolStatus::Failed,
            format!("killed by {signal} after {seconds:.1} s"),
        ),
        Ending::TimedOut => (
            ToolStatus::TimedOut,
            format!(
                "timed out after {seconds:.0} s and was killed; use a longer timeout_seconds or \
                 background"
            ),
        ),
        Ending::Cancelled => (
            ToolStatus::Cancelled,
            format!("cancelled after {seconds:.1} s and was killed"),
        ),
    };
    let output = output.trim_end_matches('\n');
    let note = match output {
        "" => format!("(no output)\n[{line}]"),
        _ => format!("\n[{line}]"),
    };
    ToolOutput::new(status, format!("{output}{note}")).with_details(Details::Command {
        exit_code: match finished.ending {
            Ending::Exited(code) => Some(code),
            Ending::Signalled(_) | Ending::TimedOut | Ending::Cancelled => None,
        },
        note,
    })
}

fn with_clamp_note(output: ToolOutput) -> ToolOutput {
    let remark = format!(
        "\n[timeout_seconds was lowered to {}, the maximum; use background for longer work]",
        MAX_TIMEOUT.as_secs()
    );
    with_remark(output, &remark)
}

/// Adds something that the command did not write.
fn with_remark(mut output: ToolOutput, remark: &str) -> ToolOutput {
    if let Some(Details::Command { note, .. }) = &mut output.details {
        note.push_str(remark);
    }
    if let Some(ToolContent::Text { text }) = output.content.last_mut() {
        text.push_str(remark);
    }
    output
}

/// Keeps output for the result and the latest of it for showing.
#[derive(Debug, Default)]
struct Live {
    capture: Capture,
    /// What was not shown yet: at most the last [`PROGRESS_BYTES`].
    recent: Arc<Mutex<Vec<u8>>>,
}

impl Sink for Live {
    async fn take(&mut self, bytes: &[u8]) {
        self.capture.push(bytes);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let latest = &bytes[bytes.len().saturating_sub(PROGRESS_BYTES)..];
        let excess = (recent.len() + latest.len()).saturating_sub(PROGRESS_BYTES);
        recent.drain(..excess);
        recent.extend_from_slice(latest);
    }
}

/// Shows what is recent, again and again.
async fn show(recent: &Mutex<Vec<u8>>, progress: &Progress) -> Infallible {
    let mut ticks = tokio::time::interval(PROGRESS_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let piece = {
            let mut recent = recent.lock().unwrap_or_else(PoisonError::into_inner);
            let torn = recent.len() - text::incomplete_end(&recent);
            let rest = recent.split_off(torn);
            mem::replace(&mut *recent, rest)
        };
        if !piece.is_empty() && text::script(&piece) == text::Script::Text {
            progress.output(text::readable(&piece));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caliban_process::SignalNumber;
    use rstest::rstest;

    #[rstest]
    #[case(Ending::Exited(0), ToolStatus::Ok, "out\n[exit 0 in 1.5 s]")]
    #[case(Ending::Exited(101), ToolStatus::Failed, "out\n[exit 101 in 1.5 s]")]
    #[case(
        Ending::Signalled(SignalNumber(9)),
        ToolStatus::Failed,
        "out\n[killed by SIGKILL after 1.5 s]"
    )]
    #[case(
        Ending::Signalled(SignalNumber(99)),
        ToolStatus::Failed,
        "out\n[killed by signal 99 after 1.5 s]"
    )]
    #[case(
        Ending::Cancelled,
        ToolStatus::Cancelled,
        "out\n[cancelled after 1.5 s and was killed]"
    )]
    #[case(
        Ending::TimedOut,
        ToolStatus::TimedOut,
        "out\n[timed out after 2 s and was killed; use a longer timeout_seconds or background]"
    )]
    fn every_ending_has_its_line(
        #[case] ending: Ending,
        #[case] status: ToolStatus,
        #[case] text: &str,
    ) {
        let finished = Finished {
            ending,
            elapsed: Duration::from_millis(1500),
        };
        let output = result("out\n\n", finished);
        assert_eq!((output.status, output.text().as_str()), (status, text));
        // What is not output can be told apart.
        let Some(Details::Command { note, .. }) = output.details else {
            panic!("no details");
        };
        assert_eq!(text.strip_suffix(&note), Some("out"));
    }

    #[test]
    fn commands_that_cannot_be_passed_are_refused() {
        assert!(check_command("ls").is_ok());
        assert!(check_command(" \n").is_err());
        assert!(check_command("ls\0-l").is_err());
        assert!(check_command(&"x".repeat(MAX_COMMAND)).is_ok());
        assert!(check_command(&"x".repeat(MAX_COMMAND + 1)).is_err());
    }

    #[tokio::test]
    async fn only_the_latest_output_waits_to_be_shown() {
        let mut live = Live::default();
        live.take(&vec![b'a'; 3 * PROGRESS_BYTES]).await;
        live.take(b"end").await;
        let recent = live.recent.lock().unwrap();
        assert_eq!(recent.len(), PROGRESS_BYTES);
        assert!(recent.ends_with(b"aend"));
    }
}
