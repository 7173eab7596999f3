//! The organisation's plugins: nobody replaces or disables them, and their hooks hold whatever a
//! run leaves out.

use std::path::Path;
use std::process::Command;

use rstest::rstest;
use serde_json::json;

use crate::support::apart::apart;
use crate::support::run;
use crate::{
    bench, everything, init, names, ok, plugin_command, recorded, requests, tool, user_root, write,
};

/// Runs a command where the machine's administrator has the plugins of a directory: in a mount
/// namespace of its own, because no variable moves the place where they lie.
fn managed(command: &Command, plugins: &Path) -> Command {
    let script = "mount -t tmpfs none /etc && mkdir /etc/caliban && \
                  cp -r \"$PLUGINS\" /etc/caliban/plugins && exec \"$@\"";
    apart(command, script, &[("PLUGINS", plugins.as_os_str())])
}

/// A plugin whose hook leaves a trace of every prompt.
fn policy(directory: &Path) {
    let plugin = directory.join("policy");
    everything(&plugin, "policy", "1.0.0");
    let hook = json!({"type": "command", "command": "cat >> \"$RECORD\""});
    let hooks = json!({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}});
    write(&plugin.join("hooks/hooks.json"), &hooks.to_string());
}

#[rstest]
#[case::as_usual(&[], "", true)]
#[case::not_in_the_list(&["--settings", r#"{"plugins": {"enabled": []}}"#], "", true)]
#[case::without_plugins(&["--no-plugins"], "", false)]
#[case::without_plugins_by_variable(&[], "CALIBAN_NO_PLUGINS", false)]
#[case::bare(&["--bare"], "", false)]
#[case::without_hooks(&["--no-hooks"], "", true)]
#[case::without_any(&["--no-hooks", "--no-plugins", "--bare"], "", false)]
fn its_hooks_hold(#[case] args: &[&str], #[case] variable: &str, #[case] whole: bool) {
    let bench = bench(ok());
    let plugins = bench.home.path().join("managed");
    policy(&plugins);
    // The user's own does not run where plugins are left out.
    let own = user_root(&bench).join("own");
    let manifest = json!({"name": "own", "version": "1.0.0"});
    write(&own.join("plugin.json"), &manifest.to_string());
    let hook = json!({"type": "command", "command": "echo own >> \"$RECORD\""});
    let hooks = json!({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}});
    write(&own.join("hooks/hooks.json"), &hooks.to_string());
    let mut command = bench.command();
    command
        .args(["--output-format", "stream-json", "-p", "go"])
        .args(args)
        .env("RECORD", crate::record(&bench));
    if !variable.is_empty() {
        command.env(variable, "1");
    }
    let ran = run(&mut managed(&command, &plugins));
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    let told = recorded(&bench);
    assert!(told.contains("UserPromptSubmit"), "{told}");
    let expected: &[&str] = if whole { &["policy"] } else { &[] };
    let listed = names(&init(&ran));
    let listed: Vec<&str> = listed
        .iter()
        .map(String::as_str)
        .filter(|name| *name != "own")
        .collect();
    assert_eq!(listed, expected);
    let request = &requests(&bench)[0];
    let menu = tool(request, "Skill")["description"].to_string();
    assert_eq!(menu.contains("policy:greet"), whole, "{menu}");
    let servers = init(&ran)["mcp_servers"].to_string();
    assert_eq!(servers.contains("policy:stub"), whole, "{servers}");
    let own_runs = args.is_empty() && variable.is_empty();
    assert_eq!(told.lines().any(|line| line == "own"), own_runs, "{told}");
}

#[test]
fn what_is_listed_says_that_only_hooks_are_left() {
    let bench = bench(ok());
    let plugins = bench.home.path().join("managed");
    policy(&plugins);
    let mut command = bench.command();
    command
        .args(["--no-plugins", "-p", "/plugins"])
        .env("RECORD", crate::record(&bench));
    let ran = run(&mut managed(&command, &plugins));
    assert!(ran.stdout.contains("only its hooks"), "{}", ran.stdout);
    let command = plugin_command(&bench, &["disable", "policy"]);
    let ran = run(&mut managed(&command, &plugins));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stderr.contains("always used"), "{}", ran.stderr);
}
