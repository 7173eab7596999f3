//! The command line.

use caliban_testkit::{Reply, Script};
use rstest::rstest;
use serde_json::json;

use crate::bench::Bench;

#[rstest]
fn the_version_is_one_that_clients_accept(#[values("-v", "--version")] flag: &str) {
    let bench = Bench::new(Script::new([]));
    let ran = bench.run(&[flag]);
    assert_eq!(ran.code, Some(0));
    let number = ran.stdout.split(' ').next().unwrap();
    let parts: Vec<u32> = number
        .split('.')
        .map(|part| part.parse().unwrap())
        .collect();
    assert!(parts.len() == 3 && parts[0] >= 2, "{}", ran.stdout);
}

#[rstest]
#[case(&["--banana"], "error: unknown option '--banana'")]
#[case(&["-p", "--output-format", "stream-json", "hi"], "--verbose")]
#[case(&["-p", "--input-format", "stream-json"], "--output-format stream-json")]
#[case(&["-p"], "input must be provided")]
#[case(&["-p", "--allowedTools", "Read", "Bash", "PROMPT"], "input must be provided")]
#[case(&["-p", "--session-id", "no", "hi"], "UUID")]
#[case(&["-p", "--json-schema", "{", "hi"], "--json-schema")]
#[case(&["-p", "--mcp-config", "{", "--", "hi"], "--mcp-config")]
#[case(&["-p", "--permission-mode", "banana", "hi"], "banana")]
#[case(&["-p", "--max-turns", "many", "hi"], "--max-turns")]
#[case(&["-p", "--betas", "a\u{e9}b", "--", "hi"], "--betas")]
fn what_makes_no_sense_exits_1_with_empty_output(#[case] args: &[&str], #[case] said: &str) {
    let bench = Bench::new(Script::new([]));
    let ran = bench.run(args);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.stdout, "");
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

