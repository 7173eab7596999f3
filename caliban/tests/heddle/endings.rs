//! How sessions end: asked to, cut off, killed. Whatever runs is ended with them.

use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use caliban_testkit::Reply;
use serde_json::{Value, json};

use crate::client::Client;
use crate::{bench, cancel, cancelled, held, init, refused, send, shutdown};

/// The processes whose command line holds `mark`.
fn marked(mark: &str) -> usize {
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| {
            String::from_utf8_lossy(line)
                .replace('\0', " ")
                .contains(mark)
        })
        .count()
}

/// Waits until a condition holds; processes come and go in their own time.
fn eventually(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::yield_now();
    }
}

/// A command that nobody else runs.
fn sleeper(mark: u32) -> String {
    format!("sleep 4{mark}{}", std::process::id())
}

/// A client whose send has started this command.
fn working(bench: &crate::support::Bench, sleep: &str) -> Client {
    sleeping(Client::start(bench), sleep, &init())
}

fn sleeping(mut client: Client, sleep: &str, init: &Value) -> Client {
    client.init(init);
    client.write(&send("2", "sleep"));
    while client.next()["event"]["event"] != "tool_start" {}
    eventually("it sleeps", || marked(sleep) > 0);
    client
}

/// Reads on to the next result.
fn result(client: &mut Client) -> Value {
    loop {
        let frame = client.next();
        if frame["type"] == "result" {
            return frame;
        }
    }
}

#[test]
fn a_cancelled_send_ends_its_processes() {
    let sleep = sleeper(1);
    let bench = bench([
        Reply::tool(
            "Bash",
            json!({"command": format!("setsid {sleep} & {sleep}")}),
        ),
        Reply::text("after"),
    ]);
    let mut init = init();
    init["config"]["task_id"] = json!("task-abc");
    init["config"]["worker_id"] = json!("worker-1");
    let mut client = sleeping(Client::start(&bench), &sleep, &init);
    client.write(&cancel("3", "2"));
    let result = result(&mut client);
    let session = result["session_id"].as_str().unwrap();
    assert_eq!(session.len(), 36);
    // An orchestrator finds the work again that it cancelled.
    let mut expected = cancelled("2", session);
    expected["task_id"] = json!("task-abc");
    expected["worker_id"] = json!("worker-1");
    expected["iterations"] = json!(1);
    expected["tool_calls_made"] =
        json!([{"name": "bash", "args": {"command": format!("setsid {sleep} & {sleep}")}}]);
    assert_eq!(result, expected);
    eventually("nothing sleeps", || marked(&sleep) == 0);
    let (_, result) = client.exchange(&send("4", "and now?"));
    assert_eq!(result["response"], "after");
}

#[test]
fn the_end_of_the_input_lets_the_message_finish() {
    let bench = bench([Reply::text("There.")]);
    let mut client = Client::start(&bench);
    client.write(&init());
    client.write(&send("2", "go"));
    let ended = client.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let last = ended.frames.last().unwrap();
    assert_eq!(
        (&last["status"], &last["response"]),
        (&json!("ok"), &json!("There."))
    );
}

#[test]
fn the_end_of_the_input_ends_what_takes_too_long() {
    let sleep = sleeper(2);
    let bench = bench([Reply::tool("Bash", json!({"command": sleep}))]);
    let hasty = Client::start_with(&bench, |command| {
        command.env("HEDDLE_SHUTDOWN_TIMEOUT", "50");
    });
    let client = sleeping(hasty, &sleep, &init());
    let ended = client.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let last = ended.frames.last().unwrap();
    assert_eq!(last["error"]["code"], "cancelled", "{last}");
    let results = ended
        .frames
        .iter()
        .filter(|frame| frame["type"] == "result");
    assert_eq!(results.count(), 1);
    eventually("nothing sleeps", || marked(&sleep) == 0);
}

#[test]
fn who_says_goodbye_and_closes_the_input_is_still_answered() {
    let bench = bench([held()]);
    let mut client = Client::start(&bench);
    client.init(&init());
    client.write(&send("2", "go"));
    assert_eq!(client.next()["event"]["event"], "content_delta");
    client.write(&shutdown("3"));
    let ended = client.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let last = ended.frames.last().unwrap();
    assert_eq!(*last, json!({"type": "shutdown_ok", "id": "3"}));
}

#[test]
fn an_input_that_says_nothing_ends_cleanly() {
    let bench = bench([]);
    let ended = Client::start(&bench).end();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
    assert!(ended.frames.is_empty());
}

#[test]
fn a_signal_ends_the_send_and_the_session() {
    let sleep = sleeper(3);
    let bench = bench([Reply::tool("Bash", json!({"command": sleep}))]);
    let client = working(&bench, &sleep);
    let pid = client.pid().to_string();
    let sent = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert!(sent.success());
    // The input stays open until the server has gone by itself.
    let mut client = client;
    assert_eq!(result(&mut client)["error"]["code"], "cancelled");
    let ended = client.end();
    assert_eq!(ended.code, Some(124), "{}", ended.stderr);
    eventually("nothing sleeps", || marked(&sleep) == 0);
}

#[test]
fn a_closed_output_ends_the_work() {
    let bench = bench([Reply::text("x".repeat(300_000))]);
    let mut command = bench.command();
    let mut child = command
        .args(["serve", "heddle"])
        .stdin(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut input = child.stdin.take().unwrap();
    // It may have noticed already.
    let _ = writeln!(input, "{}\n{}", init(), send("2", "hello"));
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(1));
    assert_eq!(String::from_utf8(ended.stderr).unwrap(), "");
}

#[test]
fn a_shutdown_cancels_the_call_that_runs() {
    let sleep = sleeper(4);
    let bench = bench([Reply::tool("Bash", json!({"command": sleep}))]);
    let mut client = working(&bench, &sleep);
    for request in [shutdown("3"), send("4", "more"), shutdown("5")] {
        client.write(&request);
    }
    let ended = client.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let (last, before) = ended.frames.split_last().unwrap();
    assert_eq!(*last, json!({"type": "shutdown_ok", "id": "3"}));
    let is_result = |frame: &&Value| frame["type"] == "result";
    let results: Vec<_> = before.iter().filter(is_result).collect();
    assert_eq!(results.len(), 1, "{before:?}");
    assert_eq!(results[0]["error"]["code"], "cancelled");
    let reason = "the session is shutting down already";
    for late in ["4", "5"] {
        assert!(before.contains(&refused(late, reason)), "{before:?}");
    }
    eventually("nothing sleeps", || marked(&sleep) == 0);
}

#[test]
fn a_shutdown_cancels_the_answer_that_is_written() {
    let bench = bench([held()]);
    let mut client = Client::start(&bench);
    let session = client.init(&init());
    client.write(&send("2", "hold"));
    assert_eq!(client.next()["event"]["event"], "content_delta");
    client.write(&shutdown("3"));
    assert_eq!(client.next(), cancelled("2", &session));
    assert_eq!(client.next(), json!({"type": "shutdown_ok", "id": "3"}));
    let ended = client.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}
