//! The corpus of calls and verdicts through the built binary: every known way around the rules is
//! stopped, everyday work is not, and each attack on commands really runs what it hides.
//!
//! A row of `data/permission-corpus.json` is a call, rules, and the verdict of `perms test`.
//! Attacks hide a program called `evil`, or change a file (`marker`, `gone`); a real shell shows
//! that they do, unless `control` says why it cannot. Where the program can be read from the text
//! (`visible`), a rule that denies it finds it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use caliban_testkit::{Reply, Script};
use serde::Deserialize;
use serde_json::{Value, json};
use support::{Bench, Ran, Wire, bare, run};

/// Where a real shell finds its programs, behind the ones of the row.
const SYSTEM_PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";
/// How long a line of a row may run, in seconds.
const PATIENCE: &str = "30";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    tool: String,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    input: Option<Value>,
    #[serde(default)]
    rules: Vec<(String, String)>,
    verdict: Verdict,
    attack: bool,
    /// Whether `evil` can be read from the text.
    #[serde(default)]
    visible: bool,
    #[serde(default)]
    #[expect(dead_code, reason = "for whoever reads the corpus")]
    why: Option<String>,
    /// What is there before the call.
    #[serde(default)]
    setup: Vec<Step>,
    /// The file that the attack changes; without it, it runs `evil`.
    #[serde(default)]
    marker: Option<String>,
    /// The file that the attack removes.
    #[serde(default)]
    gone: Option<String>,
    /// Programs that the control needs.
    #[serde(default)]
    needs: Vec<String>,
    /// Why no real shell shows the attack.
    #[serde(default)]
    control: Option<String>,
    /// What `{fill}` in the command stands for.
    #[serde(default)]
    fill: Option<Fill>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Allow,
    Ask,
    Deny,
}

#[derive(Debug, Deserialize)]
struct Fill {
    text: String,
    times: usize,
}

/// Paths are relative to the workspace, or begin with `~/`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Step {
    Directory(String),
    File {
        at: String,
        text: String,
    },
    Link {
        at: String,
        to: String,
    },
    /// A script that runs `evil`.
    Script(String),
    /// A script that runs `evil`, where programs are found.
    Program(String),
    Repository(String),
    /// A file of the repository in the workspace.
    Tracked(String),
}

/// The directories of a row: workspace, home, a place outside, and programs.
struct Fixture {
    _temp: tempfile::TempDir,
    base: PathBuf,
}

