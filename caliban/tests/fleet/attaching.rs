//! Being attached to agents: what is heard, what is typed, and by whom.

use caliban_testkit::Reply;
use serde_json::{Value, json};

use crate::fleet::Fleet;

#[test]
fn lines_are_messages_and_the_end_of_input_detaches() {
    let fleet = Fleet::new([Reply::text("First answer."), Reply::text("Second answer.")]);
    let id = fleet.spawn("begin");
    fleet.until_state(&id, "idle");
    let mut attached = fleet.attach(&id, &[]);
    attached.until(|line| line.contains("First answer."));
    attached.until(|line| line.starts_with("-- success"));
    attached.type_in("go on");
    attached.until(|line| line == "> go on");
    attached.until(|line| line.contains("Second answer."));
    attached.until(|line| line.starts_with("-- success"));
    let (code, heard) = attached.detach();
    assert_eq!(code, Some(0));
    assert!(heard.iter().any(|line| line == "> begin"), "{heard:?}");
    let agent = fleet.until_state(&id, "idle");
    assert_eq!(agent["turns"], 2);
    let requests = fleet.bench.server.model_requests();
    assert!(requests[1].json().to_string().contains("First answer."));
}

#[test]
fn what_is_piped_is_taken_although_the_input_ends_at_once() {
    let fleet = Fleet::new((0..5).map(|_| Reply::text("heard")));
    let id = fleet.spawn("begin");
    fleet.until_state(&id, "idle");
    let pipe = |args: &[&str], input: &[u8]| {
        let mut command = fleet.command();
        command.args(["attach", &id]).args(args);
        crate::support::run_with_input(&mut command, input)
    };
    // Those who are told nothing of the past go first.
    for (turns, since) in [(2, "0"), (3, "100000"), (4, "0")] {
        let ran = pipe(&["--since", since], b"hello\n");
        assert_eq!(ran.code, Some(0), "{ran:?}");
        fleet.until(&id, |agent| {
            agent["turns"] == turns && agent["state"] == "idle"
        });
    }
    // What is no text is said to be none, and what came before it counts.
    let ran = pipe(&[], b"the last\n\xff\xfe\n");
    assert_eq!(ran.code, Some(66), "{ran:?}");
    assert!(ran.stderr.contains("standard input"), "{ran:?}");
    fleet.until(&id, |agent| agent["turns"] == 5);
    let long = format!("{}\n", "x".repeat(11 << 20));
    let ran = pipe(&[], long.as_bytes());
    assert_eq!(ran.code, Some(66), "{ran:?}");
    assert!(ran.stderr.contains("10485760"), "{ran:?}");
}

