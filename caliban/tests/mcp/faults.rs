//! Servers that break the protocol: a call that cannot be answered fails at once.

use rstest::rstest;
use serde_json::json;

use crate::{bench, calls, go, ok, settings, stub, told};

/// Far more than a test may take: whoever waits for it has waited in vain.
const FOR_EVER: &str = "600000";

#[rstest]
#[case::too_deep(
    r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[],"_meta":DEEP}}"#,
    "cannot be read"
)]
#[case::glued(
    r#"Loading... {"jsonrpc":"2.0","id":ID,"result":{"content":[]}}"#,
    "cannot be read"
)]
#[case::cut(r#"{"jsonrpc":"2.0","id":ID,"result":{"content":["#, "cannot be read")]
#[case::no_list(
    r#"{"jsonrpc":"2.0","id":ID,"result":{"content":"text"}}"#,
    "`content` is not a list"
)]
fn an_answer_that_breaks_the_protocol_is_a_failure_at_once(#[case] line: &str, #[case] said: &str) {
    let deep = format!(
        "{}{}",
        "{\"a\":".repeat(140),
        "1".to_owned() + &"}".repeat(140)
    );
    let line = line.replace("DEEP", &deep);
    let bench = bench(calls("mcp__srv__raw", json!({ "line": line })));
    let mut servers = settings(&json!({"srv": stub(&json!({}))}));
    servers["env"] = json!({"CALIBAN_MCP_TOOL_TIMEOUT": FOR_EVER});
    let ran = go(&bench, &servers, &["--allow", "mcp__srv"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(told(&bench).contains(said), "{}", told(&bench));
    let last = bench.server.model_requests().pop().unwrap().json();
    let results = last["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(results["content"][0]["is_error"], true, "{results}");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let bench = bench(ok());
    let servers = settings(&json!({"srv": {"command": "no-such-program-here"}}));
    let ran = go(&bench, &servers, &[]);
    let said = "the MCP server srv has failed: `no-such-program-here` cannot be started: ";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    let times = ran.stderr.matches("no-such-program-here").count();
    assert_eq!(times, 1, "{}", ran.stderr);
    assert!(!ran.stderr.contains("handshake"), "{}", ran.stderr);
}
