//! Servers in the settings files.

use std::fs;
use std::path::PathBuf;

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{Ran, bare, run};

pub(crate) struct Place {
    pub(crate) home: tempfile::TempDir,
    pub(crate) workspace: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self {
            home: tempfile::tempdir().unwrap(),
            workspace: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = bare(self.home.path(), self.workspace.path());
        command.arg("mcp").args(args);
        command
    }

    pub(crate) fn mcp(&self, args: &[&str]) -> Ran {
        run(&mut self.command(args))
    }

    pub(crate) fn done(&self, args: &[&str]) -> String {
        let ran = self.mcp(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
        ran.stdout
    }

    fn user(&self) -> PathBuf {
        self.home.path().join(".config/caliban/settings.toml")
    }

    fn listed(&self) -> Value {
        serde_json::from_str(&self.done(&["list", "--json"])).unwrap()
    }
}

#[test]
fn servers_are_added_between_comments_and_removed_again() {
    let place = Place::new();
    assert!(place.done(&["list"]).contains("no MCP servers"));
    fs::create_dir_all(place.user().parent().unwrap()).unwrap();
    fs::write(place.user(), "# my settings\neffort = 'low' # for now\n").unwrap();
    place.done(&[
        "add",
        "files",
        "-e",
        "ROOT=/srv",
        "-e",
        "TOKEN=${TOKEN}",
        "--",
        "npx",
        "-y",
        "server",
        "--flag",
    ]);
    place.done(&[
        "add",
        "api",
        "https://a.example/mcp",
        "-H",
        "X-Key: hush",
        "--oauth",
        "auto",
    ]);
    place.done(&["add", "old", "--transport", "sse", "https://a.example/sse"]);
    let text = fs::read_to_string(place.user()).unwrap();
    assert!(
        text.starts_with("# my settings\neffort = 'low' # for now\n"),
        "{text}"
    );
    assert!(
        text.contains("[mcp_servers.files]\ncommand = \"npx\""),
        "{text}"
    );

    let listed = place.listed();
    assert_eq!(listed[0]["name"], "api");
    assert_eq!(listed[0]["scope"], "user");
    assert_eq!(listed[0]["headers"], json!({"X-Key": "****"}));
    assert_eq!(listed[0]["oauth"], "auto");
    assert_eq!(listed[1]["args"], json!(["-y", "server", "--flag"]));
    assert_eq!(
        listed[1]["env"],
        json!({"ROOT": "****", "TOKEN": "${TOKEN}"})
    );
    assert_eq!(listed[2]["type"], "sse");
    let shown = place.done(&["get", "api"]) + &place.done(&["list"]);
    assert!(!shown.contains("hush"), "{shown}");

    let again = place.mcp(&["add", "api", "https://b.example/mcp"]);
    assert_eq!(again.code, Some(78), "{}", again.stderr);
    assert!(again.stderr.contains("--force"), "{}", again.stderr);
    place.done(&["add", "api", "https://b.example/mcp", "--force"]);
    assert_eq!(place.listed()[0]["url"], "https://b.example/mcp");

    place.done(&["remove", "api"]);
    assert_eq!(place.listed().as_array().unwrap().len(), 2);
    assert_eq!(place.mcp(&["remove", "api"]).code, Some(78));
    assert_eq!(place.mcp(&["get", "api"]).code, Some(78));
}

#[test]
fn scopes_are_kept_apart() {
    let place = Place::new();
    for scope in ["user", "project", "local"] {
        let url = format!("https://{scope}.example/mcp");
        place.done(&["add", "s", &url, "--scope", scope]);
    }
    assert_eq!(place.listed()[0]["url"], "https://local.example/mcp");
    assert_eq!(place.listed()[0]["scope"], "local");
    let ran = place.mcp(&["remove", "s"]);
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("user, project, local"),
        "{}",
        ran.stderr
    );
    place.done(&["remove", "s", "--scope", "local"]);
    assert_eq!(place.listed()[0]["url"], "https://project.example/mcp");
}

#[test]
fn json_of_other_programs_is_understood() {
    let place = Place::new();
    place.done(&["add-json", "a", r#"{"command": "npx", "args": ["x"]}"#]);
    place.done(&[
        "add-json",
        "b",
        r#"{"url": "https://b.example"}"#,
        "--scope",
        "local",
    ]);
    assert_eq!(place.listed()[1]["type"], "http");
    for wrong in [
        "[]",
        "{}",
        r#"{"command": 1}"#,
        r#"{"comand": "x"}"#,
        r#"{"type": "stdio", "url": "https://b.example"}"#,
    ] {
        let ran = place.mcp(&["add-json", "c", wrong]);
        assert_eq!(ran.code, Some(64), "{wrong}: {}", ran.stderr);
    }
}

#[rstest]
#[case(&["add", "a__b", "--", "x"])]
#[case(&["add", "a.b", "--", "x"])]
#[case(&["add", "", "--", "x"])]
#[case(&["add", "a"])]
#[case(&["add", "a", "--transport", "stdio", "https://a.example"])]
#[case(&["add", "a", "--transport", "http", "ftp://a.example"])]
#[case(&["add", "a", "--oauth", "auto", "--", "x"])]
#[case(&["add", "a", "-e", "A=1", "https://a.example"])]
#[case(&["add", "a", "-e", "A", "--", "x"])]
#[case(&["add", "a", "-H", "A", "https://a.example"])]
#[case(&["add", "a", "--oauth", "manual", "https://a.example"])]
#[case(&["add", "a", "--scope", "managed", "--", "x"])]
fn what_makes_no_sense_is_not_written(#[case] args: &[&str]) {
    let place = Place::new();
    let ran = place.mcp(args);
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    assert!(!place.user().exists());
}

#[test]
fn an_older_file_is_not_put_out_of_use() {
    let place = Place::new();
    let older = place.home.path().join(".config/caliban/mcp.toml");
    fs::create_dir_all(older.parent().unwrap()).unwrap();
    fs::write(&older, "[servers.a]\ncommand = 'x'\n").unwrap();
    let ran = place.mcp(&["add", "b", "--", "y"]);
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
    assert!(ran.stderr.contains("mcp.toml"), "{}", ran.stderr);
    assert_eq!(place.listed()[0]["name"], "a");
}
