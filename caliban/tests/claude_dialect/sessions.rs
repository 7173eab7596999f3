//! Sessions that go on: by id, the latest one, in a copy, from a transcript alone.

use caliban_testkit::{After, Reply, Script};
use serde_json::{Value, json};

use crate::bench::{Bench, STREAM, of_type};

const JSON: [&str; 3] = ["-p", "--output-format", "json"];

fn run(bench: &Bench, args: &[&str]) -> Value {
    let ran = bench.run(&[&JSON[..], args].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.result()
}

fn id(result: &Value) -> &str {
    result["session_id"].as_str().unwrap()
}

#[test]
fn sessions_are_resumed_continued_and_forked() {
    let bench = Bench::new(Script::new(
        (0..5).map(|n| Reply::text(format!("answer {n}"))),
    ));
    let first = run(&bench, &["first"]);
    let resumed = run(&bench, &["--resume", id(&first), "second"]);
    assert_eq!(id(&resumed), id(&first));
    let history = bench.last_request()["messages"].to_string();
    assert!(history.contains("first") && history.contains("answer 0"));
    assert!(resumed["total_cost_usd"].as_f64() > first["total_cost_usd"].as_f64());
    let continued = run(&bench, &["-c", "third"]);
    assert_eq!(id(&continued), id(&first));
    let forked = run(
        &bench,
        &["--resume", id(&first), "--fork-session", "fourth"],
    );
    assert_ne!(id(&forked), id(&first));
    assert!(
        bench.last_request()["messages"]
            .to_string()
            .contains("answer 2")
    );
    let again = run(&bench, &[&format!("--resume={}", id(&first)), "fifth"]);
    assert_eq!(id(&again), id(&first));
    assert!(
        !bench.last_request()["messages"]
            .to_string()
            .contains("fourth")
    );
}

#[test]
fn continuing_nothing_begins_anew() {
    let bench = Bench::new(Script::new([Reply::text("ok")]));
    assert_eq!(run(&bench, &["--continue", "hi"])["result"], "ok");
}

#[test]
fn a_session_in_use_has_a_result_that_says_so() {
    let bench = Bench::new(Script::new([Reply::text("ok"), Reply::text("copied")]));
    let mut client = bench.client(&[]);
    client.say("hi");
    let first = client.last_until("result");
    let ran = bench.run(&[&JSON[..], &["--resume", id(&first), "me too"]].concat());
    assert_eq!(ran.code, Some(75), "{ran:?}");
    let result = ran.result();
    assert_eq!(id(&result), id(&first));
    assert_eq!(result["subtype"], "error_during_execution");
    let error = result["errors"][0].as_str().unwrap();
    assert!(error.contains(&client.pid().to_string()), "{error}");
    assert!(ran.stderr.contains(error), "{}", ran.stderr);
    let copied = run(&bench, &["--resume", id(&first), "--fork-session", "go"]);
    assert_eq!(copied["result"], "copied");
}

#[test]
fn a_session_id_is_used_once() {
    let bench = Bench::new(Script::new([Reply::text("ok"), Reply::text("ok")]));
    let wanted = "0b5711ac-18a7-4a4d-a19f-77c6a2a0f9c5";
    assert_eq!(id(&run(&bench, &["--session-id", wanted, "hi"])), wanted);
    let ran = bench.run(&["-p", "--session-id", wanted, "hi"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert!(ran.stderr.contains("already in use"), "{}", ran.stderr);
}

#[test]
fn an_unknown_session_is_one_result() {
    let bench = Bench::new(Script::new([]));
    for unknown in ["99999999-9999-4999-8999-999999999999", "no such title"] {
        let resume = format!("--resume={unknown}");
        let args = [&STREAM[..], &[&resume]].concat();
        let input = json!({"type": "control_request", "request_id": "i", "request": {"subtype": "initialize"}});
        let ran = bench.run_with_input(&args, &format!("{input}\n"));
        assert_eq!(ran.code, Some(1));
        let frames = ran.frames();
        assert_eq!(frames.len(), 1);
        assert_eq!(frames[0]["subtype"], "error_during_execution");
        let said = format!("No conversation found with session ID: {unknown}");
        assert_eq!(frames[0]["errors"], json!([said]));
        assert_eq!(frames[0]["num_turns"], 0);
        assert!(ran.stderr.contains(&said));
    }
}

fn transcript(bench: &Bench, id: &str) -> std::path::PathBuf {
    let projects = bench.config().join("projects");
    let project = std::fs::read_dir(projects)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    project.join(format!("{id}.jsonl"))
}

fn rows(path: &std::path::Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[test]
fn transcripts_are_where_clients_look_and_enough_to_go_on() {
    let bench = Bench::new(Script::new([
        Reply::tool("Read", json!({"file_path": "x"})),
        Reply::text("one"),
        Reply::text("two"),
        Reply::text("three"),
        Reply::text("four"),
    ]));
    let first = run(&bench, &["first"]);
    let path = transcript(&bench, id(&first));
    let found = rows(&path);
    let types: Vec<_> = found
        .iter()
        .map(|row| row["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["user", "assistant", "user", "assistant"]);
    for pair in found.windows(2) {
        assert_eq!(pair[1]["parentUuid"], pair[0]["uuid"]);
    }
    assert_eq!(found[0]["parentUuid"], Value::Null);
    assert!(
        found
            .iter()
            .all(|row| row["sessionId"] == first["session_id"])
    );
    // Without our own store the transcript is enough.
    std::fs::remove_dir_all(bench.home.path().join(".local")).unwrap();
    let resumed = run(&bench, &["--resume", id(&first), "second"]);
    assert_eq!(
        (id(&resumed), &resumed["result"]),
        (id(&first), &json!("two"))
    );
    let messages = bench.last_request()["messages"].clone();
    assert_eq!(messages[1]["content"][0]["name"], "Read");
    assert!(messages.to_string().contains("first") && messages.to_string().contains("one"));
    assert_eq!(rows(&path).len(), 6);
    // And it can be gone back to an earlier message.
    let before = found[3]["uuid"].as_str().unwrap();
    run(
        &bench,
        &[
            "--resume",
            id(&first),
            "--resume-session-at",
            before,
            "third",
        ],
    );
    let messages = bench.last_request()["messages"].to_string();
    assert!(messages.contains("one") && !messages.contains("second") && messages.contains("third"));
    // What was left there is no part of what the file tells from then on.
    std::fs::remove_dir_all(bench.home.path().join(".local")).unwrap();
    run(&bench, &["--resume", id(&first), "fourth"]);
    let messages = bench.last_request()["messages"].to_string();
    assert!(
        !messages.contains("second") && messages.contains("third"),
        "{messages}"
    );
}

/// What other programs write down has no more than it needs, and may have been gone back in.
#[test]
fn transcripts_of_others_are_gone_on_with() {
    let bench = Bench::new(Script::new([Reply::text("ok")]).after(After::RepeatLast));
    let other = run(&bench, &["hello"]);
    let project = transcript(&bench, id(&other)).parent().unwrap().to_owned();
    let session = "3f2f8a52-0a8e-4b7e-9a35-0f3d6f2b7c11";
    let row = |kind: &str, uuid: &str, parent: Option<&str>, said: &str| {
        json!({
            "type": kind,
            "uuid": uuid,
            "parentUuid": parent,
            "sessionId": session,
            "message": {"role": kind, "content": [{"type": "text", "text": said}]},
        })
        .to_string()
    };
    let lines = [
        row("user", "u1", None, "ROOT"),
        row("assistant", "a1", Some("u1"), "ANSWER"),
        "{broken".to_owned(),
        row("user", "u2", Some("a1"), "LEFT"),
        row("assistant", "a2", Some("u2"), "LEFT TOO"),
        row("user", "u3", Some("a1"), "RIGHT"),
        row("assistant", "a3", Some("u3"), "RIGHT TOO"),
    ];
    std::fs::write(
        project.join(format!("{session}.jsonl")),
        lines.join("\n") + "\n",
    )
    .unwrap();
    let resumed = run(&bench, &["--resume", session, "go on"]);
    assert_eq!(id(&resumed), session);
    let messages = bench.last_request()["messages"].to_string();
    for said in ["ROOT", "ANSWER", "RIGHT", "RIGHT TOO", "go on"] {
        assert!(messages.contains(said), "{said}: {messages}");
    }
    assert!(!messages.contains("LEFT"), "{messages}");
}

#[test]
fn nothing_is_kept_where_nothing_is_wanted() {
    let bench = Bench::new(Script::new([Reply::text("ok")]));
    run(&bench, &["--no-session-persistence", "hi"]);
    assert!(!bench.config().join("projects").exists());
}

#[test]
fn the_session_is_the_same_in_every_frame() {
    let bench = Bench::new(Script::new([Reply::text("ok"), Reply::text("ok")]));
    let mut client = bench.client(&[]);
    client.say("a");
    let mut frames = client.until("result");
    client.say("b");
    frames.extend(client.until("result"));
    assert!(
        frames
            .iter()
            .all(|frame| frame["session_id"] == frames[0]["session_id"])
    );
    let ids: std::collections::HashSet<String> = frames
        .iter()
        .map(|frame| frame["uuid"].to_string())
        .collect();
    assert_eq!(ids.len(), frames.len());
    assert_eq!(of_type(&frames, "result").len(), 2);
}

#[test]
fn rows_of_the_transcript_are_shown_to_who_keeps_them() {
    let bench = Bench::new(Script::new([Reply::text("one")]));
    let mut client = bench.client(&["--session-mirror"]);
    client.say("hi");
    let frames = client.until("result");
    let rows = of_type(&frames, "transcript_mirror");
    let kinds: Vec<_> = rows.iter().map(|row| &row["entries"][0]["type"]).collect();
    assert_eq!(kinds, ["user", "assistant"]);
    let path = std::path::Path::new(rows[0]["filePath"].as_str().unwrap());
    assert!(path.starts_with(bench.config().join("projects")));
    let written = std::fs::read_to_string(path).unwrap();
    let written: Vec<Value> = written
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let shown: Vec<Value> = rows.iter().map(|row| row["entries"][0].clone()).collect();
    assert_eq!(written, shown);
}

#[test]
fn a_session_is_found_by_the_title_that_a_client_gave_it() {
    let bench = Bench::new(Script::new([Reply::text("one"), Reply::text("two")]));
    let first = run(&bench, &["first"]);
    let project = bench.config().join("projects").read_dir().unwrap().next();
    let file = project
        .unwrap()
        .unwrap()
        .path()
        .join(format!("{}.jsonl", id(&first)));
    let mut text = std::fs::read_to_string(&file).unwrap();
    text.push_str("{\"type\":\"custom-title\",\"customTitle\":\"My title\"}\n");
    std::fs::write(&file, text).unwrap();
    let second = run(&bench, &["--resume", "My title", "second"]);
    assert_eq!(id(&second), id(&first));
    let nobody = bench.run(&[&JSON[..], &["--resume", "--", "x"]].concat());
    assert_eq!((nobody.code, nobody.stdout.as_str()), (Some(1), ""));
    assert!(nobody.stderr.contains("--resume"), "{}", nobody.stderr);
}
