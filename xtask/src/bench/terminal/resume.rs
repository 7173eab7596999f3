//! A session of 100 MB is opened again.

use std::time::Instant;

use anyhow::{Context, Result};
use caliban_testkit::terminal::Terminal;

use super::super::process::{megabytes, milliseconds};
use super::super::report::{Row, Target, Unit};
use super::super::sessions::{SAID, long_session};
use super::super::stage::Stage;
use super::{FEW, READY, caliban, contains, row, settle, written};

pub(super) fn rows(stage: &Stage) -> Result<Vec<Row>> {
    let file = long_session(stage)?;
    let directory = file.parent().context("a directory")?.display().to_string();
    let arguments = [
        "--resume",
        "long",
        "--no-save",
        "--sessions-dir",
        &directory,
    ];
    let [mut seen, mut ready, mut memory]: [Vec<f64>; 3] = Default::default();
    for _ in 0..stage.runs.min(FEW) {
        let started = Instant::now();
        let terminal = Terminal::start(caliban(stage, &arguments));
        for (text, times) in [(SAID.trim_end(), &mut seen), (READY, &mut ready)] {
            let there = written(&terminal, |bytes| contains(bytes, text))?;
            times.push(milliseconds(there.duration_since(started)));
        }
        settle(&terminal);
        memory.push(megabytes(terminal.rss()));
    }
    Ok(vec![
        row(
            "resume of 100 MB, to the last screen",
            Unit::Milliseconds,
            seen,
        )?
        .target(Target::AtMost(50.0)),
        row(
            "the same, to a session that hears",
            Unit::Milliseconds,
            ready,
        )?
        .target(Target::AtMost(250.0)),
        row("its memory", Unit::Megabytes, memory)?.target(Target::AtMost(150.0)),
    ])
}
