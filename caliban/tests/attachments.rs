//! Images that a prompt names: what reaches the model of them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::io::Cursor;

use base64::Engine;
use caliban_testkit::{ModelEntry, Reply, Script};
use image::{ImageFormat, RgbImage};
use rstest::rstest;
use support::{Bench, Ran, Wire, run};

fn bench(wire: Wire, answers: usize) -> Bench {
    let script = Script::new((0..answers).map(|_| Reply::text("seen")));
    // A server that lists models says what each can do.
    let bench = Bench::new(wire, script.model(ModelEntry::new("llama3.1")));
    let mut picture = Cursor::new(Vec::new());
    RgbImage::new(3136, 40)
        .write_to(&mut picture, ImageFormat::Png)
        .unwrap();
    let picture = picture.into_inner();
    let workspace = bench.workspace.path();
    std::fs::write(workspace.join("damaged.png"), &picture[..60]).unwrap();
    std::fs::write(workspace.join("wide.png"), picture).unwrap();
    bench
}

/// The sizes of the images in the last request.
fn sizes(bench: &Bench) -> Vec<(u32, u32)> {
    let body = bench.server.model_requests().pop().unwrap().json();
    let messages = body["messages"].as_array().unwrap();
    messages
        .iter()
        .flat_map(|message| message["content"].as_array().unwrap())
        .filter_map(|block| block["source"]["data"].as_str())
        .map(|data| {
            let bytes = base64::engine::general_purpose::STANDARD.decode(data);
            let picture = image::load_from_memory(&bytes.unwrap()).unwrap();
            (picture.width(), picture.height())
        })
        .collect()
}

fn ask(bench: &Bench, args: &[&str]) -> Ran {
    bench.run(["-p", "look at @wide.png"].iter().chain(args))
}

#[test]
fn a_large_image_is_made_smaller_and_the_user_is_told() {
    let bench = bench(Wire::Anthropic, 2);
    let ran = ask(&bench, &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(sizes(&bench), [(1568, 20)]);
    assert!(ran.stderr.contains("[downscaled]"), "{}", ran.stderr);
    let config = bench.home.path().join("caliban.toml");
    std::fs::write(&config, "[images]\ndownscale_target = 784\n").unwrap();
    let ran = ask(&bench, &["--config", config.to_str().unwrap()]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(sizes(&bench), [(784, 10)]);
}

#[test]
fn a_damaged_image_is_refused_before_anything_is_sent() {
    let bench = bench(Wire::Anthropic, 0);
    let ran = bench.run(["-p", "@damaged.png", "--output-format", "json"]);
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
    assert!(ran.stderr.contains("damaged.png"), "{}", ran.stderr);
    assert!(bench.server.model_requests().is_empty());
}

#[test]
fn an_image_is_not_sent_twice_in_a_session() {
    let bench = bench(Wire::Anthropic, 2);
    for _ in 0..2 {
        let ran = ask(&bench, &["--session", "pictures"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert_eq!(sizes(&bench), [(1568, 20)]);
    }
}

#[rstest]
#[case(None, Some(1))]
#[case(Some("true"), Some(1))]
#[case(Some("false"), Some(0))]
fn a_model_that_cannot_see_gets_no_images(
    #[case] strict: Option<&str>,
    #[case] code: Option<i32>,
    #[values(
        (Wire::Ollama, "llama3.1"),
        (Wire::Anthropic, "claude-2.1"),
        (Wire::Responses, "o3-mini"),
        (Wire::Chat, "openai/gpt-oss-120b")
    )]
    (wire, model): (Wire, &str),
) {
    let bench = bench(wire, 1);
    let mut command = bench.command();
    command.args(["-p", "look at @wide.png", "--model", model]);
    command.envs(strict.map(|value| ("CALIBAN_STRICT_ROUTING", value)));
    let ran = run(&mut command);
    assert_eq!(ran.code, code, "{}", ran.stderr);
    let sent = bench.server.model_requests();
    if code == Some(0) {
        let body = sent[0].json();
        assert!(body.to_string().contains("[image omitted]"), "{body}");
    } else {
        assert!(ran.stderr.contains("no candidate"), "{}", ran.stderr);
        assert!(
            ran.stderr.contains("use a model that can see"),
            "{}",
            ran.stderr
        );
        assert!(sent.is_empty(), "{sent:?}");
    }
}
