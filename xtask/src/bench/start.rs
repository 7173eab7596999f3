//! A run of one answer: the way to the first request, all of it, its CPU and its memory.

use anyhow::{Context, Result};

use super::answers;
use super::process::{Cost, measure, megabytes, milliseconds, own_peak};
use super::report::{Row, Target, Unit};
use super::samples::{Better, Summary};
use super::server::Bodies;
use super::stage::Stage;

struct Sample {
    to_request: f64,
    cost: Cost,
}

pub(super) fn rows(stage: &Stage) -> Result<Vec<Row>> {
    let body = stage.first_body()?;
    let answer = vec![answers::text("hello")];
    stage.server.play(answer, Bodies::Dropped);
    let sample = |command: &mut std::process::Command| -> Result<Sample> {
        let cost = measure(command)?;
        let exchanges = stage.server.exchanges();
        let first = exchanges.first().context("no request was made")?;
        let to_request = milliseconds(first.arrived.duration_since(cost.started));
        Ok(Sample { to_request, cost })
    };
    let (mut ours, mut curl) = (Vec::new(), Vec::new());
    for _ in 0..stage.runs {
        ours.push(sample(&mut stage.prompt(&[]))?);
        curl.push(sample(&mut stage.curl(&body, 1))?);
    }
    let row = |name: &str, unit: Unit, of: fn(&Sample) -> f64| {
        let summary = |samples: &[Sample]| Summary::of(samples.iter().map(of), Better::Less);
        let (ours, curl) = summary(&ours).zip(summary(&curl)).context("no runs")?;
        anyhow::Ok(Row::new(name, unit, ours).against("curl", curl))
    };
    let first = row("exec to first request byte", Unit::Milliseconds, |sample| {
        sample.to_request
    })?;
    let wall = row("one answer, wall", Unit::Milliseconds, |sample| {
        milliseconds(sample.cost.wall)
    })?;
    let cpu = row("one answer, CPU", Unit::Milliseconds, |sample| {
        milliseconds(sample.cost.cpu)
    })?;
    let peak = row("one answer, peak memory", Unit::Megabytes, |sample| {
        megabytes(sample.cost.peak)
    })?;
    Ok(vec![
        first.target(Target::RatioAtMost(2.0)),
        wall,
        cpu.target(Target::AtMost(30.0)),
        checked(peak.target(Target::AtMost(20.0))),
    ])
}

/// A peak that may be this process's own says so.
pub(super) fn checked(row: Row) -> Row {
    let own = megabytes(own_peak());
    if row.ours.best > own {
        row
    } else {
        row.note(format!("peaks below {own:.1} MB cannot be told"))
    }
}
