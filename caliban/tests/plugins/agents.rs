//! The agents of plugins are kinds of agents like any others.

use std::process::{Command, Stdio};

use caliban_testkit::Script;
use serde_json::{Value, json};

use crate::support::Bench;
use crate::{bench, everything, go, ok, requests, user_root, write};

fn with_plugin(script: Script) -> Bench {
    let bench = bench(script);
    let root = user_root(&bench).join("tools");
    everything(&root, "tools", "1.0.0");
    // What other programs know and what is not YAML.
    write(
        &root.join("agents/deep/judge.md"),
        "---\nname: judge\ndescription: Use it. user: \"a: b\"\ncolor: red\npermissionMode: bypassPermissions\ninherit_hooks: false\n---\nJudge from ${CLAUDE_PLUGIN_DATA}.\n",
    );
    bench
}

#[test]
fn they_are_listed_wherever_agents_are() {
    let bench = with_plugin(ok());
    let ran = bench.run(["agents", "profiles", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let listed: Value = serde_json::from_str(&ran.stdout).unwrap();
    let scout = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["name"] == "tools:scout")
        .unwrap();
    assert_eq!(scout["description"], "Looks around.");
    assert_eq!(scout["tools"], json!(["Read", "Grep"]));
    assert_eq!(scout["origin"], "plugin tools");
    let ran = bench.run(["-p", "/agents"]);
    assert!(
        ran.stdout.contains("tools:scout") && ran.stdout.contains("tools:judge"),
        "{}",
        ran.stdout
    );
    let ran = bench.run(["--no-plugins", "-p", "/agents"]);
    assert!(!ran.stdout.contains("tools:scout"), "{}", ran.stdout);
}

#[test]
fn the_first_frame_of_the_other_dialect_names_them() {
    let bench = with_plugin(ok());
    let program = bench.home.path().join("claude");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_caliban"), &program).unwrap();
    let mut command = Command::new(program);
    let own = bench.command();
    let variables = own
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    command
        .args(["-p", "--output-format", "stream-json", "--verbose", "go"])
        .env_clear()
        .envs(variables)
        .current_dir(bench.workspace.path())
        .stdin(Stdio::null());
    let ran = command.output().unwrap();
    let stdout = String::from_utf8(ran.stdout).unwrap();
    let init: Value = serde_json::from_str(stdout.lines().next().unwrap()).unwrap();
    let agents = init["agents"].as_array().unwrap();
    for name in ["general-purpose", "tools:judge", "tools:scout"] {
        assert!(agents.iter().any(|it| it == name), "{agents:?}");
    }
    assert_eq!(init["mcp_servers"][0]["name"], "plugin:tools:stub");
}

#[test]
fn a_session_can_be_one_and_it_loosens_nothing() {
    let bench = with_plugin(ok());
    go(&bench, &["--agent", "tools:judge"]);
    let system = requests(&bench)[0]["system"].to_string();
    let data = bench.home.path().join(".local/share/caliban");
    assert!(
        system.contains(&format!("Judge from {}", data.display())),
        "{system}"
    );
    let report = bench.run(["plugin", "info", "tools"]);
    let told = report.stdout;
    assert!(told.contains("`permissionMode` is not used"), "{told}");
}
