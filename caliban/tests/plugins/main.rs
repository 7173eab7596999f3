//! Plugins through the built binary: what they bring reaches the model, what nobody agreed to does
//! not, and they come and go as they are told to.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod agents;
mod brings;
mod formats;
mod inline;
mod installs;
mod lists;
mod locks;
mod managed;
mod markets;
mod names;
mod safety;
mod scopes;
#[path = "../support/mod.rs"]
mod support;
mod told;
mod wants;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use caliban_testkit::{After, Recorded, Reply, Script};
use serde_json::{Value, json};
use support::{Bench, Ran, Wire, run};

fn bench(script: Script) -> Bench {
    Bench::new(Wire::Anthropic, script)
}

fn ok() -> Script {
    Script::new([Reply::text("ok")]).after(After::RepeatLast)
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn program(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    write(path, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Where the user's plugins are.
fn user_root(bench: &Bench) -> PathBuf {
    bench.home.path().join(".local/share/caliban/plugins")
}

fn project_root(bench: &Bench) -> PathBuf {
    bench.workspace.path().join(".caliban/plugins")
}

/// Where handlers and servers leave a trace.
fn record(bench: &Bench) -> PathBuf {
    bench.home.path().join("record")
}

fn recorded(bench: &Bench) -> String {
    fs::read_to_string(record(bench)).unwrap_or_default()
}

/// A plugin with one of everything. Each part says its name; the hook and the server leave traces.
fn everything(directory: &Path, name: &str, version: &str) {
    let put = |file: &str, text: &str| write(&directory.join(file), text);
    let manifest = json!({"name": name, "version": version, "description": "One of everything"});
    put("plugin.json", &manifest.to_string());
    put(
        "skills/greet/SKILL.md",
        "---\nname: greet\ndescription: How to greet.\n---\nGreet from ${CLAUDE_PLUGIN_ROOT}, loudly.\n",
    );
    put(
        "commands/recap.md",
        "---\ndescription: Recaps\nallowed-tools: Bash\n---\nRecap $ARGUMENTS as the plugin says.\n",
    );
    put(
        "agents/scout.md",
        "---\nname: scout\ndescription: Looks around.\ntools: Read, Grep\nmodel: haiku\n---\nYou are the scout.\n",
    );
    put(
        "output-styles/terse.md",
        "---\nname: terse\ndescription: Few words.\n---\nUse few words.\n",
    );
    program(
        &directory.join("hooks/told.sh"),
        "#!/bin/sh\necho \"hook $CLAUDE_PLUGIN_ROOT ${CALIBAN_PLUGIN_ROOT:-unset}\" >> \"$RECORD\"\ncat >> \"$RECORD\"\n",
    );
    let hook = json!({"type": "command", "command": "${CALIBAN_PLUGIN_ROOT}/hooks/told.sh"});
    let hooks = json!({"hooks": {"PreToolUse": [{"matcher": "Read", "hooks": [hook]}]}});
    put("hooks/hooks.json", &hooks.to_string());
    let server = include_str!("../mcp/server.py");
    put("mcp/server.py", server);
    let servers = json!({"mcpServers": {"stub": {
        "command": "python3", "args": ["${CLAUDE_PLUGIN_ROOT}/mcp/server.py"],
    }}});
    put("mcp/.mcp.json", &servers.to_string());
}

/// A run with frames.
fn go(bench: &Bench, args: &[&str]) -> Ran {
    let mut command = bench.command();
    command
        .args(["--output-format", "stream-json", "--auto-allow"])
        .args(args)
        .env("RECORD", record(bench));
    if !args.contains(&"-p") {
        command.args(["-p", "go"]);
    }
    let ran = run(&mut command);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    ran
}

/// `caliban plugin` with these words.
fn plugin(bench: &Bench, args: &[&str]) -> Ran {
    run(&mut plugin_command(bench, args))
}

fn plugin_command(bench: &Bench, args: &[&str]) -> Command {
    let mut command = support::bare(bench.home.path(), bench.workspace.path());
    command
        .arg("plugin")
        .args(args)
        .env("RECORD", record(bench));
    command
}

/// The same where it must succeed.
fn plugin_ok(bench: &Bench, args: &[&str]) -> String {
    let ran = plugin(bench, args);
    assert_eq!(
        ran.code,
        Some(0),
        "{args:?}\n{}\n{}",
        ran.stdout,
        ran.stderr
    );
    ran.stdout
}

fn frames(ran: &Ran) -> Vec<Value> {
    ran.stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn init(ran: &Ran) -> Value {
    frames(ran).remove(0)
}

fn names(init: &Value) -> Vec<String> {
    let plugins = init["plugins"].as_array().unwrap();
    plugins
        .iter()
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect()
}

fn warnings(init: &Value) -> String {
    let all = init["warnings"].as_array().unwrap().iter();
    // What is said of `--auto-allow` is not about plugins.
    let others = all.filter(|it| !it.as_str().unwrap().starts_with("dangerous"));
    Value::Array(others.cloned().collect()).to_string()
}

/// The bodies of the requests that the model received.
fn requests(bench: &Bench) -> Vec<Value> {
    bench
        .server
        .model_requests()
        .iter()
        .map(Recorded::json)
        .collect()
}

fn tool<'a>(request: &'a Value, name: &str) -> &'a Value {
    let tools = request["tools"].as_array().unwrap();
    tools
        .iter()
        .find(|tool| tool["name"] == name)
        .unwrap_or(&Value::Null)
}

/// Serves files on this machine, for as long as the test lives.
struct Files {
    address: String,
}

impl Files {
    fn serve(directory: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let mut head = [0; 4096];
                let read = stream.read(&mut head).unwrap_or(0);
                let head = String::from_utf8_lossy(&head[..read]).into_owned();
                let path = head.split_whitespace().nth(1).unwrap_or("/").to_owned();
                let answer = match path.strip_prefix("/away/") {
                    Some(rest) => format!(
                        "HTTP/1.1 302 Found\r\nLocation: {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                        if rest == "plain" { "http://example.com/x" } else { rest },
                    )
                    .into_bytes(),
                    None => match fs::read(directory.join(path.trim_start_matches('/'))) {
                        Ok(body) => {
                            let head = format!(
                                "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                                body.len()
                            );
                            [head.into_bytes(), body].concat()
                        }
                        Err(_) => b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec(),
                    },
                };
                // Whoever left does not need it.
                let _ = stream.write_all(&answer);
            }
        });
        Self { address }
    }
}

/// A program of the system, which must succeed.
fn shell(directory: &Path, program: &str, args: &[&str]) -> String {
    let output = Command::new(program)
        .args(args)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{program} {args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

fn git(directory: &Path, args: &[&str]) -> String {
    let identity = [
        "-c",
        "user.name=t",
        "-c",
        "user.email=t@example.com",
        "-c",
        "init.defaultBranch=main",
    ];
    shell(directory, "git", &[&identity[..], args].concat())
}

fn commit(directory: &Path, message: &str) -> String {
    if !directory.join(".git").exists() {
        git(directory, &["init", "--quiet"]);
    }
    git(directory, &["add", "-A"]);
    git(directory, &["commit", "--quiet", "-m", message]);
    git(directory, &["rev-parse", "HEAD"]).trim().to_owned()
}
