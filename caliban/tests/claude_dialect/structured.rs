//! Answers with a form.

use caliban_testkit::{Reply, Script};
use serde_json::json;

use crate::bench::{Bench, of_type};

const SCHEMA: &str =
    r#"{"type":"object","required":["ok"],"properties":{"ok":{"type":"boolean"}}}"#;

fn args<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [
        &[
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--json-schema",
            SCHEMA,
        ],
        more,
    ]
    .concat()
}

#[test]
fn the_answer_is_given_by_a_call_and_ends_the_turn() {
    let bench = Bench::new(Script::new([
        Reply::tool("StructuredOutput", json!({"ok": "yes"})),
        Reply::tool("StructuredOutput", json!({"ok": true})),
    ]));
    let ran = bench.run(&args(&["go"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let end = ran.result();
    assert_eq!(end["structured_output"], json!({"ok": true}));
    assert_eq!(end["result"], "{\"ok\":true}");
    let frames = ran.frames();
    let results = of_type(&frames, "user");
    assert_eq!(results[0]["message"]["content"][0]["is_error"], true);
    assert_eq!(
        results[1]["message"]["content"][0]["content"],
        "Structured output provided successfully"
    );
    assert_eq!(bench.server.model_requests().len(), 2);
}

#[test]
fn a_model_that_only_talks_is_reminded_once() {
    let bench = Bench::new(Script::new([
        Reply::text("it is ok"),
        Reply::text("really"),
    ]));
    let ran = bench.run(&args(&["go"]));
    let end = ran.result();
    assert_eq!((ran.code, &end["subtype"]), (Some(0), &json!("success")));
    assert!(end.get("structured_output").is_none());
    let frames = ran.frames();
    assert_eq!(of_type(&frames, "user")[0]["isSynthetic"], true);
}

#[test]
fn five_wrong_answers_end_it() {
    let bench = Bench::new(Script::new(
        (0..6).map(|n| Reply::tool("StructuredOutput", json!({"ok": n}))),
    ));
    let ran = bench.run(&args(&["go"]));
    assert_eq!(ran.code, Some(1));
    let end = ran.result();
    assert_eq!(end["subtype"], "error_max_structured_output_retries");
    assert!(end["errors"][0].is_string());
    assert_eq!(bench.server.model_requests().len(), 5);
}
