//! A program for the shell's tests: a guardian, or a session that runs one command and is there
//! to be killed.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use caliban_agent::{Confinement, OpenReading, Progress, ToolContext, TypedTool, Workspace};
use caliban_model::CancellationToken;
use caliban_process::{GUARD_ARGUMENT, Guard, guard_main};
use caliban_tools::{Bash, JobLimits, Jobs, Shell};
use serde_json::json;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Failure> {
    let mut args = std::env::args_os().skip(1);
    match args.next().as_deref().and_then(OsStr::to_str) {
        Some(GUARD_ARGUMENT) => Ok(guard_main(args)),
        Some("session") => session(args),
        Some(_) | None => Err("use `__guard PROGRAM…` or `session DIRECTORY COMMAND`".into()),
    }
}

fn session(mut args: impl Iterator<Item = OsString>) -> Result<ExitCode, Failure> {
    let directory = PathBuf::from(args.next().ok_or("no directory")?);
    let command = args.next().ok_or("no command")?;
    let guard = Guard::ReExec(std::env::current_exe()?);
    let shell = Arc::new(Shell::new(guard, std::env::vars_os().collect()));
    let jobs = Jobs::new(
        Arc::clone(&shell),
        directory.join("jobs"),
        JobLimits::default(),
    );
    let context = ToolContext {
        call_id: "call".into(),
        session_id: "session".into(),
        workspace: Arc::new(Workspace::new(&directory, &[], None, Confinement::Open)?),
        reading: OpenReading::shared(),
        cancel: CancellationToken::new(),
        progress: Progress::silent(),
        trace: None,
    };
    let bash = Bash::new(shell, Arc::new(jobs)).boxed();
    let input = json!({"command": command.to_str()});
    tokio::runtime::Runtime::new()?.block_on(bash.run(input, context));
    Ok(ExitCode::SUCCESS)
}
