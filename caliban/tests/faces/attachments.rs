//! What a prompt names goes along, and the tools of servers are there.

use caliban_testkit::Reply;
use rstest::rstest;
use serde_json::json;

use crate::bench::Bench;
use crate::face::Which::{self, Acp, Claude, Heddle, Native};
use crate::face::{Exchange, Setup};

const SERVER: &str = "notes";

/// A bench whose user has an MCP server, and allows one of its tools.
fn served(replies: impl IntoIterator<Item = Reply>) -> Bench {
    let bench = Bench::new(replies);
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    bench.settings(&json!({
        "mcp_servers": {SERVER: {"command": "python3", "args": [script]}},
        "permissions": {"allow": [format!("mcp__{SERVER}__add")]},
    }));
    bench
}

#[rstest]
fn a_file(#[values(Native, Claude, Heddle, Acp)] face: Which) {
    let bench = Bench::new([Reply::text("ok")]);
    std::fs::write(bench.file("list.txt"), "remember the milk\n").unwrap();
    let mut face = face.start(&bench, &Setup::default());
    assert_eq!(face.exchange("see @list.txt"), Exchange::success("ok"));
    let messages = bench.request(1)["messages"].to_string();
    assert!(messages.contains("remember the milk"), "{messages}");
    assert_eq!(face.finish().code, Some(0));
}

#[rstest]
fn a_resource_of_a_server(#[values(Native, Claude, Heddle, Acp)] face: Which) {
    let bench = served([Reply::text("ok")]);
    let mut face = face.start(&bench, &Setup::default());
    let prompt = format!("see @{SERVER}:today");
    assert_eq!(face.exchange(&prompt), Exchange::success("ok"));
    let messages = bench.request(1)["messages"].to_string();
    assert!(messages.contains("read note://today"), "{messages}");
    assert_eq!(face.finish().code, Some(0));
}

#[rstest]
fn a_tool_of_a_server(#[values(Native, Claude, Heddle, Acp)] face: Which) {
    let tool = format!("mcp__{SERVER}__add");
    let bench = served([
        Reply::tool(&tool, json!({"a": 700, "b": 77})),
        Reply::text("ok"),
    ]);
    let setup = Setup {
        tools: &[&tool],
        ..Setup::default()
    };
    let mut face = face.start(&bench, &setup);
    assert_eq!(face.exchange("add them"), Exchange::success("ok"));
    let messages = bench.request(2)["messages"].to_string();
    assert!(messages.contains("777"), "{messages}");
    assert_eq!(face.finish().code, Some(0));
}
