//! Nothing survives: whatever ends caliban also ends what it started.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use caliban_model::{Credentials, Freshness};
use caliban_process::Guard;
use caliban_settings::key_helper::{HelperKey, KeyHelpers, Surroundings};
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

/// Three that sleep for this long: one in a session of its own, and two that are deaf to TERM.
struct Sleepers(String);

impl Sleepers {
    fn new(case: u32) -> Self {
        Self(format!("sleep 4{}.{case} ", std::process::id()))
    }

    /// A program that starts them and waits for them.
    fn script(&self, directory: &Path) -> PathBuf {
        let sleep = &self.0;
        let text = format!(
            "#!/bin/sh\nsetsid {sleep}&\n(trap '' TERM; {sleep}; :)&\ntrap '' TERM\n{sleep}\n"
        );
        let path = directory.join("hang.sh");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o700)).unwrap();
        path
    }

    fn are_up(&self) -> bool {
        marked(&self.0).len() == 3
    }

    fn are_gone(&self) -> bool {
        marked(&self.0).is_empty()
    }
}

/// Whose program hangs.
#[derive(Debug, Clone, Copy)]
enum Whose {
    Hook,
    KeyHelper,
}

/// A session that comes to call a tool, if it gets that far.
fn hanging(whose: Whose, timeout: &str, sleepers: &Sleepers) -> Bench {
    let call = Reply::tool("Bash", json!({"command": "true"}));
    let bench = Bench::new(Wire::Anthropic, Script::new([call, Reply::text("done")]));
    let script = sleepers.script(bench.workspace.path());
    let script = script.display();
    let settings = match whose {
        Whose::Hook => format!(
            "[[hooks.PreToolUse]]\ntype = 'command'\ncommand = '{script}'\ntimeout = '{timeout}'\n"
        ),
        Whose::KeyHelper => format!("api_key_helper = '{script}'\n"),
    };
    let directory = bench.home.path().join(".config/caliban");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("settings.toml"), settings).unwrap();
    bench
}

#[rstest]
#[case::hook_cancelled(Whose::Hook, "-INT", 1)]
#[case::hook_killed(Whose::Hook, "-KILL", 2)]
#[case::key_helper_cancelled(Whose::KeyHelper, "-INT", 3)]
#[case::key_helper_killed(Whose::KeyHelper, "-KILL", 4)]
fn a_signal_leaves_nothing_of_a_hook_or_a_key_helper(
    #[case] whose: Whose,
    #[case] signal: &str,
    #[case] case: u32,
) {
    let sleepers = Sleepers::new(case);
    let bench = hanging(whose, "60s", &sleepers);
    let mut child = bench
        .command()
        .args(["-p", "go", "--auto-allow"])
        .spawn()
        .unwrap();
    eventually("all sleepers are up", || sleepers.are_up());
    let pid = child.id().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status().unwrap();
    assert!(sent.success());
    assert!(!child.wait().unwrap().success());
    eventually("no sleeper is left", || sleepers.are_gone());
}

#[test]
fn a_hook_that_takes_too_long_leaves_nothing() {
    let sleepers = Sleepers::new(5);
    let bench = hanging(Whose::Hook, "3s", &sleepers);
    let child = bench
        .command()
        .args(["-p", "go", "--auto-allow"])
        .spawn()
        .unwrap();
    eventually("all sleepers are up", || sleepers.are_up());
    let ran = support::finish(child);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "done\n"),
        "{}",
        ran.stderr
    );
    eventually("no sleeper is left", || sleepers.are_gone());
}

/// The time limit is a minute, so this runs where the clock can be moved; the guardian is the real
/// one.
#[tokio::test]
async fn a_key_helper_that_takes_too_long_leaves_nothing() {
    let sleepers = Sleepers::new(6);
    let directory = tempfile::tempdir().unwrap();
    let script = sleepers.script(directory.path());
    let helpers = KeyHelpers::from_value(&json!(script)).unwrap();
    let spec = helpers.for_provider("anthropic").unwrap().clone();
    let surroundings = Surroundings {
        directory: directory.path().to_owned(),
        environment: vec![("PATH".into(), std::env::var_os("PATH").unwrap())],
        guard: Guard::ReExec(env!("CARGO_BIN_EXE_caliban").into()),
        ttl: None,
        warn: Arc::new(|_| {}),
    };
    let key = HelperKey::new("anthropic", spec, surroundings);
    let mut asking = key.key(Freshness::Cached);
    let up = async {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !sleepers.are_up() {
            assert!(Instant::now() < deadline, "all sleepers are up");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        key = &mut asking => panic!("{key:?}"),
        () = up => {}
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(61)).await;
    tokio::time::resume();
    let error = asking.await.unwrap_err().to_string();
    assert!(error.contains("gave no key within 60 s"), "{error}");
    eventually("no sleeper is left", || sleepers.are_gone());
}
