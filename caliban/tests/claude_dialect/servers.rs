//! Servers of tools that run beside the program: a real process on standard input and output.

use caliban_testkit::{Reply, Script};
use serde_json::json;

use crate::bench::{Bench, of_type};

#[test]
fn servers_of_the_flags_are_connected_and_their_tools_called() {
    let script = Script::new([
        Reply::tool("mcp__calc__add", json!({"a": 2, "b": 40})),
        Reply::text("It is 42."),
    ]);
    let bench = Bench::new(script);
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    let config = json!({"mcpServers": {
        "calc": {"command": "python3", "args": [server]},
        "broken": {"command": "/nowhere/server"},
    }});
    let ran = bench.run(&[
        "-p",
        "--output-format=stream-json",
        "--verbose",
        &format!("--mcp-config={config}"),
        "--allowedTools=mcp__calc",
        "add",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let frames = ran.frames();
    assert_eq!(
        frames[0]["mcp_servers"],
        json!([
            {"name": "broken", "status": "failed"},
            {"name": "calc", "status": "connected"},
        ])
    );
    let results = of_type(&frames, "user");
    assert_eq!(results[0]["message"]["content"][0]["content"], "42");
    let wrong = bench.run(&["-p", "--mcp-config", "{", "--", "x"]);
    assert_eq!(
        (wrong.code, wrong.stdout.as_str()),
        (Some(1), ""),
        "{wrong:?}"
    );
}
