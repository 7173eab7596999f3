//! What an answer costs while it comes: at the pace of a model, and all at once. A frame is one write.

use std::time::Instant;

use anyhow::{Context, Result};
use caliban_testkit::terminal::Terminal;
use caliban_testkit::{Block, BlockingServer, Prose, Reply, Script};

use super::super::answers;
use super::super::process::milliseconds;
use super::super::report::{Row, Target, Unit};
use super::super::server::Bodies;
use super::super::stage::Stage;
use super::{FEW, RUNNING, caliban, caliban_at, float, row, waiting};

const DELTAS: usize = 1_000;
const DELTA: &str = "word ";
/// Between two deltas, so that about 100 come in a second.
const PAUSE_MS: u64 = 10;
const BURST: usize = 20_000;

pub(super) fn rows(stage: &Stage) -> Result<Vec<Row>> {
    let mut rows = paced(stage)?;
    rows.extend(burst(stage)?);
    Ok(rows)
}

fn paced(stage: &Stage) -> Result<Vec<Row>> {
    let [mut bytes, mut frames, mut cpu]: [Vec<f64>; 3] = Default::default();
    for _ in 0..stage.runs.min(FEW) {
        let prose = Prose::Pieces(vec![DELTA.to_owned(); DELTAS]);
        let reply = Reply::default()
            .block(Block::Text(prose))
            .chunk_delay_ms(PAUSE_MS);
        let server = BlockingServer::start(Script::new([reply]))?;
        let terminal = waiting(caliban_at(stage, &server.url(), &[]));
        let (before, spent, started) = (terminal.counts(), terminal.cpu(), Instant::now());
        terminal.keys("go");
        terminal.key("enter");
        answered(&terminal);
        let (took, after) = (started.elapsed(), terminal.counts());
        bytes.push(float(after.bytes - before.bytes) / float(DELTAS));
        frames.push(float(after.writes - before.writes) / took.as_secs_f64());
        cpu.push(milliseconds(terminal.cpu().saturating_sub(spent)));
    }
    Ok(vec![
        row(
            "bytes a streamed delta of 5, 100 a second",
            Unit::Bytes,
            bytes,
        )?
        .target(Target::AtMost(30.0)),
        row("frames a second meanwhile", Unit::PerSecond, frames)?.target(Target::AtMost(30.0)),
        row("CPU for 1,000 such deltas", Unit::Milliseconds, cpu)?.target(Target::AtMost(150.0)),
    ])
}

fn burst(stage: &Stage) -> Result<Vec<Row>> {
    let (mut frames, mut late) = (Vec::new(), Vec::new());
    for _ in 0..stage.runs {
        let answer = answers::deltas(DELTA, BURST);
        stage.server.play(vec![answer], Bodies::Dropped);
        let terminal = waiting(caliban(stage, &[]));
        let before = terminal.counts().writes;
        terminal.keys("go");
        terminal.key("enter");
        answered(&terminal);
        let done = Instant::now();
        let exchanges = stage.server.exchanges();
        let exchange = exchanges.first().context("no request was made")?;
        late.push(milliseconds(
            done.saturating_duration_since(exchange.answered),
        ));
        frames.push(float(terminal.counts().writes - before));
    }
    Ok(vec![
        row("frames for a burst of 20,000 deltas", Unit::Number, frames)?
            .target(Target::AtMost(40.0)),
        row("shown after the last of them", Unit::Milliseconds, late)?
            .target(Target::AtMost(200.0)),
    ])
}

/// Waits until the status line counts the turn and says that nothing is done any more.
fn answered(terminal: &Terminal) {
    terminal.until(|screen| screen.contains("(1)") && !screen.contains(RUNNING));
}
