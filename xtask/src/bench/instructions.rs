//! Instructions counted by callgrind: the same on every machine, however busy.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use super::answers::{self, Answer};
use super::report::{Row, Unit};
use super::samples::Summary;
use super::server::Bodies;
use super::stage::Stage;
use crate::environment;
use crate::shell::say;

pub(super) fn rows(stage: &Stage) -> Result<Vec<Row>> {
    environment::install(&[("valgrind", "valgrind")])?;
    if !environment::is_installed("valgrind") {
        say("valgrind is not installed: instructions are not counted");
        return Ok(Vec::new());
    }
    let body = stage.first_body()?;
    let refused = vec![answers::refusal()];
    let answered = vec![answers::text("hello")];
    let ours = stage.prompt(&["--quiet"]);
    let mut many = stage.prompt(&["--quiet", "--max-turns", "51"]);
    many.env("CALIBAN_NO_PARALLEL_TOOLS", "1");
    let count = |command: &Command, answers: &[Answer]| {
        stage.server.play(answers.to_vec(), Bodies::Dropped);
        counted(command, &stage.place("callgrind.out"))
    };
    let to_refusal = count(&ours, &refused)?;
    let one = count(&ours, &answered)?;
    let turns = count(&many, &stage.tool_turns(50))?;
    let curl = count(&stage.curl(&body, 1), &answered)?;
    let curl_turns = count(&stage.curl(&body, 51), &stage.tool_turns(50))?;
    let row =
        |name: &str, ours, curl| Row::new(name, Unit::MegaInstructions, ours).against("curl", curl);
    Ok(vec![
        row("instructions to a refused first request", to_refusal, curl),
        row("instructions of one answer", one, curl),
        row("instructions of 50 tool turns", turns, curl_turns),
    ])
}

/// Millions of instructions that a command takes, whatever its exit code.
fn counted(command: &Command, file: &Path) -> Result<Summary> {
    watched(command, file)
        .output()
        .context("`valgrind` could not be started")?;
    let text = std::fs::read_to_string(file)?;
    let total: f64 = text
        .lines()
        .find_map(|line| {
            line.strip_prefix("summary:")
                .or(line.strip_prefix("totals:"))
        })
        .context("callgrind counted nothing")?
        .trim()
        .parse()?;
    Ok(Summary::exact(total / 1e6))
}

/// The same command below callgrind, which writes to a file.
pub(super) fn watched(command: &Command, file: &Path) -> Command {
    let mut valgrind = Command::new("valgrind");
    valgrind
        .args(["--tool=callgrind", "--quiet", "--demangle=no"])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(command.get_program())
        .args(command.get_args());
    if command.get_program() != "curl" {
        valgrind.env_clear();
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => valgrind.env(name, value),
            None => valgrind.env_remove(name),
        };
    }
    if let Some(directory) = command.get_current_dir() {
        valgrind.current_dir(directory);
    }
    valgrind
}
