//! What is asked at the wrong time, in the wrong way, or by another version.

use caliban_testkit::Reply;
use rstest::rstest;
use serde_json::{Value, json};

use crate::client::Client;
use crate::support::{bare, run};
use crate::{bench, cancel, cancelled, held, init, refused, send, shutdown, status};

#[rstest]
#[case(send("7", "hello"))]
#[case(status("7"))]
#[case(cancel("7", "2"))]
#[case(shutdown("7"))]
#[case(json!({"type": "permission_response", "id": "7", "decision": "allow"}))]
fn init_must_come_first(#[case] request: Value) {
    let bench = bench([]);
    let mut client = Client::start(&bench);
    assert_eq!(client.ask(&request), refused("7", "`init` must come first"));
    client.init(&init());
    assert_eq!(
        client.ask(&init()),
        refused("1", "the session is initialised already")
    );
    assert_eq!(client.end().code, Some(0));
}

#[test]
fn malformed_lines_are_answered_and_the_session_goes_on() {
    let bench = bench([Reply::text("still here")]);
    let mut client = Client::start(&bench);
    let mut answer = |raw: &[u8]| {
        client.write_raw(raw);
        client.next()
    };
    let wrong = answer(b"nonsense\n");
    assert_eq!(wrong["type"], "error");
    assert_eq!(wrong["id"], Value::Null);
    assert_eq!(wrong["error"]["code"], "protocol_error");
    assert_eq!(wrong["error"]["retryable"], false);
    assert!(
        wrong["error"]["message"]
            .as_str()
            .unwrap()
            .starts_with("the line is not JSON: "),
        "{wrong}"
    );
    let object = "a request is an object whose `type` is a string";
    assert_eq!(answer(b"[]\n"), refused(Value::Null, object));
    assert_eq!(answer(b"{\"id\":\"x\"}\r\n"), refused("x", object));
    assert_eq!(
        answer(b"\xff\xfe\n"),
        refused(Value::Null, "the line is not valid UTF-8")
    );
    assert_eq!(
        answer(b"\n\n{\"type\":\"dance\",\"id\":\"x\"}\n"),
        refused("x", "there is no request `dance`")
    );
    assert_eq!(
        answer(b"{\"type\":\"send\",\"id\":\"x\"}\n"),
        refused("x", "`send`: missing field `message`")
    );
    assert_eq!(
        answer(b"{\"type\":\"cancel\",\"id\":\"x\"}\n"),
        refused("x", "`cancel`: missing field `target_id`")
    );
    assert_eq!(
        answer(b"{\"type\":\"init\",\"id\":\"x\",\"config\":{\"model\":\"m\"}}\n"),
        refused("x", "`init`: missing field `system_prompt`")
    );
    let long = [
        b"{\"type\":\"".as_slice(),
        &vec![b'x'; 11 * 1024 * 1024],
        b"\"}\n",
    ]
    .concat();
    assert_eq!(
        answer(&long),
        refused(Value::Null, "the line is longer than 10 MiB")
    );
    let mut unknown = init();
    unknown["from_the_future"] = json!({"a": 1});
    unknown["config"]["from_the_future"] = json!(true);
    client.init(&unknown);
    let (_, result) = client.exchange(&send("2", "hello"));
    assert_eq!(result["response"], "still here");
}

#[test]
fn another_version_is_refused_as_documented_and_may_try_again() {
    let bench = bench([]);
    let mut client = Client::start(&bench);
    let mut old = init();
    old["protocol_version"] = json!("0.1.0");
    assert_eq!(
        client.ask(&old),
        json!({
            "type": "init_ok",
            "id": "1",
            "session_id": "",
            "protocol_version": "0.2.0",
            "error": {
                "code": "protocol_version_mismatch",
                "message": "Client requested 0.1.0, server is 0.2.0",
                "retryable": false,
            },
        })
    );
    assert_eq!(
        client.ask(&send("2", "hello")),
        refused("2", "`init` must come first")
    );
    old["protocol_version"] = json!("0.2.9");
    assert_eq!(client.ask(&old)["protocol_version"], "0.2.0");
}

#[test]
fn tools_that_do_not_exist_are_named() {
    let bench = bench([Reply::text("hi")]);
    let mut client = Client::start_with(&bench, |command| {
        command.arg("--no-skills");
    });
    let mut unknown = init();
    unknown["config"]["tools"] = json!(["bash", "teleport", "dig"]);
    assert_eq!(
        client.ask(&unknown),
        refused("1", "there is no tool `teleport`, `dig`")
    );
    // Known, but not in this session.
    unknown["config"]["tools"] = json!(["bash", "skill"]);
    assert_eq!(
        client.ask(&unknown),
        refused("1", "there is no tool `skill`")
    );
    client.init(&init());
    client.exchange(&send("2", "hello"));
    assert_eq!(client.end().code, Some(0));
    // What could not begin left nothing behind.
    let listed = bench.run(["sessions", "list"]).stdout;
    assert_eq!(listed.lines().count(), 1, "{listed}");
}

