//! What a key costs, and a paste.

use std::time::{Duration, Instant};

use anyhow::Result;
use caliban_testkit::terminal::Terminal;

use super::super::process::milliseconds;
use super::super::report::{Row, Target, Unit};
use super::super::stage::Stage;
use super::{caliban, contains, float, program, row, settle, summary, waiting, written};

/// Keys that are pressed one after the other, each once the last is seen.
const KEYS: usize = 100;
/// Between a key that is seen and the next: nobody types faster, and frames have their distance.
const PAUSE: Duration = Duration::from_millis(30);
/// A paste of 1 MB.
const LINE: &str = "a line that somebody has copied from somewhere\n";
const PASTED: usize = 1_000_000 / LINE.len();

pub(super) fn rows(stage: &Stage) -> Result<Vec<Row>> {
    let terminal = waiting(caliban(stage, &[]));
    let before = terminal.counts().bytes;
    let times = typed(&terminal)?;
    settle(&terminal);
    let bytes = float(terminal.counts().bytes - before) / float(KEYS);
    drop(terminal);
    // What `cat` is given the kernel echoes, as fast as anything can be seen here.
    let echo = Terminal::start(program(stage, "cat", &[]));
    let echoed = typed(&echo)?;
    drop(echo);
    let (mut pasted, mut read) = (Vec::new(), Vec::new());
    let paste = format!("\x1b[200~{}\x1b[201~", LINE.repeat(PASTED));
    for _ in 0..stage.runs {
        let terminal = waiting(caliban(stage, &[]));
        pasted.push(sent(&terminal, &paste, "[Pasted #1")?);
        let head = format!(
            "stty raw -echo; echo ready; head -c {} >/dev/null; echo done",
            paste.len()
        );
        let terminal = Terminal::start(program(stage, "sh", &["-c", &head]));
        terminal.until_text("ready");
        read.push(sent(&terminal, &paste, "done")?);
    }
    let slowest = times.iter().copied().fold(0.0, f64::max);
    let key = row("keystroke to paint", Unit::Milliseconds, times)?;
    let note = format!("the slowest of {KEYS} took {slowest:.1} ms; the echo is the kernel's own");
    Ok(vec![
        key.against("echo", summary(echoed)?)
            .target(Target::AtMost(2.0))
            .note(note),
        row("bytes a keystroke", Unit::Bytes, vec![bytes])?.target(Target::AtMost(60.0)),
        row("paste of 1 MB to chip", Unit::Milliseconds, pasted)?
            .against("head", summary(read)?)
            .target(Target::AtMost(50.0)),
    ])
}

/// Milliseconds of each key until something is drawn for it; then it is looked whether that is the
/// key.
fn typed(terminal: &Terminal) -> Result<Vec<f64>> {
    let times = (1..=KEYS).map(|count| {
        std::thread::sleep(PAUSE);
        let before = terminal.raw().len();
        let started = Instant::now();
        terminal.keys("x");
        let there = written(terminal, |bytes| bytes.len() > before)?;
        terminal.until_text(&"x".repeat(count));
        Ok(milliseconds(there.duration_since(started)))
    });
    times.collect()
}

/// Milliseconds until a text is written in answer to many bytes.
fn sent(terminal: &Terminal, bytes: &str, answer: &str) -> Result<f64> {
    let started = Instant::now();
    terminal.keys(bytes);
    let there = written(terminal, |bytes| contains(bytes, answer))?;
    Ok(milliseconds(there.duration_since(started)))
}
