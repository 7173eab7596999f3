//! Telemetry: what a collector of official make is told, over every protocol and from every face,
//! and that a bad one is never felt.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::float_cmp,
    reason = "a test may panic, say why it is skipped, and knows its sums exactly"
)]

#[path = "../support/mod.rs"]
mod support;

#[cfg(unix)]
mod attribution;
#[cfg(unix)]
mod exported;
mod receiver;

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::process::Command;
use std::time::{Duration, Instant};

use caliban_testkit::{Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};

use receiver::{Receiver, attribute, points};
use support::{Bench, Ran, Wire, run};

/// What nobody may find in telemetry unless it is asked for.
const SECRET: &str = "heliotrope";

/// A session that writes a file, runs a command and answers.
fn bench() -> Bench {
    let file = json!({"path": "a.rs", "content": format!("fn a() {{}}\n// {SECRET}\n")});
    let edit =
        json!({"path": "a.rs", "old_string": "fn a() {}", "new_string": "fn b() {}\nfn c() {}"});
    let script = Script::new([
        Reply::tool("Write", file),
        Reply::tool("Edit", edit),
        Reply::tool("Bash", json!({"command": format!("echo {SECRET}")})),
        Reply::text(format!("Done with {SECRET}.")),
    ]);
    Bench::new(Wire::Anthropic, script)
}

fn exporting(bench: &Bench, receiver: &Receiver, protocol: &str) -> Command {
    let mut command = bench.command();
    command
        .args(["-p", &format!("say {SECRET}"), "--auto-allow"])
        .args(["--output-format", "json"])
        .env("CALIBAN_ENABLE_TELEMETRY", "1")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url(protocol))
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", protocol);
    command
}

fn result(ran: &Ran) -> Value {
    serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap()
}

#[rstest]
fn every_metric_arrives_with_the_sums_of_the_result(
    #[values("grpc", "http/protobuf", "http/json")] protocol: &str,
    #[values("none", "gzip")] compression: &str,
) {
    if let Some(receiver) = Receiver::start() {
        arrives(receiver, protocol, compression);
    }
}

#[rstest]
fn a_collector_that_somebody_else_made_takes_everything(
    #[values("grpc", "http/protobuf", "http/json")] protocol: &str,
) {
    if let Some(receiver) = Receiver::foreign() {
        arrives(receiver, protocol, "none");
    }
}

/// A session tells a collector, and its sums are those of the session's result.
fn arrives(receiver: Receiver, protocol: &str, compression: &str) {
    let bench = bench();
    let ran =
        run(exporting(&bench, &receiver, protocol)
            .env("OTEL_EXPORTER_OTLP_COMPRESSION", compression));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = receiver.told();
    let result = result(&ran);
    assert_eq!(
        told.signals(),
        BTreeSet::from(["logs", "metrics", "traces"])
    );
    let names: BTreeSet<String> = told.metric_names();
    for name in [
        "caliban.session.count",
        "caliban.cost.usage",
        "caliban.token.usage",
        "caliban.lines_of_code.count",
        "caliban.code_edit_tool.decision",
        "caliban.active_time.total",
        "gen_ai.client.token.usage",
        "gen_ai.client.operation.duration",
        "gen_ai.execute_tool.duration",
        "gen_ai.invoke_agent.duration",
    ] {
        assert!(names.contains(name), "{name} is not among {names:?}");
    }
    let usage = &result["usage"];
    for (kind, field) in [("input", "input_tokens"), ("output", "output_tokens")] {
        let sum = told.sum("caliban.token.usage", &[("type", kind)]);
        assert_eq!(sum, usage[field].as_f64().unwrap(), "{kind} {result}");
    }
    let cost = told.sum("caliban.cost.usage", &[]);
    let expected = result["total_cost_usd"].as_f64().unwrap();
    assert!((cost - expected).abs() < 1e-9, "{cost} {expected}");
    assert_eq!(
        told.sum("caliban.lines_of_code.count", &[("type", "added")]),
        4.0
    );
    assert_eq!(
        told.sum("caliban.lines_of_code.count", &[("type", "removed")]),
        1.0
    );
    assert_eq!(
        told.sum("caliban.session.count", &[("start_type", "fresh")]),
        1.0
    );
    let decisions = told.sum("caliban.code_edit_tool.decision", &[("language", "Rust")]);
    assert_eq!(decisions, 2.0);
    let session = result["session_id"].as_str().unwrap();
    for metric in told
        .metrics()
        .filter(|metric| metric["name"] == "caliban.token.usage")
    {
        for point in points(metric) {
            assert_eq!(attribute(point, "session.id"), Some(session));
        }
    }
}

