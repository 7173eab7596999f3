//! Which conversation goes on, and what a start that was refused leaves of it: nothing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::path::{Path, PathBuf};

use caliban_testkit::{Reply, Script};
use rstest::rstest;
use serde_json::Value;
use support::{Bench, Ran, Wire, run};

fn bench(answers: usize) -> Bench {
    let replies = (0..answers).map(|number| Reply::text(format!("answer {number}")));
    Bench::new(Wire::Anthropic, Script::new(replies))
}

fn sessions(bench: &Bench) -> PathBuf {
    bench.home.path().join(".local/share/caliban/sessions")
}

/// Every file of every session.
fn files(bench: &Bench) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(sessions(bench)) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != ".pruned")
        .collect();
    names.sort();
    names
}

fn ran_in(bench: &Bench, directory: &Path, args: &[&str]) -> Ran {
    run(bench.command().args(args).current_dir(directory))
}

/// What the model was told last, all of it.
fn last_request(bench: &Bench) -> Value {
    bench.server.model_requests().pop().unwrap().json()
}

fn told(bench: &Bench) -> String {
    last_request(bench)["messages"].to_string()
}

#[rstest]
#[case::unreadable_image(&["-p", "see @bad.png"], 78)]
#[case::bypass_without_the_latch(&["-p", "x", "--permission-mode", "bypassPermissions"], 78)]
#[case::bad_pattern(&["-p", "x", "--allow", "Bash("], 64)]
#[case::missing_file(&["-p", "x", "--system-file", "nowhere.txt"], 66)]
#[case::bad_variable(&["-p", "x", "--output-format", "json"], 78)]
#[case::no_prompt(&["--input-format", "stream-json", "--output-format", "stream-json"], 66)]
fn a_refused_start_leaves_no_session(
    #[case] args: &[&str],
    #[case] code: i32,
    #[values(&[], &["--session", "named"], &["-c", "--fork-session"])] which: &[&str],
) {
    let bench = bench(2);
    assert_eq!(bench.run(["-p", "remember me"]).code, Some(0));
    std::fs::write(bench.workspace.path().join("bad.png"), "no image").unwrap();
    let before = files(&bench);
    let mut command = bench.command();
    if code == 78 && args.contains(&"json") {
        command.env("CALIBAN_CLEANUP_PERIOD_DAYS", "soon");
    }
    let refused = run(command.args(args).args(which));
    assert_eq!(refused.code, Some(code), "{}", refused.stderr);
    assert_eq!(files(&bench), before);
    assert_eq!(bench.run(["-p", "go on", "-c"]).code, Some(0));
    assert!(told(&bench).contains("remember me"), "{}", told(&bench));
}

#[test]
fn a_refused_start_leaves_an_earlier_session_as_it_was() {
    let bench = bench(1);
    assert_eq!(bench.run(["-p", "x", "--session", "s"]).code, Some(0));
    let file = sessions(&bench).join("s.json");
    let before = std::fs::read_to_string(&file).unwrap();
    let args = [
        "-p",
        "see @bad.png",
        "-r",
        "s",
        "--model",
        "claude-opus-4-6",
    ];
    std::fs::write(bench.workspace.path().join("bad.png"), "no image").unwrap();
    assert_eq!(bench.run(args).code, Some(78));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
    assert_eq!(files(&bench), ["s.json"]);
}

#[test]
fn the_latest_session_is_that_of_the_workspace() {
    let bench = bench(4);
    let elsewhere = tempfile::tempdir().unwrap();
    assert_eq!(bench.run(["-p", "said here"]).code, Some(0));
    let there = ran_in(&bench, elsewhere.path(), &["-p", "x", "-c"]);
    assert_eq!(there.code, Some(66), "{}", there.stderr);
    assert!(there.stderr.contains("sessions list"), "{}", there.stderr);
    let there = ran_in(&bench, elsewhere.path(), &["-p", "said there"]);
    assert_eq!(there.code, Some(0), "{}", there.stderr);
    assert_eq!(bench.run(["-p", "go on", "-c"]).code, Some(0));
    assert!(told(&bench).contains("said here") && !told(&bench).contains("said there"));
}

#[test]
fn everywhere_in_a_repository_is_the_same_workspace() {
    let bench = bench(3);
    let root = bench.workspace.path();
    let (one, other, nested) = (root.join("a/b"), root.join("c"), root.join("d"));
    for directory in [&one, &other, &nested.join(".git"), &root.join(".git")] {
        std::fs::create_dir_all(directory).unwrap();
    }
    assert_eq!(ran_in(&bench, &one, &["-p", "said below"]).code, Some(0));
    let next = ran_in(&bench, &other, &["-p", "go on", "-c"]);
    assert_eq!(next.code, Some(0), "{}", next.stderr);
    assert!(told(&bench).contains("said below"));
    let another = ran_in(&bench, &nested, &["-p", "go on", "-c"]);
    assert_eq!(another.code, Some(66), "a repository of its own");
}

