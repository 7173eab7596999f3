//! Many processes write one settings file, and some of them are killed.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may panic, and its children report on stdout"
)]

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use caliban_settings::write::{RuleAction, RuleSpec, Writer};
use tempfile::TempDir;
use toml_edit::DocumentMut;

const FILE: &str = "CALIBAN_TEST_WRITER_FILE";
const TASK: &str = "CALIBAN_TEST_WRITER_TASK";

/// This test program again, running only [`writer`].
fn spawn(file: &Path, task: &str) -> Child {
    command(file, task).spawn().unwrap()
}

fn command(file: &Path, task: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "writer", "--ignored", "--nocapture"])
        .env(FILE, file)
        .env(TASK, task)
        .stdout(Stdio::piped());
    command
}

fn scope(text: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let directory = folder.path().join("scope");
    fs::create_dir(&directory).unwrap();
    let file = directory.join("settings.toml");
    fs::write(&file, text).unwrap();
    (folder, file)
}

/// The writer that all share: its locks are beside the directory of the file.
fn writer_of(file: &Path) -> Writer {
    Writer::new(file.parent().unwrap().with_file_name("locks"))
}

fn names(folder: &TempDir) -> BTreeSet<String> {
    fs::read_dir(folder.path().join("scope"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// The part of the children. Does nothing when it is run by hand.
#[test]
#[ignore = "run by the other tests in processes of its own"]
fn writer() {
    let (Ok(file), Ok(task)) = (std::env::var(FILE), std::env::var(TASK)) else {
        return;
    };
    let file = PathBuf::from(file);
    let writer = writer_of(&file);
    match task.split_once(':') {
        Some(("rules", process)) => thread::scope(|threads| {
            for number in 0..25 {
                let (file, writer) = (&file, &writer);
                threads.spawn(move || {
                    let rule =
                        RuleSpec::new(format!("Bash:p{process} t{number}"), RuleAction::Allow);
                    writer.append_rule(file, &rule).unwrap();
                });
            }
        }),
        Some(("count", _)) => loop {
            let count = writer.edit(&file, |document| {
                let count = document["count"].as_integer().unwrap() + 1;
                document["count"] = count.into();
                // Long enough that a torn write would show.
                document["echo"] = format!("{count} ").repeat(4000).into();
                Ok::<_, Infallible>(count)
            });
            println!("wrote {}", count.unwrap());
        },
        Some(("large", _)) => {
            let outcome = writer.set_key(&file, "model", "x".repeat(100_000));
            println!("failed: {}", outcome.unwrap_err());
        }
        _ => panic!("no such task: {task}"),
    }
}

#[test]
fn two_hundred_writers_in_eight_processes_lose_nothing() {
    let (folder, file) = scope("# kept\nmodel = \"m\"\n");
    let mut children: Vec<Child> = (0..8)
        .map(|process| spawn(&file, &format!("rules:{process}")))
        .collect();
    // A reader that takes no lock never sees half a file.
    while children
        .iter_mut()
        .any(|child| child.try_wait().unwrap().is_none())
    {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.parse::<DocumentMut>().is_ok(), "{text}");
        assert!(text.starts_with("# kept\n"));
        thread::yield_now();
    }
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let text = fs::read_to_string(&file).unwrap();
    let document: DocumentMut = text.parse().unwrap();
    let rules = document["permissions"]["rules"]
        .as_array_of_tables()
        .unwrap();
    let patterns: BTreeSet<&str> = rules
        .iter()
        .map(|rule| rule["pattern"].as_str().unwrap())
        .collect();
    assert_eq!(rules.len(), 200);
    assert_eq!(patterns.len(), 200);
    assert_eq!(names(&folder), ["settings.toml".to_owned()].into());
}

#[test]
fn a_writer_killed_at_any_moment_leaves_the_old_file_or_the_new_one() {
    let (folder, file) = scope("# kept\ncount = 0\necho = \"\"\n");
    let mut previous = 0;
    for round in 0..60_u64 {
        let mut child = spawn(&file, "count:");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let acknowledged = lines
            .by_ref()
            .map(Result::unwrap)
            .find_map(|line| line.split_once("wrote ")?.1.trim().parse::<i64>().ok())
            .expect("the child writes");
        // The moments are spread over the few milliseconds that one write takes.
        thread::sleep(Duration::from_micros(round * 173 % 9000));
        child.kill().unwrap();
        child.wait().unwrap();
        let last = lines
            .map_while(Result::ok)
            .filter_map(|line| line.split_once("wrote ")?.1.trim().parse::<i64>().ok())
            .last()
            .unwrap_or(acknowledged);

        let text = fs::read_to_string(&file).unwrap();
        let document: DocumentMut = text.parse().unwrap();
        let count = document["count"].as_integer().unwrap();
        assert_eq!(
            document["echo"].as_str().unwrap(),
            format!("{count} ").repeat(4000)
        );
        assert!(text.starts_with("# kept\n"));
        // Acknowledged writes are there; at most the one in progress may be too.
        assert!((last..=last + 1).contains(&count), "{count} after {last}");
        assert!(count > previous);
        previous = count;
    }
    writer_of(&file).set_key(&file, "count", 0).unwrap();
    assert_eq!(names(&folder), ["settings.toml".to_owned()].into());
}

#[test]
fn a_full_disk_leaves_the_old_file_and_no_temporary_one() {
    let (folder, file) = scope("model = \"m\"\n");
    let child = command(&file, "large:");
    // The limit makes writing fail halfway, as a full disk does, instead of ending the process.
    let output = Command::new("sh")
        .arg("-c")
        .arg("trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"")
        .arg(child.get_program())
        .args(child.get_args())
        .envs(
            child
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("failed: cannot write"), "{output:?}");
    assert_eq!(fs::read_to_string(&file).unwrap(), "model = \"m\"\n");
    assert_eq!(names(&folder), ["settings.toml".to_owned()].into());
}
