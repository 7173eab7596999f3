//! The daemon: its process, and the commands about it.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use caliban_fleet::{Client, Places, Setup, holder, serve, sweep_orphans};
use caliban_harness::{Process, RunOptions, configure, locations, sweep_worktrees};
use jiff::Timestamp;
use rustix::process::{Pid, Signal, kill_process};

use super::{Fleet, LINGER, executable, listing};
use crate::args::DaemonCommand;
use crate::console::{Console, note};
use crate::exit::Failure;
use crate::{process, runtime};

/// Whether the program was started as the daemon.
pub(crate) fn is_daemon_name(program: Option<&OsString>) -> bool {
    program.map(Path::new).and_then(Path::file_stem) == Some(OsStr::new("caliband"))
}

/// Runs the daemon of a repository, or of the current directory's.
pub(crate) fn daemon_main(root: Option<OsString>) -> ExitCode {
    runtime::exit_code(daemon(root))
}

async fn daemon(root: Option<OsString>) -> ExitCode {
    let process = process::current(process::environment());
    let root = root.map_or_else(|| process.current_directory.clone(), PathBuf::from);
    let places = match root.canonicalize() {
        Ok(root) => Places::new(&locations(&process), &root),
        Err(error) => {
            note(&format!("caliband: `{}`: {error}", root.display()));
            return ExitCode::FAILURE;
        }
    };
    let tidying = tidy(process, root, places.clone());
    let setup = Setup {
        places,
        executable: executable(),
        linger: LINGER,
    };
    match Box::pin(serve(setup, tidying)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let mut console = Console::new();
            // Whoever waits for it reads the first line.
            let _ = console.write(&format!("{error}\n"));
            note(&format!("caliband: {error}"));
            ExitCode::FAILURE
        }
    }
}

/// Ends what killed agents left behind: processes, sockets, and the worktrees of those that are no
/// more. What is said of it goes to the log.
async fn tidy(mut process: Process, root: PathBuf, places: Places) {
    let swept = tokio::task::spawn_blocking(move || sweep_orphans(&places)).await;
    for orphan in swept.unwrap_or_default() {
        note(&format!("caliband: {orphan}"));
    }
    process.current_directory = root;
    let options = RunOptions::default();
    let configuration = match configure(&options, process) {
        Ok(configuration) => configuration,
        Err(error) => return note(&format!("caliband: worktrees are not looked over: {error}")),
    };
    match sweep_worktrees(&options, &configuration).await {
        Ok(told) => told
            .iter()
            .for_each(|line| note(&format!("caliband: {line}"))),
        Err(error) => note(&format!("caliband: worktrees are not looked over: {error}")),
    }
}

/// Ends a daemon that has its place and cannot be reached, because somebody removed its socket or it
/// hangs.
fn stop_unreachable(places: &Places) -> Result<String, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        let lock = places.daemon_lock();
        Failure::Runtime(format!("`{}`: {error}", lock.display()))
    };
    let Some(holder) = holder(places).map_err(|error| failed(&error))? else {
        return Ok("there is no daemon\n".to_owned());
    };
    let pid = i32::try_from(holder).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| failed(&"it names no process"))?;
    kill_process(pid, Signal::TERM).map_err(|error| failed(&error))?;
    Ok(format!(
        "the daemon did not answer, and its process {holder} was ended; its agents go on\n"
    ))
}

pub(crate) async fn daemon_command(
    command: &DaemonCommand,
    fleet: &Fleet<'_>,
    console: &mut Console,
) -> Result<(), Failure> {
    let client = match (command, Client::find(&fleet.places).await) {
        // It is ended all the same.
        (DaemonCommand::Stop, Err(error)) if error.is_silent() => None,
        (_, found) => found?,
    };
    match (command, client) {
        (DaemonCommand::Stop, None) => console.write(&stop_unreachable(&fleet.places)?),
        (DaemonCommand::Stop, Some(mut client)) => {
            let left = match client.stop().await? {
                0 => String::new(),
                1 => "; 1 agent goes on without it".to_owned(),
                count => format!("; {count} agents go on without it"),
            };
            console.write(&format!("the daemon has ended{left}\n"))
        }
        (DaemonCommand::Status { json }, None) => {
            let socket = fleet.places.control_socket();
            if *json {
                let status = serde_json::json!({"running": false, "socket": socket});
                return console.write(&listing::json_line(&status));
            }
            console.write(&format!(
                "no daemon runs; the next `caliban --bg` or `caliban agents` starts one\n\
                 socket  {}\n",
                socket.display()
            ))
        }
        (DaemonCommand::Status { json }, Some(mut client)) => {
            let status = client.status().await?;
            if *json {
                let mut value = serde_json::to_value(&status)
                    .map_err(|error| Failure::Runtime(error.to_string()))?;
                value["running"] = true.into();
                return console.write(&listing::json_line(&value));
            }
            let up = caliban_tui::age(Timestamp::now().duration_since(status.started));
            console.write(&format!(
                "healthy\n\
                 pid     {}\n\
                 uptime  {up}\n\
                 version {} (protocol {})\n\
                 agents  {} ({} alive, {} waiting for a place)\n\
                 root    {}\n\
                 socket  {}\n",
                status.pid,
                status.build,
                status.protocol,
                status.agents,
                status.alive,
                status.waiting,
                status.root.display(),
                status.socket.display(),
            ))
        }
    }
}
