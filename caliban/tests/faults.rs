//! Every way a provider can fail, through the built binary: retried and announced, or one clear
//! line and exit code 1.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use caliban_testkit::{ErrorKind, Fault, Reply, Script};
use rstest::rstest;
use support::{Bench, Ran, Wire, run};

fn after_fault(wire: Wire, fault: Fault) -> (Ran, usize) {
    let broken = Reply::text("this one breaks off in the middle").with_fault(fault);
    let bench = Bench::new(wire, Script::new([broken, Reply::text("recovered")]));
    let ran = run(bench
        .command()
        .args(["-p", "hi"])
        .env("CALIBAN_FIRST_BYTE_TIMEOUT_MS", "2000")
        .env("CALIBAN_IDLE_TIMEOUT_MS", "2000"));
    (ran, bench.server.model_requests().len())
}

#[rstest]
#[case::rate_limit(Fault::status(429), "HTTP 429, rate_limit")]
#[case::rate_limit_named_wait(Fault::status(429).retry_after_ms(1), "HTTP 429, rate_limit")]
#[case::server(Fault::status(500), "HTTP 500, server_error")]
#[case::bad_gateway(Fault::HtmlBody { status: 502 }, "HTTP 502, server_error")]
#[case::unavailable(Fault::status(503), "HTTP 503, overloaded")]
#[case::overloaded(Fault::status(529), "HTTP 529, overloaded")]
#[case::reset(Fault::ResetBeforeHeaders, "network")]
#[case::stall(Fault::StallBeforeHeaders, "timeout")]
#[case::reset_inside(Fault::ResetMidStream { after_events: 3 }, "network")]
#[case::stall_inside(Fault::StallMidStream { after_events: 3 }, "timeout")]
#[case::closed_inside(Fault::CloseMidStream { after_events: 3 }, "network")]
#[case::malformed(Fault::MalformedEvent { after_events: 3 }, "network")]
#[case::truncated(Fault::TruncatedEvent { after_events: 3 }, "network")]
#[case::error_event(Fault::ErrorEvent { after_events: 3, kind: ErrorKind::Overloaded }, "overloaded")]
#[case::garbage(Fault::Garbage, "network")]
fn passing_faults_are_retried_and_announced(
    #[values(
        Wire::Anthropic,
        Wire::Responses,
        Wire::Chat,
        Wire::Gemini,
        Wire::Ollama
    )]
    wire: Wire,
    #[case] fault: Fault,
    #[case] cause: &str,
) {
    let (ran, requests) = after_fault(wire, fault);
    assert_eq!(
        (ran.code, ran.stdout.as_str()),
        (Some(0), "recovered\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(requests, 2);
    let first = ran.stderr.lines().next().unwrap_or_default();
    assert!(first.starts_with("retry 1 of 5 in "), "{}", ran.stderr);
    // Ollama and some in-stream errors have no name for overload; their cause is the server.
    assert!(
        first.contains(cause) || (cause == "overloaded" && first.contains("server_error")),
        "{}",
        ran.stderr
    );
}

#[rstest]
#[case::auth(Fault::status(401), "HTTP 401")]
#[case::model(Fault::status_of(404, ErrorKind::ModelNotFound), "HTTP 404")]
#[case::too_large(Fault::status(413), "HTTP 413")]
#[case::too_long(Fault::status_of(400, ErrorKind::ContextTooLong), "HTTP 400")]
fn final_faults_are_one_line(
    #[values(
        Wire::Anthropic,
        Wire::Responses,
        Wire::Chat,
        Wire::Gemini,
        Wire::Ollama
    )]
    wire: Wire,
    #[case] fault: Fault,
    #[case] status: &str,
) {
    let (ran, requests) = after_fault(wire, fault);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""));
    assert_eq!(requests, 1);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    let [line] = lines[..] else {
        panic!("one line, not {lines:?}");
    };
    let names = format!("caliban: {} ({}): ", wire.provider(), wire.model());
    assert!(line.starts_with(&names), "{line}");
    assert!(line.contains(status), "{line}");
    assert!(line.contains("; "), "{line}");
}

#[rstest]
fn a_spend_limit_is_not_retried(#[values(Wire::Anthropic, Wire::Responses)] wire: Wire) {
    let (ran, requests) = after_fault(wire, Fault::status_of(429, ErrorKind::SpendLimit));
    assert_eq!((ran.code, requests), (Some(1), 1), "{}", ran.stderr);
    assert!(ran.stderr.contains("credit"), "{}", ran.stderr);
}

