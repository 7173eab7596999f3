//! Several turns, control requests, interrupts and the states of a session.

use caliban_testkit::{Fault, Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench::{Bench, STREAM, kinds, of_type};

#[test]
fn every_message_is_a_turn_with_its_own_init_and_result() {
    let bench = Bench::new(Script::new([Reply::text("one"), Reply::text("two")]));
    let mut client = bench.client(&[]);
    client.say("first");
    assert_eq!(
        kinds(&client.until("result")),
        ["system/init", "assistant", "result/success"]
    );
    client.say("second");
    let second = client.last_until("result");
    assert_eq!(second["result"], "two");
    assert_eq!(second["num_turns"], 1);
    assert_eq!(second["usage"]["input_tokens"], 12);
    let (rest, code) = client.close();
    assert_eq!((rest, code), (Vec::new(), Some(0)));
}

#[test]
fn queued_messages_are_worked_on_in_order_after_the_end_of_input() {
    let bench = Bench::new(Script::new([Reply::text("one"), Reply::text("two")]));
    let line = |text: &str| json!({"type": "user", "message": {"role": "user", "content": text}});
    let ran = bench.run_with_input(&STREAM, &format!("{}\n\n  \n{}\n", line("a"), line("b")));
    assert_eq!(ran.code, Some(0));
    let frames = ran.frames();
    let results: Vec<_> = of_type(&frames, "result")
        .iter()
        .map(|frame| frame["result"].clone())
        .collect();
    assert_eq!(results, [json!("one"), json!("two")]);
}

#[rstest]
#[case("", 0)]
#[case("{\"type\":\"keep_alive\"}\n", 0)]
#[case("nonsense\n", 1)]
#[case(
    "{\"type\":\"user\",\"message\":{\"role\":\"assistant\",\"content\":\"x\"}}\n",
    1
)]
fn input_that_asks_nothing_has_no_output(#[case] input: &str, #[case] code: i32) {
    let bench = Bench::new(Script::new([]));
    let ran = bench.run_with_input(&STREAM, input);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(code), ""),
        "{}",
        ran.stderr
    );
}

