//! `cargo xtask order`: which functions a run needs, written down for the linker in `caliban/link-order.txt`.
//!
//! The system maps code in pieces around what is touched. Functions that are needed together and lie apart bring
//! their neighbours along, which is most of the memory of a short run.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use caliban_testkit::terminal::{Profile, Terminal, TerminalOptions};

use super::answers::{self, Answer};
use super::instructions::watched;
use super::server::Bodies;
use super::stage::Stage;
use crate::environment;
use crate::shell::{cargo, root, run as run_command, say};

/// Turns that read a file: later ones need nothing that these did not.
const TURNS: usize = 5;
const DELTAS: usize = 100;
const HEAD: &str = "\
# The functions that runs need, those of the shortest first: the linker lays them out in this order.
# Written by `cargo xtask order`. A name that no function has any more does no harm.
";

pub(crate) fn run(is_built: bool) -> Result<()> {
    environment::install(&[("valgrind", "valgrind")])?;
    if !is_built {
        // Names are what is wanted; everything else must be as it is built for people.
        let build = ["rustc", "--release", "--package=caliban", "--bin=caliban"];
        run_command(cargo().args(build).args(["--", "-Cstrip=none"]))?;
    }
    let stage = Stage::new(1)?;
    let mut order = Order::default();
    for (name, command, answers) in runs(&stage) {
        stage.server.play(answers, Bodies::Dropped);
        let file = stage.place("order.out");
        let output = watched(&command, &file).output();
        output.context("`valgrind` could not be started")?;
        order.add(name, &file)?;
    }
    stage
        .server
        .play(vec![answers::text("hello")], Bodies::Dropped);
    let file = stage.place("order.out");
    in_terminal(&stage, &file);
    order.add("the interface in a terminal", &file)?;
    let path = root().join("caliban/link-order.txt");
    std::fs::write(&path, order.text).with_context(|| format!("writing {}", path.display()))
}

/// What people do most, the shortest first.
fn runs(stage: &Stage) -> Vec<(&'static str, Command, Vec<Answer>)> {
    let stream = [
        "--output-format=stream-json",
        "--include-partial-messages",
        "--verbose",
    ];
    let bash = serde_json::json!({"command": "echo hello"});
    let mut list = stage.caliban(&stage.workspace());
    list.args(["sessions", "list"]);
    vec![
        (
            "one answer",
            stage.prompt(&["--quiet"]),
            vec![answers::text("hello")],
        ),
        (
            "an answer that goes on",
            stage.prompt(&["--quiet", "--continue"]),
            vec![answers::text("hello")],
        ),
        (
            "turns with tools",
            stage.prompt(&["--quiet"]),
            stage.tool_turns(TURNS),
        ),
        (
            "frames",
            stage.prompt(&stream),
            vec![answers::deltas(" word", DELTAS)],
        ),
        (
            "a command",
            stage.prompt(&["--quiet", "--auto-allow"]),
            vec![answers::call(0, "Bash", &bash), answers::text("done")],
        ),
        ("a list of sessions", list, Vec::new()),
    ]
}

/// A prompt and its answer in a terminal, below callgrind.
fn in_terminal(stage: &Stage, file: &Path) {
    let ours = watched(&stage.caliban(&stage.workspace()), file);
    let text = |word: &std::ffi::OsStr| word.to_string_lossy().into_owned();
    let variables = ours.get_envs();
    let variables = variables.filter_map(|(name, value)| Some((text(name), text(value?))));
    let terminal = [("TERM", "xterm-256color"), ("LANG", "C.UTF-8")];
    let terminal = terminal.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let terminal = Terminal::start(TerminalOptions {
        program: ours.get_program().into(),
        args: ours.get_args().map(text).collect(),
        env: variables.chain(terminal).collect(),
        cwd: stage.workspace(),
        size: (120, 40),
        profile: Profile::Kitty,
    });
    terminal.until_text("session: ");
    terminal.keys("hello\r");
    terminal.until_quiet();
    terminal.keys("/quit\r");
    terminal.wait_dirty();
}

/// The functions so far, each once.
#[derive(Debug)]
struct Order {
    known: BTreeSet<String>,
    text: String,
}

impl Default for Order {
    fn default() -> Self {
        Self {
            known: BTreeSet::new(),
            text: HEAD.to_owned(),
        }
    }
}

impl Order {
    /// Adds what callgrind saw that was not there before.
    fn add(&mut self, name: &str, file: &Path) -> Result<()> {
        let seen = std::fs::read_to_string(file)
            .with_context(|| format!("{name}: callgrind wrote nothing"))?;
        let new: BTreeSet<&str> = functions(&seen)
            .filter(|name| !self.known.contains(*name))
            .collect();
        ensure!(
            !new.is_empty() || !self.known.is_empty(),
            "{name}: the program has no names of functions"
        );
        say(&format!("{name}: {} functions", new.len()));
        writeln!(self.text, "# {name}")?;
        for name in &new {
            writeln!(self.text, "{name}")?;
        }
        self.known.extend(new.into_iter().map(str::to_owned));
        Ok(())
    }
}

/// The functions of Rust in what callgrind wrote, by the names the linker knows. A name is written out where it
/// occurs first, behind a number that stands for it afterwards; one that calls itself has a second entry.
fn functions(written: &str) -> impl Iterator<Item = &str> {
    written.lines().filter_map(|line| {
        let rest = line.strip_prefix("fn=(").or(line.strip_prefix("cfn=("))?;
        let (_, name) = rest.split_once(") ")?;
        let name = name.split('\'').next()?;
        let is_ours = name.starts_with("_ZN") || name.starts_with("_R");
        is_ours.then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_where_they_are_named_first() {
        let written =
            "fn=(1) _ZN4core3fmt5write17h0E\n+3 4\ncfn=(2) _RNvC1a1b'2\ncfn=(1)\nfn=(3) malloc\n";
        let found: Vec<&str> = functions(written).collect();
        assert_eq!(found, ["_ZN4core3fmt5write17h0E", "_RNvC1a1b"]);
    }
}
