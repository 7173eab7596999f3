//! What a refusal advises.

use caliban_testkit::{After, Reply, Script};
use serde_json::{Value, json};

use crate::support::{Bench, Wire, run};
use crate::write;

fn call(flags: &[&str]) -> Value {
    let script = [
        Reply::tool("mcp__srv__add", json!({"a": 1, "b": 2})),
        Reply::text("done"),
    ];
    let script = Script::new(script).after(After::RepeatLast);
    let bench = Bench::new(Wire::Anthropic, script);
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    let settings = bench.home.path().join(".config/caliban/settings.toml");
    write(
        &settings,
        &format!(
            "[mcp_servers.srv]\ncommand = 'python3'\nargs = ['{server}']\n\
             [mcp_servers.srv.permissions]\nask = ['ad*']\n"
        ),
    );
    let mut command = bench.command();
    command
        .args(["-p", "go", "--output-format", "json"])
        .args(flags);
    let ran = run(&mut command);
    let mut result: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    result["settings"] = json!(settings.display().to_string());
    result
}

#[test]
fn the_rule_of_a_server_that_asks_is_named_with_its_file() {
    let refused = call(&[]);
    let remedy = refused["denials"][0]["remedy"].as_str().unwrap();
    assert!(remedy.contains("`mcp__srv__ad*`"), "{remedy}");
    assert!(
        remedy.contains("`mcp_servers.srv.permissions.ask`"),
        "{remedy}"
    );
    assert!(
        remedy.contains(refused["settings"].as_str().unwrap()),
        "{remedy}"
    );
    assert!(!remedy.contains("--allow"), "{remedy}");
    // It is true that a flag does not help, and that this does.
    let flagged = call(&["--allow", "mcp__srv__add"]);
    assert_eq!(flagged["denials"].as_array().unwrap().len(), 1, "{flagged}");
    assert!(remedy.contains("`--auto-allow`"), "{remedy}");
    let allowed = call(&["--auto-allow"]);
    assert_eq!(allowed["denials"], json!([]), "{allowed}");
}