#[rstest]
#[case(Wire::Anthropic, "ANTHROPIC_API_KEY")]
#[case(Wire::Responses, "OPENAI_API_KEY")]
#[case(Wire::Chat, "OPENAI_API_KEY")]
#[case(Wire::Gemini, "GEMINI_API_KEY")]
fn a_rejected_key_names_its_variable(#[case] wire: Wire, #[case] variable: &str) {
    let script = Script::new([Reply::text("never")]).require_key("another-key");
    let ran = Bench::new(wire, script).run(["-p", "hi"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains(variable), "{}", ran.stderr);
    assert!(!ran.stderr.contains("test-key"), "{}", ran.stderr);
}

#[test]
fn a_json_error_under_status_200_is_an_error() {
    for wire in [Wire::Anthropic, Wire::Chat, Wire::Responses, Wire::Gemini] {
        let bench = Bench::new(wire, Script::new([Reply::fault(Fault::JsonErrorWith200)]));
        let ran = run(bench
            .command()
            .args(["-p", "hi"])
            .env("CALIBAN_MAX_RETRIES", "0"));
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{wire:?}");
    }
}

#[test]
fn retries_end() {
    let faults = (0..9).map(|_| Reply::fault(Fault::status(529)));
    let bench = Bench::new(Wire::Anthropic, Script::new(faults));
    let ran = bench.run(["-p", "hi"]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(bench.server.model_requests().len(), 6);
    let lines: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(lines.len(), 6);
    assert!(lines[5].contains("gave up after 5 retries"), "{}", lines[5]);

    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([Reply::fault(Fault::status(529))]),
    );
    let ran = run(bench
        .command()
        .args(["-p", "hi"])
        .env("CALIBAN_MAX_RETRIES", "0"));
    assert_eq!(
        (ran.code, bench.server.model_requests().len()),
        (Some(1), 1)
    );
}

#[test]
fn nobody_listening_is_said_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let ran = run(support::bare(folder.path(), folder.path())
        .args(["--provider", "ollama", "-p", "x"])
        .env("OLLAMA_BASE_URL", &url)
        .env("CALIBAN_MAX_RETRIES", "0"));
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("cannot connect to 127.0.0.1:"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("ollama serve"), "{}", ran.stderr);
}

#[test]
fn a_fallback_model_answers_when_the_first_cannot() {
    let go = |fault: Fault| {
        let faults = (0..2).map(|_| Reply::text("void").with_fault(fault.clone()));
        let script = Script::new(faults.chain([Reply::text("from the other")]));
        let bench = Bench::new(Wire::Anthropic, script);
        let ran = run(bench
            .command()
            .args(["-p", "hi", "--model", "claude-opus-4-7"])
            .args(["--fallback-model", "claude-haiku-4-5"])
            .env("CALIBAN_MAX_RETRIES", "1"));
        let models: Vec<String> = bench
            .server
            .model_requests()
            .iter()
            .map(|request| request.json()["model"].as_str().unwrap().to_owned())
            .collect();
        (ran, models)
    };
    for fault in [
        Fault::status(529),
        Fault::ResetMidStream { after_events: 3 },
    ] {
        let (ran, models) = go(fault);
        assert_eq!(ran.stdout, "from the other\n", "{}", ran.stderr);
        assert_eq!(ran.code, Some(0));
        assert!(
            ran.stderr.contains("claude-haiku-4-5 answers instead"),
            "{}",
            ran.stderr
        );
        assert_eq!(
            models,
            ["claude-opus-4-7", "claude-opus-4-7", "claude-haiku-4-5"]
        );
    }
    // A smaller window is no help; the conversation is made shorter instead.
    let (ran, models) = go(Fault::status_of(400, ErrorKind::ContextTooLong));
    assert!(
        !models.contains(&"claude-haiku-4-5".to_owned()),
        "{models:?}"
    );
    assert!(!ran.stderr.contains("answers instead"), "{}", ran.stderr);
    let (ran, models) = go(Fault::status(401));
    assert_eq!((ran.code, models.len()), (Some(1), 1), "{}", ran.stderr);
}

#[test]
fn what_a_compatible_server_refused_is_not_sent_to_it_again() {
    let refusal = serde_json::json!({"error": {
        "message": "Unsupported parameter: stream_options",
        "type": "invalid_request_error",
    }});
    let script = Script::new([
        Reply::fault(Fault::status(400).body(refusal)),
        Reply::tool("Glob", serde_json::json!({"pattern": "*"})),
        Reply::text("done"),
    ]);
    let bench = Bench::new(Wire::Chat, script);
    let ran = bench.run(["-p", "hi"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let requests = bench.server.model_requests();
    let sent: Vec<bool> = requests
        .iter()
        .map(|request| request.json().get("stream_options").is_some())
        .collect();
    assert_eq!(sent, [true, false, false]);
}
