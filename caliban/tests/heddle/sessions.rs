//! Sessions that go as they should: several messages, the newer version, heartbeats, plans,
//! condensed history, models.

use caliban_testkit::{Match, ModelEntry, Reply, Script, Usage};
use serde_json::{Value, json};

use crate::client::{Client, names, payload, without_times};
use crate::support::{Bench, Wire};
use crate::{bench, cancel, cancelled, held, init, send, shutdown, status};

fn usage(prompt: u64, completion: u64) -> Value {
    json!({
        "event": "usage",
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
    })
}

fn documented_init() -> Value {
    json!({
        "type": "init",
        "id": "1",
        "protocol_version": "0.2.0",
        "config": {
            "model": "anthropic/claude-sonnet-4",
            "system_prompt": "You are a coding assistant.",
            "tools": ["read_file", "write_file", "edit_file", "glob", "grep", "bash"],
            "max_iterations": 10,
            "task_id": "task-abc",
            "worker_id": "worker-1",
        },
    })
}

#[test]
fn the_documented_conversation() {
    let bench = bench([
        Reply::tool("Read", json!({"path": "index.ts"})),
        Reply::text("It exports a number."),
    ]);
    std::fs::write(
        bench.workspace.path().join("index.ts"),
        "export default 7;\n",
    )
    .unwrap();
    let mut client = Client::start(&bench);
    let answer = client.ask(&documented_init());
    let session = answer["session_id"].as_str().unwrap().to_owned();
    assert_eq!(session.len(), 36);
    assert_eq!(
        answer,
        json!({"type": "init_ok", "id": "1", "session_id": session, "protocol_version": "0.2.0"})
    );

    client.write(&send("2", "Read index.ts and explain it."));
    let call = json!({"name": "read_file", "args": {"file_path": "index.ts"}});
    let expected = [
        usage(12, 7),
        json!({
            "event": "tool_start",
            "name": "read_file",
            "args": {"file_path": "index.ts"},
            "id": "toolu_0001",
        }),
        json!({
            "event": "tool_end",
            "name": "read_file",
            "result_preview": "     1\texport default 7;",
            "id": "toolu_0001",
        }),
    ];
    for (seq, expected) in expected.iter().enumerate() {
        assert_eq!(
            client.next(),
            json!({
                "type": "event",
                "event": expected,
                "event_seq": seq,
                "send_id": "2",
                "session_id": session,
                "task_id": "task-abc",
                "worker_id": "worker-1",
            })
        );
    }
    let mut text = String::new();
    let mut seq = expected.len();
    let told = loop {
        let event = payload(&client.next(), "2", seq);
        seq += 1;
        if event["event"] != "content_delta" {
            break event;
        }
        text.push_str(event["text"].as_str().unwrap());
    };
    assert_eq!(text, "It exports a number.");
    assert_eq!(told, usage(12, 7));
    let result = client.next();
    assert_eq!(
        without_times(result),
        json!({
            "type": "result",
            "id": "2",
            "status": "ok",
            "response": "It exports a number.",
            "tool_calls_made": [call],
            "usage": {"prompt_tokens": 24, "completion_tokens": 14, "total_tokens": 38},
            "iterations": 2,
            "session_id": session,
            "task_id": "task-abc",
            "worker_id": "worker-1",
        })
    );

    assert_eq!(
        client.ask(&status("3")),
        json!({
            "type": "status_ok",
            "id": "3",
            "model": "anthropic/claude-sonnet-4",
            // The system prompt, the message, the call, its result, the answer.
            "messages_count": 5,
            "session_id": session,
            "active": false,
        })
    );

    assert_eq!(
        client.ask(&shutdown("5")),
        json!({"type": "shutdown_ok", "id": "5"})
    );
    let ended = client.end();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.frames.is_empty(), "{:?}", ended.frames);
}

