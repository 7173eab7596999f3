//! The headless contract: input frames, several prompts, interrupts, structured answers, what is
//! attached, and how runs end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use caliban_testkit::{Fault, Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};
use support::{Bench, Ran, Wire, finish, frame, run, run_with_input};

fn frames(ran: &Ran) -> Vec<Value> {
    ran.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")))
        .collect()
}

fn of_type<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    frames
        .iter()
        .filter(|frame| frame["type"] == kind)
        .collect()
}

const STREAM: [&str; 4] = [
    "--input-format",
    "stream-json",
    "--output-format",
    "stream-json",
];

#[rstest]
fn several_prompts_are_several_exchanges(
    #[values(
        Wire::Anthropic,
        Wire::Responses,
        Wire::Chat,
        Wire::Gemini,
        Wire::Ollama
    )]
    wire: Wire,
) {
    let script = Script::new([Reply::text("one"), Reply::text("two")]);
    let bench = Bench::new(wire, script);
    let input = "{\"type\":\"user\",\"content\":\"first\"}\r\n\n{\"type\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"second\"}]}";
    let mut command = bench.command();
    let ran = run_with_input(
        command.args(STREAM).arg("--replay-user-messages"),
        input.as_bytes(),
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let frames = frames(&ran);
    let order: Vec<_> = frames
        .iter()
        .map(|frame| frame["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        order,
        [
            "system", "user", "message", "result", "user", "message", "result"
        ]
    );
    let results = of_type(&frames, "result");
    assert_eq!(results[0]["result"], "one");
    assert_eq!(results[1]["result"], "two");
    // Totals are those of the whole run.
    assert_eq!(results[1]["turns"], 2);
    assert!(
        results[1]["total_output_tokens"].as_u64() > results[0]["total_output_tokens"].as_u64()
    );
    // The second request holds the first exchange.
    let last = bench
        .server
        .model_requests()
        .pop()
        .unwrap()
        .json()
        .to_string();
    assert!(last.contains("first") && last.contains("one") && last.contains("second"));
}

#[rstest]
#[case("", 66, &[])]
#[case("\n\n", 66, &[])]
#[case("nonsense", 64, &[])]
#[case("{\"type\":\"user\",\"message\":{}}", 64, &[])]
#[case("{\"type\":\"user\",\"content\":\"a\"}\n{\"type\":\"user\",\"content\":\"b\",\"x\":1}", 64, &["success"])]
#[case("{\"type\":\"control\",\"subtype\":\"interrupt\"}", 66, &[])]
fn wrong_input_ends_with_one_error_result(
    #[case] input: &str,
    #[case] code: i32,
    #[case] before: &[&str],
) {
    let bench = Bench::new(Wire::Anthropic, Script::new([Reply::text("one")]));
    let ran = run_with_input(bench.command().args(STREAM), input.as_bytes());
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    let frames = frames(&ran);
    let subtypes: Vec<_> = of_type(&frames, "result")
        .iter()
        .map(|frame| frame["subtype"].as_str().unwrap().to_owned())
        .collect();
    let expected: Vec<_> = before.iter().copied().chain(["error"]).collect();
    assert_eq!(subtypes, expected);
    assert_eq!(frames.last().unwrap()["type"], "result");
}

#[test]
fn an_inline_prompt_beside_frames_is_refused() {
    for args in [&["-p", "x"] as &[&str], &["x"], &["--prompt", "x"]] {
        let bench = Bench::new(Wire::Anthropic, Script::new([]));
        let ran = run(bench.command().args(STREAM).args(args));
        assert_eq!(ran.code, Some(64), "{args:?}");
    }
    let bench = Bench::new(Wire::Anthropic, Script::new([Reply::text("one")]));
    let input = b"{\"type\":\"user\",\"content\":\"a\"}\n";
    let ran = run_with_input(bench.command().args(STREAM).args(["-p", "-"]), input);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn an_interrupt_stops_one_exchange_and_the_next_runs() {
    let script = Script::new([
        Reply::text("never ever").with_fault(Fault::StallMidStream { after_events: 3 }),
        Reply::text("after"),
    ]);
    let bench = Bench::new(Wire::Anthropic, script);
    let mut child = bench
        .command()
        .args(STREAM)
        .arg("--include-partial-messages")
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || -> Value { frame(&lines.next().unwrap().unwrap()) };
    writeln!(input, "{{\"type\":\"user\",\"content\":\"a\"}}").unwrap();
    assert_eq!(next()["type"], "system");
    assert_eq!(next()["type"], "text");
    writeln!(input, "{{\"type\":\"control\",\"subtype\":\"interrupt\"}}").unwrap();
    let cancelled = next();
    assert_eq!(cancelled["subtype"], "cancelled", "{cancelled}");
    writeln!(input, "{{\"type\":\"user\",\"content\":\"b\"}}").unwrap();
    assert_eq!(next()["type"], "text");
    assert_eq!(next()["subtype"], "success");
    drop(input);
    assert_eq!(finish(child).code, Some(0));
}

#[test]
fn json_output_of_a_stream_is_the_last_result_alone() {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([Reply::text("one"), Reply::text("two")]),
    );
    let input = b"{\"type\":\"user\",\"content\":\"a\"}\n{\"type\":\"user\",\"content\":\"b\"}\n";
    let mut command = bench.command();
    command.args(["--input-format", "stream-json", "--output-format", "json"]);
    let ran = run_with_input(&mut command, input);
    let [result] = &frames(&ran)[..] else {
        panic!("{}", ran.stdout)
    };
    assert_eq!(result["result"], "two");
}

const SCHEMA: &str = r#"{"type":"object","required":["verdict","reason"],"properties":{"verdict":{"enum":["pass","fail"]}}}"#;

#[rstest]
fn a_schema_is_asked_for_held_and_shown(
    #[values(
        Wire::Anthropic,
        Wire::Responses,
        Wire::Chat,
        Wire::Gemini,
        Wire::Ollama
    )]
    wire: Wire,
    #[values(true, false)] in_file: bool,
) {
    let script = Script::new([
        Reply::text("I think it passes."),
        Reply::text("Sure: {\"verdict\": \"pass\", \"reason\": \"fine\"}"),
    ]);
    let bench = Bench::new(wire, script);
    let file = bench.workspace.path().join("schema.json");
    std::fs::write(&file, SCHEMA).unwrap();
    let schema = if in_file { "schema.json" } else { SCHEMA };
    let ran = bench.run([
        "-p",
        "x",
        "--output-format",
        "json",
        "--json-schema",
        schema,
    ]);
    assert_eq!(ran.code, Some(0), "{} {}", ran.stdout, ran.stderr);
    let result = &frames(&ran)[0];
    assert_eq!(result["subtype"], "success");
    assert_eq!(
        result["structured_output"],
        json!({"verdict": "pass", "reason": "fine"})
    );
    assert_eq!(result["turns"], 2);
    let second = bench.server.model_requests()[1].json().to_string();
    assert!(second.contains("does not validate"));
}

