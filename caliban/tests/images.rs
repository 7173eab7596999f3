//! Images of every source go through one pipeline: what a provider gets is an image, and small enough.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

#[path = "support/malformed.rs"]
mod malformed;
mod support;

use std::io::{BufRead, BufReader, Cursor, Write};
use std::process::{Child, ChildStdout, Stdio};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use caliban_testkit::{Reply, Script};
use image::{ImageFormat, RgbImage};
use malformed::{corpus, stuffed_with_a_profile, stuffed_with_data};
use rstest::rstest;
use serde_json::{Value, json};
use support::{Bench, Wire};

fn picture() -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    RgbImage::new(3136, 40)
        .write_to(&mut bytes, ImageFormat::Png)
        .unwrap();
    bytes.into_inner()
}

fn bench(replies: Vec<Reply>) -> Bench {
    Bench::new(Wire::Anthropic, Script::new(replies))
}

/// The sizes of all images in the last request.
fn sizes(bench: &Bench) -> Vec<(u32, u32)> {
    fn gather(value: &Value, sizes: &mut Vec<(u32, u32)>) {
        match value {
            Value::Object(fields) => {
                if let (Some("base64"), Some(data)) = (
                    fields.get("type").and_then(Value::as_str),
                    fields.get("data").and_then(Value::as_str),
                ) {
                    let seen = image::load_from_memory(&STANDARD.decode(data).unwrap()).unwrap();
                    sizes.push((seen.width(), seen.height()));
                }
                fields.values().for_each(|value| gather(value, sizes));
            }
            Value::Array(values) => values.iter().for_each(|value| gather(value, sizes)),
            _ => {}
        }
    }
    let mut sizes = Vec::new();
    let body = bench.server.model_requests().pop().unwrap().json();
    gather(&body["messages"], &mut sizes);
    sizes
}

/// A user frame of the claude dialect with images.
fn user_frame(images: &[&[u8]]) -> String {
    let image = |bytes: &&[u8]| {
        let data = STANDARD.encode(bytes);
        let source = json!({"type": "base64", "media_type": "image/png", "data": data});
        json!({"type": "image", "source": source})
    };
    let mut content = vec![json!({"type": "text", "text": "look"})];
    content.extend(images.iter().map(image));
    let message = json!({"role": "user", "content": content});
    let frame =
        json!({"type": "user", "message": message, "session_id": "", "parent_tool_use_id": null});
    format!("{frame}\n")
}

