//! Agents that work for the main one.

use caliban_testkit::{Match, Reply, Script};
use serde_json::{Value, json};

use crate::bench::Bench;

fn script() -> Script {
    Script::new([
        Reply::tool(
            "Task",
            json!({"description": "Look around", "prompt": "inner task", "subagent_type": "scout"}),
        )
        .when(Match::last_user("outer")),
        Reply::text("Going.")
            .and_tool("Bash", json!({"command": "echo inside"}))
            .when(Match::last_user("inner")),
        Reply::text("Found it.").when(Match::last_user("inner")),
        Reply::text("All done.").when(Match::last_user("outer")),
    ])
}

#[test]
fn their_calls_are_told_under_the_call_that_runs_them() {
    let bench = Bench::new(script());
    let agents =
        json!({"scout": {"description": "Looks", "prompt": "You are a scout.", "tools": ["Bash"]}});
    let ran = bench.run(&[
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--agents",
        &agents.to_string(),
        "outer",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let frames = ran.frames();
    let call = frames
        .iter()
        .find(|frame| frame["message"]["content"][0]["name"] == "Task")
        .unwrap();
    let id = &call["message"]["content"][0]["id"];
    let started = frames
        .iter()
        .find(|frame| frame["subtype"] == "task_started")
        .unwrap();
    assert_eq!(
        (&started["task_id"], &started["description"]),
        (id, &json!("Look around"))
    );
    let inner: Vec<_> = frames
        .iter()
        .filter(|frame| frame["parent_tool_use_id"] == *id)
        .collect();
    assert_eq!(inner[0]["message"]["content"], "inner task");
    assert_eq!(inner[1]["message"]["content"][0]["name"], "Bash");
    assert_eq!(inner[2]["message"]["content"][0]["content"], "inside");
    // What it says is its own affair, unless it is asked for.
    assert_eq!(inner.len(), 3);
    let told = frames
        .iter()
        .find(|frame| frame["subtype"] == "task_notification")
        .unwrap();
    assert_eq!(
        (&told["status"], &told["summary"]),
        (&json!("completed"), &json!("Found it."))
    );
    assert_eq!(ran.result()["result"], "All done.");
    let request = bench.server.model_requests()[1].json();
    assert!(request["system"].to_string().contains("You are a scout."));
    assert_eq!(request["tools"].as_array().unwrap().len(), 1);
    let init = &frames[0];
    assert!(
        init["agents"]
            .as_array()
            .unwrap()
            .contains(&json!("general-purpose"))
    );
}

#[test]
fn what_they_say_is_forwarded_on_request() {
    let bench = Bench::new(script());
    let agents = json!({"scout": {"description": "Looks", "prompt": "p"}}).to_string();
    let ran = bench.run(&[
        "-p",
        "--output-format",
        "stream-json",
        "--verbose",
        "--forward-subagent-text",
        "--agents",
        &agents,
        "outer",
    ]);
    assert!(
        ran.frames().iter().any(|frame| {
            !frame["parent_tool_use_id"].is_null()
                && frame["message"]["content"][0]["text"] == "Going."
        }),
        "{ran:?}"
    );
}

#[test]
fn the_session_is_the_agent_that_is_named() {
    let bench = Bench::new(Script::new([Reply::text("ok"), Reply::text("ok")]));
    let agents = json!({"bot": {
        "description": "d",
        "prompt": "You are a bot.",
        "tools": ["Read"],
        "model": "haiku",
    }});
    let agents = format!("--agents={agents}");
    bench.run(&["-p", &agents, "--agent=bot", "x"]);
    let request = bench.last_request();
    assert_eq!(request["model"], "claude-haiku-4-5");
    assert!(request["system"].to_string().contains("You are a bot."));
    assert_eq!(request["tools"].as_array().unwrap().len(), 1);
    let ran = bench.run(&["-p", &agents, "--agent=nobody", "x"]);
    assert!(ran.stderr.contains("nobody"), "{ran:?}");
}

#[test]
fn a_call_names_a_model_by_its_short_name() {
    let bench = Bench::new(Script::new([
        Reply::tool(
            "Task",
            json!({"description": "d", "prompt": "p", "model": "haiku"}),
        ),
        Reply::text("small"),
        Reply::text("done"),
    ]));
    let ran = bench.run(&["-p", "go"]);
    assert_eq!(ran.stdout.trim(), "done", "{ran:?}");
    let models: Vec<Value> = bench
        .server
        .model_requests()
        .iter()
        .map(|asked| asked.json()["model"].clone())
        .collect();
    assert_eq!(
        models,
        ["claude-sonnet-4-6", "claude-haiku-4-5", "claude-sonnet-4-6"]
    );
}

#[test]
fn a_client_may_take_tools_from_an_agent() {
    let bench = Bench::new(Script::new([
        Reply::tool(
            "Task",
            json!({"description": "d", "prompt": "p", "subagent_type": "rev"}),
        ),
        Reply::text("small"),
        Reply::text("done"),
    ]));
    let agents = json!({"rev": {
        "description": "d", "prompt": "P", "disallowedTools": ["Bash", "Edit"], "maxTurns": 2}});
    let ran = bench.run(&["-p", "go", "--agents", &agents.to_string()]);
    assert_eq!(ran.stdout.trim(), "done", "{ran:?}");
    let offered = bench.server.model_requests()[1].json()["tools"].to_string();
    assert!(
        offered.contains("\"Read\"") && !offered.contains("\"Bash\""),
        "{offered}"
    );
    assert!(ran.stderr.contains("maxTurns"), "{}", ran.stderr);
}