#[rstest]
#[case(
    &["--betas", "context-1m-2025-08-07,effort-2025-11-24"],
    "context-1m-2025-08-07,effort-2025-11-24"
)]
#[case(
    &["--betas", "context-1m-2025-08-07", "--max-thinking-tokens", "2048"],
    "interleaved-thinking-2025-05-14,context-1m-2025-08-07"
)]
fn beta_features_join_those_that_are_used_anyway(#[case] args: &[&str], #[case] sent: &str) {
    let bench = Bench::new(Script::new([Reply::text("ok")]));
    let model = ["-p", "--model", "claude-opus-4-5"];
    let ran = bench.run(&[&model, args, &["--", "hi"]].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let requests = bench.server.model_requests();
    assert_eq!(requests[0].header("anthropic-beta"), Some(sent));
}

#[test]
fn the_dialect_is_chosen_by_name_variable_and_flag() {
    let bench = Bench::new(Script::new([]).after(caliban_testkit::After::Fail));
    let native = bench.run(&["--dialect", "caliban", "--banana"]);
    assert_eq!(native.code, Some(64));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_caliban"));
    let by_variable = command
        .env_clear()
        .env("HOME", bench.home.path())
        .env("CALIBAN_DIALECT", "claude")
        .arg("--banana")
        .output()
        .unwrap();
    assert_eq!(by_variable.status.code(), Some(1));
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_caliban"));
    let by_flag = command
        .env_clear()
        .env("HOME", bench.home.path())
        .args(["--dialect=claude", "-v"])
        .output()
        .unwrap();
    assert!(by_flag.stdout.starts_with(b"2."));
}

#[test]
fn skipping_permissions_is_refused_to_root_outside_a_sandbox() {
    let bench = Bench::new(Script::new([Reply::text("ok")]));
    let mut command = bench.command(&["-p", "--dangerously-skip-permissions", "hi"]);
    let output = command.env_remove("IS_SANDBOX").output().unwrap();
    let is_root = std::process::Command::new("id")
        .arg("-u")
        .output()
        .unwrap()
        .stdout
        == b"0\n";
    assert_eq!(output.status.code(), Some(i32::from(is_root)));
}

#[test]
fn prompts_come_from_the_argument_and_from_standard_input() {
    let bench = Bench::new(Script::new((0..3).map(|_| Reply::text("ok"))));
    let asked = |bench: &Bench| bench.last_request()["messages"][0]["content"].to_string();
    assert_eq!(bench.run(&["--print", "--", "--hello"]).stdout, "ok\n");
    assert!(asked(&bench).contains("--hello"));
    bench.run_with_input(&["-p"], "piped");
    assert!(asked(&bench).contains("piped"));
    bench.run_with_input(&["-p", "typed"], "piped");
    assert!(asked(&bench).contains("typed\\npiped"));
}

#[test]
fn auth_status_is_one_object() {
    let bench = Bench::new(Script::new([]));
    let status = |variables: &[(&str, &str)]| -> serde_json::Value {
        let mut command = bench.command(&["auth", "status", "--json"]);
        command.env_remove("ANTHROPIC_API_KEY");
        let output = command.envs(variables.iter().copied()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let expected = |logged_in: bool, method: &str, provider: &str| json!({"loggedIn": logged_in, "authMethod": method, "apiProvider": provider});
    assert_eq!(status(&[]), expected(false, "none", "firstParty"));
    assert_eq!(
        status(&[("ANTHROPIC_API_KEY", "k")]),
        expected(true, "api_key", "firstParty")
    );
    assert_eq!(
        status(&[("ANTHROPIC_AUTH_TOKEN", "t")]),
        expected(true, "oauth_token", "firstParty")
    );
    assert_eq!(
        status(&[("CALIBAN_PROVIDER", "openai"), ("OPENAI_API_KEY", "k")]),
        expected(true, "api_key", "openai")
    );
    std::fs::create_dir_all(bench.config()).unwrap();
    let settings = json!({"apiKeyHelper": "echo key"}).to_string();
    std::fs::write(bench.config().join("settings.json"), settings).unwrap();
    assert_eq!(status(&[]), expected(true, "api_key_helper", "firstParty"));
}

#[rstest]
#[case(&["--dialect", "claude"])]
#[case(&["--dialect=claude"])]
fn a_dialect_in_front_makes_no_prompt_of_a_subcommand(#[case] dialect: &[&str]) {
    let bench = Bench::new(Script::new([]).after(caliban_testkit::After::Fail));
    let go = |words: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_caliban"));
        command
            .env_clear()
            .env("HOME", bench.home.path())
            .env("ANTHROPIC_BASE_URL", bench.server.url())
            .env("ANTHROPIC_API_KEY", "k")
            .current_dir(bench.home.path())
            .stdin(std::process::Stdio::null())
            .args(dialect)
            .args(words);
        command.output().unwrap()
    };
    let status = go(&["auth", "status"]);
    assert!(status.status.success(), "{status:?}");
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    assert_eq!(status["loggedIn"], true);
    let listed = go(&["mcp", "list"]);
    assert!(listed.status.success(), "{listed:?}");
    assert_eq!(bench.server.model_requests().len(), 0);
}

#[test]
fn models_have_short_names_and_a_variable() {
    let bench = Bench::new(Script::new((0..4).map(|_| Reply::text("ok"))));
    let model = |bench: &Bench| bench.last_request()["model"].clone();
    bench.run(&["-p", "--model", "haiku", "hi"]);
    assert_eq!(model(&bench), "claude-haiku-4-5");
    bench.run(&["-p", "--model=default", "hi"]);
    assert_eq!(model(&bench), "claude-sonnet-4-6");
    let mut command = bench.command(&["-p", "hi"]);
    command.env("ANTHROPIC_MODEL", "opus[1m]").output().unwrap();
    assert_eq!(model(&bench), "claude-opus-5-5");
    bench.run(&[
        "-p",
        "hi",
        "--system-prompt",
        "Be brief.",
        "--append-system-prompt",
        "Really.",
    ]);
    let system = bench.last_request()["system"].to_string();
    assert!(
        system.contains("Be brief.") && system.contains("Really."),
        "{system}"
    );
}

#[test]
fn tools_are_selected_and_named_as_clients_know_them() {
    let bench = Bench::new(Script::new((0..4).map(|_| Reply::text("ok"))));
    let names = |bench: &Bench| -> Vec<String> {
        let request = bench.last_request();
        let tools = request["tools"].as_array().cloned().unwrap_or_default();
        tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    };
    bench.run(&["-p", "hi"]);
    let all = names(&bench);
    assert!(all.contains(&"Task".to_owned()) && !all.contains(&"AgentTool".to_owned()));
    let read = bench.last_request()["tools"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tool| tool["name"] == "Read")
        .cloned()
        .unwrap();
    assert_eq!(read["input_schema"]["required"], json!(["file_path"]));
    assert!(
        !bench.last_request()["system"]
            .to_string()
            .contains("AgentTool")
    );
    bench.run(&["-p", "hi", "--tools", ""]);
    assert!(names(&bench).is_empty());
    bench.run(&["-p", "hi", "--tools", "Read,Bash"]);
    assert_eq!(names(&bench), ["Bash", "Read"]);
    bench.run(&[
        "-p",
        "hi",
        "--disallowedTools",
        "Bash,Task,Nonsense,Read(secret)",
    ]);
    let left = names(&bench);
    assert!(!left.contains(&"Bash".to_owned()) && !left.contains(&"Task".to_owned()));
    assert!(left.contains(&"Read".to_owned()));
}

#[test]
fn what_happens_is_written_where_it_was_asked_for() {
    let bench = Bench::new(Script::new([Reply::text("ok"), Reply::text("ok")]));
    let ran = bench.run(&["-p", "--debug-to-stderr", "x"]);
    assert!(ran.stderr.contains("[DEBUG]"), "{}", ran.stderr);
    assert_eq!(ran.stdout, "ok\n");
    let file = bench.workspace.path().join("what.log");
    let ran = bench.run(&["-p", &format!("--debug-file={}", file.display()), "x"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    assert!(std::fs::metadata(file).unwrap().len() > 0);
}

#[test]
fn adaptive_thinking_is_asked_for() {
    let bench = Bench::new(Script::new([Reply::text("ok")]));
    bench.run(&["-p", "--thinking", "adaptive", "x"]);
    assert_eq!(bench.last_request()["thinking"]["type"], "adaptive");
}
