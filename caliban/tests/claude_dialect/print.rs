//! Answering and exiting: the frames of a turn in every format, and the exit codes.

use caliban_testkit::{Block, Fault, Prose, Reply, Script};
use serde_json::{Value, json};

use crate::bench::{Bench, kinds, of_type};

const LINES: [&str; 4] = ["-p", "--output-format", "stream-json", "--verbose"];

fn lines<'a>(more: &[&'a str]) -> Vec<&'a str> {
    LINES.iter().copied().chain(more.iter().copied()).collect()
}

#[test]
fn a_turn_with_a_tool_is_told_block_by_block() {
    let script = Script::new([
        Reply::text("Looking.").and_tool("Read", json!({"file_path": "hello.txt"})),
        Reply::text("It says hi."),
    ]);
    let bench = Bench::new(script);
    std::fs::write(
        bench.workspace.path().join("hello.txt"),
        "line one\nline two\n",
    )
    .unwrap();
    let ran = bench.run(&lines(&["read it"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let frames = ran.frames();
    assert_eq!(
        kinds(&frames),
        [
            "system/init",
            "assistant",
            "assistant",
            "user",
            "assistant",
            "result/success"
        ]
    );
    let init = &frames[0];
    for (key, kind) in [
        ("cwd", "string"),
        ("tools", "array"),
        ("mcp_servers", "array"),
        ("model", "string"),
        ("permissionMode", "string"),
        ("slash_commands", "array"),
        ("apiKeySource", "string"),
        ("claude_code_version", "string"),
        ("output_style", "string"),
        ("agents", "array"),
        ("skills", "array"),
        ("plugins", "array"),
    ] {
        let fits = match kind {
            "string" => init[key].is_string(),
            _ => init[key].is_array(),
        };
        assert!(fits, "{key}: {init}");
    }
    assert!(init["tools"].as_array().unwrap().contains(&json!("Task")));
    let (text, call) = (&frames[1], &frames[2]);
    assert_eq!(
        text["message"]["content"],
        json!([{"type": "text", "text": "Looking."}])
    );
    assert_eq!(text["message"]["id"], call["message"]["id"]);
    assert_eq!(text["message"]["stop_reason"], Value::Null);
    assert!(text.as_object().unwrap().contains_key("parent_tool_use_id"));
    assert_eq!(call["message"]["content"][0]["name"], "Read");
    assert_eq!(
        call["message"]["content"][0]["input"],
        json!({"file_path": "hello.txt"})
    );
    let result = &frames[3];
    assert_eq!(
        result["message"]["content"][0]["tool_use_id"],
        call["message"]["content"][0]["id"]
    );
    assert_eq!(
        result["tool_use_result"]["file"]["content"],
        "line one\nline two\n"
    );
    let end = &frames[5];
    assert_eq!(end["num_turns"], 2);
    assert_eq!(end["result"], "It says hi.");
    assert_eq!(end["stop_reason"], "end_turn");
    assert_eq!(end["permission_denials"], json!([]));
    assert!(end["total_cost_usd"].as_f64().unwrap() > 0.0);
    assert_eq!(end["usage"]["input_tokens"], 24);
    assert_eq!(end["modelUsage"]["claude-sonnet-4-6"]["outputTokens"], 14);
    assert_eq!(
        end["modelUsage"]["claude-sonnet-4-6"]["contextWindow"],
        1_000_000
    );
    assert!(end["duration_ms"].is_u64() && end["duration_api_ms"].is_u64());
    // The next request speaks of the call in the names that the model knows.
    let request = bench.last_request();
    assert_eq!(
        request["messages"][1]["content"][1]["input"],
        json!({"file_path": "hello.txt"})
    );
}

#[test]
fn thinking_is_told_with_its_signature() {
    let script = Script::new([Reply {
        blocks: vec![
            Block::Thinking {
                text: "hm".to_owned(),
                signature: None,
            },
            Block::Text(Prose::Whole("So.".to_owned())),
        ],
        ..Reply::default()
    }]);
    let bench = Bench::new(script);
    let ran = bench.run(&lines(&["--max-thinking-tokens", "2000", "think"]));
    let frames = ran.frames();
    let thought = &of_type(&frames, "assistant")[0]["message"]["content"][0];
    assert_eq!(thought["type"], "thinking", "{ran:?}");
    assert!(thought["thinking"].is_string() && thought["signature"].is_string());
}

#[test]
fn text_and_json_are_the_result_alone() {
    let bench = Bench::new(Script::new((0..3).map(|_| Reply::text("Hello."))));
    assert_eq!(bench.run(&["-p", "hi"]).stdout, "Hello.\n");
    let ran = bench.run(&["-p", "--output-format", "json", "hi"]);
    assert_eq!(ran.stdout.lines().count(), 1);
    assert_eq!(ran.result()["result"], "Hello.");
    let ran = bench.run(&["-p", "--output-format", "json", "--verbose", "hi"]);
    let list: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(kinds(&list), ["system/init", "assistant", "result/success"]);
}

#[test]
fn commands_read_as_in_that_world() {
    let script = Script::new([
        Reply::tools([
            ("Bash", json!({"command": "echo one", "timeout": 5000})),
            ("Bash", json!({"command": "echo two; exit 3"})),
        ]),
        Reply::tool("Nonsense", json!({})),
        Reply::text("done"),
    ]);
    let bench = Bench::new(script);
    let ran = bench.run(&lines(&["--allowedTools", "Bash", "--", "go"]));
    let frames = ran.frames();
    let results = of_type(&frames, "user");
    assert_eq!(results[0]["message"]["content"][0]["content"], "one");
    assert_eq!(results[0]["tool_use_result"]["stdout"], "one");
    assert_eq!(
        results[1]["message"]["content"][0]["content"],
        "Exit code 3\ntwo"
    );
    assert_eq!(results[1]["message"]["content"][0]["is_error"], true);
    let unknown = results[2]["message"]["content"][0]["content"]
        .as_str()
        .unwrap();
    assert!(unknown.starts_with("<tool_use_error>"), "{unknown}");
    assert_eq!(ran.result()["num_turns"], 4);
}

#[test]
fn files_are_written_and_edited_with_what_interfaces_show() {
    let script = Script::new([
        Reply::tool(
            "Write",
            json!({"file_path": "a.txt", "content": "a\nb\nc\n"}),
        ),
        Reply::tool(
            "Edit",
            json!({"file_path": "a.txt", "old_string": "b", "new_string": "B"}),
        ),
        Reply::text("done"),
    ]);
    let bench = Bench::new(script);
    let ran = bench.run(&lines(&["--permission-mode", "acceptEdits", "go"]));
    let frames = ran.frames();
    let results = of_type(&frames, "user");
    assert_eq!(results[0]["tool_use_result"]["type"], "create", "{ran:?}");
    assert_eq!(results[1]["tool_use_result"]["originalFile"], "a\nb\nc\n");
    assert_eq!(
        results[1]["tool_use_result"]["structuredPatch"][0]["lines"],
        json!([" a", "-b", "+B", " c"])
    );
    assert_eq!(
        std::fs::read_to_string(bench.workspace.path().join("a.txt")).unwrap(),
        "a\nB\nc\n"
    );
}

#[test]
fn the_turn_limit_lets_the_last_call_run() {
    let script = Script::new([
        Reply::tool("Bash", json!({"command": "echo x"})),
        Reply::text("never"),
    ]);
    let bench = Bench::new(script);
    let ran = bench.run(&lines(&["--max-turns", "1", "go"]));
    assert_eq!(ran.code, Some(1));
    let frames = ran.frames();
    assert_eq!(
        kinds(&frames),
        ["system/init", "assistant", "user", "result/error_max_turns"]
    );
    let end = ran.result();
    assert_eq!(
        end["errors"],
        json!(["Reached maximum number of turns (1)"])
    );
    assert_eq!(
        (&end["num_turns"], &end["is_error"]),
        (&json!(2), &json!(true))
    );
    assert_eq!(end["stop_reason"], "tool_use");
    assert!(end.get("result").is_none());
}

#[test]
fn the_budget_ends_the_run() {
    let script = Script::new([
        Reply::tool("Bash", json!({"command": "echo x"})),
        Reply::text("never"),
    ]);
    let bench = Bench::new(script);
    let ran = bench.run(&lines(&["--max-budget-usd", "0.00001", "go"]));
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.result()["subtype"], "error_max_budget_usd");
}

#[test]
fn failures_of_the_model_are_an_answer_and_an_error() {
    for (code, kind) in [(401, "authentication_failed"), (400, "unknown")] {
        let bench = Bench::new(Script::new([Reply::fault(Fault::status(code))]));
        let ran = bench.run(&lines(&["hi"]));
        assert_eq!(ran.code, Some(1), "{ran:?}");
        let frames = ran.frames();
        let said = of_type(&frames, "assistant")[0];
        assert_eq!(said["message"]["model"], "<synthetic>");
        assert_eq!(said["error"], kind);
        let end = ran.result();
        assert_eq!(
            (&end["subtype"], &end["is_error"]),
            (&json!("success"), &json!(true))
        );
        assert_eq!(end["api_error_status"], code);
        assert!(
            end["result"]
                .as_str()
                .unwrap()
                .starts_with(&format!("API Error: {code}"))
        );
    }
}

#[test]
fn without_a_key_the_answer_says_so() {
    let bench = Bench::new(Script::new([]));
    let output = bench
        .command(&lines(&["hi"]))
        .env_remove("ANTHROPIC_API_KEY")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains("\"error\":\"authentication_failed\""),
        "{text}"
    );
    assert!(text.contains("\"type\":\"result\""));
}

#[test]
fn retries_are_told() {
    let script = Script::new([Reply::fault(Fault::status(529)), Reply::text("ok")]);
    let bench = Bench::new(script);
    let ran = bench.run(&lines(&["hi"]));
    let frames = ran.frames();
    let retry = frames
        .iter()
        .find(|frame| frame["subtype"] == "api_retry")
        .unwrap();
    assert_eq!(
        (&retry["attempt"], &retry["error_status"]),
        (&json!(1), &json!(529))
    );
    assert_eq!(retry["error"], "overloaded");
    assert_eq!(ran.code, Some(0));
}

#[test]
fn long_results_fit_into_a_line() {
    let script = Script::new([
        Reply::tool(
            "Write",
            json!({"file_path": "big", "content": "x".repeat(2_000_000)}),
        ),
        Reply::text("done \u{2028} end"),
    ]);
    let bench = Bench::new(script);
    let ran = bench.run(&lines(&["--permission-mode", "acceptEdits", "go"]));
    // Each line is checked for its length.
    assert_eq!(ran.result()["result"], "done \u{2028} end");
    assert!(ran.stdout.contains("\\u2028") && !ran.stdout.contains('\u{2028}'));
    let written = std::fs::metadata(bench.workspace.path().join("big")).unwrap();
    assert_eq!(written.len(), 2_000_000);
}
