//! Commands that are typed at the prompt, where there is no screen.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod registry;
mod session;
#[path = "../support/mod.rs"]
mod support;
mod workspace;

use caliban_testkit::{Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};
use support::{Bench, Ran, Wire, run_with_input};

fn bench(replies: impl IntoIterator<Item = Reply>) -> Bench {
    Bench::new(Wire::Anthropic, Script::new(replies))
}

/// A session with one exchange, and then this prompt in it.
fn after_an_exchange(bench: &Bench, prompt: &str) -> Ran {
    let first = bench.run(["-p", "Say hello.", "--session", "s"]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    bench.run(["-p", prompt, "--session", "s"])
}

#[rstest]
#[case("/help", "/compact [what matters]")]
#[case("/cost", "earlier runs of it")]
#[case("/usage", "earlier runs of it")]
#[case("/context", "input tokens used : ")]
#[case("/context", "output tokens used: ")]
#[case("/status", "mode")]
#[case("/system", "caliban")]
#[case("/model", "model: claude-sonnet-4-6 (anthropic)")]
#[case("/model claude-haiku-4-5", "model: claude-haiku-4-5")]
#[case("/effort", "effort: auto\n\nlevels: low")]
#[case("/effort high", "effort: high")]
#[case("/plan", "Plan mode is on")]
#[case("/permissions", "mode: default")]
#[case("/permissions", "ask Bash")]
#[case("/memory", "tokens, about")]
#[case("/memory rebuild-index", "The index lists 0 topics.")]
#[case("/skills", "auto-memory")]
#[case("/hooks", "no hooks")]
#[case("/mcp", "no MCP servers")]
#[case("/output-style", "output style: default")]
#[case("/clear", "begins anew")]
#[case("/doctor", "session_store")]
#[case("/export out.md", "out.md")]
fn a_command_answers_and_asks_nobody(#[case] prompt: &str, #[case] part: &str) {
    let bench = bench([Reply::text("Hello.")]);
    let ran = after_an_exchange(&bench, prompt);
    assert!(ran.stdout.contains(part), "{}\n{}", ran.stdout, ran.stderr);
    assert_eq!(ran.code, Some(0));
    assert_eq!(
        bench.server.model_requests().len(),
        1,
        "only the first prompt"
    );
}

#[test]
fn a_command_that_costs_nothing_has_a_result_like_every_other() {
    let bench = bench([Reply::text("Hello.")]);
    let ran = bench.run(["-p", "/effort high", "--output-format", "json"]);
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(result["type"], "result");
    assert_eq!(result["subtype"], "success");
    assert_eq!(result["is_error"], false);
    assert_eq!(result["result"], "effort: high");
    assert_eq!(result["total_cost_usd"], json!(0.0));
    assert!(bench.server.model_requests().is_empty());
}

#[test]
fn a_changed_model_and_effort_count_for_the_next_prompt() {
    let bench = bench([Reply::text("one"), Reply::text("two")]);
    let user = |text: &str| json!({"type": "user", "content": text});
    let lines =
        ["first", "/model claude-haiku-4-5", "second"].map(|text| format!("{}\n", user(text)));
    let mut command = bench.command();
    command.args([
        "-p",
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
    ]);
    let ran = run_with_input(&mut command, lines.concat().as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let requests = bench.server.model_requests();
    let models: Vec<Value> = requests
        .iter()
        .map(|request| request.json()["model"].clone())
        .collect();
    assert_eq!(models, ["claude-sonnet-4-6", "claude-haiku-4-5"]);
    let conversation = requests[1].json()["messages"].to_string();
    assert!(
        !conversation.contains("/model"),
        "commands are not part of the conversation"
    );
}

#[test]
fn a_cleared_conversation_stays_cleared() {
    let bench = bench([Reply::text("Hello."), Reply::text("Anew.")]);
    assert_eq!(after_an_exchange(&bench, "/clear").code, Some(0));
    let ran = bench.run(["-p", "Who am I?", "--session", "s"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let body = bench.server.model_requests().remove(1).json();
    assert_eq!(body["messages"].as_array().unwrap().len(), 1, "{body}");
    assert!(
        body["system"].to_string().len() > 20,
        "the system prompt stays"
    );
}

#[test]
fn a_compacted_conversation_goes_on_from_its_summary() {
    let replies = ["Hello.", "They greeted each other.", "Yes."].map(Reply::text);
    let bench = bench(replies);
    let ran = after_an_exchange(&bench, "/compact keep the greeting");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("condensed"), "{}", ran.stdout);
    let summary = bench.server.model_requests().remove(1).json().to_string();
    assert!(summary.contains("keep the greeting"), "{summary}");
    assert_eq!(bench.run(["-p", "Go on?", "--session", "s"]).code, Some(0));
    let last = bench.server.model_requests().remove(2).json()["messages"].to_string();
    assert!(last.contains("They greeted each other.") && !last.contains("Say hello."));
}

/// Who asks for a summary and gets none loses nothing.
#[test]
fn without_a_summary_a_conversation_stays() {
    let replies = [
        Reply::text("A first answer."),
        Reply::tool("Read", json!({"path": "x"})),
        Reply::text("Still here."),
    ];
    let bench = bench(replies);
    let ran = after_an_exchange(&bench, "/compact");
    assert_ne!(ran.code, Some(0), "{}", ran.stdout);
    assert!(ran.stderr.contains("summary"), "{}", ran.stderr);
    let ran = bench.run(["-p", "And now?", "--session", "s"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let requests = bench.server.model_requests();
    let told = requests.last().unwrap().json()["messages"].to_string();
    assert!(told.contains("A first answer."), "{told}");
}

#[test]
fn a_recap_changes_nothing() {
    let replies = ["Hello.", "They greeted each other.", "Yes."].map(Reply::text);
    let bench = bench(replies);
    let ran = after_an_exchange(&bench, "/recap");
    assert_eq!(ran.stdout, "They greeted each other.\n");
    assert_eq!(bench.run(["-p", "Go on?", "--session", "s"]).code, Some(0));
    let last = bench.server.model_requests().remove(2).json()["messages"].to_string();
    assert!(last.contains("Say hello.") && !last.contains("They greeted"));
}

#[test]
fn an_export_holds_the_conversation_and_replaces_nothing() {
    let bench = bench([Reply::text("Hello.")]);
    assert_eq!(
        after_an_exchange(&bench, "/export out.json --format json").code,
        Some(0)
    );
    let file = bench.workspace.path().join("out.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    assert!(document["messages"].to_string().contains("Say hello."));
    let again = bench.run(["-p", "/export out.json", "--session", "s"]);
    assert_eq!(again.code, Some(64));
    assert!(again.stderr.contains("out.json"), "{}", again.stderr);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
}

#[rstest]
#[case("/hlep", "did you mean `/help`?")]
#[case("/effort enormous", "low, medium, high")]
#[case("/cost now", "no arguments")]
#[case("/vim", "needs a screen")]
#[case("/login", "api_key_helper")]
fn what_cannot_be_obeyed_is_an_error_with_a_remedy(#[case] prompt: &str, #[case] part: &str) {
    let bench = bench([Reply::text("Hello.")]);
    let ran = bench.run(["-p", prompt]);
    assert_eq!(ran.code, Some(64), "{}", ran.stdout);
    assert!(ran.stderr.contains(part), "{}", ran.stderr);
    assert!(bench.server.model_requests().is_empty());
}

#[rstest]
#[case("/usr/bin/env is missing")]
#[case("/tmp")]
#[case("/fix the tests in src")]
fn what_is_no_command_is_for_the_model(#[case] prompt: &str) {
    let bench = bench([Reply::text("Hello.")]);
    let ran = bench.run(["-p", prompt]);
    assert_eq!(ran.stdout, "Hello.\n", "{}", ran.stderr);
}

#[test]
fn a_built_in_name_is_not_given_to_others() {
    let bench = bench([Reply::text("Hello.")]);
    let commands = bench.workspace.path().join(".caliban/commands");
    std::fs::create_dir_all(&commands).unwrap();
    std::fs::write(commands.join("cost.md"), "Say the price.").unwrap();
    let ran = bench.run(["-p", "/cost"]);
    assert!(ran.stderr.contains("cost"), "{}", ran.stderr);
    assert!(bench.server.model_requests().is_empty());
}

/// What a command reports to a program, in a session with one exchange.
fn report(prompt: &str, form: &str) -> Value {
    let bench = bench([Reply::text("Hello.")]);
    let first = bench.run(["-p", "Say hello.", "--session", "s"]);
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    let ran = bench.run(["-p", prompt, "--session", "s", "--output-format", form]);
    let last = match form {
        "json" => ran.stdout.as_str(),
        _ => ran.stdout.lines().last().unwrap(),
    };
    let frame: Value = serde_json::from_str(last).unwrap();
    assert_eq!(frame["type"], "result", "{frame}");
    assert!(!frame["result"].as_str().unwrap().is_empty(), "{frame}");
    frame["report"].clone()
}

#[rstest]
#[case("/cost", "/earlier_cost_usd")]
#[case("/cost", "/models")]
#[case("/cost", "/purposes")]
#[case("/usage", "/usage/input_tokens")]
#[case("/usage", "/turns")]
#[case("/context", "/window")]
#[case("/context", "/parts/0/tokens")]
#[case("/context", "/largest/0/what")]
#[case("/context", "/compaction_frees")]
#[case("/status", "/session_name")]
#[case("/status", "/permission_mode")]
#[case("/mcp", "/servers")]
#[case("/hooks", "/handlers")]
#[case("/skills", "/skills/0/name")]
#[case("/memory", "/files")]
#[case("/memory", "/notes/topics")]
#[case("/model", "/model")]
#[case("/model", "/models/0")]
fn a_report_is_a_value_for_programs(
    #[case] prompt: &str,
    #[case] pointer: &str,
    #[values("json", "stream-json")] form: &str,
) {
    let report = report(prompt, form);
    assert_eq!(report["command"], prompt.trim_start_matches('/'));
    let value = report.pointer(pointer);
    assert!(value.is_some_and(|value| !value.is_null()), "{report:#}");
}

#[test]
fn what_is_only_done_reports_nothing() {
    assert_eq!(report("/effort high", "json"), Value::Null);
}
