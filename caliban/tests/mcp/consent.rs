//! Who may call a server's tools, and servers that decide about others.

use rstest::rstest;
use serde_json::{Value, json};

use crate::{bench, calls, frames, go, settings, stub, told};

fn is_run(rules: &Value, args: &[&str]) -> bool {
    let bench = bench(calls("mcp__calc__add", json!({"a": 2, "b": 3})));
    let mut server = stub(&json!({}));
    server["permissions"] = rules.clone();
    let ran = go(&bench, &settings(&json!({ "calc": server })), args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    told(&bench) == "5"
}

#[rstest]
#[case::nothing(json!({}), &[], false)]
#[case::server_allows(json!({"allow": ["add"]}), &[], true)]
#[case::server_allows_like(json!({"allow": ["a*"]}), &[], true)]
#[case::server_allows_another(json!({"allow": ["fail"]}), &[], false)]
#[case::server_denies_first(json!({"allow": ["*"], "deny": ["add"]}), &[], false)]
#[case::server_asks_before_it_allows(json!({"allow": ["*"], "ask": ["add"]}), &[], false)]
#[case::denial_stands_above(json!({"allow": ["add"]}), &["--deny", "mcp__calc"], false)]
#[case::server_stands_above_asking(json!({"allow": ["add"]}), &["--ask", "mcp__calc"], true)]
#[case::server_stands_above_allowing(json!({"ask": ["add"]}), &["--allow", "mcp__calc"], false)]
#[case::by_name(json!({}), &["--allow", "mcp__calc__add"], true)]
#[case::by_argument(json!({}), &["--allow", "mcp__calc__add:a=2"], true)]
#[case::by_another_argument(json!({}), &["--allow", "mcp__calc__add:a=9"], false)]
fn rules_of_the_server_stand_between_denials_and_the_rest(
    #[case] rules: Value,
    #[case] args: &[&str],
    #[case] runs: bool,
) {
    assert_eq!(is_run(&rules, args), runs);
}

#[test]
fn plan_mode_runs_no_tool_of_a_server() {
    assert!(!is_run(
        &json!({"allow": ["*"]}),
        &["--permission-mode", "plan"]
    ));
}

#[rstest]
#[case::yes(r#"{"behavior": "allow"}"#, true)]
#[case::changed(
    r#"{"behavior": "allow", "updatedInput": {"path": "out.txt", "content": "changed"}}"#,
    true
)]
#[case::no(r#"{"behavior": "deny", "message": "not today"}"#, false)]
#[case::garbage("yes, of course", false)]
#[case::empty("", false)]
fn a_tool_can_be_asked_for_consent(#[case] answer: &str, #[case] written: bool) {
    let bench = bench(calls("Write", json!({"path": "out.txt", "content": "x"})));
    let servers = settings(&json!({"judge": stub(&json!({"APPROVE": answer}))}));
    let ran = go(
        &bench,
        &servers,
        &["--permission-prompt-tool", "mcp__judge__approve"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let text = std::fs::read_to_string(bench.workspace.path().join("out.txt"));
    assert_eq!(text.is_ok(), written);
    if answer.contains("changed") {
        assert_eq!(text.unwrap(), "changed");
    }
    if answer.contains("not today") {
        assert!(told(&bench).contains("not today"));
        let result = frames(&ran).pop().unwrap();
        assert_eq!(result["denials"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn a_missing_judge_is_a_mistake_and_a_missing_tool_a_refusal() {
    let bench = bench(calls("Write", json!({"path": "out.txt", "content": "x"})));
    let none = bench.run([
        "-p",
        "go",
        "--permission-prompt-tool",
        "mcp__judge__approve",
    ]);
    assert_eq!(none.code, Some(78), "{}", none.stderr);
    let servers = settings(&json!({"judge": stub(&json!({}))}));
    let ran = go(
        &bench,
        &servers,
        &["--permission-prompt-tool", "mcp__judge__nothing"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!bench.workspace.path().join("out.txt").exists());
}

#[rstest]
#[case::denies(r#"{"decision": "block", "reason": "no writing"}"#, false)]
#[case::allows(r#"{"hookSpecificOutput": {"permissionDecision": "allow"}}"#, true)]
#[case::words("what?", false)]
#[case::broken("{what?", false)]
fn a_hook_can_be_a_tool_of_a_server(#[case] answer: &str, #[case] written: bool) {
    let bench = bench(calls("Write", json!({"path": "out.txt", "content": "x"})));
    let mut with = settings(&json!({"judge": stub(&json!({"JUDGE": answer}))}));
    with["hooks"] = json!({"PreToolUse": [{
        "matcher": "Write",
        "hooks": [{"type": "mcp", "mcp": "judge", "tool": "judge"}],
    }]});
    let ran = go(&bench, &with, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(
        bench.workspace.path().join("out.txt").exists(),
        written,
        "{}",
        told(&bench)
    );
}