#[test]
fn an_answer_that_never_fits_exits_2() {
    let script = Script::new((0..3).map(|_| Reply::text("{\"verdict\": \"maybe\"}")));
    let bench = Bench::new(Wire::Anthropic, script);
    let ran = bench.run([
        "-p",
        "x",
        "--output-format",
        "json",
        "--json-schema",
        SCHEMA,
    ]);
    assert_eq!(ran.code, Some(2));
    let result = &frames(&ran)[0];
    assert_eq!(result["subtype"], "error");
    assert!(result["error"].as_str().unwrap().contains("reason"));
    assert_eq!(result["last_assistant_text"], "{\"verdict\": \"maybe\"}");
    assert_eq!(bench.server.model_requests().len(), 3);
}

#[test]
fn an_answer_without_a_turn_left_for_a_correction_exits_2() {
    let bench = Bench::new(Wire::Anthropic, Script::new([Reply::text("no JSON")]));
    let ran = bench.run(["-p", "x", "--max-turns", "1", "--json-schema", SCHEMA]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
}

#[rstest]
#[case(Wire::Anthropic)]
#[case(Wire::Ollama)]
fn a_model_that_cannot_be_held_to_a_schema_is_told_it(#[case] wire: Wire) {
    let bench = Bench::new(
        wire,
        Script::new([Reply::text(r#"{"verdict":"pass","reason":"r"}"#)]),
    );
    let ran = bench.run(["-p", "x", "--json-schema", SCHEMA]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let body = bench.server.model_requests()[0].json();
    // A closed object could not have the reason, which the schema does not describe.
    assert_eq!(body["output_config"]["format"], Value::Null);
    assert_eq!(body["format"], Value::Null);
    assert!(body.to_string().contains("JSON Schema"), "{body}");
}

#[test]
fn a_schema_in_a_file_is_named_when_it_is_wrong() {
    let bench = Bench::new(Wire::Anthropic, Script::new([Reply::text("{}")]));
    let file = bench.workspace.path().join("form.json");
    std::fs::write(&file, "{oops").unwrap();
    let ran = bench.run(["-p", "x", "--json-schema", "form.json"]);
    assert_eq!(ran.code, Some(64));
    assert!(ran.stderr.contains("`form.json`"), "{}", ran.stderr);
    std::fs::write(&file, "\u{feff}{\"type\": \"object\"}").unwrap();
    let ran = bench.run(["-p", "x", "--json-schema", "form.json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn warnings_of_a_run_whose_only_frame_is_the_result_go_to_standard_error() {
    let reply = Reply::text("ok").model("another-model");
    let bench = Bench::new(Wire::Anthropic, Script::new([reply]));
    let ran = bench.run(["-p", "x", "--output-format", "json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("warning: model mismatch"),
        "{}",
        ran.stderr
    );
}

#[rstest]
#[case("{\"type\": \"nonsense\"}", 64)]
#[case("{not json", 64)]
#[case("missing.json", 66)]
fn a_wrong_schema_does_not_start(#[case] schema: &str, #[case] code: i32) {
    let bench = Bench::new(Wire::Anthropic, Script::new([]));
    let ran = bench.run(["-p", "x", "--json-schema", schema]);
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
}

#[test]
fn denials_fail_the_run_when_asked_to() {
    let script = || {
        Script::new([
            Reply::tool("Write", json!({"path": "x", "content": "y"})),
            Reply::text("done"),
        ])
    };
    for (args, code) in [
        (&["-p", "x"] as &[&str], 0),
        (&["-p", "x", "--fail-on-denial"], 1),
        (&["-p", "x", "--fail-on-denial", "--auto-allow"], 0),
    ] {
        let bench = Bench::new(Wire::Anthropic, script());
        let ran = bench.run(args);
        assert_eq!(ran.code, Some(code), "{args:?} {}", ran.stderr);
    }
}

#[test]
fn bare_reads_no_settings_of_user_or_workspace() {
    let bench = Bench::new(Wire::Anthropic, Script::new([Reply::text("ok")]));
    let config = bench.home.path().join(".config/caliban");
    std::fs::create_dir_all(&config).unwrap();
    std::fs::write(config.join("settings.toml"), "model = 'claude-opus-4-1'\n").unwrap();
    let init = |bare: Option<&str>| {
        let mut command = bench.command();
        command
            .args(["-p", "x", "--output-format", "stream-json"])
            .args(bare);
        frames(&run(&mut command))[0].clone()
    };
    let plain = init(None);
    assert_eq!(plain["settingSources"], json!(["user"]));
    assert_eq!(plain["bare_mode"], false);
    let bare = init(Some("--bare"));
    assert_eq!(bare["settingSources"], json!([]));
    assert_eq!(bare["bare_mode"], true);
    assert_eq!(bare["model"], "anthropic/claude-sonnet-4-6");
}

#[test]
fn no_auto_print_needs_a_terminal_or_an_explicit_flag() {
    let bench = Bench::new(Wire::Anthropic, Script::new([Reply::text("ok")]));
    assert_eq!(bench.run(["--no-auto-print", "x"]).code, Some(64));
    assert_eq!(bench.run(["--no-auto-print", "-p", "x"]).code, Some(0));
}

#[test]
fn files_named_in_the_prompt_go_along() {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([Reply::text("ok"), Reply::text("ok")]),
    );
    std::fs::write(
        bench.workspace.path().join("notes.txt"),
        "remember the milk",
    )
    .unwrap();
    std::fs::write(bench.workspace.path().join("big.txt"), "x".repeat(300_000)).unwrap();
    let ran = bench.run(["-p", "read @notes.txt"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let body = bench
        .server
        .model_requests()
        .pop()
        .unwrap()
        .json()
        .to_string();
    assert!(body.contains("remember the milk"));
    let refused = bench.run(["-p", "read @big.txt"]);
    assert_eq!(refused.code, Some(78));
    assert!(
        refused.stderr.contains("--max-attach-bytes"),
        "{}",
        refused.stderr
    );
    let raised = bench.run(["-p", "read @big.txt", "--max-attach-bytes", "400000"]);
    assert_eq!(raised.code, Some(0));
    assert_eq!(bench.server.model_requests().len(), 2);
}