#[test]
fn a_conversation_goes_on_and_each_send_counts_for_itself() {
    let bench = bench([
        Reply::tool("Bash", json!({"command": "sleep 0.03"})).delay_ms(30),
        Reply::text("It is seven."),
        Reply::text("Eight, then."),
    ]);
    let mut client = Client::start(&bench);
    client.init(&documented_init());
    let (_, first) = client.exchange(&send("2", "Which number?"));
    assert_eq!(first["response"], "It is seven.");
    assert!(first["model_latency_ms"].as_u64() >= Some(30), "{first}");
    assert!(first["tool_latency_ms"].as_u64() >= Some(30), "{first}");
    assert!(first["total_latency_ms"].as_u64() >= Some(60), "{first}");
    let (_, second) = client.exchange(&send("3", "Another."));
    let second = without_times(second);
    assert_eq!(second["response"], "Eight, then.");
    assert_eq!(second["iterations"], 1);
    assert_eq!(second["tool_calls_made"], json!([]));
    assert_eq!(
        second["usage"],
        json!({"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19})
    );
    let last = bench.server.model_requests().pop().unwrap().json();
    assert_eq!(last["model"], "claude-sonnet-4");
    let last = last.to_string();
    for text in ["You are a coding assistant.", "It is seven.", "Another."] {
        assert!(last.contains(text), "{text} in {last}");
    }
}

#[test]
fn events_without_ids_of_the_client_have_no_session() {
    let bench = bench([Reply::text("hi")]);
    let mut client = Client::start(&bench);
    let session = client.init(&init());
    client.write(&send("2", "hello"));
    let event = client.next();
    assert_eq!(
        event,
        json!({
            "type": "event",
            "event": {"event": "content_delta", "text": "hi"},
            "event_seq": 0,
            "send_id": "2",
        })
    );
    let told = client.next();
    assert_eq!(payload(&told, "2", 1), usage(12, 7));
    let result = without_times(client.next());
    assert_eq!(
        result,
        json!({
            "type": "result",
            "id": "2",
            "status": "ok",
            "response": "hi",
            "tool_calls_made": [],
            "usage": {"prompt_tokens": 12, "completion_tokens": 7, "total_tokens": 19},
            "iterations": 1,
            "session_id": session,
        })
    );
}

#[test]
fn version_0_5_tells_states_and_models() {
    let bench = bench([
        Reply::tool("Glob", json!({"pattern": "*.rs"})),
        Reply::text("none"),
    ]);
    let mut client = Client::start(&bench);
    let mut init = init();
    init["protocol_version"] = json!("0.5.0");
    let answer = client.ask(&init);
    assert_eq!(answer["protocol_version"], "0.5.0");
    let (events, result) = client.exchange(&send("2", "any?"));
    let state = |state: &str, iteration: u32| json!({"event": "turn_state", "state": state, "iteration": iteration});
    let mut routed = usage(12, 7);
    routed["routed_model"] = json!("anthropic/claude-sonnet-4-6");
    assert_eq!(events[0], state("model", 1));
    assert_eq!(events[1], routed);
    assert_eq!(events[2], state("tools", 1));
    assert_eq!(events[3]["event"], "tool_start");
    assert_eq!(events[4]["event"], "tool_end");
    assert_eq!(events[5], state("model", 2));
    assert_eq!(events.last(), Some(&routed));
    assert_eq!(result["routed_model"], "anthropic/claude-sonnet-4-6");
}

#[test]
fn a_long_answer_is_accompanied_by_heartbeats() {
    let bench = bench([held()]);
    let mut client = Client::start_with(&bench, |command| {
        command.env("HEDDLE_HEARTBEAT_INTERVAL", "3");
    });
    let session = client.init(&init());
    client.write(&send("2", "hold"));
    let mut beats: Vec<u64> = Vec::new();
    let mut seq = 0;
    while beats.len() < 3 {
        let event = payload(&client.next(), "2", seq);
        seq += 1;
        if event["event"] == "heartbeat" {
            assert_eq!(event.as_object().unwrap().len(), 2, "{event}");
            beats.push(event["duration_ms"].as_u64().unwrap());
        }
    }
    assert!(beats[0] >= 3 && beats.is_sorted(), "{beats:?}");
    assert!(beats[2] >= 9, "{beats:?}");
    client.write(&cancel("3", "2"));
    let result = loop {
        let frame = client.next();
        if frame["type"] == "result" {
            break frame;
        }
        payload(&frame, "2", seq);
        seq += 1;
    };
    assert_eq!(result, cancelled("2", &session));
    // There is nothing to accompany any more.
    assert_eq!(client.ask(&status("4"))["active"], false);
}

#[test]
fn status_answers_while_a_message_is_worked_on() {
    let bench = bench([held()]);
    let mut client = Client::start(&bench);
    let session = client.init(&init());
    client.write(&send("2", "hold"));
    assert_eq!(client.next()["event"]["event"], "content_delta");
    assert_eq!(
        client.ask(&status("3")),
        json!({
            "type": "status_ok",
            "id": "3",
            "model": "anthropic/claude-sonnet-4-6",
            "messages_count": 2,
            "session_id": session,
            "active": true,
        })
    );
}

#[test]
fn a_plan_is_told_as_one() {
    let bench = bench([
        Reply::tool("Write", json!({"path": "a", "content": "b"})),
        Reply::text("1. Look\n2. Mend"),
    ]);
    let mut client = Client::start(&bench);
    let mut init = init();
    init["config"]["approval_mode"] = json!("plan");
    client.init(&init);
    let (events, result) = client.exchange(&send("2", "plan it"));
    assert_eq!(
        events.last().unwrap(),
        &json!({"event": "plan_complete", "plan": "1. Look\n2. Mend"})
    );
    let denied = events
        .iter()
        .find(|event| event["event"] == "permission_denied");
    assert_eq!(
        denied,
        Some(&json!({
            "event": "permission_denied",
            "name": "write_file",
            "reason": "Write may not run in plan mode",
        }))
    );
    assert_eq!(result["status"], "ok");
    assert_eq!(result["tool_calls_made"], json!([]));
    assert!(!bench.workspace.path().join("a").exists());
}

#[test]
fn a_plan_may_be_handed_over_by_its_own_tool() {
    let bench = bench([
        Reply::tool("EnterPlanMode", json!({})),
        Reply::tool("ExitPlanMode", json!({"plan": "1. Mend"})),
        Reply::text("done"),
    ]);
    let mut client = Client::start(&bench);
    let mut init = init();
    init["config"]["tools"] = json!(["enter_plan_mode", "exit_plan_mode"]);
    client.init(&init);
    let (events, _) = client.exchange(&send("2", "plan it"));
    let plans: Vec<_> = events
        .iter()
        .filter(|event| event["event"] == "plan_complete")
        .collect();
    assert_eq!(
        plans,
        [&json!({"event": "plan_complete", "plan": "1. Mend"})]
    );
}

#[test]
fn a_condensed_history_is_told() {
    let half = Usage {
        input: 2_600,
        output: 100,
        ..Usage::default()
    };
    let script = Script::new([
        Reply::tool("Bash", json!({"command": "seq 1 4000"})).usage(half),
        Reply::text("They wanted to go.").when(Match::any_text("You condense")),
        Reply::text("done"),
    ])
    .model(ModelEntry::new("llama3.1").context_length(4_096));
    let bench = Bench::new(Wire::Ollama, script);
    let mut client = Client::start(&bench);
    let mut init = init();
    init["config"]["model"] = json!("ollama/llama3.1");
    client.init(&init);
    let (events, result) = client.exchange(&send("2", "go"));
    assert_eq!(result["response"], "done", "{result}");
    let place = names(&events)
        .iter()
        .position(|name| *name == "context_compact")
        .expect("told");
    assert_eq!(events[place], json!({"event": "context_compact"}));
    let prune = &events[place + 1];
    assert_eq!(prune["event"], "context_prune");
    assert_eq!(prune.as_object().unwrap().len(), 4, "{prune}");
    assert!(prune["messages_pruned"].is_u64());
    assert!(prune["tokens_before"].as_u64() > prune["tokens_after"].as_u64());
}

#[test]
fn a_long_result_is_previewed() {
    let bench = bench([
        Reply::tool("Bash", json!({"command": "seq 1 2000"})),
        Reply::text("ok"),
    ]);
    let mut client = Client::start(&bench);
    client.init(&init());
    let (events, _) = client.exchange(&send("2", "count"));
    let end = events
        .iter()
        .find(|event| event["event"] == "tool_end")
        .unwrap();
    let preview = end["result_preview"].as_str().unwrap();
    assert!(preview.starts_with("1\n2\n3\n"), "{preview}");
    assert!(preview.ends_with(" (truncated)"), "{preview}");
    assert_eq!(preview.chars().count(), 500 + " (truncated)".len());
}

#[test]
fn a_gateway_gets_the_whole_name_of_the_model() {
    let bench = Bench::new(Wire::Responses, Script::new([Reply::text("hi")]));
    let mut client = Client::start(&bench);
    client.init(&init());
    let (_, result) = client.exchange(&send("2", "hello"));
    assert_eq!(result["response"], "hi", "{result}");
    let asked = bench.server.model_requests().remove(0).json();
    assert_eq!(asked["model"], "anthropic/claude-sonnet-4-6");
}

#[test]
fn a_session_is_saved_like_any_other() {
    let bench = bench([Reply::text("hi")]);
    let mut client = Client::start(&bench);
    let session = client.init(&init());
    client.exchange(&send("2", "remember me"));
    client.ask(&shutdown("3"));
    assert_eq!(client.end().code, Some(0));
    let shown = bench.run(["sessions", "show", &session]);
    assert!(shown.stdout.contains("remember me"), "{}", shown.stderr);
}
