//! How sessions end: asked to, cut off, killed. Whatever runs is ended with them.

use std::io::Write as _;
use std::process::Command;
use std::time::{Duration, Instant};

use caliban_testkit::Reply;
use serde_json::{Value, json};

use crate::client::Client;
use crate::{bench, cancel, cancelled, held, init, refused, send, shutdown, status};

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
    sleeping(Client::start(bench), sleep)
}

fn sleeping(mut client: Client, sleep: &str) -> Client {
    client.init(&init());
    client.write(&send("2", "sleep"));
    while client.next()["event"]["event"] != "tool_start" {}
    eventually("it sleeps", || marked(sleep) > 0);
    client
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
    let mut client = working(&bench, &sleep);
    client.write(&cancel("3", "2"));
    let result = loop {
        let frame = client.next();
        if frame["type"] == "result" {
            break frame;
        }
    };
    let mut expected = cancelled("2");
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
    let client = sleeping(hasty, &sleep);
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
    let bench = bench([Reply::text("There.")]);
    let mut client = Client::start(&bench);
    for request in [init(), send("2", "go"), shutdown("3")] {
        client.write(&request);
    }
    let ended = client.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let is_result = |frame: &&Value| frame["type"] == "result";
    let result = ended.frames.iter().find(is_result).unwrap();
    assert_eq!(result["response"], "There.");
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
    let result = loop {
        let frame = client.next();
        if frame["type"] == "result" {
            break frame;
        }
    };
    assert_eq!(result["error"]["code"], "cancelled");
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
fn a_shutdown_waits_for_the_work_that_goes_on() {
    let bench = bench([
        Reply::tool("Bash", json!({"command": "cat gate"})),
        Reply::text("through"),
    ]);
    let gate = bench.workspace.path().join("gate");
    let made = Command::new("mkfifo").arg(&gate).status().unwrap();
    assert!(made.success());
    let mut client = Client::start(&bench);
    client.init(&init());
    client.write(&send("2", "wait"));
    while client.next()["event"]["event"] != "tool_start" {}
    client.write(&shutdown("3"));
    // It was heard, and the send goes on.
    assert_eq!(client.ask(&status("4"))["active"], true);
    assert_eq!(
        client.ask(&send("5", "more")),
        refused("5", "the send `2` is not finished")
    );
    assert_eq!(
        client.ask(&shutdown("6")),
        refused("6", "the session is shutting down already")
    );
    std::fs::write(&gate, "open\n").unwrap();
    let result = loop {
        let frame = client.next();
        if frame["type"] == "result" {
            break frame;
        }
    };
    assert_eq!(result["response"], "through");
    let ended = client.end();
    assert_eq!(ended.frames, [json!({"type": "shutdown_ok", "id": "3"})]);
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn a_shutdown_does_not_wait_for_ever() {
    let bench = bench([held()]);
    let mut client = Client::start_with(&bench, |command| {
        command.env("HEDDLE_SHUTDOWN_TIMEOUT", "5");
    });
    client.init(&init());
    client.write(&send("2", "hold"));
    assert_eq!(client.next()["event"]["event"], "content_delta");
    client.write(&shutdown("3"));
    assert_eq!(client.next(), cancelled("2"));
    assert_eq!(client.next(), json!({"type": "shutdown_ok", "id": "3"}));
    let ended = client.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}
