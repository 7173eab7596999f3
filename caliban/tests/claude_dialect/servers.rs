//! Servers of tools that run beside the program: a real process on standard input and output.

use std::time::Duration;

use caliban_testkit::{Reply, Script};
use serde_json::{Value, json};

use crate::bench::{Bench, Client, of_type};

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

/// The only server, once it is known how it is: on a busy machine it takes its time.
fn settled(client: &mut Client) -> Value {
    loop {
        let report = client.ask(&json!({"subtype": "mcp_status"}));
        let server = report["response"]["mcpServers"][0].clone();
        if server["status"] != "pending" {
            return server;
        }
        // Who asks without a pause leaves the server no processor to start on.
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn who_introduces_itself_hears_what_there_is() {
    let bench = Bench::new(Script::new([Reply::text("ok")]));
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    let config = json!({"mcpServers": {"calc": {"command": "python3", "args": [server]}}});
    let mut client = bench.client(&[&format!("--mcp-config={config}")]);
    let introduction = client.ask(&json!({"subtype": "initialize"}));
    let commands = introduction["response"]["commands"].as_array().unwrap();
    assert!(!commands.is_empty(), "{introduction}");
    let server = settled(&mut client);
    assert_eq!(server["name"], "calc");
    assert_eq!(server["status"], "connected");
    let tools = server["tools"].as_array().unwrap();
    assert!(tools.contains(&json!({"name": "add"})), "{server}");
    assert_eq!(client.close(), (Vec::new(), Some(0)));
    // Nothing was said, so there is nothing to continue.
    let ran = bench.run(&["-p", "-c", "--output-format=json", "x"]);
    assert_eq!(ran.result()["num_turns"], 1, "{ran:?}");
    assert_eq!(
        bench.last_request()["messages"].as_array().unwrap().len(),
        1
    );
}

#[test]
fn a_server_is_switched_off_and_on_again() {
    let bench = Bench::new(Script::new([
        Reply::text("a"),
        Reply::text("b"),
        Reply::text("c"),
    ]));
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    let config = json!({"mcpServers": {"calc": {"command": "python3", "args": [server]}}});
    let mut client = bench.client(&[&format!("--mcp-config={config}")]);
    client.ask(&json!({"subtype": "initialize"}));
    settled(&mut client);
    for (enabled, status) in [
        (true, "connected"),
        (false, "disabled"),
        (true, "connected"),
    ] {
        let toggle = json!({"subtype": "mcp_toggle", "serverName": "calc", "enabled": enabled});
        assert_eq!(client.ask(&toggle)["subtype"], "success");
        client.say("x");
        let init = client.until("result").remove(0);
        assert_eq!(init["mcp_servers"][0]["status"], status);
        let offered = bench.last_request()["tools"].to_string();
        assert_eq!(offered.contains("mcp__calc__add"), enabled, "{offered}");
    }
    let nobody = json!({"subtype": "mcp_toggle", "serverName": "x", "enabled": false});
    assert_eq!(client.ask(&nobody)["error"], "Server not found: x");
}

#[test]
fn servers_are_set_while_the_session_goes_on() {
    let bench = Bench::new(Script::new([
        Reply::text("a"),
        Reply::tool("mcp__calc__add", json!({"a": 2, "b": 40})),
        Reply::text("b"),
        Reply::text("c"),
    ]));
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    let server = json!({"command": "python3", "args": [script]});
    let mut client = bench.client(&["--allowedTools=mcp__calc"]);
    let set = |client: &mut Client, servers: Value| {
        let request = json!({"subtype": "mcp_set_servers", "servers": servers});
        client.ask(&request)["response"].clone()
    };
    client.say("a");
    client.until("result");
    assert_eq!(
        set(&mut client, json!({"calc": server})),
        json!({"added": ["calc"], "removed": [], "errors": {}})
    );
    assert_eq!(settled(&mut client)["status"], "connected");
    let nothing = json!({"added": [], "removed": [], "errors": {}});
    assert_eq!(set(&mut client, json!({"calc": server})), nothing);
    client.say("b");
    let frames = client.until("result");
    assert_eq!(
        frames[0]["mcp_servers"],
        json!([{"name": "calc", "status": "connected"}])
    );
    let results = of_type(&frames, "user");
    assert_eq!(results[0]["message"]["content"][0]["content"], "42");
    assert_eq!(
        set(&mut client, json!({})),
        json!({"added": [], "removed": ["calc"], "errors": {}})
    );
    client.say("c");
    client.until("result");
    assert!(
        !bench.last_request()["tools"]
            .to_string()
            .contains("mcp__calc__")
    );
    let broken = set(&mut client, json!({"x": 3}));
    assert!(broken["errors"]["x"].is_string(), "{broken}");
    assert_eq!(client.close(), (Vec::new(), Some(0)));
}

#[test]
fn a_server_that_was_set_is_switched_and_tried_again() {
    let bench = Bench::new(Script::new([
        Reply::text("a"),
        Reply::text("b"),
        Reply::text("c"),
    ]));
    let starts = bench.home.path().join("starts");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    let line = format!("echo x >> '{}'; exec python3 '{script}'", starts.display());
    let servers = json!({"calc": {"command": "sh", "args": ["-c", line]}});
    let mut client = bench.client(&[]);
    client.ask(&json!({"subtype": "initialize"}));
    client.ask(&json!({"subtype": "mcp_set_servers", "servers": servers}));
    settled(&mut client);
    for (enabled, status) in [
        (true, "connected"),
        (false, "disabled"),
        (true, "connected"),
    ] {
        let toggle = json!({"subtype": "mcp_toggle", "serverName": "calc", "enabled": enabled});
        assert_eq!(client.ask(&toggle)["subtype"], "success");
        client.say("x");
        let init = client.until("result").remove(0);
        assert_eq!(init["mcp_servers"][0]["status"], status);
        let offered = bench.last_request()["tools"].to_string();
        assert_eq!(offered.contains("mcp__calc__add"), enabled, "{offered}");
    }
    let started = || std::fs::read_to_string(&starts).unwrap().lines().count();
    assert_eq!(started(), 1);
    let again = json!({"subtype": "mcp_reconnect", "serverName": "calc"});
    assert_eq!(client.ask(&again)["subtype"], "success");
    while started() < 2 {
        client.ask(&json!({"subtype": "mcp_status"}));
    }
    assert_eq!(settled(&mut client)["status"], "connected");
}