impl Fixture {
    fn new(row: &Row) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        for directory in ["work", "home", "outside", "bin"] {
            std::fs::create_dir(base.join(directory)).unwrap();
        }
        let fixture = Self { _temp: temp, base };
        let touch = format!("#!/bin/sh\n: > '{}'\n", fixture.base.join("ran").display());
        write_program(&fixture.base.join("bin/evil"), &touch);
        let identity = "[user]\n\tname = a\n\temail = a@example.com\n";
        std::fs::write(fixture.base.join("home/.gitconfig"), identity).unwrap();
        for step in &row.setup {
            fixture.take(step);
        }
        fixture
    }

    fn take(&self, step: &Step) {
        let script = format!("#!/bin/sh\n'{}'\n", self.base.join("bin/evil").display());
        match step {
            Step::Directory(path) => std::fs::create_dir_all(self.path(path)).unwrap(),
            Step::File { at, text } => {
                let path = self.with_parents(at);
                std::fs::write(path, text).unwrap();
            }
            Step::Link { at, to } => symlink(self.filled(to), self.with_parents(at)).unwrap(),
            Step::Script(path) => write_program(&self.with_parents(path), &script),
            Step::Program(name) => write_program(&self.base.join("bin").join(name), &script),
            Step::Repository(path) => {
                self.git(&["init", "--quiet", "--initial-branch=main", path]);
                let commit = ["commit", "--quiet", "--allow-empty", "--message=first"];
                self.git(&[&["-C", path], &commit[..]].concat());
            }
            Step::Tracked(path) => {
                self.git(&["add", path]);
                self.git(&["commit", "--quiet", "--message=more"]);
            }
        }
    }

    fn git(&self, args: &[&str]) {
        if !is_installed("git") {
            return;
        }
        let status = self.clean("git").args(args).status().unwrap();
        assert!(status.success(), "git {args:?}");
    }

    fn with_parents(&self, path: &str) -> PathBuf {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn path(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(rest) => self.base.join("home").join(rest),
            None => self.base.join("work").join(path),
        }
    }

    /// A text with the names of the directories in it.
    fn filled(&self, text: &str) -> String {
        let base = self.base.to_str().unwrap();
        text.replace("{base}", base)
            .replace("{work}", &format!("{base}/work"))
            .replace("{bin}", &format!("{base}/bin"))
    }

    /// A program in the workspace that sees nothing of the real environment.
    fn clean(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        let own = self.base.join("bin");
        command
            .current_dir(self.base.join("work"))
            .env_clear()
            .env("HOME", self.base.join("home"))
            .env("PATH", format!("{}:{SYSTEM_PATH}", own.display()))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .stdin(Stdio::null());
        command
    }

    /// The rules of the row as arguments.
    fn flags(&self, row: &Row) -> Vec<String> {
        let flag =
            |(action, pattern): &(String, String)| format!("--{action}={}", self.filled(pattern));
        row.rules.iter().map(flag).collect()
    }

    /// What a command of `perms` says about the row, with more rules before its own.
    fn perms(&self, verb: &str, row: &Row, before: Option<&str>) -> Ran {
        let mut command = bare(&self.base.join("home"), &self.base.join("work"));
        command
            .args(["perms", verb, &row.tool])
            .arg(self.input(row).to_string())
            .args(before)
            .args(self.flags(row));
        run(&mut command)
    }

    fn tested(&self, row: &Row, before: Option<&str>) -> Result<Verdict, String> {
        let ran = self.perms("test", row, before);
        match ran.code {
            Some(0) => Ok(Verdict::Allow),
            Some(1) => Ok(Verdict::Deny),
            Some(2) => Ok(Verdict::Ask),
            _ => Err(ran.stderr),
        }
    }

    fn explained(&self, row: &Row) -> Option<Verdict> {
        let text = self.perms("explain", row, None).stdout;
        let (_, verdict) = text.split_once("\nVerdict: ")?;
        let word = verdict.split(' ').next()?;
        serde_json::from_value(json!(word)).ok()
    }

    /// What the gate decides when a model makes the call, and nobody can be asked.
    fn gated(&self, row: &Row) -> Option<Verdict> {
        let call = Reply::tool(row.tool.as_str(), self.input(row));
        let bench = Bench::new(Wire::Anthropic, Script::new([call, Reply::text("done")]));
        let mut command = bench.command();
        command
            .current_dir(self.base.join("work"))
            .env("HOME", self.base.join("home"))
            .args(["-p", "go"])
            .args(self.flags(row));
        run(&mut command);
        let log = ".local/state/caliban/permission-decisions.jsonl";
        let text = std::fs::read_to_string(self.base.join("home").join(log)).ok()?;
        let entry: Value = serde_json::from_str(text.lines().next()?).ok()?;
        serde_json::from_value(entry["action"].clone()).ok()
    }

    fn input(&self, row: &Row) -> Value {
        if let Some(input) = &row.input {
            let filled = self.filled(&input.to_string());
            return serde_json::from_str(&filled).unwrap();
        }
        json!({"command": self.command(row)})
    }

    fn command(&self, row: &Row) -> String {
        let fill = row
            .fill
            .as_ref()
            .map(|fill| fill.text.repeat(fill.times))
            .unwrap_or_default();
        let command = row.command.as_deref().unwrap_or_default();
        self.filled(command).replace("{fill}", &fill)
    }

    /// Runs the line in a real shell and says whether it did what the row calls an attack.
    fn shell_shows(&self, row: &Row) -> bool {
        let changed = row.marker.as_deref().map(|path| self.path(path));
        let before = changed.as_ref().and_then(|path| std::fs::read(path).ok());
        // All that it starts holds the pipes, so what runs behind it has ended as well.
        let output = self
            .clean("timeout")
            .args([PATIENCE, "bash", "--noprofile", "--norc", "-c"])
            .arg(self.command(row))
            .output()
            .unwrap();
        drop(output);
        if let Some(path) = &row.gone {
            return !self.path(path).exists();
        }
        match changed {
            Some(path) => path.exists() && (path.is_dir() || std::fs::read(path).ok() != before),
            None => self.base.join("ran").exists(),
        }
    }
}

