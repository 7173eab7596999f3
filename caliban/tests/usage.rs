//! What sessions consumed, through the built binary: by whatever tells them apart, at the prices of
//! their day, and with the numbers that the sessions themselves tell.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::float_cmp,
    reason = "a test may panic, and knows its sums exactly"
)]

mod support;

use std::fs;

use caliban_testkit::{Reply, Script, Usage};
use rstest::rstest;
use serde_json::{Value, json};
use support::{Bench, Wire};

fn spent() -> Usage {
    Usage {
        input: 1_000,
        output: 100,
        cache_read: 10_000,
        cache_write_5m: 500,
        ..Usage::default()
    }
}

/// Two sessions: one with a sub-agent and a denied call, one with a summary.
fn bench() -> Bench {
    let replies = [
        Reply::tool(
            "AgentTool",
            json!({"prompt": "look around", "description": "look"}),
        ),
        Reply::text("Nothing there."),
        Reply::tool("Bash", json!({"command": "rm x"})),
        Reply::text("Done."),
        Reply::text("Hello."),
        Reply::text("A summary."),
    ];
    let replies = replies.map(|reply| reply.usage(spent()));
    let bench = Bench::new(Wire::Anthropic, Script::new(replies));
    for (prompt, session) in [("go", "one"), ("hello", "two"), ("/compact", "two")] {
        let rules = ["--auto-allow", "--deny", "Bash:rm*"];
        let ran = bench.run(["-p", prompt, "--session", session].iter().chain(&rules));
        assert_eq!(ran.code, Some(0), "{ran:?}");
    }
    bench
}

fn usage(bench: &Bench, args: &[&str]) -> Value {
    let ran = bench.run(["usage", "--json"].iter().chain(args));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

fn row<'a>(report: &'a Value, by: &str, name: &str) -> &'a Value {
    let mut rows = report["rows"].as_array().unwrap().iter();
    rows.find(|row| row[by] == name)
        .unwrap_or_else(|| panic!("{name} is not in {report:#}"))
}

/// What one call of `spent` costs: 1,000 at $3, 10,000 at $0.30, 500 at $3.75, 100 at $15.
const CALL: f64 = 0.003 + 0.003 + 0.001_875 + 0.0015;

fn is_about(value: &Value, expected: f64) -> bool {
    (value.as_f64().unwrap() - expected).abs() < 1e-9
}

#[rstest]
#[case("day")]
#[case("model")]
#[case("project")]
#[case("session")]
#[case("purpose")]
#[case("agent")]
fn all_ways_to_sum_come_to_the_same(#[case] by: &str) {
    let bench = bench();
    let report = usage(&bench, &["--by", by]);
    assert_eq!(report["by"], by);
    let total = &report["total"];
    assert_eq!(total["calls"], 6, "{report:#}");
    assert_eq!(total["sessions"], 2);
    assert_eq!(total["input_tokens"], 6_000);
    assert_eq!(total["cache_read_input_tokens"], 60_000);
    assert_eq!(total["cache_creation_input_tokens"], 3_000);
    assert_eq!(total["output_tokens"], 600);
    assert_eq!(total["denials"], 1);
    assert!(total["active_ms"].is_u64());
    assert!(is_about(&total["cost_usd"], 6.0 * CALL), "{report:#}");
    for field in [
        "calls",
        "input_tokens",
        "output_tokens",
        "cost_usd",
        "cache_saved_usd",
    ] {
        let rows = report["rows"].as_array().unwrap();
        let sum: f64 = rows.iter().map(|row| row[field].as_f64().unwrap()).sum();
        assert!(is_about(&total[field], sum), "{field} {report:#}");
    }
}

#[test]
fn purposes_agents_sessions_and_projects_are_told_apart() {
    let bench = bench();
    let purposes = usage(&bench, &["--by", "purpose"]);
    assert_eq!(row(&purposes, "purpose", "main_loop")["calls"], 4);
    assert_eq!(row(&purposes, "purpose", "sub_agent")["calls"], 1);
    assert_eq!(row(&purposes, "purpose", "summarization")["calls"], 1);
    let agents = usage(&bench, &["--by", "agent"]);
    assert_eq!(row(&agents, "agent", "main")["calls"], 5);
    assert_eq!(row(&agents, "agent", "general-purpose")["calls"], 1);
    let sessions = usage(&bench, &["--by", "session"]);
    assert_eq!(row(&sessions, "session", "one")["calls"], 4);
    assert_eq!(row(&sessions, "session", "one")["denials"], 1);
    assert_eq!(row(&sessions, "session", "two")["title"], "hello");
    let projects = usage(&bench, &["--by", "project"]);
    let workspace = bench.workspace.path().canonicalize().unwrap();
    assert_eq!(
        row(&projects, "project", workspace.to_str().unwrap())["calls"],
        6
    );
    let models = usage(&bench, &["--by", "model"]);
    assert_eq!(
        row(&models, "model", "anthropic/claude-sonnet-4-6")["calls"],
        6
    );
}

#[test]
fn sessions_tell_the_same_numbers_themselves() {
    let bench = bench();
    let sessions = usage(&bench, &["--by", "session"]);
    for session in ["one", "two"] {
        let known = row(&sessions, "session", session);
        let told = |prompt: &str| {
            let form = ["--output-format", "json"];
            let ran = bench.run(["-p", prompt, "--session", session].iter().chain(&form));
            assert_eq!(ran.code, Some(0), "{ran:?}");
            serde_json::from_str::<Value>(&ran.stdout).unwrap()["report"].clone()
        };
        let (usage, cost) = (told("/usage"), told("/cost"));
        for field in [
            "input_tokens",
            "output_tokens",
            "cache_read_input_tokens",
            "cache_creation_input_tokens",
        ] {
            assert_eq!(usage["usage"][field], known[field], "{usage:#}");
        }
        assert_eq!(usage["denials"], known["denials"]);
        assert_eq!(usage["active_ms"], known["active_ms"]);
        for report in [&usage, &cost] {
            assert_eq!(report["total_cost_usd"], known["cost_usd"], "{report:#}");
            assert_eq!(
                report["cache_saved_usd"], known["cache_saved_usd"],
                "{report:#}"
            );
        }
    }
}

