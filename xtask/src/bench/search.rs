//! Grep and Glob on a large tree, as a model would call them.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::answers::{self, Answer};
use super::process::{measure, milliseconds};
use super::report::{Row, Target, Unit};
use super::samples::{Better, Summary};
use super::server::{Bodies, Exchange};
use super::stage::Stage;

const DIRECTORIES: usize = 500;
const FILES: usize = 100;
/// One file in so many has what is looked for.
const RARITY: usize = 1250;
const NEEDLE: &str = "fn needle_in_[a-z]+";

/// A search and the program that does the same.
struct Search {
    name: &'static str,
    call: Answer,
    rg: Command,
    target: Option<Target>,
}

pub(super) fn rows(stage: &Stage) -> Result<Vec<Row>> {
    let tree = stage.place("tree");
    plant(&tree)?;
    let rg = |arguments: &[&str]| {
        let mut command = Command::new("rg");
        // The same files: ignore files count without a repository, the user's own do not.
        command
            .args(["--no-config", "--no-require-git", "--no-ignore-global"])
            .args(arguments)
            .current_dir(&tree);
        command
    };
    let grep = |mode: &str| json!({"pattern": NEEDLE, "output_mode": mode});
    let searches = [
        Search {
            name: "Grep for lines in 50,000 files",
            call: answers::call(1000, "Grep", &grep("content")),
            rg: rg(&["--line-number", "--no-heading", NEEDLE, "."]),
            target: Some(Target::RatioAtMost(1.3)),
        },
        Search {
            name: "Grep for files among 50,000",
            call: answers::call(1001, "Grep", &grep("files_with_matches")),
            rg: rg(&["--files-with-matches", NEEDLE, "."]),
            target: Some(Target::RatioAtMost(1.3)),
        },
        Search {
            name: "Glob among 50,000 files",
            call: answers::call(1002, "Glob", &json!({"pattern": "**/*_77.rs"})),
            rg: rg(&["--files", "--glob", "**/*_77.rs"]),
            target: None,
        },
    ];
    searches
        .into_iter()
        .map(|search| measured(stage, &tree, search))
        .collect()
}

fn measured(stage: &Stage, tree: &Path, mut search: Search) -> Result<Row> {
    // Calls that cost next to nothing stand around the one that is measured.
    let script = vec![
        stage.read_call(0),
        stage.read_call(1),
        search.call,
        stage.read_call(2),
        answers::text("done"),
    ];
    let workspace = stage.workspace();
    let (mut ours, mut rg) = (Vec::new(), Vec::new());
    for run in 0..=stage.runs {
        stage.server.play(script.clone(), Bodies::Dropped);
        let mut command = stage.caliban(tree);
        command
            .args(["-p", "hi", "--no-save", "--quiet", "--add-dir"])
            .arg(&workspace);
        measure(&mut command)?;
        let exchanges = stage.server.exchanges();
        ensure!(
            exchanges.len() == script.len(),
            "{}: not all calls ran",
            search.name
        );
        let trivial = between(&exchanges, 1).min(between(&exchanges, 3));
        let time = milliseconds(between(&exchanges, 2).saturating_sub(trivial));
        let reference = milliseconds(measure(&mut search.rg)?.wall);
        // The first run reads the tree from disk.
        if run > 0 {
            ours.push(time);
            rg.push(reference);
        }
    }
    let summary = |values| Summary::of(values, Better::Less);
    let (ours, rg) = summary(ours)
        .zip(summary(rg))
        .ok_or_else(|| anyhow::anyhow!("no runs"))?;
    let row = Row::new(search.name, Unit::Milliseconds, ours).against("rg", rg);
    Ok(match search.target {
        Some(target) => row.target(target),
        None => row,
    })
}

/// From an answer to the request that follows it.
pub(super) fn between(exchanges: &[Exchange], number: usize) -> Duration {
    let (answered, next) = (&exchanges[number], &exchanges[number + 1]);
    next.arrived.saturating_duration_since(answered.answered)
}

/// Makes the tree unless it is there.
pub(super) fn plant(tree: &Path) -> Result<()> {
    let stamp = tree.join(".planted");
    if stamp.exists() {
        return Ok(());
    }
    for directory in 0..DIRECTORIES {
        let place = tree.join(format!("part{}/unit{directory}", directory % 20));
        std::fs::create_dir_all(&place)?;
        for file in 0..FILES {
            let number = directory * FILES + file;
            std::fs::write(place.join(format!("source_{file}.rs")), source(number))?;
        }
    }
    std::fs::write(stamp, "")?;
    Ok(())
}

/// Some 30 lines that look like code, all different.
fn source(number: usize) -> String {
    let mut text = String::new();
    for line in 0..30 {
        let value = (number * 31 + line * 7) % 9973;
        let _ = writeln!(
            text,
            "    let value_{line} = compute({value}, \"part {number}\");"
        );
    }
    if number % RARITY == 7 {
        let _ = writeln!(text, "fn needle_in_haystack() {{}}");
    }
    text
}
