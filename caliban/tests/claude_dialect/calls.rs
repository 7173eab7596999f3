//! Calls as models of that world write them, with fields that our tools do not offer.

use caliban_testkit::{Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench::{Bench, of_type};

/// Makes one call; returns the call as it was shown, and its result.
fn call(name: &str, input: &Value, prepare: impl FnOnce(&Bench)) -> (Value, Value) {
    let bench = Bench::new(Script::new([
        Reply::tool(name, input.clone()),
        Reply::text("done"),
    ]));
    prepare(&bench);
    let ran = bench.run(&[
        "-p",
        "go",
        "--output-format",
        "stream-json",
        "--verbose",
        "--dangerously-skip-permissions",
    ]);
    let frames = ran.frames();
    let shown = of_type(&frames, "assistant")[0]["message"]["content"][0].clone();
    let result = of_type(&frames, "user")[0]["message"]["content"][0].clone();
    (shown, result)
}

#[rstest]
#[case("Bash", json!({"command": "echo found", "description": "d", "timeout": 1000, "dangerouslyDisableSandbox": false}))]
#[case("Read", json!({"file_path": "found.txt", "pages": "1"}))]
#[case("Grep", json!({"pattern": "found", "output_mode": "content", "-n": true, "-A": 1, "-B": 2}))]
#[case("Skill", json!({"skill": "look", "args": "found"}))]
#[case("TodoWrite", json!({"todos": [
    {"content": "found", "status": "in_progress", "activeForm": "finding"},
    {"content": "b", "status": "pending", "activeForm": "b-ing"},
]}))]
fn fields_that_say_nothing_here_are_no_mistake(#[case] name: &str, #[case] input: Value) {
    let (shown, result) = call(name, &input, |bench| {
        std::fs::write(bench.workspace.path().join("found.txt"), "found\n").unwrap();
        let skill = bench.workspace.path().join(".claude/skills/look");
        std::fs::create_dir_all(&skill).unwrap();
        let text = "---\nname: look\ndescription: looks\n---\nLook around.";
        std::fs::write(skill.join("SKILL.md"), text).unwrap();
    });
    assert_eq!(result["is_error"], Value::Null, "{result}");
    if name != "TodoWrite" {
        assert!(result.to_string().contains("found"), "{result}");
    }
    // It is shown as the model wrote it.
    assert_eq!((&shown["name"], &shown["input"]), (&json!(name), &input));
}

#[rstest]
#[case("WebFetch", json!({"url": "http://127.0.0.1:9/", "prompt": "what is it"}), "127.0.0.1")]
#[case("TaskOutput", json!({"task_id": "bash_9", "block": true, "timeout": 1000}), "There is no background command `bash_9`")]
#[case("TaskStop", json!({"task_id": "bash_9"}), "There is no background command `bash_9`")]
fn what_fails_does_so_for_its_own_reason(
    #[case] name: &str,
    #[case] input: Value,
    #[case] why: &str,
) {
    let (_, result) = call(name, &input, |_| ());
    let text = result["content"].to_string();
    assert!(text.contains(why), "{text}");
    assert!(!text.contains("does not fit"), "{text}");
}
