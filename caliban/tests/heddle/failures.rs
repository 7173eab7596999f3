//! Sends that do not succeed: each has its code, and each has one result.

use caliban_testkit::{Fault, Reply, Stop};
use rstest::rstest;
use serde_json::{Value, json};

use crate::client::{Client, names, without_times};
use crate::{bench, init, send};

#[test]
fn a_provider_that_refuses() {
    let bench = bench([Reply::fault(Fault::status(401)), Reply::text("back")]);
    let mut client = Client::start(&bench);
    let session = client.init(&init());
    let (events, result) = client.exchange(&send("2", "hello"));
    let message = result["error"]["message"].as_str().unwrap().to_owned();
    assert!(
        message.starts_with("anthropic (claude-sonnet-4-6): HTTP 401"),
        "{message}"
    );
    let details = json!({"status": 401, "permanent": true});
    assert_eq!(
        events,
        [json!({
            "event": "error",
            "code": "provider_error",
            "message": message,
            "retryable": true,
            "provider": "anthropic",
            "details": details,
        })]
    );
    assert_eq!(
        without_times(result),
        json!({
            "type": "result",
            "id": "2",
            "status": "error",
            "tool_calls_made": [],
            "usage": {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0},
            "iterations": 0,
            "error": {
                "code": "provider_error",
                "message": message,
                "retryable": true,
                "details": details,
            },
            "session_id": session,
        })
    );
    // The session is not lost.
    let (_, result) = client.exchange(&send("3", "hello"));
    assert_eq!(result["response"], "back");
}

#[test]
fn a_call_that_is_made_again_is_told() {
    let bench = bench([Reply::fault(Fault::status(529)), Reply::text("back")]);
    let mut client = Client::start(&bench);
    client.init(&init());
    let (events, result) = client.exchange(&send("2", "hello"));
    assert_eq!(result["status"], "ok");
    assert_eq!(names(&events), ["error", "content_delta", "usage"]);
    let error = &events[0];
    assert_eq!(error["code"], "provider_error");
    assert_eq!(error["retryable"], true);
    assert_eq!(error["provider"], "anthropic");
    assert_eq!(error["details"]["status"], 529);
    assert_eq!(error["details"]["attempt"], 1);
}

#[rstest]
#[case("0.2.0", "tool_error")]
#[case("0.5.0", "max_iterations")]
fn a_limit_of_iterations(#[case] version: &str, #[case] code: &str) {
    let bench = bench((0..5).map(|n| Reply::tool("Glob", json!({"pattern": format!("{n}")}))));
    let mut client = Client::start(&bench);
    let mut init = init();
    init["protocol_version"] = json!(version);
    init["config"]["max_iterations"] = json!(2);
    client.init(&init);
    let (events, result) = client.exchange(&send("2", "search"));
    let error = json!({
        "code": code,
        "message": "stopped after 2 iterations; raise `max_iterations`",
        "retryable": false,
    });
    assert_eq!(result["status"], "error");
    assert_eq!(result["error"], error);
    assert_eq!(result["iterations"], 2);
    assert_eq!(result["tool_calls_made"].as_array().unwrap().len(), 2);
    assert_eq!(result.get("response"), None);
    assert_eq!(
        events.last(),
        Some(&json!({
            "event": "error",
            "code": code,
            "message": error["message"],
            "retryable": false,
            "details": null,
        }))
    );
    assert_eq!(bench.server.model_requests().len(), 2);
}

#[test]
fn a_doom_loop() {
    let bench = bench([Reply::tool("Read", json!({"path": "missing"})).times(20)]);
    let mut client = Client::start(&bench);
    client.init(&init());
    let (_, result) = client.exchange(&send("2", "read"));
    assert_eq!(result["error"]["code"], "loop_detected");
    assert_eq!(result["error"]["retryable"], false);
    assert_eq!(result["error"].get("details"), None);
    assert_eq!(result["iterations"], 8);
}

#[test]
fn a_call_with_a_wrong_input_is_told_as_failed() {
    let bench = bench([
        Reply::tool("Read", json!({"nonsense": 1})),
        Reply::text("ok"),
    ]);
    let mut client = Client::start(&bench);
    client.init(&init());
    let (events, result) = client.exchange(&send("2", "read"));
    assert_eq!(
        names(&events),
        ["usage", "tool_start", "tool_end", "content_delta", "usage"]
    );
    let preview: &Value = &events[2]["result_preview"];
    assert!(
        preview.as_str().unwrap().contains("does not fit"),
        "{preview}"
    );
    assert_eq!(result["status"], "ok");
}

#[rstest]
#[case::refused(Reply::default().stop(Stop::Refusal))]
#[case::cut(Reply::text("It is").stop(Stop::MaxTokens))]
fn what_would_end_the_same_again_is_permanent(#[case] reply: Reply) {
    let bench = bench([reply]);
    let mut client = Client::start(&bench);
    client.init(&init());
    let (events, result) = client.exchange(&send("2", "hello"));
    let error = &result["error"];
    assert_eq!(error["code"], "provider_error", "{result}");
    assert_eq!(error["details"], json!({"permanent": true}));
    assert_eq!(events.last().unwrap()["details"], error["details"]);
}

#[rstest]
#[case("", "names no model")]
#[case("anthropic/", "names no model")]
#[case("nosuch/foo", "no model `nosuch/foo`")]
#[case("openrouter/anthropic/claude-sonnet-4", "no model `openrouter/")]
#[case("foo", "no model `foo`")]
fn a_model_that_nobody_has_fails_the_init(#[case] model: &str, #[case] reason: &str) {
    let bench = bench([Reply::text("hi")]);
    let mut client = Client::start_without_provider(&bench);
    let mut wrong = init();
    wrong["config"]["model"] = json!(model);
    let answer = client.ask(&wrong);
    assert_eq!(
        (&answer["type"], &answer["id"]),
        (&json!("error"), &json!("1"))
    );
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains(reason), "{message}");
    // The client may try again.
    client.init(&init());
    let (_, result) = client.exchange(&send("2", "hello"));
    assert_eq!(result["response"], "hi");
}

#[test]
fn a_model_is_asked_for_where_the_operator_says() {
    let bench = bench([Reply::text("hi")]);
    let mut client = Client::start(&bench);
    let mut other = init();
    other["config"]["model"] = json!("nosuch/foo");
    client.init(&other);
    client.exchange(&send("2", "hello"));
    let asked = bench.server.model_requests().remove(0).json();
    assert_eq!(asked["model"], "nosuch/foo");
}
