//! Plan mode is ended by whoever chose it.

use rstest::rstest;
use serde_json::json;

use crate::{bench, denials, result};

#[rstest]
#[case(&[])]
#[case(&["--auto-allow"])]
#[case(&["--allow", "ExitPlanMode", "--allow", "Write"])]
#[case(&["--allow", "*"])]
#[case(&["--settings", r#"{"hooks": {"PreToolUse": [{"matcher": "*", "hooks": [
    {"type": "command", "command": "echo '{\"decision\": \"allow\"}'"}]}]}}"#])]
fn nothing_but_the_operator_ends_the_operators_plan_mode(#[case] args: &[&str]) {
    let write = json!({"path": "out.txt", "content": "x"});
    let bench = bench(&[
        ("Write", write.clone()),
        ("ExitPlanMode", json!({"plan": "p"})),
        ("EnterPlanMode", json!({})),
        ("ExitPlanMode", json!({"plan": "p"})),
        ("Write", write),
    ]);
    let result = result(&bench, &[&["--permission-mode", "plan"], args].concat());
    assert_eq!(denials(&result), 4, "{result}");
    assert!(!bench.workspace.path().join("out.txt").exists());
    // No refusal advises what does not help.
    for denial in result["denials"].as_array().unwrap() {
        let remedy = denial["remedy"].as_str().unwrap();
        assert!(remedy.contains("--permission-mode"), "{remedy}");
        assert!(!remedy.contains("ExitPlanMode"), "{remedy}");
        assert!(
            !remedy.contains("--allow") && !remedy.contains("--auto"),
            "{remedy}"
        );
    }
}

#[test]
fn the_model_leaves_the_plan_mode_that_it_entered() {
    let write = json!({"path": "out.txt", "content": "x"});
    let bench = bench(&[
        ("EnterPlanMode", json!({})),
        ("Write", write.clone()),
        ("ExitPlanMode", json!({"plan": "p"})),
        ("Write", write),
    ]);
    let result = result(&bench, &["--allow", "Write"]);
    assert_eq!(denials(&result), 1, "{result}");
    let remedy = result["denials"][0]["remedy"].as_str().unwrap();
    assert!(remedy.contains("ExitPlanMode"), "{remedy}");
    assert!(bench.workspace.path().join("out.txt").exists());
}
