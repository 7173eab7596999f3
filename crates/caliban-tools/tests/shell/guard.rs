//! Nothing a command started outlives it, its call, or the process that ran it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{GUARD, Session, await_death, await_file, is_running};
use caliban_agent::ToolStatus;
use serde_json::json;

/// The lines of a result without the last, which is the status.
fn lines(text: &str) -> String {
    text.rsplit_once('\n').unwrap().0.to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grandchild_that_holds_the_pipe_delays_nothing_and_dies() {
    let session = Session::new();
    let started = Instant::now();
    let output = session.bash("sleep 100 & echo $!").await;
    assert!(started.elapsed() < Duration::from_secs(2));
    assert_eq!(output.status, ToolStatus::Ok);
    assert!(
        !is_running(&lines(&output.text())),
        "dead when the call returns"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_double_fork_into_another_session_does_not_escape() {
    let session = Session::new();
    let output = session
        .bash(
            "(setsid sh -c 'trap \"\" TERM HUP; (sleep 100 & echo $! >> p; echo $$ >> p; \
             echo done >> p; wait)' >/dev/null 2>&1 </dev/null &)
             until grep -q done p 2>/dev/null; do :; done; grep -v done p",
        )
        .await;
    let pids = lines(&output.text());
    assert_eq!(pids.lines().count(), 2, "{pids}");
    assert!(!pids.lines().any(is_running), "dead when the call returns");
}

#[test]
fn killing_the_session_kills_everything() {
    let root = tempfile::tempdir().unwrap();
    let mut session = Command::new(GUARD)
        .arg("session")
        .arg(root.path())
        .arg(
            "setsid sleep 100 & echo $! >> pids; (sleep 100 & echo $! >> pids)
             echo $$ $PPID >> pids; echo done >> pids; sleep 100",
        )
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pids = await_file(&root.path().join("pids"));
    assert_eq!(pids.split_whitespace().count(), 4, "{pids}");
    assert!(pids.split_whitespace().all(is_running));
    session.kill().unwrap();
    session.wait().unwrap();
    await_death(&pids);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_ends_also_what_does_not_want_to_end() {
    let session = Session::new();
    let command =
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1; done' & wait";
    let input = json!({"command": command, "timeout_seconds": 1});
    let output = session.call(&session.bash, input).await;
    assert_eq!(output.status, ToolStatus::TimedOut);
    assert!(
        !is_running(&lines(&output.text())),
        "dead when the call returns"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn being_asked_to_end_leaves_time_to_clean_up() {
    let session = Session::new();
    let command = "trap 'echo cleaned > cleaned; exit' TERM; sleep 100 & wait";
    let input = json!({"command": command, "timeout_seconds": 1});
    session.call(&session.bash, input).await;
    assert!(session.root.path().join("cleaned").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn dropping_a_call_ends_its_command() {
    let session = Session::new();
    let call = session.bash("echo $$ $PPID >> pids; echo done >> pids; sleep 100");
    let pids = session.root.path().join("pids");
    let pids = tokio::select! {
        output = call => panic!("{output:?}"),
        pids = tokio::task::spawn_blocking(move || await_file(&pids)) => pids.unwrap(),
    };
    tokio::task::spawn_blocking(move || await_death(&pids))
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_returns_what_was_written() {
    let session = Session::new();
    let cancel = session.context.cancel.clone();
    let file = session.root.path().join("pids");
    let canceller = tokio::task::spawn_blocking(move || {
        let pids = await_file(&file);
        cancel.cancel();
        pids
    });
    let output = session
        .bash("echo early; echo $$ > pids; echo done >> pids; sleep 100")
        .await;
    assert_eq!(output.status, ToolStatus::Cancelled);
    assert!(output.text().starts_with("early\n[cancelled after "));
    let pids = canceller.await.unwrap();
    assert!(!is_running(pids.trim()), "dead when the call returns");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_cannot_find_the_guardian_by_its_own_words() {
    let session = Session::new();
    let output = session
        .bash("tr '\\0' ' ' < /proc/$PPID/cmdline | grep -c cmdline; env | grep -c GUARD")
        .await;
    assert!(output.text().starts_with("0\n0\n"), "{}", output.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn neither_a_terminal_nor_its_signals_reach_a_command() {
    let session = Session::new();
    let output = session
        .bash("read -r _ _ _ _ _ leader terminal _ < /proc/$$/stat; echo $PPID; echo $leader $terminal")
        .await;
    let lines = lines(&output.text());
    let (guardian, session) = lines.split_once('\n').unwrap();
    assert_eq!(session, format!("{guardian} 0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_codes_and_signals_pass_through_the_guardian() {
    let session = Session::new();
    for (command, status) in [
        ("exit 0", "[exit 0 in"),
        ("exit 101", "[exit 101 in"),
        ("exit 255", "[exit 255 in"),
        ("nonexistent-program", "[exit 127 in"),
        ("kill -KILL $$", "[killed by SIGKILL after"),
        ("kill -TERM $$", "[killed by SIGTERM after"),
        ("kill -SEGV $$", "[killed by SIGSEGV after"),
        ("kill -PIPE $$", "[exit 141 in"),
    ] {
        let text = session.bash(command).await.text();
        assert!(text.contains(status), "{command}: {text}");
    }
}
