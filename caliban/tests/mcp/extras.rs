//! Resources, prompts, questions of servers, their output, and their end.

use rstest::rstest;
use serde_json::{Value, json};

use crate::{bench, calls, command, frames, go, ok, run, settings, stub, told};

fn prompted(prompt: &str) -> (Option<i32>, String) {
    let bench = bench(ok());
    let servers = settings(&json!({"notes": stub(&json!({}))}));
    let mut command = bench.command();
    command
        .args(["--settings", &servers.to_string()])
        .args(["-p", prompt]);
    let ran = run(&mut command);
    let requests = bench.server.model_requests();
    let text = requests.first().map_or_else(
        || ran.stderr.clone(),
        |request| {
            let message = request.json()["messages"][0]["content"].clone();
            let parts = message.as_array().unwrap().iter();
            parts
                .filter_map(|part| part["text"].as_str())
                .collect::<Vec<_>>()
                .join("\n")
        },
    );
    (ran.code, text)
}

#[rstest]
#[case::by_name("see @notes:today", "read note://today")]
#[case::by_address("see @notes:note://today", "read note://today")]
#[case::by_template("see @notes:note(monday,noon)", "read note://monday/noon")]
fn resources_go_along_with_a_prompt(#[case] prompt: &str, #[case] expected: &str) {
    let (code, text) = prompted(prompt);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.starts_with(prompt), "{text}");
    assert!(
        text.contains("<resource server=\"notes\"") && text.contains(expected),
        "{text}"
    );
}

#[rstest]
#[case::unknown("see @notes:nothing")]
#[case::unnamed("see @notes: and tell me")]
#[case::short_of_arguments("see @notes:note(monday)")]
fn what_only_looks_like_a_resource_is_sent_as_text_and_told(#[case] prompt: &str) {
    let bench = bench(ok());
    let servers = settings(&json!({"notes": stub(&json!({}))}));
    let mut command = bench.command();
    command
        .args(["--settings", &servers.to_string()])
        .args(["-p", prompt]);
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("`@notes:"), "{}", ran.stderr);
    let content = bench.server.model_requests()[0].json()["messages"][0]["content"].clone();
    assert_eq!(content.as_array().unwrap().len(), 1, "{content}");
    assert_eq!(content[0]["text"], prompt);
}

#[test]
fn what_names_no_server_is_no_resource() {
    let (code, text) = prompted("mail me@notes:today or @others:today");
    assert_eq!(
        (code, text.as_str()),
        (Some(0), "mail me@notes:today or @others:today")
    );
}

#[rstest]
#[case("/mcp__notes__greet Ada", "Greet Ada well")]
#[case("/mcp__notes__greet Ada very warmly", "Greet Ada very warmly")]
#[case("/mcp__notes__nothing Ada", "/mcp__notes__nothing Ada")]
fn prompts_of_servers_are_commands(#[case] typed: &str, #[case] expected: &str) {
    assert_eq!(prompted(typed), (Some(0), expected.to_owned()));
}

/// Those that are there can be found, with what they take.
#[test]
fn prompts_of_servers_are_listed_with_the_commands() {
    let (code, help) = {
        let bench = bench(ok());
        let servers = settings(&json!({"notes": stub(&json!({}))}));
        let mut command = bench.command();
        command
            .args(["--settings", &servers.to_string()])
            .args(["-p", "/help"]);
        let ran = run(&mut command);
        (ran.code, ran.stdout)
    };
    assert_eq!(code, Some(0));
    assert!(help.contains("Prompts of MCP servers"), "{help}");
    assert!(help.contains("/mcp__notes__greet WHO"), "{help}");
    let bench = bench(ok());
    let servers = settings(&json!({"notes": stub(&json!({}))}));
    let ran = go(&bench, &servers, &[]);
    let listed = frames(&ran)[0]["slash_commands"].clone();
    let listed = listed.as_array().unwrap();
    assert!(listed.contains(&json!("mcp__notes__greet")), "{listed:?}");
}

