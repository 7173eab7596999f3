//! What trust covers, and what the user's settings keep to themselves.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Bench, run};
use crate::{answers, bench, init, plain, project, user, warnings, write};

/// A program of the workspace that leaves a mark.
fn program(bench: &Bench, body: &str) -> PathBuf {
    let path = bench.workspace.path().join("tools/program.sh");
    let mark = bench.home.path().join("ran");
    write(
        &path,
        &format!("#!/bin/sh\necho >> '{}'\n{body}\n", mark.display()),
    );
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    mark
}

fn trust(bench: &Bench) -> String {
    let ran = run(plain(bench).arg("trust"));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.stdout
}

#[rstest]
#[case::hook(
    "[[hooks.UserPromptSubmit]]\n[[hooks.UserPromptSubmit.handlers]]\ntype = 'command'\n\
     command = './tools/program.sh --check'\n"
)]
#[case::server("[mcp_servers.x]\ncommand = 'sh'\nargs = ['tools/program.sh']\n")]
#[case::key("api_key_helper = 'tools/program.sh'")]
fn trust_covers_the_programs_that_are_started(#[case] settings: &str) {
    let bench = bench(answers());
    let mark = program(&bench, "echo key");
    project(&bench, settings);
    assert!(trust(&bench).contains("tools/program.sh"));
    init(&mut plain(&bench));
    let before = std::fs::read(&mark).unwrap().len();
    assert!(before > 0);
    // What a pull brings is not what was trusted.
    program(&bench, "echo other");
    let init = init(&mut plain(&bench));
    assert_eq!(init["trusted"], false);
    assert!(init["warnings"].to_string().contains("is not trusted"));
    assert_eq!(std::fs::read(&mark).unwrap().len(), before);
    trust(&bench);
    assert_eq!(crate::init(&mut plain(&bench))["trusted"], true);
    assert!(std::fs::read(&mark).unwrap().len() > before);
}

#[test]
fn other_files_of_the_workspace_do_not_matter() {
    let bench = bench(answers());
    program(&bench, "");
    project(
        &bench,
        "api_key_helper = 'tools/program.sh'\n[permissions]\nallow = ['Edit:src/a.rs']",
    );
    write(&bench.workspace.path().join("src/a.rs"), "a");
    trust(&bench);
    write(&bench.workspace.path().join("src/a.rs"), "b");
    let shown = run(plain(&bench).args(["config", "print"]));
    assert!(!shown.stdout.contains("is not trusted"), "{}", shown.stdout);
}

fn effective(command: &mut Command) -> Value {
    let ran = run(command.args(["config", "print", "--show-secrets"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[rstest]
#[case::url(
    "type = 'http'\nurl = 'https://mine'\nheaders = { Authorization = 'secret' }",
    "type = 'http'\nurl = 'https://theirs'"
)]
#[case::command("command = 'mine'\nenv = { TOKEN = 'secret' }", "command = 'theirs'")]
#[case::arguments(
    "command = 'npx'\nargs = ['mine']\nenv = { TOKEN = 'secret' }",
    "args = ['theirs']"
)]
#[case::directory("command = './mine'\nenv = { TOKEN = 'secret' }", "cwd = 'theirs'")]
fn what_the_user_confides_never_reaches_what_the_project_wrote(
    #[case] users: &str,
    #[case] projects: &str,
) {
    let bench = bench(answers());
    user(&bench, &format!("[mcp_servers.x]\n{users}\n"));
    project(&bench, &format!("[mcp_servers.x]\n{projects}\n"));
    let shown = effective(plain(&bench).arg("--trust-workspace"));
    let server = &shown["settings"]["mcp_servers"]["x"];
    assert!(!server.to_string().contains("secret"), "{server}");
    assert!(server.to_string().contains("theirs"), "{server}");
    assert!(
        shown["warnings"].to_string().contains("is not passed on"),
        "{shown}"
    );
    // Without trust it is the user's, with everything.
    let shown = effective(&mut plain(&bench));
    let server = &shown["settings"]["mcp_servers"]["x"];
    assert!(server.to_string().contains("secret"), "{server}");
}

#[test]
fn a_project_may_add_to_a_server_of_the_users() {
    let bench = bench(answers());
    let adds = "[mcp_servers.x]\nenv = { B = '2' }\n";
    user(
        &bench,
        "[mcp_servers.x]\ncommand = 'mine'\nenv = { A = '1' }\ndisabled = true\n",
    );
    project(&bench, adds);
    let shown = effective(plain(&bench).arg("--trust-workspace"));
    let server = &shown["settings"]["mcp_servers"]["x"];
    assert_eq!(server["env"], json!({"A": "1", "B": "2"}));
    // Who lacks the server is told, and not stopped.
    let told = warnings(plain(&bench).args(["--trust-workspace", "--setting-sources", "project"]));
    assert_eq!(
        told,
        [
            "`mcp_servers.x` of the project scope adds to a server that no other scope has; it is left out"
        ]
    );
    // In a file of one's own that is a mistake.
    user(&bench, adds);
    let ran = run(plain(&bench).args(["-p", "hi", "--setting-sources", "user"]));
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
}

#[test]
fn a_server_of_mcp_toml_stands_as_a_whole() {
    let bench = bench(answers());
    let file = |directory: PathBuf, text: &str| write(&directory.join("mcp.toml"), text);
    file(
        bench.home.path().join(".config/caliban"),
        "[mcp_servers.x]\ncommand = 'mine'\ncwd = '/mine'\nenv = { TOKEN = 'secret' }\n[mcp_servers.y]\ncommand = 'y'\n",
    );
    file(
        bench.workspace.path().join(".caliban"),
        "[mcp_servers.x]\ncommand = 'theirs'\n",
    );
    let shown = effective(plain(&bench).arg("--trust-workspace"));
    let servers = &shown["settings"]["mcp_servers"];
    assert_eq!(servers["x"], json!({"command": "theirs"}));
    assert_eq!(servers["y"], json!({"command": "y"}));
    let shown = effective(&mut plain(&bench));
    assert_eq!(shown["settings"]["mcp_servers"]["x"]["command"], "mine");
}

#[test]
fn the_workspace_of_a_command_may_be_named_before_it() {
    let bench = bench(answers());
    project(&bench, "api_key_helper = 'x'");
    let elsewhere = tempfile::tempdir().unwrap();
    let named = |words: &[&str]| {
        let mut command = plain(&bench);
        command.current_dir(elsewhere.path());
        command.arg("--workspace").arg(bench.workspace.path());
        run(command.args(words))
    };
    let granted = named(&["trust"]);
    assert!(granted.stdout.contains("settings.toml"), "{granted:?}");
    let revoked = named(&["trust", "--revoke"]);
    assert!(
        revoked.stdout.contains("is no longer trusted"),
        "{revoked:?}"
    );
}
