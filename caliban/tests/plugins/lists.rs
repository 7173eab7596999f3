//! What lists say of plugins, and what is refused before anything happens.

use std::fs;

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Bench, Ran, bare, run};
use crate::{
    bench, everything, go, init, ok, plugin, plugin_command, plugin_ok, requests, user_root,
    warnings, write,
};

#[test]
fn a_list_shows_what_a_run_would_have_and_tells_nobody_anything() {
    let bench = bench(ok());
    everything(&user_root(&bench).join("tools"), "tools", "1.0.0");
    let given = bench.home.path().join("work/given");
    everything(&given, "given", "1.0.0");
    let listed = with(
        &bench,
        &["--plugin-dir", given.to_str().unwrap()],
        &["list"],
    );
    assert!(
        listed.stdout.contains("given") && listed.stdout.contains("tools"),
        "{listed:?}"
    );
    // Looking at it is not being told what it runs.
    plugin_ok(&bench, &["info", "tools"]);
    let profiles = bench.run(["agents", "profiles"]);
    assert!(profiles.stdout.contains("tools:scout"), "{profiles:?}");
    let doctor = bench.run(["doctor", "--json"]);
    let rows: Value = serde_json::from_str(&doctor.stdout).unwrap();
    let rows = rows.as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "plugins").unwrap();
    assert_eq!(row["message"], "1 found, 1 used");
    assert!(
        row["details"].to_string().contains("is new or changed"),
        "{row}"
    );
    let ran = go(&bench, &[]);
    let said = warnings(&init(&ran));
    assert!(said.contains("is new or changed"), "{said}");

    let empty = |ran: &Ran| {
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let listed: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(listed["plugins"], json!([]));
    };
    empty(&with(&bench, &["--no-plugins"], &["list", "--json"]));
    let mut command = plugin_command(&bench, &["list", "--json"]);
    empty(&run(command.env("CALIBAN_NO_PLUGINS", "1")));
    let ran = with(&bench, &["--no-plugins"], &["list"]);
    assert!(ran.stderr.contains("are left out"), "{}", ran.stderr);
    let ran = with(&bench, &["--no-plugins"], &["info", "tools"]);
    assert_eq!(ran.code, Some(66), "{}", ran.stdout);
}

/// `caliban plugin` behind options of a run.
fn with(bench: &Bench, options: &[&str], args: &[&str]) -> Ran {
    let mut command = bare(bench.home.path(), bench.workspace.path());
    run(command.args(options).arg("plugin").args(args))
}

