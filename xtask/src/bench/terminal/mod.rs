//! The interface in a terminal: how soon it is there, what a key and a delta cost, and that it sleeps
//! when nothing happens.

mod beginning;
mod peers;
mod resting;
mod resume;
mod streaming;
mod typing;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use caliban_testkit::terminal::{Profile, Terminal, TerminalOptions};

use super::report::{Row, Unit};
use super::samples::{Better, Summary};
use super::stage::Stage;
use crate::environment;

const SIZE: (u16, u16) = (120, 40);
/// What the first frame shows.
const PROMPT: &str = "Write what you want done";
/// What the status line shows once the session is there.
const READY: &str = "session: ";
/// What it shows while something is done.
const RUNNING: &str = "running…";
/// Nothing that is to be drawn waits so long.
const SETTLING: Duration = Duration::from_millis(200);
/// How long something may take, and how often it is looked whether it is there.
const PATIENCE: Duration = Duration::from_secs(20);
const AGAIN: Duration = Duration::from_micros(100);
/// Rows that take seconds each are measured no more often.
const FEW: usize = 3;

pub(super) fn rows(stage: &Stage) -> Result<Vec<Row>> {
    environment::install(&[("less", "less"), ("vim", "vim")])?;
    let mut rows = beginning::rows(stage)?;
    rows.extend(typing::rows(stage)?);
    rows.extend(streaming::rows(stage)?);
    rows.extend(resting::rows(stage)?);
    rows.extend(resume::rows(stage)?);
    Ok(rows)
}

/// The measured binary in a terminal that can do all that is asked for.
fn caliban(stage: &Stage, arguments: &[&str]) -> TerminalOptions {
    caliban_at(stage, stage.server.url(), arguments)
}

/// The same with another model server.
fn caliban_at(stage: &Stage, url: &str, arguments: &[&str]) -> TerminalOptions {
    let mut options = program(stage, &stage.binary.display().to_string(), arguments);
    let own = [("ANTHROPIC_API_KEY", "bench"), ("ANTHROPIC_BASE_URL", url)];
    let own = own.map(|(name, value)| (name.to_owned(), value.to_owned()));
    options.env.extend(own);
    options
}

/// Another program in such a terminal.
fn program(stage: &Stage, program: &str, arguments: &[&str]) -> TerminalOptions {
    let variables = [
        ("HOME", stage.home().display().to_string()),
        ("PATH", std::env::var("PATH").unwrap_or_default()),
        ("TERM", "xterm-256color".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
    ];
    let variables = variables.into_iter();
    TerminalOptions {
        program: program.into(),
        args: arguments.iter().map(|word| (*word).to_owned()).collect(),
        env: variables
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        cwd: stage.workspace(),
        size: SIZE,
        profile: Profile::Kitty,
    }
}

/// The measured binary, once it waits for a prompt.
fn waiting(options: TerminalOptions) -> Terminal {
    let terminal = Terminal::start(options);
    terminal.until_text(READY);
    settle(&terminal);
    terminal
}

/// Waits until nothing more is drawn. Whether it sleeps as well is a row of its own.
fn settle(terminal: &Terminal) {
    let mut bytes = terminal.counts().bytes;
    loop {
        std::thread::sleep(SETTLING);
        let now = terminal.counts().bytes;
        if now == bytes {
            return;
        }
        bytes = now;
    }
}

/// When the program has written what is wanted, of everything that it wrote. A look at the screen
/// costs the emulator more than the program needs to draw it, so that none is taken.
fn written(terminal: &Terminal, is_there: impl Fn(&[u8]) -> bool) -> Result<Instant> {
    let deadline = Instant::now() + PATIENCE;
    let mut seen = None;
    loop {
        let bytes = terminal.counts().bytes;
        let now = Instant::now();
        if seen != Some(bytes) && is_there(&terminal.raw()) {
            return Ok(now);
        }
        ensure!(now < deadline, "nothing like that was drawn");
        seen = Some(bytes);
        std::thread::sleep(AGAIN);
    }
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

fn summary(values: Vec<f64>) -> Result<Summary> {
    Summary::of(values, Better::Less).context("no runs")
}

fn row(name: &str, unit: Unit, values: Vec<f64>) -> Result<Row> {
    Ok(Row::new(name, unit, summary(values)?))
}

#[expect(clippy::cast_precision_loss, reason = "counts of one short run")]
fn float(count: usize) -> f64 {
    count as f64
}
