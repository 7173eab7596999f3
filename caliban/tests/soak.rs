//! Many runs in a row, faults included: none hangs, each has its one result, none leaves anything
//! behind. `CALIBAN_SOAK_RUNS` makes it longer.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use caliban_testkit::{Fault, Reply, Script};
use serde_json::{Value, json};
use support::{Bench, Wire};

const SHAPES: u64 = 8;

/// A different course of events for every number.
fn script(number: u64) -> Script {
    let bash = |command: &str| Reply::tool("Bash", json!({"command": command}));
    Script::new(match number % SHAPES {
        0 => vec![Reply::text("plain")],
        1 => vec![bash("echo one; echo two >&2"), Reply::text("done")],
        2 => vec![
            Reply::fault(Fault::status(529)),
            Reply::text("after a retry"),
        ],
        3 => vec![Reply::fault(Fault::status(400))],
        4 => vec![
            Reply::text("broken off").with_fault(Fault::CloseMidStream { after_events: 3 }),
            Reply::text("again"),
        ],
        5 => vec![bash("sleep 30 & echo left behind"), Reply::text("done")],
        6 => vec![
            Reply::tool("Nothing", json!({})),
            Reply::tool("Read", json!({"path": 7})),
            Reply::text("done"),
        ],
        _ => vec![
            Reply::tools([
                ("Write", json!({"path": "a", "content": "x"})),
                ("Read", json!({"path": "a"})),
                ("Glob", json!({"pattern": "*"})),
            ]),
            Reply::text("done"),
        ],
    })
}

#[test]
fn every_run_has_one_result_and_an_end() {
    let runs: u64 = std::env::var("CALIBAN_SOAK_RUNS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(64);
    let next = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= runs {
                        return;
                    }
                    one(number);
                }
            });
        }
    });
}

fn one(number: u64) {
    let wires = Wire::ALL;
    let wire = wires[usize::try_from(number / SHAPES).unwrap() % wires.len()];
    let bench = Bench::new(wire, script(number));
    let mut child = bench
        .command()
        .args([
            "-p",
            "go",
            "--output-format",
            "stream-json",
            "--no-permissions",
        ])
        .env("CALIBAN_IDLE_TIMEOUT_MS", "2000")
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut results = 0;
    let mut last = Value::Null;
    let mut result_at = Instant::now();
    for line in lines {
        last = serde_json::from_str(&line.unwrap()).unwrap();
        if last["type"] == "result" {
            results += 1;
            result_at = Instant::now();
        }
    }
    let status = child.wait().unwrap();
    assert_eq!(results, 1, "run {number}");
    assert_eq!(last["type"], "result", "run {number}");
    assert!(status.code().is_some(), "run {number}: {status}");
    assert!(result_at.elapsed() < Duration::from_secs(2), "run {number}");
}

/// The short form of `bench/soak.py`: runs, turns in a server and kills leave no process, file, descriptor or
/// memory behind.
#[test]
fn work_of_every_kind_leaves_nothing_behind() {
    let Some(python) = std::env::var_os("CALIBAN_TEST_PYTHON") else {
        eprintln!("skipped: CALIBAN_TEST_PYTHON is not set; run `cargo xtask test`");
        return;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../bench/soak.py");
    let done = std::process::Command::new(python)
        .args([script, env!("CARGO_BIN_EXE_caliban")])
        .args(["--runs=8", "--turns=480", "--kills=6"])
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&done.stdout);
    let complaints = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{told}\n{complaints}");
}