#[rstest]
#[case(&["disable", "nobody"], 66, "there is no plugin `nobody`")]
#[case(&["enable", "nobody"], 66, "there is no plugin `nobody`")]
#[case(&["new", "Loud"], 64, "lower case letters")]
#[case(&["install", "@market"], 64, "names no marketplace or no plugin")]
#[case(&["install", "tools@"], 64, "names no marketplace or no plugin")]
fn what_means_nothing_is_refused(#[case] args: &[&str], #[case] code: i32, #[case] said: &str) {
    let bench = bench(ok());
    let ran = plugin(&bench, args);
    assert_eq!(ran.code, Some(code), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    let left = fs::read_dir(bench.workspace.path()).unwrap().count();
    assert_eq!(left, 0, "nothing was made");
}

#[test]
fn one_that_is_disabled_says_nothing_even_where_it_is_broken() {
    let bench = bench(ok());
    everything(&user_root(&bench).join("tools"), "tools", "1.0.0");
    plugin_ok(&bench, &["disable", "tools"]);
    write(&user_root(&bench).join("tools/plugin.json"), "{");
    let ran = go(&bench, &[]);
    assert_eq!(warnings(&init(&ran)), "[]");
    assert!(!ran.stderr.contains("tools"), "{}", ran.stderr);
}

#[test]
fn one_marketplace_that_is_gone_hides_no_other() {
    let bench = bench(ok());
    for name in ["one", "two"] {
        let list =
            json!({"name": name, "plugins": [{"name": format!("p-{name}"), "source": "./p"}]});
        let path = bench.home.path().join(name);
        write(
            &path.join(".claude-plugin/marketplace.json"),
            &list.to_string(),
        );
        plugin_ok(&bench, &["marketplace", "add", path.to_str().unwrap()]);
    }
    fs::remove_dir_all(bench.home.path().join("one")).unwrap();
    let found = plugin(&bench, &["search"]);
    assert_eq!(found.code, Some(0), "{}", found.stderr);
    assert_eq!(found.stdout.trim(), "p-two@two");
    assert!(
        found.stderr.contains("the marketplace `one` is left out"),
        "{}",
        found.stderr
    );
    let updated = plugin(&bench, &["marketplace", "update"]);
    assert_eq!(updated.code, Some(1), "{}", updated.stdout);
    assert!(
        updated.stdout.contains("`two` lists 1 plugin"),
        "{}",
        updated.stdout
    );
}

#[test]
fn what_does_not_fit_is_installed_from_a_directory_and_skipped() {
    let bench = bench(ok());
    let source = bench.home.path().join("work/later");
    let manifest =
        json!({"name": "later", "version": "1.0.0", "caliban": {"min_version": "99.0.0"}});
    write(&source.join("plugin.json"), &manifest.to_string());
    let said = plugin_ok(&bench, &["install", "--dir", source.to_str().unwrap()]);
    assert!(said.contains("it is skipped as things are"), "{said}");
    let listed = plugin_ok(&bench, &["list"]);
    assert!(
        listed.contains("not suitable: it needs caliban 99.0.0"),
        "{listed}"
    );
    let ran = go(&bench, &[]);
    assert_eq!(init(&ran)["plugins"], json!([]));
    assert!(warnings(&init(&ran)).contains("`later` is not used"));
}

#[test]
fn a_manifest_may_hold_its_commands() {
    let bench = bench(ok());
    let root = user_root(&bench).join("tools");
    let manifest = json!({"name": "tools", "commands": {
        "about": {"source": "./README.md", "description": "About it", "argumentHint": "[what]"},
        "ask": {"content": "Ask about $ARGUMENTS.", "description": "Asks"},
    }});
    write(
        &root.join(".claude-plugin/plugin.json"),
        &manifest.to_string(),
    );
    write(&root.join("README.md"), "Say what this is.\n");
    let info: Value = serde_json::from_str(&plugin_ok(&bench, &["info", "tools"])).unwrap();
    assert_eq!(info["commands"], json!(["tools:about", "tools:ask"]));
    go(&bench, &["-p", "/tools:ask the weather"]);
    go(&bench, &["-p", "/tools:about"]);
    let sent = |number: usize| requests(&bench)[number]["messages"].to_string();
    assert!(sent(0).contains("Ask about the weather."), "{}", sent(0));
    assert!(sent(1).contains("Say what this is."), "{}", sent(1));
}

#[test]
fn commands_about_servers_know_those_of_plugins() {
    let bench = bench(ok());
    everything(&user_root(&bench).join("tools"), "tools", "1.0.0");
    let listed = bench.run(["mcp", "list"]);
    assert!(
        listed.stdout.starts_with("tools:stub  plugin"),
        "{listed:?}"
    );
    let shown = bench.run(["mcp", "get", "tools:stub"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let script = shown["args"][0].as_str().unwrap();
    assert!(script.ends_with("tools/mcp/server.py"), "{shown}");
    let status = bench.run(["mcp", "status", "--json"]);
    let rows: Value = serde_json::from_str(&status.stdout).unwrap();
    assert_eq!(rows[0]["name"], "tools:stub");
    assert_eq!(rows[0]["status"], "connected", "{rows}");
    plugin_ok(&bench, &["disable", "tools"]);
    assert!(bench.run(["mcp", "list"]).stdout.contains("no MCP servers"));
}
