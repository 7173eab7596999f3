//! `cargo xtask bench`: what the program costs, next to programs that do no more than must be
//! done. Absolute times mean nothing on a shared machine; a ratio of interleaved runs does.

#[cfg(target_os = "linux")]
mod agents;
mod answers;
mod checkpoints;
mod evaluation;
mod instructions;
#[cfg(target_os = "linux")]
pub(crate) mod order;
mod process;
mod relay;
mod report;
mod samples;
mod sandbox;
mod search;
mod server;
mod serving;
mod sessions;
mod size;
mod stage;
mod start;
#[cfg(target_os = "linux")]
mod terminal;
mod turns;

use std::io::Write as _;

use anyhow::{Result, ensure};
use clap::ValueEnum;

use self::report::{Report, Row};
use self::stage::Stage;
use crate::environment;
use crate::shell::{cargo, run as run_command, say, target};

/// Fewer runs than this say little.
const FEWEST_RUNS: usize = 15;

#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// Runs of each command.
    #[arg(long, default_value_t = FEWEST_RUNS)]
    runs: usize,
    /// Measure only this; may be repeated.
    #[arg(long, value_name = "ROWS")]
    only: Vec<Rows>,
    /// Measure the binary that is there.
    #[arg(long)]
    no_build: bool,
    /// Build the `dist` profile too and tell its size.
    #[arg(long)]
    dist: bool,
}

/// What is measured together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Rows {
    /// One answer: first request, wall, CPU, memory.
    Start,
    /// Loops of 50 and 1,000 tool calls.
    Turns,
    /// 20,000 deltas into frames.
    Relay,
    /// Grep and Glob in 50,000 files.
    Search,
    /// Commands in 50,000 files, with what they change kept.
    Checkpoints,
    /// Resume of 100 MB, listing of 5,000 sessions.
    Sessions,
    /// Connections and events of `caliban serve`.
    Serving,
    /// Agents in the background: their start, their memory, their events.
    #[cfg(target_os = "linux")]
    Agents,
    /// A confined program that does nothing.
    Sandbox,
    /// Verdicts and settings.
    Evaluation,
    /// Instructions under callgrind.
    Instructions,
    /// The interface in a terminal: prompt, keys, streams, rest.
    #[cfg(target_os = "linux")]
    Terminal,
    /// Size of the binary.
    Size,
}

pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.runs > 0, "no runs measure nothing");
    if !options.no_build {
        run_command(cargo().args(["build", "--release", "--quiet", "--package", "caliban"]))?;
    }
    if options.dist {
        let arguments = [
            "build",
            "--profile",
            "dist",
            "--quiet",
            "--package",
            "caliban",
            "--features",
            "keyring",
        ];
        run_command(cargo().args(arguments))?;
    }
    environment::install(&[("curl", "curl"), ("rg", "ripgrep")])?;
    if options.runs < FEWEST_RUNS {
        say("few runs: these figures are a first look");
    }
    let stage = Stage::new(options.runs)?;
    let mut report = Report::new(options.runs);
    for rows in Rows::value_variants() {
        if options.only.is_empty() || options.only.contains(rows) {
            say(&format!("measuring {rows:?}"));
            report.rows.extend(rows.measured(&stage)?);
        }
    }
    let file = target().join("bench.json");
    report.write(&file)?;
    write!(std::io::stdout(), "{}", report.table())?;
    Ok(())
}

impl Rows {
    fn measured(self, stage: &Stage) -> Result<Vec<Row>> {
        match self {
            Self::Start => start::rows(stage),
            Self::Turns => turns::rows(stage),
            Self::Relay => relay::rows(stage),
            Self::Search => search::rows(stage),
            Self::Checkpoints => checkpoints::rows(stage),
            Self::Sessions => sessions::rows(stage),
            Self::Serving => serving::rows(stage),
            #[cfg(target_os = "linux")]
            Self::Agents => agents::rows(stage),
            Self::Sandbox => sandbox::rows(stage),
            Self::Evaluation => evaluation::rows(),
            Self::Instructions => instructions::rows(stage),
            #[cfg(target_os = "linux")]
            Self::Terminal => terminal::rows(stage),
            Self::Size => size::rows(),
        }
    }
}
