//! A confined program that does nothing: all of it, beside bubblewrap alone and nothing at all.

use std::process::Command;

use anyhow::{Context, Result};

use super::process::{measure, milliseconds};
use super::report::{Row, Unit};
use super::samples::{Better, Summary};
use super::stage::Stage;
use crate::environment::{self, is_installed};
use crate::shell::say;

/// The least that makes a sandbox.
const LEAST: [&str; 12] = [
    "--unshare-all",
    "--die-with-parent",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--cap-drop",
    "ALL",
    "true",
];

pub(super) fn rows(stage: &Stage) -> Result<Vec<Row>> {
    environment::install(&[("bwrap", "bubblewrap")])?;
    let works = is_installed("bwrap") && Command::new("bwrap").args(LEAST).status()?.success();
    if !works {
        say("no sandbox can be made here; nothing is measured");
        return Ok(Vec::new());
    }
    let confined = |stage: &Stage| {
        let mut command = stage.caliban(&stage.workspace());
        command.args(["sandbox", "exec", "--", "true"]);
        command
    };
    // What is found out once a boot is not what a call costs.
    measure(&mut confined(stage))?;
    let (mut ours, mut alone, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..stage.runs {
        ours.push(milliseconds(measure(&mut confined(stage))?.wall));
        let mut bwrap = Command::new("bwrap");
        alone.push(milliseconds(measure(bwrap.args(LEAST))?.wall));
        let mut version = stage.caliban(&stage.workspace());
        bare.push(milliseconds(measure(version.arg("--version"))?.wall));
    }
    let summary = |values: Vec<f64>| Summary::of(values, Better::Less).context("no runs");
    let (ours, alone, bare) = (summary(ours)?, summary(alone)?, summary(bare)?);
    let start = format!("of these {:.1} ms are the program's own start", bare.median);
    let row = Row::new("confined `true`, wall", Unit::Milliseconds, ours);
    Ok(vec![row.against("bwrap", alone).note(start)])
}