#[test]
fn a_provider_that_cannot_be_set_up_is_told() {
    let bench = bench([]);
    let mut client = Client::start_with(&bench, |command| {
        // Only the vendor's own address needs a key.
        command
            .env_remove("ANTHROPIC_API_KEY")
            .env_remove("ANTHROPIC_BASE_URL");
    });
    let answer = client.ask(&init());
    assert_eq!(answer["type"], "error");
    assert_eq!(answer["id"], "1");
    assert_eq!(answer["error"]["code"], "protocol_error");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("ANTHROPIC_API_KEY"), "{message}");
}

#[test]
fn only_the_listed_tools_are_offered() {
    let bench = bench([
        Reply::tool("Bash", json!({"command": "id"})),
        Reply::text("ok"),
    ]);
    let mut client = Client::start(&bench);
    let mut init = init();
    init["config"]["tools"] = json!(["read_file", "Grep"]);
    client.init(&init);
    let (events, result) = client.exchange(&send("2", "hello"));
    let asked = bench.server.model_requests().remove(0).json();
    let offered: Vec<_> = asked["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect();
    // By the names that the client listed them with.
    assert_eq!(offered, ["Grep", "read_file"]);
    // A call to one that is not there is told like any other that failed.
    let end = events
        .iter()
        .find(|event| event["event"] == "tool_end")
        .unwrap();
    assert_eq!(
        end,
        &json!({
            "event": "tool_end",
            "name": "bash",
            "result_preview": "There is no tool named `Bash`. The tools are: Grep, Read.",
            "id": "toolu_0001",
        })
    );
    assert_eq!(
        result["tool_calls_made"],
        json!([{"name": "bash", "args": {"command": "id"}}])
    );
}

/// The model calls a tool by the name it was shown, by the other one, and with either name of a field.
#[rstest]
#[case::theirs("read_file", "file_path")]
#[case::ours("Read", "path")]
#[case::mixed("read_file", "path")]
fn a_tool_is_called_by_either_name(#[case] name: &str, #[case] field: &str) {
    let bench = bench([
        Reply::tool(name, json!({field: "f.txt"})),
        Reply::text("ok"),
    ]);
    std::fs::write(bench.workspace.path().join("f.txt"), "found\n").unwrap();
    let mut client = Client::start(&bench);
    let mut init = init();
    init["config"]["tools"] = json!(["read_file"]);
    client.init(&init);
    let (events, result) = client.exchange(&send("2", "hello"));
    let end = events
        .iter()
        .find(|event| event["event"] == "tool_end")
        .unwrap();
    assert_eq!(end["name"], "read_file");
    assert!(
        end["result_preview"].as_str().unwrap().contains("found"),
        "{end}"
    );
    assert_eq!(
        result["tool_calls_made"],
        json!([{"name": "read_file", "args": {"file_path": "f.txt"}}])
    );
    let [first, second] = &bench.server.model_requests()[..] else {
        panic!("two requests");
    };
    let tool = &first.json()["tools"][0];
    assert_eq!(tool["name"], "read_file");
    assert!(
        tool["input_schema"]["properties"]["file_path"].is_object(),
        "{tool}"
    );
    // The history calls it by the name that the tools have.
    let said = second.json()["messages"][1]["content"][0].clone();
    assert_eq!(
        (&said["name"], &said["input"]),
        (&json!("read_file"), &json!({"file_path": "f.txt"}))
    );
}

#[test]
fn one_message_at_a_time() {
    let bench = bench([held(), Reply::text("after")]);
    let mut client = Client::start(&bench);
    let session = client.init(&init());
    client.write(&send("2", "hold"));
    assert_eq!(client.next()["event"]["event"], "content_delta");
    assert_eq!(
        client.ask(&send("3", "me too")),
        refused("3", "the send `2` is not finished")
    );
    assert_eq!(
        client.ask(&init()),
        refused("1", "the session is initialised already")
    );
    assert_eq!(
        client.ask(&cancel("4", "3")),
        refused("4", "there is no send `3` to cancel")
    );
    assert_eq!(client.ask(&cancel("5", "2")), cancelled("2", &session));
    assert_eq!(
        client.ask(&cancel("6", "2")),
        refused("6", "there is no send `2` to cancel")
    );
    let (_, result) = client.exchange(&send("7", "again"));
    assert_eq!(result["response"], "after");
    bench.server.wait_for_disconnect();
}

#[rstest]
#[case(&["-p", "hello"])]
#[case(&["--model", "m"])]
#[case(&["--system", "s"])]
#[case(&["--output-format", "json"])]
#[case(&["--input-format", "stream-json"])]
#[case(&["--json-schema", "{}"])]
fn what_a_client_says_is_no_flag(#[case] flags: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = bare(folder.path(), folder.path());
    let ran = run(command.args(flags).args(["serve", "heddle"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(64), ""));
    assert!(ran.stderr.contains("from its client"), "{}", ran.stderr);
}

#[test]
fn an_interval_that_is_no_number_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = bare(folder.path(), folder.path());
    command.env("HEDDLE_HEARTBEAT_INTERVAL", "often");
    let ran = run(command.args(["serve", "heddle"]));
    assert_eq!(ran.code, Some(78));
    assert!(
        ran.stderr.contains("HEDDLE_HEARTBEAT_INTERVAL"),
        "{}",
        ran.stderr
    );
}
