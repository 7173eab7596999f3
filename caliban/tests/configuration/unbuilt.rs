//! What is set in vain is said, and refused where somebody would rely on it.

use caliban_testkit::{Reply, Script};
use serde_json::json;

use crate::support::run;
use crate::{answers, bench, plain, project, user, warnings, write};

const ROUTES: &str = "[[router.route]]\npurpose = 'main_loop'\nprovider = 'ollama'\n\
                      model = 'llama3.1'\n";

/// Whoever wrote them does not expect prompts elsewhere, and whoever runs them not there.
#[test]
fn routes_of_a_project_that_is_not_trusted_are_not_passed_over() {
    let file = bench(answers());
    write(&file.workspace.path().join("caliban.toml"), ROUTES);
    let setting = bench(answers());
    project(&setting, ROUTES);
    for bench in [file, setting] {
        let ran = run(plain(&bench).args(["-p", "hi"]));
        assert_eq!(ran.code, Some(78), "{}", ran.stderr);
        assert!(ran.stderr.contains("is not trusted"), "{}", ran.stderr);
        assert!(ran.stderr.contains("caliban trust"), "{}", ran.stderr);
        assert!(bench.server.model_requests().is_empty());
    }
}

#[test]
fn only_models_of_the_list_may_be_chosen() {
    let bench = bench(answers());
    user(
        &bench,
        "available_models = ['sonnet', 'claude-opus-4-8']\neditor_mode = 'vim'\n\
         status_line = { command = 's' }\n",
    );
    assert_eq!(warnings(&mut plain(&bench)), Vec::<String>::new());
    let ran = run(plain(&bench).args(["--model", "claude-haiku-4-5", "-p", "hi"]));
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("`claude-haiku-4-5` is not one of the models")
            && ran.stderr.contains("sonnet, claude-opus-4-8"),
        "{}",
        ran.stderr
    );
    let before = bench.server.model_requests().len();
    let ran = run(plain(&bench).args(["--model", "claude-opus-4-8", "-p", "hi"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let request = bench.server.model_requests()[before].json();
    assert_eq!(request["model"], "claude-opus-4-8");
    let fallback = ["--fallback-model", "claude-haiku-4-5", "-p", "hi"];
    let ran = run(plain(&bench).args(fallback));
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    let setting = r#"{"fallback_model": "claude-haiku-4-5"}"#;
    let ran = run(plain(&bench).args(["--settings", setting, "-p", "hi"]));
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
    assert!(ran.stderr.contains("`fallback_model`"), "{}", ran.stderr);
    let ran = run(plain(&bench).args(["-p", "/model claude-haiku-4-5"]));
    let told = format!("{}{}", ran.stdout, ran.stderr);
    assert!(told.contains("is not one of the models"), "{told}");
    let ran = run(plain(&bench).args(["-p", "/model"]));
    assert!(
        ran.stdout.contains("claude-sonnet-4-6") && !ran.stdout.contains("haiku"),
        "{}",
        ran.stdout
    );
}

#[test]
fn sub_agents_have_models_of_the_list_too() {
    let call = |model: &str| Reply::tool("AgentTool", json!({"prompt": "go", "model": model}));
    let replies = [
        call("claude-haiku-4-5"),
        call("claude-opus-4-8"),
        Reply::text("found"),
        Reply::text("done"),
    ];
    let bench = bench(Script::new(replies));
    user(&bench, "available_models = ['sonnet', 'claude-opus-4-8']\n");
    let ran = run(plain(&bench).args(["-p", "hi"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let requests = bench.server.model_requests();
    let models = requests.iter().map(|it| it.json()["model"].to_string());
    let models: Vec<String> = models.collect();
    let own = "\"claude-sonnet-4-6\"";
    assert_eq!(models, [own, own, "\"claude-opus-4-8\"", own]);
    let told = requests[1].json()["messages"].to_string();
    assert!(
        told.contains("`claude-haiku-4-5` is not one of the models"),
        "{told}"
    );
}

#[test]
fn variables_that_are_meant_for_others_are_not_told() {
    let bench = bench(answers());
    let told = warnings(
        plain(&bench)
            .env("CALIBAN_KEEP_WORKTREES", "1")
            .env("DO_NOT_TRACK", "1")
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"),
    );
    assert_eq!(told, Vec::<String>::new());
}
