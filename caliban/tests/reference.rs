//! The reference pages that only the program itself can write: its commands and its tools. With
//! `UPDATE_DOCS=1` they are written, otherwise they must be current.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::fmt::Write;
use std::path::Path;

use caliban_testkit::{Reply, Script};
use serde_json::Value;
use support::{Bench, Wire, bare, run};

fn hold(name: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../docs/reference")
        .join(name);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "{} is out of date: run `cargo xtask docs`",
        path.display()
    );
}

fn help(command: &[String]) -> String {
    let home = tempfile::tempdir().unwrap();
    let mut program = bare(home.path(), home.path());
    program.args(command).arg("--help").env("COLUMNS", "100");
    let ran = run(&mut program);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines = ran.stdout.lines().map(str::trim_end);
    lines.collect::<Vec<_>>().join("\n")
}

/// The names under `Commands:`.
fn subcommands(help: &str) -> Vec<String> {
    let lines = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let rows = lines.take_while(|line| !line.is_empty());
    rows.filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .map(str::to_owned)
        .collect()
}

fn describe(command: &[String], page: &mut String) {
    let text = help(command);
    let title = ["caliban".to_owned()]
        .iter()
        .chain(command)
        .cloned()
        .collect::<Vec<_>>()
        .join(" ");
    writeln!(page, "\n## `{title}`\n\n```text\n{text}\n```").unwrap();
    for name in subcommands(&text) {
        let inner: Vec<String> = command.iter().cloned().chain([name]).collect();
        describe(&inner, page);
    }
}

#[test]
fn the_page_of_commands_is_current() {
    let mut page =
        "# Commands and flags\n\nWhat `--help` says, all of it. This page is written by \
                    `cargo xtask docs`.\n"
            .to_owned();
    describe(&[], &mut page);
    hold("commands.md", &page);
}

#[test]
fn the_page_of_tools_is_current() {
    let bench = Bench::new(Wire::Anthropic, Script::new([Reply::text("ok")]));
    let ran = bench.run(["-p", "go"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let request = bench.server.model_requests()[0].json();
    let mut page = "# Tools\n\nWhat a model is told about the tools, exactly as it is sent. This \
                    page is written by `cargo xtask docs`; the chapter on [tools](../tools.md) \
                    explains them.\n"
        .to_owned();
    for tool in request["tools"].as_array().unwrap() {
        let text = |key: &str| tool[key].as_str().unwrap_or_default().to_owned();
        writeln!(page, "\n## `{}`\n", text("name")).unwrap();
        for line in text("description").lines() {
            writeln!(page, "> {line}").unwrap();
        }
        parameters(&tool["input_schema"], &mut page);
    }
    hold("tools.md", &page);
}

#[test]
fn what_servers_speak_is_described() {
    for (name, document) in [
        ("../serve.schema.json", caliban_serve::lines_schema()),
        ("../serve.openapi.json", caliban_serve_http::openapi()),
    ] {
        let text = serde_json::to_string_pretty(&document).unwrap();
        hold(name, &(text + "\n"));
    }
}

fn parameters(schema: &Value, page: &mut String) {
    let fields = schema["properties"].as_object();
    let Some(fields) = fields.filter(|fields| !fields.is_empty()) else {
        return;
    };
    let required = schema["required"].as_array();
    page.push_str("\n| field | type | |\n| --- | --- | --- |\n");
    for (name, field) in fields {
        let is_required = required.is_some_and(|names| names.iter().any(|known| known == name));
        let description = field["description"].as_str().unwrap_or_default();
        let description = description.replace('\n', " ").replace('|', "\\|");
        let kind = field["type"].as_str().unwrap_or("one of several");
        let kind = if is_required {
            format!("{kind}, required")
        } else {
            kind.to_owned()
        };
        writeln!(page, "| `{name}` | {kind} | {description} |").unwrap();
    }
}