#[test]
fn another_directory_is_told_with_the_next_prompt_and_once() {
    let bench = bench(3);
    let elsewhere = tempfile::tempdir().unwrap();
    let place = elsewhere.path().canonicalize().unwrap();
    let place = place.to_str().unwrap();
    assert_eq!(bench.run(["-p", "x", "--session", "s"]).code, Some(0));
    let system = last_request(&bench)["system"].clone();
    for times in [1, 1] {
        let ran = ran_in(&bench, elsewhere.path(), &["-p", "where", "-r", "s"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(
            told(&bench).matches(place).count(),
            times,
            "{}",
            told(&bench)
        );
    }
    assert_eq!(last_request(&bench)["system"], system);
    let saved = std::fs::read_to_string(sessions(&bench).join("s.json")).unwrap();
    let saved: Value = serde_json::from_str(&saved).unwrap();
    assert_eq!(saved["cwd"], place);
}

#[rstest]
#[case::empty("json", "")]
#[case::blank("json", "\n")]
#[case::half("json", "{\"name\": \"s\", \"mess")]
#[case::empty_journal("journal", "")]
#[case::no_journal("journal", "not a record\n")]
fn an_unreadable_file_is_no_session_and_stays(#[case] kind: &str, #[case] content: &str) {
    let bench = bench(0);
    let file = sessions(&bench).join(format!("s.{kind}"));
    std::fs::create_dir_all(sessions(&bench)).unwrap();
    std::fs::write(&file, content).unwrap();
    for which in [
        &["-r", "s"][..],
        &["--session", "s"],
        &["-r", "s", "--fork-session"],
        &["-r", "s", "--no-save"],
    ] {
        let ran = bench.run(["-p", "x"].iter().chain(which));
        assert_eq!(ran.code, Some(1), "{which:?} {}", ran.stderr);
        assert!(
            ran.stderr.contains(file.to_str().unwrap()),
            "{}",
            ran.stderr
        );
        assert_eq!(std::fs::read_to_string(&file).unwrap(), content);
        assert_eq!(files(&bench), [format!("s.{kind}")]);
    }
    let shown = bench.run(["sessions", "show", "s"]);
    assert_eq!(shown.code, Some(1), "{}", shown.stderr);
}

#[rstest]
#[case(&["--system", "SECOND"])]
#[case(&["--system-file", "second.txt"])]
#[case(&["--no-system"])]
fn a_session_keeps_its_system_prompt(#[case] other: &[&str]) {
    let bench = bench(3);
    std::fs::write(bench.workspace.path().join("second.txt"), "SECOND").unwrap();
    let begun = bench.run(["-p", "x", "--session", "s", "--system", "FIRST"]);
    assert_eq!(begun.code, Some(0), "{}", begun.stderr);
    for which in [&["--session", "s"][..], &["-r", "s"], &["-c"]] {
        let ran = bench.run(["-p", "x"].iter().chain(which).chain(other));
        assert_eq!(ran.code, Some(64), "{which:?} {}", ran.stderr);
        assert!(ran.stderr.contains("--fork-session"), "{}", ran.stderr);
    }
    let system = || last_request(&bench)["system"].to_string();
    assert_eq!(bench.run(["-p", "x", "-r", "s"]).code, Some(0));
    assert!(system().contains("FIRST"));
    let copy = ["-p", "x", "-r", "s", "--fork-session"];
    assert_eq!(bench.run(copy.iter().chain(other)).code, Some(0));
    assert!(!system().contains("FIRST"));
    assert_eq!(system().contains("SECOND"), other[0] != "--no-system");
}

#[test]
fn a_session_that_began_without_a_system_prompt_goes_on_without() {
    let bench = bench(4);
    let begun = bench.run(["-p", "x", "--session", "s", "--no-system"]);
    assert_eq!(begun.code, Some(0), "{}", begun.stderr);
    let goes_on = |args: &[&str]| {
        let ran = bench.run(["-p"].iter().chain(args));
        assert_eq!(ran.code, Some(0), "{args:?} {}", ran.stderr);
        last_request(&bench)["system"].clone()
    };
    for which in [&["x", "-r", "s"][..], &["x", "-r", "s", "--fork-session"]] {
        assert_eq!(goes_on(which), Value::Null, "{which:?}");
    }
    // Nothing that was said is left then.
    let cleared = bench.run(["-p", "/clear", "-r", "s"]);
    assert_eq!(cleared.code, Some(0), "{}", cleared.stderr);
    assert_eq!(goes_on(&["x", "-r", "s"]), Value::Null);
}

#[rstest]
#[case("30", 1)]
#[case("0", 2)]
fn nothing_is_too_old_where_the_period_is_zero(#[case] days: &str, #[case] left: usize) {
    let bench = bench(1);
    let old = "{\"provider\": \"p\", \"model\": \"m\", \"messages\": [], \
               \"created_at\": \"2020-01-01T00:00:00Z\", \"updated_at\": \"2020-01-01T00:00:00Z\"}";
    let id = "6f1c1c0e-0000-4000-8000-000000000000";
    std::fs::create_dir_all(sessions(&bench)).unwrap();
    std::fs::write(sessions(&bench).join(format!("{id}.json")), old).unwrap();
    let mut command = bench.command();
    command.env("CALIBAN_CLEANUP_PERIOD_DAYS", days);
    let ran = run(command.args(["-p", "x"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(files(&bench).len(), left, "{:?}", files(&bench));
    let mut command = bench.command();
    command.env("CALIBAN_CLEANUP_PERIOD_DAYS", days);
    let ran = run(command.args(["sessions", "prune"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(files(&bench).len(), left);
    assert_eq!(
        ran.stdout.contains("for ever"),
        days == "0",
        "{}",
        ran.stdout
    );
}

#[test]
fn a_title_is_what_was_typed() {
    let bench = bench(1);
    std::fs::write(bench.workspace.path().join("f.txt"), "contents of f").unwrap();
    assert_eq!(bench.run(["-p", "explain @f.txt"]).code, Some(0));
    assert!(told(&bench).contains("contents of f"));
    let listed = bench.run(["sessions", "list"]).stdout;
    assert!(listed.contains("  explain @f.txt\n"), "{listed}");
    assert!(listed.contains(" 1 turn "), "{listed}");
}