#[rstest]
fn contents_are_absent_unless_they_are_wanted(#[values("grpc", "http/json")] protocol: &str) {
    let Some(receiver) = Receiver::start() else {
        return;
    };
    let bench = bench();
    let ran = run(&mut exporting(&bench, &receiver, protocol));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = receiver.told();
    assert!(!told.text().contains(SECRET), "{}", told.text());
    assert!(!told.text().contains("a.rs"), "{}", told.text());
    for (variable, event, field) in [
        ("OTEL_LOG_USER_PROMPTS", "user_prompt", "prompt"),
        ("OTEL_LOG_TOOL_DETAILS", "tool_result", "tool_parameters"),
        ("OTEL_LOG_TOOL_CONTENT", "tool_result", "tool_result"),
    ] {
        let (bench, receiver) = (self::bench(), Receiver::start().unwrap());
        run(exporting(&bench, &receiver, protocol).env(variable, "1"));
        let told = receiver.told();
        let found = told
            .events(event)
            .any(|record| attribute(record, field).is_some_and(|text| text.contains(SECRET)));
        assert!(found, "{variable}: {}", told.text());
        let in_spans = told.spans().any(|span| span.to_string().contains(SECRET));
        assert!(in_spans, "{variable}: {}", told.text());
    }
}

#[test]
fn one_trace_holds_the_run_its_calls_and_its_tools() {
    let Some(receiver) = Receiver::start() else {
        return;
    };
    let bench = bench();
    let (trace, parent) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let ran = run(exporting(&bench, &receiver, "http/json")
        .env("TRACEPARENT", format!("00-{trace}-{parent}-01")));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = receiver.told();
    let spans: Vec<&Value> = told.spans().collect();
    let named = |name: &str| -> Vec<&Value> {
        let spans = spans.iter().copied();
        spans.filter(|span| span["name"] == name).collect()
    };
    let run = named("invoke_agent caliban");
    assert_eq!(run.len(), 1, "{spans:?}");
    assert_eq!(run[0]["parentSpanId"], receiver::base64(parent));
    assert_eq!(named("chat claude-sonnet-4-6").len(), 4);
    assert_eq!(named("execute_tool Bash").len(), 1);
    assert_eq!(named("caliban.tool.execution").len(), 3);
    let ids: BTreeSet<&str> = spans
        .iter()
        .filter_map(|span| span["spanId"].as_str())
        .collect();
    for span in &spans {
        assert_eq!(span["traceId"], receiver::base64(trace));
        let parent = span["parentSpanId"].as_str().unwrap();
        assert!(span == &run[0] || ids.contains(parent), "{span}");
        let times = ["startTimeUnixNano", "endTimeUnixNano"]
            .map(|field| span[field].as_str().unwrap().parse::<u64>().unwrap());
        assert!(times[0] <= times[1], "{span}");
    }
}

#[test]
fn failures_are_told() {
    let Some(receiver) = Receiver::start() else {
        return;
    };
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([
            Reply::tool("Bash", json!({"command": "rm x"})),
            Reply::text("ok"),
        ]),
    );
    let mut command = bench.command();
    command
        .args(["-p", "go"])
        .env("CALIBAN_ENABLE_TELEMETRY", "1")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url("grpc"));
    run(&mut command);
    let told = receiver.told();
    let result = told.events("tool_result").next().unwrap().clone();
    assert_eq!(attribute(&result, "error_type"), Some("denied"), "{result}");
    let decision = told.events("tool_decision").next().unwrap().clone();
    assert_eq!(
        attribute(&decision, "decision"),
        Some("reject"),
        "{decision}"
    );
}

#[rstest]
#[case::not_asked_for(&[])]
#[case::switched_off(&[("CALIBAN_ENABLE_TELEMETRY", "0")])]
#[case::vetoed(&[("CALIBAN_ENABLE_TELEMETRY", "1"), ("DISABLE_TELEMETRY", "1")])]
#[case::not_tracked(&[("CALIBAN_ENABLE_TELEMETRY", "1"), ("DO_NOT_TRACK", "1")])]
fn nothing_leaves_unless_it_is_asked_for(#[case] variables: &[(&str, &str)]) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let bench = bench();
    let mut command = bench.command();
    command
        .args(["-p", "go", "--auto-allow"])
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", address)
        .envs(variables.iter().copied());
    let ran = run(&mut command);
    assert_eq!(
        (ran.code, ran.stderr.contains("telemetry")),
        (Some(0), false)
    );
    assert!(listener.accept().is_err(), "somebody called the collector");
}

