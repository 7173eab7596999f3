//! The vendors' own Python clients accept what the server streams and send what it accepts.

use std::process::Command;

use caliban_testkit::{After, BlockingServer, Fault, ModelEntry, Outcome, Reply, Script};
use serde_json::json;

/// The five exchanges every client goes through, once per client.
fn script() -> Script {
    let calls = [
        ("read_file", json!({"path": "a.rs"})),
        ("read_file", json!({"path": "b.rs"})),
    ];
    Script::new([
        Reply::text("Hello from the scripted model."),
        Reply::tools(calls).thinking("Two files are worth a look."),
        Reply::text("Both files are fine."),
        Reply::text("In one piece."),
        Reply::fault(Fault::status(429).retry_after("1")),
    ])
    .after(After::Cycle)
    .model(ModelEntry::new("qwen3").capabilities(["completion", "tools", "thinking"]))
}

#[test]
fn the_vendors_clients_are_satisfied() {
    let Ok(python) = std::env::var("CALIBAN_TEST_PYTHON") else {
        println!(
            "skipped: CALIBAN_TEST_PYTHON names no Python with the vendors' clients installed"
        );
        return;
    };
    let server = BlockingServer::start(script()).unwrap();
    let clients = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sdk/clients.py");
    let output = Command::new(python)
        .arg(clients)
        .arg(server.url())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let refused: Vec<_> = server
        .requests()
        .into_iter()
        .filter(|request| matches!(request.outcome, Outcome::Rejected { .. }))
        .map(|request| (request.path, request.outcome))
        .collect();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{printed}\n{complaints}\nrefused: {refused:#?}"
    );
    assert_eq!(
        printed
            .lines()
            .filter(|line| line.starts_with("ok "))
            .count(),
        5,
        "{printed}"
    );
    assert!(refused.is_empty(), "{refused:#?}");
}