#[test]
fn initialize_is_heard_before_a_prompt_beside_it() {
    let bench = Bench::new(Script::new([Reply::text("ok"), Reply::text("ok")]));
    let wish = |text: &str| {
        json!({
            "type": "control_request",
            "request_id": "i",
            "request": {"subtype": "initialize", "systemPrompt": [text]},
        })
    };
    let say = json!({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": "hi"}]}});
    for input in [
        format!("{}\n{say}\n", wish("You are Ariel.")),
        format!("{say}\n{}\n", wish("You are Ariel.")),
    ] {
        let ran = bench.run_with_input(&STREAM, &input);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(
            bench.last_request()["system"]
                .to_string()
                .contains("You are Ariel.")
        );
        let frames = ran.frames();
        let answer = &of_type(&frames, "control_response")[0]["response"];
        assert_eq!(answer["subtype"], "success");
        for key in ["commands", "agents", "models", "available_output_styles"] {
            assert!(answer["response"][key].is_array(), "{key}");
        }
        assert!(answer["response"]["account"].is_object());
        let styles = answer["response"]["available_output_styles"].to_string();
        assert!(
            styles.contains("default") && styles.contains("explanatory"),
            "{styles}"
        );
        assert_eq!(answer["response"]["hook_on_failure_supported"], true);
    }
}

#[test]
fn requests_are_answered_and_unknown_ones_refused() {
    let bench = Bench::new(Script::new([Reply::text("ok"), Reply::text("ok")]));
    std::fs::write(bench.workspace.path().join("CLAUDE.md"), "Be brief.").unwrap();
    let mut client = bench.client(&[]);
    let ok = |answer: &Value| assert_eq!(answer["subtype"], "success", "{answer}");
    ok(&client.ask(&json!({"subtype": "initialize", "hooks": null})));
    ok(&client.ask(&json!({"subtype": "interrupt"})));
    let servers = client.ask(&json!({"subtype": "mcp_status"}));
    assert_eq!(servers["response"]["mcpServers"], json!([]));
    let set = client.ask(&json!({"subtype": "mcp_set_servers", "servers": {"x": 3}}));
    assert_eq!(set["response"]["added"], json!([]));
    assert!(set["response"]["errors"]["x"].is_string(), "{set}");
    let usage = client.ask(&json!({"subtype": "get_context_usage"}));
    assert!(usage["response"]["maxTokens"].is_u64() && usage["response"]["gridRows"].is_array());
    let memory = &usage["response"]["memoryFiles"][0];
    assert!(
        memory["path"].as_str().unwrap().ends_with("CLAUDE.md"),
        "{usage}"
    );
    assert!(memory["tokens"].is_u64());
    let settings = client.ask(&json!({"subtype": "get_settings"}));
    assert_eq!(
        settings["response"]["applied"]["model"],
        "claude-sonnet-4-6"
    );
    ok(&client.ask(&json!({"subtype": "stop_task", "task_id": "x"})));
    ok(&client.ask(&json!({"subtype": "set_max_thinking_tokens", "max_thinking_tokens": 1024})));
    let title = client.ask(&json!({"subtype": "generate_session_title", "description": "x"}));
    assert_eq!(title["response"], json!({"title": null}));
    let cancelled = client.ask(&json!({"subtype": "cancel_async_message", "message_uuid": "x"}));
    assert_eq!(cancelled["response"], json!({"cancelled": false}));
    let unknown = client.ask(&json!({"subtype": "banana"}));
    assert_eq!(
        unknown["error"],
        "Unsupported control request subtype: banana"
    );
    assert_eq!(unknown["error_code"], "unsupported_request");
    let rewind = client.ask(&json!({"subtype": "rewind_files", "user_message_id": "x"}));
    assert_eq!(rewind["error"], "File rewinding is not enabled.");
    let server = client.ask(&json!({"subtype": "mcp_reconnect", "serverName": "x"}));
    assert_eq!(server["error"], "Server not found: x");
    client.say("hi");
    client.until("result");
    ok(&client.ask(&json!({"subtype": "end_session"})));
    assert_eq!(client.close().1, Some(0));
}

#[test]
fn model_and_mode_change_between_turns() {
    let bench = Bench::new(Script::new([
        Reply::text("ok"),
        Reply::text("ok"),
        Reply::text("ok"),
    ]));
    let mut client = bench.client(&[]);
    client.say("a");
    assert_eq!(client.until("result")[0]["model"], "claude-sonnet-4-6");
    let set = client.ask(&json!({"subtype": "set_model", "model": "haiku"}));
    assert_eq!(set["response"]["model"], "claude-haiku-4-5");
    let laid_over = json!({"subtype": "apply_flag_settings", "settings": {"model": "haiku"}});
    assert_eq!(
        client.ask(&laid_over)["response"]["model"],
        "claude-haiku-4-5"
    );
    let set = client.ask(&json!({"subtype": "set_permission_mode", "mode": "acceptEdits"}));
    assert_eq!(set["response"]["mode"], "acceptEdits");
    let status = client.next().unwrap();
    assert_eq!(
        (&status["subtype"], &status["permissionMode"]),
        (&json!("status"), &json!("acceptEdits"))
    );
    client.say("b");
    let frames = client.until("result");
    let init = frames
        .iter()
        .find(|frame| frame["subtype"] == "init")
        .unwrap();
    assert_eq!(
        (&init["model"], &init["permissionMode"]),
        (&json!("claude-haiku-4-5"), &json!("acceptEdits"))
    );
    assert_eq!(bench.last_request()["model"], "claude-haiku-4-5");
    client.ask(&json!({"subtype": "set_model"}));
    client.say("c");
    client.until("result");
    assert_eq!(bench.last_request()["model"], "claude-sonnet-4-6");
    let wrong = client.ask(&json!({"subtype": "set_permission_mode", "mode": "banana"}));
    assert_eq!(wrong["error_code"], "invalid_mode");
    let bypass =
        client.ask(&json!({"subtype": "set_permission_mode", "mode": "bypassPermissions"}));
    assert_eq!(bypass["error_code"], "bypass_not_launched");
}

#[test]
fn an_interrupt_ends_the_turn_and_keeps_what_was_said() {
    let script = Script::new([
        Reply::text("never ever ends").with_fault(Fault::StallMidStream { after_events: 4 }),
        Reply::text("after"),
    ]);
    let bench = Bench::new(script);
    let mut client = bench.client(&["--include-partial-messages"]);
    client.say("a");
    loop {
        let frame = client.last_until("stream_event");
        if frame["event"]["type"] == "content_block_delta" {
            break;
        }
    }
    client.send(
        &json!({"type": "control_request", "request_id": "x", "request": {"subtype": "interrupt"}}),
    );
    let frames = client.until("result");
    let answer = of_type(&frames, "control_response")[0];
    assert_eq!(answer["response"]["subtype"], "success");
    let said = of_type(&frames, "assistant")[0];
    assert_eq!(said["aborted"], true);
    let marker = of_type(&frames, "user")[0];
    assert_eq!(
        marker["message"]["content"][0]["text"],
        "[Request interrupted by user]"
    );
    let end = frames.last().unwrap();
    assert_eq!(end["subtype"], "error_during_execution");
    assert_eq!(end["terminal_reason"], "aborted_streaming");
    assert!(end["errors"].is_array());
    let stream: Vec<_> = of_type(&frames, "stream_event")
        .iter()
        .map(|frame| frame["event"]["type"].clone())
        .collect();
    assert!(
        stream.ends_with(&[
            json!("content_block_stop"),
            json!("message_delta"),
            json!("message_stop")
        ]),
        "{stream:?}"
    );
    client.say("b");
    assert_eq!(client.last_until("result")["result"], "after");
    let history = bench.last_request()["messages"].to_string();
    assert!(
        history.contains("[Request interrupted by user]"),
        "{history}"
    );
    let text = said["message"]["content"][0]["text"].as_str().unwrap();
    assert!(
        !text.is_empty() && history.contains(text.trim_end()),
        "{history}"
    );
    assert_eq!(client.close().1, Some(0));
}

#[test]
fn an_interrupt_ends_a_running_tool() {
    let script = Script::new([Reply::tool(
        "Bash",
        json!({"command": "echo begun > begun; sleep 60"}),
    )]);
    let bench = Bench::new(script);
    let mut client = bench.client(&["--allowedTools", "Bash"]);
    client.say("a");
    client.until("assistant");
    let begun = bench.workspace.path().join("begun");
    while !begun.exists() {
        std::thread::yield_now();
    }
    client.send(
        &json!({"type": "control_request", "request_id": "x", "request": {"subtype": "interrupt"}}),
    );
    let frames = client.until("result");
    let users = of_type(&frames, "user");
    assert_eq!(users[0]["message"]["content"][0]["is_error"], true);
    assert_eq!(
        users[1]["message"]["content"][0]["text"],
        "[Request interrupted by user for tool use]"
    );
    assert_eq!(frames.last().unwrap()["terminal_reason"], "aborted_tools");
    // The last turn was interrupted.
    assert_eq!(client.close().1, Some(1));
}

#[test]
fn partial_messages_have_the_form_of_the_api() {
    let script = Script::new([
        Reply::text("Looking.").and_tool("Read", json!({"file_path": "nothing"})),
        Reply::text("Gone."),
    ]);
    let bench = Bench::new(script);
    let mut client = bench.client(&["--include-partial-messages"]);
    client.say("a");
    let frames = client.until("result");
    let mut order: Vec<String> = frames
        .iter()
        .map(|frame| match frame["type"].as_str().unwrap() {
            "stream_event" => frame["event"]["type"].as_str().unwrap().to_owned(),
            "system" => frame["subtype"].as_str().unwrap().to_owned(),
            other => other.to_owned(),
        })
        .collect();
    order.dedup();
    assert_eq!(
        order,
        [
            "init",
            "status",
            "message_start",
            "content_block_start",
            "content_block_delta",
            "assistant",
            "content_block_stop",
            "content_block_start",
            "content_block_delta",
            "assistant",
            "content_block_stop",
            "message_delta",
            "message_stop",
            "user",
            "status",
            "message_start",
            "content_block_start",
            "content_block_delta",
            "assistant",
            "content_block_stop",
            "message_delta",
            "message_stop",
            "result",
        ]
    );
    let json: String = frames
        .iter()
        .filter_map(|frame| frame["event"]["delta"]["partial_json"].as_str())
        .collect();
    assert_eq!(
        serde_json::from_str::<Value>(&json).unwrap(),
        json!({"file_path": "nothing"})
    );
    let start = frames
        .iter()
        .find(|frame| frame["event"]["type"] == "message_start")
        .unwrap();
    let said = of_type(&frames, "assistant")[0];
    assert_eq!(start["event"]["message"]["id"], said["message"]["id"]);
    let stop = frames
        .iter()
        .find(|frame| frame["event"]["type"] == "message_delta")
        .unwrap();
    assert_eq!(stop["event"]["delta"]["stop_reason"], "tool_use");
}

#[test]
fn messages_are_echoed_with_their_own_id() {
    let bench = Bench::new(Script::new([Reply::text("ok")]));
    let mut client = bench.client(&["--replay-user-messages", ""]);
    client.send(&json!({"type": "user", "uuid": "my-id", "session_id": "other", "message": {"role": "user", "content": "hi"}}));
    let frames = client.until("result");
    assert_eq!(
        kinds(&frames),
        ["system/init", "user", "assistant", "result/success"]
    );
    assert_eq!(
        (&frames[1]["uuid"], &frames[1]["isReplay"]),
        (&json!("my-id"), &json!(true))
    );
    assert_eq!(frames[1]["message"]["content"], "hi");
    assert_ne!(frames[1]["session_id"], "other");
}

#[rstest]
#[case("CLAUDE_CODE_SDK_READS_SESSION_STATE", Some(json!(true)))]
#[case("CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS", None)]
fn states_are_told_to_who_asks(#[case] variable: &str, #[case] mark: Option<Value>) {
    let bench = Bench::new(Script::new([Reply::text("ok")]));
    let mut client = bench.client_with(&[], &[(variable, "1")]);
    client.say("hi");
    let mut frames = client.until("result");
    frames.push(client.next().unwrap());
    let states: Vec<&Value> = frames
        .iter()
        .filter(|frame| frame["subtype"] == "session_state_changed")
        .collect();
    assert_eq!(
        states
            .iter()
            .map(|frame| &frame["state"])
            .collect::<Vec<_>>(),
        [&json!("running"), &json!("idle")]
    );
    assert!(
        states
            .iter()
            .all(|frame| frame.get("sdk_host_only") == mark.as_ref())
    );
    assert_eq!(frames[0]["state"], "running");
}

#[test]
fn signals_end_the_program_as_documented() {
    let stalled = || {
        Script::new([
            Reply::text("never ever").with_fault(Fault::StallMidStream { after_events: 4 })
        ])
    };
    for (signal, code, ends_with_result) in [("-TERM", 143, false), ("-INT", 0, true)] {
        let bench = Bench::new(stalled());
        let mut client = bench.client(&["--include-partial-messages"]);
        client.say("a");
        client.until("stream_event");
        let pid = client.pid().to_string();
        let killed = std::process::Command::new("kill")
            .args([signal, &pid])
            .status()
            .unwrap();
        assert!(killed.success());
        let (rest, exit) = client.close();
        assert_eq!(exit, Some(code), "{signal} {rest:?}");
        let has_result = rest
            .iter()
            .any(|frame| frame["subtype"] == "error_during_execution");
        assert_eq!(has_result, ends_with_result, "{signal}");
    }
}

#[test]
fn files_that_a_person_names_go_along_and_those_of_a_program_do_not() {
    let bench = Bench::new(Script::new([Reply::text("ok"), Reply::text("ok")]));
    std::fs::write(bench.workspace.path().join("note.txt"), "BUY MILK").unwrap();
    let mut client = bench.client(&["--replay-user-messages"]);
    for (composed, goes_along) in [(true, false), (false, true)] {
        client.send(&json!({
            "type": "user",
            "client_composed": composed,
            "message": {"role": "user", "content": "see @note.txt"},
        }));
        let frames = client.until("result");
        assert_eq!(
            of_type(&frames, "user")[0]["message"]["content"],
            "see @note.txt"
        );
        let messages = bench.last_request()["messages"].to_string();
        assert_eq!(messages.contains("BUY MILK"), goes_along, "{messages}");
    }
}

#[test]
fn a_limited_rate_is_told() {
    let bench = Bench::new(Script::new([
        Reply::fault(Fault::status(429)),
        Reply::text("ok"),
    ]));
    let mut client = bench.client(&[]);
    client.say("a");
    let frames = client.until("result");
    assert_eq!(
        kinds(&frames),
        [
            "system/init",
            "system/api_retry",
            "rate_limit_event",
            "assistant",
            "result/success"
        ]
    );
    assert_eq!(frames[2]["rate_limit_info"]["status"], "rejected");
}

/// Early libraries end at a kind of frame that they do not know.
#[rstest]
#[case::before_versions(&[("CLAUDE_CODE_ENTRYPOINT", "sdk-py")], false)]
#[case::early(&[("CLAUDE_CODE_ENTRYPOINT", "sdk-py-client"), ("CLAUDE_AGENT_SDK_VERSION", "0.1.27")], false)]
#[case::later(&[("CLAUDE_CODE_ENTRYPOINT", "sdk-py"), ("CLAUDE_AGENT_SDK_VERSION", "0.1.50")], true)]
#[case::typescript(&[("CLAUDE_CODE_ENTRYPOINT", "sdk-ts"), ("CLAUDE_AGENT_SDK_VERSION", "0.1.0")], true)]
fn a_limited_rate_ends_no_early_library(#[case] variables: &[(&str, &str)], #[case] is_told: bool) {
    let bench = Bench::new(Script::new([
        Reply::fault(Fault::status(429)),
        Reply::text("ok"),
    ]));
    let mut client = bench.client_with(&[], variables);
    client.say("a");
    let frames = client.until("result");
    assert_eq!(!of_type(&frames, "rate_limit_event").is_empty(), is_told);
    assert_eq!(frames.last().unwrap()["result"], "ok");
}

fn prompt(block: &Value) -> String {
    let text = json!({"type": "text", "text": "see"});
    json!({"type": "user", "message": {"role": "user", "content": [block, text]}}).to_string()
}

#[test]
fn what_says_nothing_is_told_and_the_session_goes_on() {
    let bench = Bench::new(Script::new([Reply::text("hi")]));
    let input = [
        "{}".to_owned(),
        json!({"type": "control_request", "request": {"subtype": "interrupt"}}).to_string(),
        json!({"type": "user", "message": {"role": "user", "content": "hello"}}).to_string(),
    ];
    let ran = bench.run_with_input(&STREAM, &(input.join("\n") + "\n"));
    assert_eq!(ran.result()["result"], "hi", "{ran:?}");
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stderr.contains("a frame without `type`"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("`request_id`"), "{}", ran.stderr);
}

#[test]
fn a_part_that_cannot_be_sent_fails_its_prompt_and_no_other() {
    let bench = Bench::new(Script::new([Reply::text("read")]));
    let pdf = json!({"type": "document", "source": {
        "type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}});
    let text = json!({"type": "document", "title": "notes", "source": {
        "type": "text", "media_type": "text/plain", "data": "remember the milk"}});
    let input = [prompt(&pdf), prompt(&text)].join("\n") + "\n";
    let ran = bench.run_with_input(&STREAM, &input);
    let frames = ran.frames();
    let results: Vec<&Value> = frames
        .iter()
        .filter(|frame| frame["type"] == "result")
        .collect();
    let [refused, read] = results[..] else {
        panic!("{results:?}");
    };
    assert_eq!(refused["subtype"], "error_during_execution");
    assert!(
        refused["errors"][0].as_str().unwrap().contains("document"),
        "{refused}"
    );
    assert_eq!(read["result"], "read");
    let asked = bench.server.model_requests();
    assert_eq!(asked.len(), 1);
    let said = asked[0].json()["messages"].to_string();
    assert!(said.contains("remember the milk"), "{said}");
    assert!(!said.contains("JVBERi0"), "{said}");
}

#[test]
fn a_short_name_of_a_model_is_understood_in_a_command() {
    let bench = Bench::new(Script::new([Reply::text("hi")]));
    let line = |text: &str| {
        json!({"type": "user", "message": {"role": "user", "content": text}}).to_string() + "\n"
    };
    let ran = bench.run_with_input(&STREAM, &(line("/model haiku") + &line("hello")));
    assert_eq!(ran.result()["result"], "hi", "{ran:?}");
    assert_eq!(
        bench.server.model_requests()[0].json()["model"],
        "claude-haiku-4-5"
    );
}

/// Programs in JavaScript cut texts where they like.
#[test]
fn half_a_character_ends_no_session() {
    let bench = Bench::new(Script::new([Reply::text("hi")]));
    let input = r#"{"type":"user","message":{"role":"user","content":"smile \ud83d"}}"#;
    let ran = bench.run_with_input(&STREAM, &format!("{input}\n"));
    assert_eq!(ran.result()["result"], "hi", "{ran:?}");
    let said = bench.last_request()["messages"].to_string();
    assert!(said.contains("smile \u{fffd}"), "{said}");
}
