//! Asking: every provider, every way to give a prompt, cassettes and the demo.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::process::Stdio;

use caliban_testkit::{After, Chunking, Fault, ModelEntry, Reply, Script, Stop};
use rstest::rstest;
use support::{Bench, Wire, bare, finish, run, run_with_input};

#[rstest]
fn every_provider_answers(
    #[values(
        Wire::Anthropic,
        Wire::Responses,
        Wire::Chat,
        Wire::Gemini,
        Wire::Ollama
    )]
    wire: Wire,
) {
    let one_byte = Chunking::Bytes(std::num::NonZeroUsize::MIN);
    let script = Script::new([Reply::text("Grüße, 世界! ✓").chunking(one_byte)]);
    let bench = Bench::new(wire, script);
    let ran = bench.run(["-p", "Say hello.", "--system", "Be brief."]);
    assert_eq!(ran.stderr, "");
    assert_eq!(ran.stdout, "Grüße, 世界! ✓\n");
    assert_eq!(ran.code, Some(0));
    let requests = bench.server.model_requests();
    assert_eq!(requests.len(), 1);
    let body = String::from_utf8(requests[0].body.to_vec()).unwrap();
    assert!(body.contains("Say hello.") && body.contains("Be brief."));
    let named = match wire {
        Wire::Gemini => requests[0].path.clone(),
        _ => requests[0].json()["model"].as_str().unwrap().to_owned(),
    };
    assert!(named.contains(wire.model()), "{named}");
}