#[test]
fn without_an_address_it_is_said() {
    let bench = bench();
    let mut command = bench.command();
    command
        .args(["-p", "go", "--auto-allow"])
        .env("CALIBAN_ENABLE_TELEMETRY", "1");
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stderr.contains("set `OTEL_EXPORTER_OTLP_ENDPOINT`"),
        "{}",
        ran.stderr
    );
}

/// How a collector can be bad.
#[derive(Debug, Clone, Copy)]
enum Bad {
    /// Nobody is there.
    Dead,
    /// It takes the connection and says nothing.
    Hanging,
}

#[rstest]
fn a_bad_collector_is_not_felt(
    #[values(Bad::Dead, Bad::Hanging)] bad: Bad,
    #[values("grpc", "http/protobuf", "http/json")] protocol: &str,
) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    if matches!(bad, Bad::Dead) {
        drop(listener);
    }
    let bench = bench();
    let mut command = bench.command();
    command
        .args(["-p", "go", "--auto-allow"])
        .env("CALIBAN_ENABLE_TELEMETRY", "1")
        .env("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", address);
    let began = Instant::now();
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.stdout, format!("Done with {SECRET}.\n"));
    // A collector may take ten seconds of its own; the end of a run waits for one.
    assert!(
        began.elapsed() < Duration::from_secs(9),
        "{:?}",
        began.elapsed()
    );
}

#[test]
fn a_program_prints_further_headers() {
    let Some(receiver) = Receiver::start() else {
        return;
    };
    let bench = bench();
    let helper = "echo x-token=fresh; echo \"x-key=<$ANTHROPIC_API_KEY>\"";
    let ran = run(exporting(&bench, &receiver, "http/json")
        .env("OTEL_EXPORTER_OTLP_HEADERS", "x-token=stale,x-other=a%20b")
        .env("CALIBAN_OTEL_HEADERS_HELPER", helper));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let told = receiver.told();
    for line in &told.0 {
        assert_eq!(line["headers"]["x-token"], "fresh");
        assert_eq!(line["headers"]["x-other"], "a b");
        // Programs see no keys.
        assert_eq!(line["headers"]["x-key"], "<>");
    }
    let bench = self::bench();
    let receiver = Receiver::start().unwrap();
    let ran =
        run(exporting(&bench, &receiver, "grpc").env("CALIBAN_OTEL_HEADERS_HELPER", "exit 3"));
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stderr.contains("the program for telemetry headers"),
        "{}",
        ran.stderr
    );
    assert!(!receiver.told().0.is_empty());
}

#[test]
fn the_console_is_the_standard_error() {
    let bench = bench();
    let mut command = bench.command();
    command
        .args(["-p", "go", "--auto-allow"])
        .env("CALIBAN_ENABLE_TELEMETRY", "1");
    for signal in ["METRICS", "LOGS", "TRACES"] {
        command.env(format!("OTEL_{signal}_EXPORTER"), "console");
    }
    let ran = run(&mut command);
    assert_eq!(ran.stdout, format!("Done with {SECRET}.\n"));
    let lines = ran.stderr.lines().filter(|line| line.starts_with('{'));
    let found: BTreeSet<String> = lines
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter_map(|line| line.as_object()?.keys().next().cloned())
        .collect();
    let all = ["resourceLogs", "resourceMetrics", "resourceSpans"];
    assert_eq!(found, all.map(ToOwned::to_owned).into());
}

#[test]
fn other_faces_are_heard_too() {
    let Some(receiver) = Receiver::start() else {
        return;
    };
    let bench = bench();
    let mut command = support::bare(bench.home.path(), bench.workspace.path());
    command
        .env("CALIBAN_DIALECT", "claude")
        .args([
            "-p",
            "go",
            "--output-format",
            "json",
            "--dangerously-skip-permissions",
        ])
        .envs(bench.wire.variables(&bench.server.url()))
        .env("IS_SANDBOX", "1")
        .env("CALIBAN_ENABLE_TELEMETRY", "1")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.url("grpc"));
    let ran = command.output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{ran:?}");
    assert!(
        receiver
            .told()
            .metric_names()
            .contains("caliban.token.usage")
    );
}

#[rstest]
#[case("OTEL_EXPORTER_OTLP_PROTOCOL", "smoke")]
#[case("OTEL_METRIC_EXPORT_INTERVAL", "soon")]
#[case("OTEL_LOGS_EXPORTER", "paper")]
fn a_wrong_word_is_an_error(#[case] name: &str, #[case] value: &str) {
    let bench = bench();
    let mut command = bench.command();
    command
        .args(["-p", "go"])
        .env("CALIBAN_ENABLE_TELEMETRY", "1")
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
        .env(name, value);
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
    assert!(
        ran.stderr.contains(name) && ran.stderr.contains(value),
        "{}",
        ran.stderr
    );
}
