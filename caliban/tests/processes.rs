//! Nothing survives: whatever ends caliban also ends what it started.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::process::Command;
use std::time::{Duration, Instant};

use caliban_testkit::{Reply, Script};
use rstest::rstest;
use serde_json::json;
use support::{Bench, Wire};

/// The processes whose command line holds `mark`.
fn marked(mark: &str) -> Vec<String> {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            line.contains(mark).then_some(line)
        })
        .collect()
}

/// Waits until a condition holds; processes come and go in their own time.
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[rstest]
#[case::interrupt("-INT", Some(124))]
#[case::terminate("-TERM", Some(124))]
#[case::kill("-KILL", None)]
fn a_signal_leaves_no_process_behind(#[case] signal: &str, #[case] code: Option<i32>) {
    // A number nobody else sleeps for.
    let mark = format!(
        "{}",
        700_000 + std::process::id() % 100_000 * 3 + u32::from(code.is_none())
    );
    let mark = format!("{mark}{}", signal.len());
    let sleep = format!("sleep {mark}");
    let commands = [
        // In the foreground, behind a child, escaped into a session of its own, deaf to TERM.
        format!("{sleep} & setsid {sleep} & (trap '' TERM; {sleep}) & {sleep}"),
        format!("(setsid sh -c '{sleep} & {sleep}' &) ; {sleep}"),
    ];
    let background = json!({"command": format!("{sleep} & {sleep}"), "background": true});
    let calls = commands
        .iter()
        .map(|command| ("Bash", json!({"command": command})))
        .chain([("Bash", background)]);
    let bench = Bench::new(Wire::Anthropic, Script::new([Reply::tools(calls)]));
    let mut child = bench
        .command()
        .args(["-p", "go", "--auto-allow", "--parallel-tool-limit", "3"])
        .spawn()
        .unwrap();
    eventually("all sleepers are up", || marked(&sleep).len() >= 9);
    let pid = child.id().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
    assert!(sent.success());
    let ended = child.wait().unwrap();
    assert_eq!(ended.code(), code);
    eventually("no sleeper is left", || marked(&sleep).is_empty());
}

#[test]
fn a_finished_run_leaves_no_background_job() {
    let mark = format!("sleep 8{}", std::process::id());
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([
            Reply::tool("Bash", json!({"command": mark, "background": true})),
            Reply::text("done"),
        ]),
    );
    let ran = bench.run(["-p", "go", "--auto-allow"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    eventually("the job is gone", || marked(&mark).is_empty());
    let jobs = bench.home.path().join(".cache/caliban/jobs");
    let left = std::fs::read_dir(jobs).map_or(0, Iterator::count);
    assert_eq!(left, 0, "job output is removed");
}

#[test]
fn a_job_that_will_not_end_does_not_hold_the_result_back() {
    let mark = format!("sleep 5{}", std::process::id());
    let deaf = json!({"command": format!("trap '' TERM; {mark} & {mark} & wait; {mark}"), "background": true});
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([Reply::tool("Bash", deaf), Reply::text("done")]),
    );
    let ran = bench.run(["-p", "go", "--auto-allow"]);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "done\n"),
        "{}",
        ran.stderr
    );
    eventually("its guardian ends it", || marked(&mark).is_empty());
}

#[test]
fn a_second_interrupt_exits_at_once() {
    // The first interrupt gives the tool time to end; this one does not care.
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([Reply::tool(
            "Bash",
            json!({"command": format!("trap '' TERM; sleep 9{}", std::process::id())}),
        )]),
    );
    let mark = format!("sleep 9{}", std::process::id());
    let mut child = bench
        .command()
        .args(["-p", "go", "--auto-allow"])
        .spawn()
        .unwrap();
    eventually("it runs", || !marked(&mark).is_empty());
    let pid = child.id().to_string();
    let interrupt = || Command::new("kill").args(["-INT", &pid]).status().unwrap();
    interrupt();
    // The handler is armed again once the first was taken; a lost second one is repeated.
    let deadline = Instant::now() + Duration::from_secs(20);
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(50));
        interrupt();
    };
    assert_eq!(status.code(), Some(130));
    eventually("nothing is left", || marked(&mark).is_empty());
}

#[test]
fn a_kill_at_any_moment_leaves_nothing() {
    for moment in 0..12u64 {
        let mark = format!("sleep 6{}.{moment}", std::process::id());
        let command = json!({"command": format!("setsid {mark} & {mark}")});
        let calls = (0..3).map(|_| ("Bash", command.clone()));
        let bench = Bench::new(Wire::Anthropic, Script::new([Reply::tools(calls)]));
        let mut child = bench
            .command()
            .args(["-p", "go", "--auto-allow", "--parallel-tool-limit", "3"])
            .spawn()
            .unwrap();
        bench.server.wait_for_requests(1);
        // From before the first shell is up until all of them are.
        std::thread::sleep(Duration::from_millis(moment * moment));
        child.kill().unwrap();
        child.wait().unwrap();
        eventually("nothing is left", || marked(&mark).is_empty());
    }
}
