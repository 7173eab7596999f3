//! What it costs when nothing happens.

use std::time::Duration;

use anyhow::Result;

use super::super::process::megabytes;
use super::super::report::{Row, Target, Unit};
use super::super::stage::Stage;
use super::{FEW, caliban, float, row, waiting};

const WHILE: Duration = Duration::from_secs(5);

pub(super) fn rows(stage: &Stage) -> Result<Vec<Row>> {
    let [mut woken, mut bytes, mut memory]: [Vec<f64>; 3] = Default::default();
    for _ in 0..stage.runs.min(FEW) {
        let terminal = waiting(caliban(stage, &[]));
        memory.push(megabytes(terminal.rss()));
        let (switches, written) = (terminal.voluntary_switches(), terminal.counts().bytes);
        std::thread::sleep(WHILE);
        let switches = terminal.voluntary_switches().saturating_sub(switches);
        woken.push(float(usize::try_from(switches)?));
        bytes.push(float(terminal.counts().bytes - written));
    }
    Ok(vec![
        row("memory at the first prompt", Unit::Megabytes, memory)?.target(Target::AtMost(25.0)),
        row("wakeups in 5 s at rest", Unit::Number, woken)?.target(Target::AtMost(0.0)),
        row("bytes in 5 s at rest", Unit::Bytes, bytes)?.target(Target::AtMost(0.0)),
    ])
}
