//! Loops of tool calls with the session saved: what a turn costs, and whether it costs more when
//! the conversation is long.

use anyhow::{Result, ensure};

use super::process::{measure, megabytes, milliseconds};
use super::report::{Row, Target, Unit};
use super::samples::{Better, Summary};
use super::server::{Bodies, Exchange};
use super::stage::Stage;
use super::start::checked;

const SHORT: usize = 50;
const LONG: usize = 1000;
/// Turns at either end of a long loop.
const END: usize = 100;

pub(super) fn rows(stage: &Stage) -> Result<Vec<Row>> {
    let mut rows = short(stage)?;
    rows.extend(long(stage)?);
    Ok(rows)
}

/// The rows of a loop of 50 turns.
fn short(stage: &Stage) -> Result<Vec<Row>> {
    let middle = lengths(stage, SHORT)?[SHORT / 2];
    let body = stage.filler("turn-body", middle)?;
    let (mut times, mut peaks) = (Vec::new(), Vec::new());
    let (mut curl_times, mut curl_peaks) = (Vec::new(), Vec::new());
    for _ in 0..stage.runs {
        let ours = loop_of(stage, SHORT)?;
        times.push(per_turn(&ours.exchanges));
        peaks.push(megabytes(ours.peak));
        let cost = measure(&mut stage.curl(&body, SHORT + 1))?;
        curl_times.push(per_turn(&stage.server.exchanges()));
        curl_peaks.push(megabytes(cost.peak));
    }
    let time = row(
        "50 tool turns, per turn",
        Unit::Milliseconds,
        times,
        curl_times,
    )?;
    let peak = row(
        "50 tool turns, peak memory",
        Unit::Megabytes,
        peaks,
        curl_peaks,
    )?;
    Ok(vec![time.target(Target::AtMost(1.5)), checked(peak)])
}

/// The rows of a loop of 1,000 turns.
fn long(stage: &Stage) -> Result<Vec<Row>> {
    let lengths = lengths(stage, LONG)?;
    let bodies = [END / 2, LONG / 2, LONG - END / 2];
    let mut files = Vec::new();
    for turn in bodies {
        files.push(stage.filler(&format!("turn-body-{turn}"), lengths[turn])?);
    }
    let mut ours: [Vec<f64>; 3] = Default::default();
    let mut curl: [Vec<f64>; 3] = Default::default();
    for _ in 0..stage.runs {
        let exchanges = loop_of(stage, LONG)?.exchanges;
        let parts = [&exchanges[..=END], &exchanges[..], &exchanges[LONG - END..]];
        for ((ours, curl), (part, file)) in
            ours.iter_mut().zip(&mut curl).zip(parts.iter().zip(&files))
        {
            ours.push(per_turn(part));
            measure(&mut stage.curl(file, END + 1))?;
            curl.push(per_turn(&stage.server.exchanges()));
        }
    }
    let [first, all, last] = ours;
    let [curl_first, curl_all, curl_last] = curl;
    // What a turn costs beyond the bytes that anybody would have to send.
    let [early, late] = [(&first, &curl_first), (&last, &curl_last)].map(|(ours, curl)| {
        let own = |of: fn(&Summary) -> f64| {
            let summary = |values: &[f64]| Summary::of(values.iter().copied(), Better::Less);
            summary(ours)
                .zip(summary(curl))
                .map(|(ours, curl)| of(&ours) - of(&curl))
        };
        own(|summary| summary.median).zip(own(|summary| summary.best))
    });
    let growth = early.zip(late).map(|(early, late)| Summary {
        median: late.0 / early.0,
        best: late.1 / early.1,
    });
    let sizes = format!(
        "{:.2} MB are sent in the last turn, {:.2} MB in the first",
        megabytes(lengths[LONG]),
        megabytes(lengths[0])
    );
    let mut rows = vec![
        row(
            "1,000 tool turns, per turn",
            Unit::Milliseconds,
            all,
            curl_all,
        )?
        .target(Target::AtMost(1.5)),
        row(
            "of these the first hundred",
            Unit::Milliseconds,
            first,
            curl_first,
        )?,
        row(
            "of these the last hundred",
            Unit::Milliseconds,
            last,
            curl_last,
        )?
        .note(sizes),
    ];
    if let Some(growth) = growth {
        let row = Row::new(
            "last to first hundred, without curl's part",
            Unit::Times,
            growth,
        );
        rows.push(row.target(Target::AtMost(1.2)));
    }
    Ok(rows)
}

struct Loop {
    exchanges: Vec<Exchange>,
    peak: u64,
}

/// Runs a loop of so many calls; there is one request more.
fn loop_of(stage: &Stage, turns: usize) -> Result<Loop> {
    stage.server.play(stage.tool_turns(turns), Bodies::Dropped);
    let limit = (turns + 1).to_string();
    let cost = measure(&mut stage.prompt(&["--quiet", "--max-turns", &limit]))?;
    let exchanges = stage.server.exchanges();
    ensure!(
        exchanges.len() == turns + 1,
        "{} requests came instead of {}",
        exchanges.len(),
        turns + 1
    );
    Ok(Loop {
        exchanges,
        peak: cost.peak,
    })
}

/// How long the requests of a loop are.
fn lengths(stage: &Stage, turns: usize) -> Result<Vec<u64>> {
    let exchanges = loop_of(stage, turns)?.exchanges;
    Ok(exchanges.iter().map(|exchange| exchange.length).collect())
}

/// Milliseconds from one request to the next.
#[expect(clippy::cast_precision_loss, reason = "at most a thousand turns")]
fn per_turn(exchanges: &[Exchange]) -> f64 {
    match exchanges {
        [first, .., last] => {
            let time = last.arrived.duration_since(first.arrived);
            milliseconds(time) / (exchanges.len() - 1) as f64
        }
        _ => f64::NAN,
    }
}

fn row(name: &str, unit: Unit, ours: Vec<f64>, curl: Vec<f64>) -> Result<Row> {
    let summary = |values| Summary::of(values, Better::Less);
    let (ours, curl) = summary(ours)
        .zip(summary(curl))
        .ok_or_else(|| anyhow::anyhow!("no runs"))?;
    Ok(Row::new(name, unit, ours).against("curl", curl))
}