#[test]
fn two_hear_the_same_in_the_same_order_and_one_of_them_types() {
    let fleet = Fleet::new([Reply::text("one"), Reply::text("two")]);
    let id = fleet.spawn("begin");
    fleet.until_state(&id, "idle");
    let mut first = fleet.attach(&id, &["--json"]);
    assert_eq!(first.frame("attached")["input"], true);
    let mut second = fleet.attach(&id, &["--json"]);
    assert_eq!(second.frame("attached")["input"], false);
    second.type_in(r#"{"type":"user","content":"me too"}"#);
    let refusal = second.frame("error");
    assert!(
        refusal["message"].as_str().unwrap().contains("--take"),
        "{refusal}"
    );
    second.type_in(r#"{"type":"take"}"#);
    second.type_in(r#"{"type":"user","content":"now me","request_id":"r1"}"#);
    // The same piece of work once more is the same piece of work.
    second.type_in(r#"{"type":"user","content":"now me","request_id":"r1"}"#);
    for attached in [&mut first, &mut second] {
        attached.until(|line| line.contains("\"result\":\"two\""));
    }
    let numbered = |lines: Vec<String>| -> Vec<Value> {
        let frames = lines.iter().map(|line| serde_json::from_str(line).unwrap());
        frames
            .filter(|frame: &Value| frame["seq"].is_u64() && frame["type"] != "attached")
            .collect()
    };
    let (_, second) = second.detach();
    let (_, first) = first.detach();
    let (first, second) = (numbered(first), numbered(second));
    let shared = first.len().min(second.len());
    // Who comes and goes is part of what is told.
    assert!(shared > 8, "{first:?}");
    assert_eq!(first[..shared], second[..shared]);
    let numbers: Vec<u64> = first
        .iter()
        .map(|frame| frame["seq"].as_u64().unwrap())
        .collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    assert_eq!(first[0]["subtype"], "init");
    let messages = first.iter().filter(|frame| frame["type"] == "message");
    assert_eq!(messages.count(), 2);
    assert!(fleet.bench.server.model_requests().len() == 2);

    let since = numbers[3].to_string();
    let (_, later) = fleet.attach(&id, &["--json", "--since", &since]).detach();
    assert_eq!(numbered(later)[0], first[4]);
}

#[test]
fn who_only_watches_types_nothing() {
    let fleet = Fleet::new([Reply::text("one")]);
    let id = fleet.spawn("begin");
    fleet.until_state(&id, "idle");
    let mut viewer = fleet.attach(&id, &["--read-only", "--json"]);
    assert_eq!(viewer.frame("attached")["input"], false);
    viewer.type_in(r#"{"type":"user","content":"x"}"#);
    viewer.frame("result");
    let mut operator = fleet.attach(&id, &[]);
    operator.until(|line| line.contains("one"));
    operator.type_in("/end");
    let ended = viewer.frame("ended");
    assert_eq!(ended["state"], "done");
    assert_eq!(operator.detach().0, Some(0));
    assert_eq!(fleet.agent(&id)["state"], "done");
    assert_eq!(fleet.bench.server.model_requests().len(), 1);
    let refused = fleet.run(&["attach", &id, "--read-only"]);
    assert_eq!(refused.code, Some(64), "{}", refused.stderr);
}

#[test]
fn attaching_to_one_that_has_ended_lets_it_go_on() {
    let fleet = Fleet::new([Reply::text("one"), Reply::text("two")]);
    let id = fleet.spawn("begin");
    fleet.until_state(&id, "idle");
    fleet.ok(&["kill", &id]);
    let mut attached = fleet.attach(&id, &[]);
    // What was said before is shown, although another process said it.
    attached.until(|line| line == "one");
    attached.type_in("again");
    attached.until(|line| line.contains("two"));
    attached.until(|line| line.starts_with("-- success"));
    attached.detach();
    let agent = fleet.until_state(&id, "idle");
    assert_eq!(agent["id"], id);
    let log = fleet.ok(&["logs", &id]);
    assert!(log.contains("one") && log.contains("two"), "{log}");
}

#[test]
fn an_answer_is_seen_while_it_comes_and_can_be_interrupted() {
    let mut held = Reply::text("This is a long answer that comes slowly.");
    held.hold_after = Some(4);
    let fleet = Fleet::new([held]);
    let id = fleet.spawn("begin");
    fleet.bench.server.wait_for_requests(1);
    let mut attached = fleet.attach(&id, &[]);
    attached.type_in("/interrupt");
    attached.until(|line| line.starts_with("-- cancelled"));
    fleet.until_state(&id, "idle");
    let mut follower = {
        let mut command = fleet.command();
        command.args(["logs", &id, "--follow"]);
        crate::fleet::Attached::start(&mut command)
    };
    follower.until(|line| line == "> begin");
    attached.type_in("/end");
    let (code, heard) = follower.detach();
    assert_eq!(code, Some(0));
    assert!(
        heard.iter().any(|line| line.contains("-- cancelled")),
        "{heard:?}"
    );
}

#[test]
fn a_stranger_to_the_protocol_gets_nothing() {
    use std::io::{BufRead, BufReader, Write};
    use std::os::unix::net::UnixStream;
    let fleet = Fleet::new([Reply::text("one")]);
    let id = fleet.spawn("begin");
    let agent = fleet.until_state(&id, "idle");
    let say = |socket: &str, line: &str| {
        let mut stream = UnixStream::connect(socket).unwrap();
        writeln!(stream, "{line}").unwrap();
        let mut said = String::new();
        let mut reader = BufReader::new(stream);
        while reader.read_line(&mut said).unwrap_or(0) > 0 {}
        said
    };
    let worker = agent["socket"].as_str().unwrap();
    let said = say(
        worker,
        &json!({"type": "hello", "protocol": 99}).to_string(),
    );
    assert!(said.contains("versions 1 to 2 of the protocol"), "{said}");
    assert_eq!(say(worker, "rubbish"), "");
    let launch = json!({"type": "launch", "spec": fleet.file(&id, "spec.json")});
    assert_eq!(say(worker, &launch.to_string()), "");
    let daemon = fleet.daemon();
    let control = daemon["socket"].as_str().unwrap();
    let said = say(
        control,
        &json!({"type": "hello", "protocol": 99}).to_string(),
    );
    assert!(said.contains("\"why\":\"version\""), "{said}");
    assert_eq!(say(control, "rubbish"), "");
    assert_eq!(fleet.agent(&id)["state"], "idle");
}
