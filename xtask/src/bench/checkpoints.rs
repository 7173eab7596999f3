//! What keeping the changes of commands costs in a large tree.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::json;

use super::answers;
use super::process::{measure, milliseconds};
use super::report::{Row, Target, Unit};
use super::samples::{Better, Summary};
use super::search::{between, plant};
use super::server::Bodies;
use super::stage::Stage;

/// Which call of the script is measured.
struct Measured {
    name: &'static str,
    place: usize,
    /// What git would take to find out or keep the same.
    git: &'static [&'static str],
    target: Option<Target>,
}

const CALLS: [Measured; 4] = [
    Measured {
        name: "checkpoint, first command among 50,000 files",
        place: 3,
        git: &["stash", "create"],
        target: None,
    },
    Measured {
        name: "checkpoint, later command",
        place: 4,
        git: &["status", "--porcelain"],
        target: Some(Target::RatioAtMost(2.0)),
    },
    Measured {
        name: "checkpoint, command that only looks",
        place: 5,
        git: &["status", "--porcelain"],
        target: Some(Target::RatioAtMost(0.1)),
    },
    Measured {
        name: "checkpoint, edit of a file",
        place: 2,
        git: &["stash", "create"],
        target: Some(Target::AtMost(1.0)),
    },
];

/// Whether what commands change is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keeping {
    On,
    Off,
}

pub(super) fn rows(stage: &Stage) -> Result<Vec<Row>> {
    let tree = stage.place("tracked");
    plant(&tree)?;
    track(&tree)?;
    let mut ours: [Vec<f64>; 4] = Default::default();
    let mut git: [Vec<f64>; 4] = Default::default();
    for run in 0..=stage.runs {
        let on = calls(stage, &tree, Keeping::On)?;
        let off = calls(stage, &tree, Keeping::Off)?;
        for (place, measured) in CALLS.iter().enumerate() {
            let wall = measure(&mut command(&tree, measured.git))?.wall;
            // The first run reads the tree from disk.
            if run > 0 {
                ours[place].push((on[place] - off[place]).max(0.0));
                git[place].push(milliseconds(wall));
            }
        }
    }
    let summary = |values| Summary::of(values, Better::Less).context("no runs");
    let mut rows = Vec::new();
    for ((measured, ours), git) in CALLS.iter().zip(ours).zip(git) {
        let row = Row::new(measured.name, Unit::Milliseconds, summary(ours)?)
            .against("git", summary(git)?);
        rows.push(match measured.target {
            Some(target) => row.target(target),
            None => row,
        });
    }
    Ok(rows)
}

/// From the answer with each call to the next request.
fn calls(stage: &Stage, tree: &Path, keeping: Keeping) -> Result<[f64; 4]> {
    let bash = |number, line: &str| answers::call(number, "Bash", &json!({"command": line}));
    let file = |number, tool, input| answers::call(number, tool, &input);
    let edit =
        json!({"path": "made.txt", "old_string": "y", "new_string": "z", "replace_all": true});
    let script = vec![
        stage.read_call(0),
        // What earlier runs made; in the first, which does not count, there is nothing to edit.
        file(1000, "Read", json!({"path": "made.txt"})),
        file(1001, "Edit", edit),
        bash(1002, "echo x >> made.txt"),
        bash(1003, "echo y >> made.txt"),
        bash(1004, "cat made.txt"),
        answers::text("done"),
    ];
    stage.server.play(script.clone(), Bodies::Dropped);
    let mut command = stage.caliban(tree);
    command
        .args(["-p", "hi", "--quiet", "--no-permissions", "--add-dir"])
        .arg(stage.workspace());
    if keeping == Keeping::Off {
        command.env("CALIBAN_CHECKPOINT_DISABLED", "1");
    }
    measure(&mut command)?;
    let exchanges = stage.server.exchanges();
    ensure!(exchanges.len() == script.len(), "not all calls ran");
    Ok(CALLS.map(|measured| milliseconds(between(&exchanges, measured.place))))
}

fn command(tree: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args(["-c", "user.name=bench", "-c", "user.email=bench@localhost"])
        .args(["-c", "gc.auto=0"])
        .args(arguments)
        .current_dir(tree);
    command
}

/// Makes a repository of the tree unless it is one.
fn track(tree: &Path) -> Result<()> {
    if tree.join(".git").exists() {
        return Ok(());
    }
    let steps: [&[&str]; 3] = [
        &["init", "--quiet"],
        &["add", "--all"],
        &["commit", "--quiet", "--message", "all"],
    ];
    for arguments in steps {
        let status = command(tree, arguments).status()?;
        ensure!(status.success(), "git {arguments:?} failed");
    }
    Ok(())
}