#[test]
fn an_old_session_keeps_its_price() {
    let bench = bench();
    let rates = bench.home.path().join("rates.yaml");
    let yaml = "anthropic: {claude-sonnet-4-6: {input: 300, output: 1500}}";
    fs::write(&rates, yaml).unwrap();
    let ran = support::run(
        bench
            .command()
            .args(["usage", "--json"])
            .env("CALIBAN_RATES_YAML", &rates),
    );
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(
        is_about(&report["total"]["cost_usd"], 6.0 * CALL),
        "{report:#}"
    );
    bench.server.push(Reply::text("Dear.").usage(spent()));
    let mut command = bench.command();
    command
        .args(["-p", "again", "--session", "two"])
        .env("CALIBAN_RATES_YAML", &rates);
    assert_eq!(support::run(&mut command).code, Some(0));
    let report = usage(&bench, &[]);
    let dear = (11_500.0 * 300.0 + 100.0 * 1_500.0) / 1e6;
    assert!(
        is_about(&report["total"]["cost_usd"], 6.0 * CALL + dear),
        "{report:#}"
    );
}

#[test]
fn prices_count_from_their_day() {
    let reply = Reply::text("Hello.").usage(Usage {
        input: 1_000_000,
        ..Usage::default()
    });
    let bench = Bench::new(Wire::Anthropic, Script::new([reply]));
    let rates = bench.home.path().join("rates.yaml");
    let yaml = "
- {provider: anthropic, model: claude-sonnet-4-6, input: 7, output: 0, from: 2020-01-01}
- {provider: anthropic, model: claude-sonnet-4-6, input: 9, output: 0, from: 9999-01-01}
";
    fs::write(&rates, yaml).unwrap();
    let mut command = bench.command();
    command.args(["-p", "go"]).env("CALIBAN_RATES_YAML", &rates);
    assert_eq!(support::run(&mut command).code, Some(0));
    let report = usage(&bench, &[]);
    assert!(is_about(&report["total"]["cost_usd"], 7.0), "{report:#}");
}

#[test]
fn a_copy_is_not_paid_for_twice() {
    let bench = bench();
    bench.server.push(Reply::text("Yes.").usage(spent()));
    let ran = bench.run(["-p", "go on", "--session", "one", "--fork-session"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let report = usage(&bench, &["--by", "session"]);
    assert_eq!(report["total"]["calls"], 7, "{report:#}");
    assert!(
        is_about(&report["total"]["cost_usd"], 7.0 * CALL),
        "{report:#}"
    );
}

#[test]
fn only_the_days_that_are_asked_for_count() {
    let bench = bench();
    assert_eq!(usage(&bench, &["--since", "today"])["total"]["calls"], 6);
    assert_eq!(
        usage(&bench, &["--since", "7d", "--until", "today"])["total"]["calls"],
        6
    );
    let nothing = usage(&bench, &["--until", "yesterday"]);
    assert_eq!(
        (nothing["rows"].clone(), nothing["total"]["calls"].clone()),
        (json!([]), json!(0))
    );
    for args in [
        ["--since", "soon"],
        ["--until", "2026-02-30"],
        ["--by", "phase"],
    ] {
        let ran = bench.run(["usage"].iter().chain(&args));
        assert_eq!(ran.code, Some(64), "{ran:?}");
    }
    let ran = bench.run(["usage", "--since", "today", "--until", "yesterday"]);
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(ran.stderr.contains("is after"), "{ran:?}");
}

#[test]
fn a_person_sees_a_table_with_bars() {
    let bench = bench();
    let ran = bench.run(["usage", "--by", "session"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert!(lines[0].starts_with("session"), "{}", ran.stdout);
    assert!(lines[0].contains("cache read"));
    // The dearest first, with the longest bar.
    assert!(lines[1].starts_with("one") && lines[1].contains(&"█".repeat(24)));
    assert!(lines[2].starts_with("two") && lines[2].contains(&"█".repeat(12)));
    assert!(lines[2].ends_with("hello"));
    assert!(lines[3].starts_with("total") && lines[3].contains("6000"));
    let empty = Bench::new(Wire::Anthropic, Script::new([]));
    assert_eq!(empty.run(["usage"]).stdout, "nothing was consumed\n");
}

/// A cost is told to the nearest hundredth of a cent, and not cut off.
#[test]
fn amounts_are_rounded_wherever_they_are_told() {
    let usage = Usage {
        input: 100,
        output: 20,
        cache_read: 1_000,
        cache_write_5m: 50,
        ..Usage::default()
    };
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([Reply::text("Hello.").usage(usage)]),
    );
    let ran = bench.run(["-p", "hi", "--session", "s", "--output-format", "json"]);
    let result: Value = serde_json::from_str(ran.stdout.trim()).unwrap();
    assert_eq!(result["total_cost_usd"], 0.001_087_5, "{result}");
    for args in [&["usage"][..], &["-p", "/cost", "--session", "s"]] {
        let ran = bench.run(args);
        assert!(ran.stdout.contains("$0.0011"), "{}", ran.stdout);
    }
}