/// What the program says to such frames, which are not of our schema.
fn talk(bench: &Bench, input: &str) -> String {
    let mut command = bench.command();
    command
        .args(["--dialect", "claude", "-p", "--verbose"])
        .args([
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
        ])
        .stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn an_image_of_a_user_frame_is_made_to_fit() {
    let bench = bench(vec![Reply::text("seen")]);
    talk(&bench, &user_frame(&[&picture()]));
    assert_eq!(sizes(&bench), [(1568, 20)]);
}

#[test]
fn what_is_no_image_is_refused_before_it_is_sent_and_the_session_goes_on() {
    let bench = bench(vec![Reply::text("seen")]);
    let garbage = [7_u8; 70];
    let input = user_frame(&[&garbage]) + &user_frame(&[&picture()]);
    let said = talk(&bench, &input);
    assert!(
        said.contains("image 1 of the message is not a png"),
        "{said}"
    );
    assert_eq!(bench.server.model_requests().len(), 1);
    assert_eq!(sizes(&bench), [(1568, 20)]);
}

#[test]
fn a_message_has_at_most_twenty_images() {
    let bench = bench(vec![Reply::text("seen")]);
    let pictures: Vec<Vec<u8>> = (1..=21)
        .map(|width| {
            let mut bytes = Cursor::new(Vec::new());
            let picture = RgbImage::new(width, 1);
            picture.write_to(&mut bytes, ImageFormat::Png).unwrap();
            bytes.into_inner()
        })
        .collect();
    for (number, picture) in pictures.iter().enumerate() {
        let path = bench.workspace.path().join(format!("{number}.png"));
        std::fs::write(path, picture).unwrap();
    }
    let named: Vec<String> = (0..21).map(|number| format!("@{number}.png")).collect();
    let ran = bench.run(["-p", &named.join(" ")]);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("at most 20"), "{}", ran.stderr);
    assert!(bench.server.model_requests().is_empty());
    let ran = bench.run(["-p", &named[..20].join(" ")]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(sizes(&bench).len(), 20);
}

#[test]
fn an_image_that_is_read_is_made_to_fit_or_refused() {
    let read = |name: &str| Reply::tool("Read", json!({"path": name}));
    let bench = bench(vec![
        read("wide.png"),
        read("broken.png"),
        Reply::text("done"),
    ]);
    let workspace = bench.workspace.path();
    std::fs::write(workspace.join("wide.png"), picture()).unwrap();
    std::fs::write(workspace.join("broken.png"), &picture()[..40]).unwrap();
    let ran = bench.run(["-p", "go"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(sizes(&bench), [(1568, 20)]);
    let body = bench.server.model_requests().pop().unwrap().json();
    let told = body["messages"].to_string();
    assert!(
        told.contains("cannot be shown: it is damaged"),
        "{told:.500}"
    );
    assert!(told.contains("[downscaled]"), "{told:.500}");
}

#[test]
fn other_kinds_of_images_are_not_sent_as_text() {
    let bench = bench(Vec::new());
    let mut bitmap = b"BM".to_vec();
    bitmap.extend([0; 60]);
    std::fs::write(bench.workspace.path().join("x.bmp"), &bitmap).unwrap();
    std::fs::write(bench.workspace.path().join("x.dat"), &bitmap).unwrap();
    for (prompt, said) in [
        ("@x.bmp", "is not a png, jpeg, gif or webp image"),
        ("@x.dat", "is not a text file"),
    ] {
        let ran = bench.run(["-p", prompt]);
        assert_eq!(ran.code, Some(78), "{}", ran.stderr);
        assert!(ran.stderr.contains(said), "{}", ran.stderr);
    }
    assert!(bench.server.model_requests().is_empty());
}

#[test]
fn the_limits_of_texts_are_not_those_of_images() {
    let bench = bench(vec![Reply::text("seen")]);
    std::fs::write(bench.workspace.path().join("wide.png"), picture()).unwrap();
    let ran = bench.run(["-p", "@wide.png", "--max-attach-bytes", "10"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(sizes(&bench), [(1568, 20)]);
}

#[test]
fn an_image_survives_resuming_copying_taking_back_and_exporting() {
    let bench = bench((0..6).map(|_| Reply::text("seen")).collect());
    std::fs::write(bench.workspace.path().join("wide.png"), picture()).unwrap();
    let run = |args: &[&str]| {
        let ran = bench.run(args);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ran
    };
    run(&["-p", "look at @wide.png", "--session", "s"]);
    run(&["-p", "again", "-r", "s"]);
    assert_eq!(sizes(&bench), [(1568, 20)]);
    run(&["-p", "in a copy", "-r", "s", "--fork-session"]);
    assert_eq!(sizes(&bench), [(1568, 20)]);
    run(&["rewind", "--session", "s", "--to", "0"]);
    run(&["-p", "without it", "-r", "s"]);
    assert!(sizes(&bench).is_empty());
    run(&["rewind", "--session", "s", "--to", "2"]);
    run(&["-p", "with it", "-r", "s"]);
    assert_eq!(sizes(&bench), [(1568, 20)]);
    let exported = run(&["sessions", "export", "s", "--format", "json"]).stdout;
    let exported: Value = serde_json::from_str(&exported).unwrap();
    assert!(exported.to_string().contains("image/png"), "{exported}");
    run(&["sessions", "rm", "s"]);
}

/// A way by which an image comes to a model.
#[derive(Debug, Clone, Copy)]
enum Way {
    Named,
    Read,
    ToolOfServer,
    ResourceOfServer,
    ClaudeFrame,
    Editor,
    Application,
}

impl Way {
    /// Brings the file along, and says what the person or the model was told of it.
    fn bring(self, bench: &Bench, name: &str, bytes: &[u8]) -> String {
        let prompt = |prompt: &str| {
            let mut command = bench.command();
            command.args(["-p", prompt, "--auto-allow", "--mcp-config", "servers.json"]);
            support::run(&mut command)
        };
        let refused = |ran: support::Ran| {
            assert_eq!(ran.code, Some(78), "{name}: {ran:?}");
            ran.stderr
        };
        let told = |tool: &str, input: Value| {
            bench.server.push(Reply::tool(tool, input));
            bench.server.push(Reply::text("I saw nothing."));
            let ran = prompt("show it");
            assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
            let request = bench.server.model_requests().pop().unwrap().json();
            request["messages"][2].to_string()
        };
        match self {
            Self::Named => refused(prompt(&format!("look at @{name}"))),
            Self::Read => told("Read", json!({"path": name})),
            Self::ToolOfServer => told("mcp__art__picture", json!({})),
            Self::ResourceOfServer => {
                bench.server.push(Reply::text("I saw nothing."));
                let ran = prompt("look at @art:shot");
                match ran.code {
                    // What does not even look like one is described in words.
                    Some(0) => bench
                        .server
                        .model_requests()
                        .pop()
                        .unwrap()
                        .json()
                        .to_string(),
                    _ => refused(ran),
                }
            }
            Self::ClaudeFrame => talk(bench, &user_frame(&[bytes])),
            Self::Editor => {
                let mut editor = Talk::start(bench, &["serve", "acp"]);
                editor.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
                    "params": {"protocolVersion": 1, "clientCapabilities": {}}}));
                let workspace = bench.workspace.path().canonicalize().unwrap();
                let opened = editor
                    .ask(&json!({"jsonrpc": "2.0", "id": 2, "method": "session/new",
                    "params": {"cwd": workspace, "mcpServers": []}}));
                let image = json!({"type": "image", "mimeType": "image/png",
                    "data": STANDARD.encode(bytes)});
                let answer = editor.ask(&json!({"jsonrpc": "2.0", "id": 3,
                    "method": "session/prompt",
                    "params": {"sessionId": opened["result"]["sessionId"], "prompt": [image]}}));
                answer["error"].to_string()
            }
            Self::Application => {
                let mut application = Talk::start(bench, &["serve", "app"]);
                application.ask(&json!({"op": "open", "id": "1", "tab": "a"}));
                let source = json!({"type": "base64", "media_type": "image/png",
                    "data": STANDARD.encode(bytes)});
                let content = json!([{"type": "image", "source": source}]);
                let send = json!({"op": "send", "id": "2", "tab": "a", "request": "r", "content": content});
                let answer = application.ask(&send);
                match answer.get("error") {
                    Some(error) => error.to_string(),
                    None => application
                        .until(|line| line["event"]["type"] == "result")
                        .to_string(),
                }
            }
        }
    }
}

/// A program that is talked to in lines.
struct Talk {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Talk {
    fn start(bench: &Bench, args: &[&str]) -> Self {
        let mut command = bench.command();
        let mut child = command.args(args).stdin(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    fn ask(&mut self, request: &Value) -> Value {
        let input = self.child.stdin.as_mut().unwrap();
        writeln!(input, "{request}").unwrap();
        self.until(|line| line["id"] == request["id"] || line["re"] == request["id"])
    }

    fn until(&mut self, is_it: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut line = String::new();
            assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "it ended");
            let line = serde_json::from_str(&line).unwrap();
            if is_it(&line) {
                return line;
            }
        }
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A server that shows the file.
fn served(bench: &Bench, name: &str) {
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
    let file = bench.workspace.path().join(name);
    let servers = json!({"mcpServers": {"art": {
        "command": "python3", "args": [server], "env": {"PICTURE": file}}}});
    let configuration = bench.workspace.path().join("servers.json");
    std::fs::write(&configuration, servers.to_string()).unwrap();
}

#[rstest]
#[case::named(Way::Named)]
#[case::read(Way::Read)]
#[case::tool_of_a_server(Way::ToolOfServer)]
#[case::resource_of_a_server(Way::ResourceOfServer)]
#[case::claude_frame(Way::ClaudeFrame)]
#[case::editor(Way::Editor)]
#[case::application(Way::Application)]
fn nothing_malformed_reaches_a_provider(#[case] way: Way) {
    for (name, bytes) in corpus() {
        let bench = bench(Vec::new());
        std::fs::write(bench.workspace.path().join(name), &bytes).unwrap();
        served(&bench, name);
        let told = way.bring(&bench, name, &bytes);
        let reasons = [
            "     1\\t",
            "is damaged",
            "too many pixels",
            "is not a png",
            "not shown",
            "is not a text file",
            "is binary data",
        ];
        assert!(
            reasons.iter().any(|reason| told.contains(reason)),
            "{name}: {told}"
        );
        for request in bench.server.model_requests() {
            let sent = String::from_utf8_lossy(&request.body).into_owned();
            assert!(!sent.contains("\"base64\""), "{name}: {sent:.500}");
        }
    }
}

/// A whole picture by the same ways, so that nothing above is refused for another reason.
#[rstest]
#[case::read(Way::Read)]
#[case::tool_of_a_server(Way::ToolOfServer)]
#[case::resource_of_a_server(Way::ResourceOfServer)]
fn what_is_whole_goes_by_the_same_ways(#[case] way: Way) {
    let bench = bench(Vec::new());
    std::fs::write(bench.workspace.path().join("wide.png"), picture()).unwrap();
    served(&bench, "wide.png");
    way.bring(&bench, "wide.png", &picture());
    assert_eq!(sizes(&bench), [(1568, 20)]);
}

/// The data that a picture needs is a few bytes; a profile may be unpacked up to the bound of
/// decoders, which is 512 MiB, and not beyond.
#[cfg(target_os = "linux")]
#[rstest]
#[case::data(stuffed_with_data(), 150)]
#[case::profile(stuffed_with_a_profile(), 700)]
fn a_decoder_has_its_bound(#[case] bytes: Vec<u8>, #[case] most_megabytes: u64) {
    let bench = bench(vec![Reply::text("seen")]);
    std::fs::write(bench.workspace.path().join("stuffed.png"), bytes).unwrap();
    let mut command = bench.command();
    command.args(["-p", "look at @stuffed.png"]);
    command.stdin(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut most: u64 = 0;
    // The kernel keeps the high mark; what is read last before the end is close enough to it.
    while child.try_wait().unwrap().is_none() {
        let path = format!("/proc/{}/status", child.id());
        let status = std::fs::read_to_string(path).unwrap_or_default();
        let mark = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = mark.and_then(|mark| mark.trim().strip_suffix(" kB")?.parse().ok());
        most = kilobytes.unwrap_or(0).max(most);
        std::thread::yield_now();
    }
    assert!(most > 0 && most / 1024 < most_megabytes, "{most} kB");
}

#[test]
fn what_images_are_about_worth_is_told() {
    let bench = bench(vec![Reply::text("seen")]);
    std::fs::write(bench.workspace.path().join("wide.png"), picture()).unwrap();
    let ran = bench.run(["-p", "look at @wide.png", "--session", "s"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // It was sent with 1568 by 20 pixels: 31360 / 750, rounded up.
    let ran = bench.run(["-p", "/usage", "--session", "s"]);
    assert!(
        ran.stdout
            .contains("1, by their size about 42 tokens (estimated)"),
        "{}",
        ran.stdout
    );
    let ran = bench.run(["-p", "/usage", "--session", "s", "--output-format", "json"]);
    let told: Value = serde_json::from_str(&ran.stdout).unwrap();
    let images = json!({"count": 1, "estimated_tokens": 42});
    assert_eq!(told["report"]["images"], images, "{told}");
}
