//! Images of every source go through one pipeline: what a provider gets is an image, and small enough.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::io::{Cursor, Write};
use std::process::Stdio;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use caliban_testkit::{Reply, Script};
use image::{ImageFormat, RgbImage};
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

/// Files that claim to be images and are none, or unpack to more than anybody can hold.
fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let png = picture();
    let mut gif = Cursor::new(Vec::new());
    RgbImage::new(1, 1)
        .write_to(&mut gif, ImageFormat::Gif)
        .unwrap();
    let mut vast_gif = gif.into_inner();
    vast_gif[6..10].copy_from_slice(&[0xff; 4]);
    // The size stands in the first chunk of a PNG, which has a checksum of its own.
    let mut vast_png = png.clone();
    vast_png[16..24].copy_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff]);
    let mut jpeg = vec![0xff, 0xd8, 0xff, 0xe0, 0, 16];
    jpeg.extend(b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
    let mut webp = b"RIFF\xff\xff\xff\x7fWEBPVP8 \xff\xff\xff\x7f".to_vec();
    webp.extend([0; 64]);
    vec![
        ("cut.png", png[..60].to_vec()),
        ("head.png", png[..8].to_vec()),
        ("vast.png", vast_png),
        ("vast.gif", vast_gif),
        ("cut.jpg", jpeg),
        ("false.webp", webp),
        ("text.png", b"just words, and quite a few of them".to_vec()),
        ("zeros.gif", vec![0; 4096]),
    ]
}

#[test]
fn nothing_malformed_reaches_a_provider_from_any_source() {
    for (name, bytes) in corpus() {
        // Named in a prompt.
        let bench = bench(Vec::new());
        std::fs::write(bench.workspace.path().join(name), &bytes).unwrap();
        let ran = bench.run(["-p", &format!("look at @{name}")]);
        assert_eq!(ran.code, Some(78), "{name}: {ran:?}");
        assert!(ran.stderr.contains(name), "{ran:?}");
        assert!(bench.server.model_requests().is_empty(), "{name}");
        // In a frame.
        let said = talk(&bench, &user_frame(&[&bytes]));
        assert!(said.contains("image 1 of the message"), "{name}: {said}");
        assert!(bench.server.model_requests().is_empty(), "{name}");
        // Read by the model, and shown by a server.
        let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp/server.py");
        let file = bench.workspace.path().join(name);
        let servers = json!({"mcpServers": {"art": {
            "command": "python3", "args": [server], "env": {"PICTURE": file}}}});
        let configuration = bench.workspace.path().join("servers.json");
        std::fs::write(&configuration, servers.to_string()).unwrap();
        for reply in [
            Reply::tool("Read", json!({"path": name})),
            Reply::text("read"),
            Reply::tool("mcp__art__picture", json!({})),
            Reply::text("shown"),
        ] {
            bench.server.push(reply);
        }
        for prompt in ["read it", "show it"] {
            let mut command = bench.command();
            command
                .args(["-p", prompt, "--auto-allow", "--mcp-config"])
                .arg(&configuration);
            let ran = support::run(&mut command);
            assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
            assert_eq!(sizes(&bench), [], "{name}");
        }
    }
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
