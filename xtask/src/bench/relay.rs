//! A long answer passed on as frames while it comes.

use anyhow::{Context, Result, ensure};

use super::answers;
use super::process::{Cost, measure, measure_with, megabytes, milliseconds};
use super::report::{Row, Target, Unit};
use super::samples::{Better, Summary};
use super::server::Bodies;
use super::stage::Stage;

const DELTAS: usize = 20_000;
const ARGUMENTS: [&str; 3] = [
    "--output-format",
    "stream-json",
    "--include-partial-messages",
];

struct Sample {
    /// From the request to the last byte of output.
    seconds: f64,
    cost: Cost,
}

pub(super) fn rows(stage: &Stage) -> Result<Vec<Row>> {
    let answer = answers::deltas(" word", DELTAS);
    let length = megabytes(answer.len() as u64);
    let body = stage.first_body()?;
    stage.server.play(vec![answer], Bodies::Dropped);
    check(stage)?;
    let sample = |command: &mut std::process::Command| -> Result<Sample> {
        let cost = measure(command)?;
        let exchanges = stage.server.exchanges();
        let first = exchanges.first().context("no request was made")?;
        let seconds = cost.last_output.duration_since(first.arrived).as_secs_f64();
        Ok(Sample { seconds, cost })
    };
    let (mut ours, mut curl) = (Vec::new(), Vec::new());
    for _ in 0..stage.runs {
        ours.push(sample(&mut stage.prompt(&ARGUMENTS))?);
        curl.push(sample(&mut stage.curl(&body, 1))?);
    }
    let row = |name: &str, unit: Unit, better: Better, of: &dyn Fn(&Sample) -> f64| {
        let summary = |samples: &[Sample]| Summary::of(samples.iter().map(of), better);
        let (ours, curl) = summary(&ours).zip(summary(&curl)).context("no runs")?;
        anyhow::Ok(Row::new(name, unit, ours).against("curl -N", curl))
    };
    #[expect(clippy::cast_precision_loss, reason = "a small number")]
    let count = DELTAS as f64;
    let rate = row(
        "20,000 deltas, per second",
        Unit::PerSecond,
        Better::More,
        &|sample| count / sample.seconds,
    )?;
    let read = row(
        "their bytes as received",
        Unit::MegabytesPerSecond,
        Better::More,
        &|sample| length / sample.seconds,
    )?;
    let cpu = row(
        "their CPU, start included",
        Unit::Milliseconds,
        Better::Less,
        &|sample| milliseconds(sample.cost.cpu),
    )?;
    let printed = megabytes(ours.first().map_or(0, |sample| sample.cost.printed));
    Ok(vec![
        rate.target(Target::AtLeast(350_000.0)),
        read.note(format!("{length:.2} MB come in and {printed:.2} MB go out")),
        cpu,
    ])
}

/// Every delta is passed on as a frame of its own.
fn check(stage: &Stage) -> Result<()> {
    let mut output = Vec::new();
    measure_with(&mut stage.prompt(&ARGUMENTS), |piece| {
        output.extend_from_slice(piece);
    })?;
    stage.server.exchanges();
    let frame = "{\"type\":\"text\",\"delta\":\" word\"}";
    let output = String::from_utf8(output)?;
    let frames = output.lines().filter(|line| *line == frame).count();
    ensure!(
        frames == DELTAS,
        "{frames} of {DELTAS} deltas were passed on"
    );
    Ok(())
}
