//! From exec to a prompt that can be written at.

use std::time::Instant;

use anyhow::Result;
use caliban_testkit::terminal::{Terminal, TerminalOptions};

use super::super::process::milliseconds;
use super::super::report::{Row, Target, Unit};
use super::super::stage::Stage;
use super::{PROMPT, caliban, contains, peers, program, row, summary, written};

/// What is typed before anything is there.
const TYPED: &str = "zqx";
/// What enters the screen that is drawn on.
const ALTERNATE: &[u8] = b"\x1b[?1049h";
/// Lines of the file that pagers and editors show, and one of them that is seen.
const LINES: usize = 1_000;
const SEEN: &str = "line 30 of the file";

pub(super) fn rows(stage: &Stage) -> Result<Vec<Row>> {
    let file = stage.place("lines.txt");
    let lines: Vec<String> = (1..=LINES)
        .map(|line| format!("line {line} of the file"))
        .collect();
    std::fs::write(&file, lines.join("\n"))?;
    let file = file.display().to_string();
    let mut peers = peers::installed();
    let [mut ours, mut typed, mut less, mut vim]: [Vec<f64>; 4] = Default::default();
    let prompt = |bytes: &[u8]| contains(bytes, PROMPT);
    let seen = |bytes: &[u8]| contains(bytes, SEEN);
    for _ in 0..stage.runs {
        ours.push(until(caliban(stage, &[]), "", prompt)?);
        typed.push(until(caliban(stage, &[]), TYPED, is_in_prompt)?);
        less.push(until(program(stage, "less", &[&file]), "", seen)?);
        let arguments = ["-u", "NONE", &file];
        vim.push(until(program(stage, "vim", &arguments), "", seen)?);
        for peer in &mut peers {
            peer.measure(stage);
        }
    }
    let ours = row("exec to prompt visible", Unit::Milliseconds, ours)?;
    let less = summary(less)?;
    let mut rows = vec![
        ours.clone()
            .against("less", less)
            .target(Target::RatioAtMost(2.0)),
        ours.clone().against("vim", summary(vim)?),
    ];
    for peer in peers {
        let name = peer.name;
        rows.extend(
            peer.summary()
                .map(|summary| ours.clone().against(name, summary)),
        );
    }
    let typed = row(
        "exec to typed-ahead text in the prompt",
        Unit::Milliseconds,
        typed,
    )?;
    rows.push(typed.against("less", less).target(Target::RatioAtMost(2.0)));
    Ok(rows)
}

/// Milliseconds from exec, with something typed at once, until what is wanted is written.
fn until(options: TerminalOptions, typed: &str, is_there: impl Fn(&[u8]) -> bool) -> Result<f64> {
    let started = Instant::now();
    let terminal = Terminal::start(options);
    terminal.keys(typed);
    let there = written(&terminal, is_there)?;
    Ok(milliseconds(there.duration_since(started)))
}

/// Whether what was typed is drawn, and not only echoed before there was anybody to read it.
fn is_in_prompt(bytes: &[u8]) -> bool {
    let entered = bytes
        .windows(ALTERNATE.len())
        .position(|window| window == ALTERNATE);
    entered.is_some_and(|at| contains(&bytes[at..], TYPED))
}