#[test]
fn a_prompt_without_what_it_needs_is_refused() {
    let (code, text) = prompted("/mcp__notes__greet");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("`who`"), "{text}");
}

#[test]
fn questions_of_servers_are_declined_and_told() {
    let bench = bench(calls("mcp__notes__ask", json!({})));
    let servers = settings(&json!({"notes": stub(&json!({}))}));
    let ran = go(&bench, &servers, &["--allow", "mcp__notes"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(told(&bench), "the user said decline");
    let all = frames(&ran);
    let warning = all
        .iter()
        .find(|frame| frame["subtype"] == "elicitation")
        .unwrap_or_else(|| panic!("{}", ran.stdout));
    assert!(warning.to_string().contains("Really?"), "{warning}");
}

#[test]
fn questions_of_servers_are_notified() {
    let bench = bench(calls("mcp__notes__ask", json!({})));
    let record = bench.home.path().join("record.jsonl");
    let mut configured = settings(&json!({"notes": stub(&json!({}))}));
    configured["hooks"] = json!({"Notification": [{
        "matcher": "elicitation_dialog",
        "hooks": [{"type": "command", "command": "cat >> \"$RECORD\""}],
    }]});
    let mut command = command(&bench, &configured);
    let ran = run(command
        .env("RECORD", &record)
        .args(["--allow", "mcp__notes"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = std::fs::read_to_string(record).unwrap();
    let [told] = told.lines().collect::<Vec<_>>()[..] else {
        panic!("one notification was expected: {told}");
    };
    let told: Value = serde_json::from_str(told).unwrap();
    let message = told["message"].as_str().unwrap();
    assert!(
        message.contains("notes") && message.contains("Really?"),
        "{message}"
    );
}

#[test]
fn what_a_server_says_on_the_side_is_in_the_debug_log() {
    let bench = bench(ok());
    let servers = settings(&json!({"notes": stub(&json!({}))}));
    let ran = run(command(&bench, &servers).arg("--debug"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let log = bench.home.path().join(".cache/caliban/debug.log");
    let log = std::fs::read_to_string(log).unwrap();
    assert!(
        log.contains("mcp server notes: working on initialize"),
        "{log}"
    );
    assert!(!ran.stderr.contains("working on"), "{}", ran.stderr);
}

/// Whether a process with this variable in its environment is there.
fn is_running(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap();
    processes.flatten().any(|process| {
        let environment = std::fs::read(process.path().join("environ")).unwrap_or_default();
        let mark = format!("MARK={mark}");
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable == mark.as_bytes())
    })
}

#[rstest]
#[case::at_its_end("end")]
#[case::when_it_is_killed("kill")]
fn servers_end_with_the_program(#[case] how: &str) {
    let mark = uuid(how);
    let script = if how == "end" {
        ok()
    } else {
        calls("Bash", json!({"command": "sleep 600"}))
    };
    let bench = bench(script);
    let deaf = "trap '' TERM HUP INT; python3 \"$0\" & wait; sleep 600";
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    let servers: Value = settings(&json!({"deaf": {
        "command": "bash", "args": ["-c", deaf, server], "env": {"MARK": mark},
    }}));
    let mut child = command(&bench, &servers)
        .args(["--allow", "Bash"])
        .spawn()
        .unwrap();
    if how == "kill" {
        while bench.server.model_requests().is_empty() {
            std::thread::yield_now();
        }
        assert!(is_running(&mark));
        child.kill().unwrap();
    }
    let ended = child.wait().unwrap();
    assert_eq!(ended.success(), how == "end");
    // Its guardian ends the rest; that is a matter of moments, and no sleep makes it sooner.
    let start = std::time::Instant::now();
    while is_running(&mark) {
        assert!(start.elapsed().as_secs() < 20, "a server was left behind");
        std::thread::yield_now();
    }
}

fn uuid(how: &str) -> String {
    format!("{how}-{}", std::process::id())
}
