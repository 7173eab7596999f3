//! What is decided inside the program: verdicts on calls and the loading of settings, each timed
//! by an example of its crate.

use anyhow::{Context, Result};
use serde::Deserialize;

use super::report::{Row, Target, Unit};
use super::samples::{Better, Summary};
use crate::shell::{cargo, output};

/// What an example prints.
#[derive(Deserialize)]
struct Timed {
    milliseconds: Vec<f64>,
}

pub(super) fn rows() -> Result<Vec<Row>> {
    let verdict = row(
        "verdict on 200 commands, 1,000 rules",
        "caliban-permissions",
        "verdict_time",
    )?;
    let load = row("settings of five scopes", "caliban-settings", "load_time")?;
    Ok(vec![
        verdict.target(Target::AtMost(5.0)),
        load.target(Target::AtMost(0.5)),
    ])
}

fn row(name: &str, package: &str, example: &str) -> Result<Row> {
    let text = output(
        cargo()
            .args(["run", "--release", "--quiet", "--package", package])
            .args(["--example", example]),
    )?;
    let timed: Timed = serde_json::from_str(&text).with_context(|| format!("`{example}`"))?;
    let summary = Summary::of(timed.milliseconds, Better::Less).context("no runs")?;
    Ok(Row::new(name, Unit::Milliseconds, summary))
}