fn write_program(path: &Path, text: &str) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

fn is_installed(program: &str) -> bool {
    SYSTEM_PATH
        .split(':')
        .any(|directory| Path::new(directory).join(program).is_file())
}

fn corpus() -> Vec<Row> {
    serde_json::from_str(include_str!("data/permission-corpus.json")).unwrap()
}

/// Does this with every row, several at a time, and returns what it complains about.
fn complaints(rows: &[Row], check: impl Fn(&Row) -> Vec<String> + Sync) -> Vec<String> {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(2, usize::from) {
            scope.spawn(|| {
                while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    found.lock().unwrap().extend(check(row));
                }
            });
        }
    });
    let mut found = found.into_inner().unwrap();
    found.sort();
    found
}

#[test]
fn every_call_gets_its_verdict() {
    let rows = corpus();
    let wrong = complaints(&rows, |row| {
        let fixture = Fixture::new(row);
        let mut trials = vec![(None, row.verdict)];
        if row.visible {
            trials.push((Some("--deny=Bash:evil*"), Verdict::Deny));
        }
        trials
            .into_iter()
            .filter_map(|(before, expected)| {
                let verdict = fixture.tested(row, before);
                (verdict != Ok(expected))
                    .then(|| format!("{}: {verdict:?}, not {expected:?} {before:?}", row.id))
            })
            .collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Calls that may really be made: they are stopped, or do no harm.
fn is_for_the_gate(row: &Row) -> bool {
    let tool = matches!(row.tool.as_str(), "Bash" | "Read" | "Write" | "Edit");
    let harmless = match &row.command {
        Some(command) => command.starts_with("echo ") || command.starts_with("git log"),
        None => !row.rules.iter().any(|(_, pattern)| pattern.contains(":/")),
    };
    let complete = row.command.is_some()
        || row.input.as_ref().is_some_and(|input| {
            let names = ["command", "path"];
            names.iter().any(|name| input[name].is_string())
        });
    tool && complete && row.fill.is_none() && (row.attack || harmless)
}

#[test]
fn the_gate_test_and_explain_agree() {
    let sample: Vec<Row> = corpus()
        .into_iter()
        .filter(is_for_the_gate)
        .enumerate()
        .filter(|(index, row)| index % 16 == 0 || !row.attack)
        .map(|(_, row)| row)
        .collect();
    assert!(sample.len() > 50 && sample.iter().any(|row| !row.attack));
    let differing = complaints(&sample, |row| {
        let fixture = Fixture::new(row);
        let tested = fixture.tested(row, None).ok();
        let verdicts = [tested, fixture.explained(row), fixture.gated(row)];
        let one = verdicts[0].is_some() && verdicts.iter().all(|verdict| *verdict == verdicts[0]);
        (!one)
            .then(|| format!("{}: {verdicts:?}", row.id))
            .into_iter()
            .collect()
    });
    assert!(differing.is_empty(), "{}", differing.join("\n"));
}

#[cfg(target_os = "linux")]
#[test]
fn every_attack_on_commands_is_one() {
    let rows = corpus();
    let shown = AtomicUsize::new(0);
    let inert = complaints(&rows, |row| {
        let is_attack = row.attack && row.command.is_some() && row.control.is_none();
        if !is_attack || !row.needs.iter().all(|program| is_installed(program)) {
            return Vec::new();
        }
        shown.fetch_add(1, Ordering::Relaxed);
        let holds = Fixture::new(row).shell_shows(row);
        (!holds).then(|| row.id.clone()).into_iter().collect()
    });
    assert!(inert.is_empty(), "no attacks: {}", inert.join("\n"));
    assert!(shown.into_inner() > 400);
}

#[test]
fn the_corpus_is_what_it_claims_to_be() {
    let rows = corpus();
    let attacks = rows.iter().filter(|row| row.attack).count();
    assert!(attacks >= 320 && rows.len() - attacks >= 110);
    for row in &rows {
        let same = rows.iter().filter(|other| other.id == row.id).count();
        assert_eq!(same, 1, "{}", row.id);
        assert_eq!(row.command.is_some(), row.input.is_none(), "{}", row.id);
        let is_allowed = row.verdict == Verdict::Allow;
        assert_eq!(row.attack, !is_allowed, "{}", row.id);
    }
}