#[test]
fn limits_and_headers_reach_the_server() {
    let bench = Bench::new(Wire::Anthropic, Script::new([Reply::text("ok")]));
    let ran = run(bench
        .command()
        .args(["-p", "hi", "--max-tokens", "77", "--temperature", "0.5"])
        .args(["--model", "claude-haiku-4-5"])
        .env("ANTHROPIC_VERSION", "2023-06-01"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let request = bench.server.model_requests().remove(0);
    let body = request.json();
    assert_eq!(body["max_tokens"], 77);
    assert_eq!(body["temperature"], 0.5);
    assert_eq!(body["model"], "claude-haiku-4-5");
    assert_eq!(request.header("x-api-key"), Some("test-key"));
    assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
}

#[test]
fn the_cache_is_asked_for_unless_it_is_switched_off() {
    let script = || Script::new([Reply::text("ok")]);
    let markers = |configure: &dyn Fn(&mut std::process::Command)| {
        let bench = Bench::new(Wire::Anthropic, script());
        let mut command = bench.command();
        command.args(["-p", "hi"]);
        configure(&mut command);
        assert_eq!(run(&mut command).code, Some(0));
        let request = bench.server.model_requests().remove(0);
        String::from_utf8(request.body.to_vec())
            .unwrap()
            .matches("cache_control")
            .count()
    };
    // The system prompt and the tools are worth it; two letters are not.
    assert_eq!(markers(&|_| {}), 2);
    assert_eq!(
        markers(&|command| {
            command.arg("--no-prompt-cache");
        }),
        0
    );
    for (value, expected) in [("1", 0), ("0", 2), ("", 2)] {
        let found = markers(&|command| {
            command.env("CALIBAN_NO_PROMPT_CACHE", value);
        });
        assert_eq!(found, expected, "{value:?}");
    }
}

#[test]
fn a_parameter_the_model_rejects_is_left_out_with_one_warning() {
    let bench = Bench::new(Wire::Anthropic, Script::new([Reply::text("ok")]));
    let ran = bench.run([
        "-p",
        "hi",
        "--model",
        "claude-opus-4-7",
        "--temperature",
        "0.5",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("warning:").count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("`temperature`"), "{}", ran.stderr);
}

#[test]
fn a_substituted_model_is_told() {
    let script = Script::new([Reply::text("ok").model("llama3.2")]);
    let ran = Bench::new(Wire::Ollama, script).run(["-p", "hi"]);
    assert_eq!(
        ran.stderr,
        "warning: model mismatch: requested \"llama3.1\" but provider responded with \"llama3.2\"\n"
    );
    assert_eq!(ran.code, Some(0));
}

#[test]
fn a_prompt_argument_never_waits_for_an_open_stdin() {
    let bench = Bench::new(Wire::Anthropic, Script::new([Reply::text("ok")]));
    let mut child = bench
        .command()
        .args(["-p", "hi"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let held_open = child.stdin.take();
    let ran = finish(child);
    drop(held_open);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "ok\n"));
}

#[test]
fn piped_text_follows_the_prompt() {
    let bench = Bench::new(Wire::Chat, Script::new([Reply::text("ok")]));
    let mut command = bench.command();
    let ran = run_with_input(command.args(["-p", "-", "review"]), b"the diff");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let body = bench.server.model_requests()[0].json();
    assert_eq!(body["messages"][1]["content"], "review\n\nthe diff");
}

#[test]
fn models_are_listed() {
    let script = Script::new([]).model(ModelEntry::new("m1").context_length(1000));
    let bench = Bench::new(Wire::Ollama, script);
    let mut command = bare(bench.home.path(), bench.workspace.path());
    command
        .args(["models", "--provider", "ollama"])
        .env("OLLAMA_BASE_URL", bench.server.url());
    assert_eq!(
        run(&mut command).stdout.lines().next().map(|line| line
            .split('\t')
            .next()
            .unwrap()
            .to_owned()),
        Some("m1".to_owned())
    );
    let json = run(command.arg("--json")).stdout;
    assert!(json.contains("\"id\": \"m1\""), "{json}");
}

#[rstest]
#[case(&["--nonsense"], 64)]
#[case(&["--temperature", "3", "-p", "x"], 64)]
#[case(&["--max-tokens", "0", "-p", "x"], 64)]
#[case(&["--provider", "bard", "-p", "x"], 64)]
#[case(&["-p", "a", "b"], 64)]
#[case(&["--system", "a", "--no-system", "-p", "x"], 64)]
#[case(&["--record", "a", "--replay", "b", "-p", "x"], 64)]
#[case(&["-p", "-"], 66)]
#[case(&["-p", "  "], 66)]
#[case(&["--system-file", "missing.txt", "-p", "x"], 66)]
#[case(&["-p", "x"], 78)]
#[case(&["--replay", "missing.jsonl", "-p", "x"], 78)]
#[case(&["--version"], 0)]
#[case(&["--help"], 0)]
fn wrong_use_has_its_own_exit_codes(#[case] args: &[&str], #[case] code: i32) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = bare(folder.path(), folder.path());
    // A key is missing only where that is the point.
    if code != 78 {
        command.env("ANTHROPIC_API_KEY", "k");
    }
    let ran = run(command.args(args));
    assert_eq!(ran.code, Some(code), "{}", ran.stderr);
    assert_eq!(ran.stderr.is_empty(), code == 0, "{}", ran.stderr);
}

#[rstest]
#[case(&["--temperature", "-0.5"], "between 0 and 2")]
#[case(&["--max-budget-usd", "-1"], "an amount of dollars")]
#[case(&["--max-tokens", "-1"], "-1 is not in 1..")]
#[case(&["--max-turns", "-1"], "-1 is not in 1..")]
fn a_negative_number_is_refused_for_what_it_is(#[case] flag: &[&str], #[case] why: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = bare(folder.path(), folder.path());
    let ran = run(command.args(["-p", "x"]).args(flag));
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    assert!(ran.stderr.contains(why), "{}", ran.stderr);
}

#[rstest]
fn a_prompt_may_be_the_name_of_a_command(#[values("doctor", "help", "stop", "plugin")] word: &str) {
    let bench = Bench::new(Wire::Anthropic, Script::new([Reply::text("ok")]));
    let ran = bench.run(["-p", word]);
    assert_eq!(
        (ran.code, &*ran.stdout),
        (Some(0), "ok\n"),
        "{}",
        ran.stderr
    );
    let request = bench.server.model_requests()[0].json();
    assert_eq!(request["messages"][0]["content"][0]["text"], word);
}

#[rstest]
#[case("ANTHROPIC_BASE_URL", "anthropic")]
#[case("OPENAI_BASE_URL", "openai")]
#[case("GEMINI_BASE_URL", "google")]
#[case("OLLAMA_BASE_URL", "ollama")]
fn a_bad_base_url_is_reported_as_one(#[case] variable: &str, #[case] provider: &str) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = bare(folder.path(), folder.path());
    let ran = run(command
        .args(["--provider", provider, "-p", "x"])
        .env(variable, "localhost:99"));
    assert_eq!(ran.code, Some(78));
    assert!(
        ran.stderr
            .contains(&format!("`{variable}` is not a usable base URL")),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_cut_answer_is_shown_and_fails() {
    let script = Script::new([Reply::text("half an ans").stop(Stop::MaxTokens)]);
    let ran = Bench::new(Wire::Gemini, script).run(["-p", "x"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "half an ans\n"));
    assert!(ran.stderr.contains("--max-tokens"), "{}", ran.stderr);
}

#[test]
fn a_conversation_is_recorded_without_secrets_and_replayed_without_a_server() {
    let reply = Reply::text("the key is test-secret-value, is it not?").thinking("hm");
    let bench = Bench::new(Wire::Anthropic, Script::new([reply]).after(After::Fail));
    let recorded = run(bench
        .command()
        .env("SOME_SECRET", "test-secret-value")
        .args([
            "-p",
            "What is the key in this folder?",
            "--record",
            "tape.jsonl",
        ]));
    assert_eq!(recorded.code, Some(0), "{}", recorded.stderr);
    let tape = std::fs::read_to_string(bench.workspace.path().join("tape.jsonl")).unwrap();
    assert!(
        !tape.contains("test-secret-value") && !tape.contains("test-key"),
        "{tape}"
    );
    assert!(tape.starts_with("{\"cassette\":1,"), "{tape}");

    let play = |prompt: &str| {
        run(bare(bench.home.path(), bench.workspace.path()).args([
            "--replay",
            "tape.jsonl",
            "-p",
            prompt,
        ]))
    };
    let replayed = play("What is the key in this folder?");
    assert_eq!(replayed.stdout, "the key is {redacted}, is it not?\n");
    assert_eq!((replayed.code, replayed.stderr.as_str()), (Some(0), ""));
    let other = play("Something else?");
    assert_eq!((other.code, other.stdout.as_str()), (Some(1), ""));
    assert!(
        other
            .stderr
            .contains("is \"Something else?\" instead of \"What is the key"),
        "{}",
        other.stderr
    );
    assert_eq!(bench.server.model_requests().len(), 1);
}

#[test]
fn only_the_answer_that_counts_is_recorded() {
    let broken =
        Reply::text("this breaks off").with_fault(Fault::ResetMidStream { after_events: 4 });
    let bench = Bench::new(Wire::Anthropic, Script::new([broken, Reply::text("whole")]));
    let ran = bench.run(["-p", "x", "--record", "tape.jsonl"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "whole\n"));
    let tape = std::fs::read_to_string(bench.workspace.path().join("tape.jsonl")).unwrap();
    assert!(tape.contains("whole") && !tape.contains("breaks"), "{tape}");
}

#[test]
fn the_demo_needs_no_key_no_network_and_no_home() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = bare(folder.path(), folder.path());
    let ran = run(command
        .arg("demo")
        .env_remove("HOME")
        .env("HTTP_PROXY", "http://127.0.0.1:9"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("`test.sh` passes"), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("Running Edit: price.sh"),
        "{}",
        ran.stderr
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_closed_output_ends_the_run_quietly() {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([Reply::text("x".repeat(300_000))]),
    );
    let mut child = bench.command().args(["-p", "hi"]).spawn().unwrap();
    drop(child.stdout.take());
    let ran = finish(child);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
}

#[cfg(unix)]
#[test]
fn an_interrupt_closes_the_connection_and_exits_124() {
    for signal in ["-INT", "-TERM"] {
        let reply = Reply::text("never").with_fault(Fault::StallMidStream { after_events: 2 });
        let bench = Bench::new(Wire::Anthropic, Script::new([reply]));
        let child = bench.command().args(["-p", "hi"]).spawn().unwrap();
        bench.server.wait_for_requests(1);
        let pid = child.id().to_string();
        let status = std::process::Command::new("kill")
            .args([signal, &pid])
            .status();
        assert!(status.unwrap().success());
        let ran = finish(child);
        assert_eq!(
            (ran.code, ran.stderr.as_str()),
            (Some(124), "caliban: cancelled\n")
        );
        bench.server.wait_for_disconnect();
    }
}

#[test]
fn a_proxy_from_the_environment_is_used() {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([Reply::text("through the proxy")]),
    );
    let mut command = bench.command();
    command
        .args(["-p", "hi"])
        .env("ANTHROPIC_BASE_URL", "http://model.invalid")
        .env("HTTP_PROXY", bench.server.url())
        .env("http_proxy", bench.server.url());
    let ran = run(&mut command);
    let seen: Vec<String> = bench
        .server
        .requests()
        .iter()
        .map(|request| request.path.clone())
        .collect();
    assert_eq!(seen, ["http://model.invalid/v1/messages"], "{}", ran.stderr);
}
