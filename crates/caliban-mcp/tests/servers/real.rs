//! The reference servers, as people run them. `cargo xtask setup` installs them.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use caliban_agent::{ProgressKind, ToolStatus};
use caliban_mcp::{Servers, Status};
use caliban_model::ToolContent;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::support::{Place, find, names, settings, status};

/// What is installed for tests, or why there is no test.
fn installed(path: &str) -> PathBuf {
    let environment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/test-env");
    let program = environment.join(path);
    assert!(
        program.exists(),
        "`{path}` is not installed in target/test-env; run `cargo xtask setup` first"
    );
    program.canonicalize().unwrap()
}

fn node(name: &str) -> PathBuf {
    installed(&format!("node/node_modules/.bin/{name}"))
}

async fn start(place: &Place, config: Value) -> Servers {
    let servers = Servers::start([("srv".to_owned(), settings(config))], place.parts());
    servers.settle(Duration::from_mins(1)).await;
    assert!(
        matches!(status(&servers), Status::Connected { .. }),
        "{:?}\n{:?}",
        servers.status(),
        place.heard
    );
    servers
}

/// What the reference server can do, over any transport.
async fn exercise(place: &Place, servers: &Servers) {
    let output = place
        .run(servers, "mcp__srv__echo", json!({"message": "hi"}))
        .await;
    assert_eq!(output.text(), "Echo: hi");
    let output = place
        .run(servers, "mcp__srv__get-sum", json!({"a": 2, "b": 3}))
        .await;
    assert!(output.text().contains('5'), "{}", output.text());
    let output = place
        .run(servers, "mcp__srv__get-sum", json!({"a": "x"}))
        .await;
    assert_eq!(output.status, ToolStatus::Failed, "{}", output.text());
    let output = place
        .run(servers, "mcp__srv__get-tiny-image", json!({}))
        .await;
    assert!(
        output
            .content
            .iter()
            .any(|part| matches!(part, ToolContent::Image(_)))
    );
    let (context, mut reports) = place.reporting();
    let input = json!({"duration": 0.2, "steps": 2});
    let long = find(servers, "mcp__srv__trigger-long-running-operation").await;
    let output = long.run(input, context).await;
    assert_eq!(output.status, ToolStatus::Ok, "{}", output.text());
    let report = reports.recv().await.unwrap();
    assert!(matches!(report.kind, ProgressKind::Output(_)));
    let resources = servers.resources("srv").await.unwrap();
    assert!(!resources.is_empty());
    let prompts = servers.prompts().await;
    assert!(
        prompts.iter().any(|prompt| prompt.name == "simple-prompt"),
        "{prompts:?}"
    );
    let text = servers
        .get_prompt("srv", "simple-prompt", &[].into())
        .await
        .unwrap();
    assert!(!text.is_empty());
}

#[tokio::test]
async fn the_reference_server_over_stdio() {
    let place = Place::new();
    let config = json!({"command": node("mcp-server-everything"), "args": ["stdio"]});
    let servers = start(&place, config).await;
    exercise(&place, &servers).await;
    servers.shutdown(Duration::from_secs(10)).await;
}

/// The reference server on a port of its own.
async fn listening(transport: &str) -> (Child, u16) {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let mut child = Command::new(node("mcp-server-everything"))
        .arg(transport)
        .env("PORT", port.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let waiting = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(&port.to_string()) {
                break;
            }
        }
    };
    tokio::time::timeout(Duration::from_mins(1), waiting)
        .await
        .unwrap();
    // A pipe that nobody reads would stop it.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (child, port)
}

#[tokio::test]
async fn the_reference_server_over_streamable_http() {
    let place = Place::new();
    let (_child, port) = listening("streamableHttp").await;
    let config = json!({"type": "http", "url": format!("http://127.0.0.1:{port}/mcp")});
    let servers = start(&place, config).await;
    exercise(&place, &servers).await;
    servers.shutdown(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn the_reference_server_over_sse() {
    let place = Place::new();
    let (_child, port) = listening("sse").await;
    let config = json!({"type": "sse", "url": format!("http://127.0.0.1:{port}/sse")});
    let servers = start(&place, config).await;
    exercise(&place, &servers).await;
    servers.shutdown(Duration::from_secs(10)).await;
}

#[tokio::test]
async fn the_filesystem_server_sees_its_directory() {
    let place = Place::new();
    std::fs::write(place.path("note.txt"), "a note").unwrap();
    let config =
        json!({"command": node("mcp-server-filesystem"), "args": ["${CLAUDE_PROJECT_DIR}"]});
    let servers = start(&place, config).await;
    let path = place.path("note.txt").canonicalize().unwrap();
    let output = place
        .run(&servers, "mcp__srv__read_text_file", json!({"path": path}))
        .await;
    assert_eq!(output.text(), "a note");
    let output = place
        .run(
            &servers,
            "mcp__srv__read_text_file",
            json!({"path": "/etc/passwd"}),
        )
        .await;
    assert_eq!(output.status, ToolStatus::Failed, "{}", output.text());
}

#[tokio::test]
async fn the_memory_server_remembers() {
    let place = Place::new();
    let config = json!({
        "command": node("mcp-server-memory"),
        "env": {"MEMORY_FILE_PATH": "${CLAUDE_PROJECT_DIR}/memory.json"},
    });
    let servers = start(&place, config).await;
    let input = json!({"entities": [{"name": "Miranda", "entityType": "person", "observations": ["brave"]}]});
    place
        .run(&servers, "mcp__srv__create_entities", input)
        .await;
    let output = place.run(&servers, "mcp__srv__read_graph", json!({})).await;
    assert!(output.text().contains("Miranda"), "{}", output.text());
}

#[tokio::test]
async fn the_time_server_tells_the_time() {
    let place = Place::new();
    let config = json!({"command": installed("venv/bin/mcp-server-time"), "args": ["--local-timezone", "Europe/Berlin"]});
    let servers = start(&place, config).await;
    let output = place
        .run(
            &servers,
            "mcp__srv__get_current_time",
            json!({"timezone": "UTC"}),
        )
        .await;
    assert!(output.text().contains("UTC"), "{}", output.text());
}

#[tokio::test]
async fn the_git_server_knows_its_repository() {
    let place = Place::new();
    let git = std::process::Command::new("git")
        .args(["init", "-q"])
        .current_dir(place.root.path())
        .status();
    assert!(git.unwrap().success());
    let config = json!({"command": installed("venv/bin/mcp-server-git"), "args": ["--repository", "${CLAUDE_PROJECT_DIR}"]});
    let servers = start(&place, config).await;
    let path = place.root.path().canonicalize().unwrap();
    let output = place
        .run(&servers, "mcp__srv__git_status", json!({"repo_path": path}))
        .await;
    assert!(
        output.text().contains("No commits yet"),
        "{}",
        output.text()
    );
    assert!(names(&servers).len() > 5);
}
