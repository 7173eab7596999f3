//! Files and pictures that servers bring along: rules and the pipeline of images count for them too.

use std::io::Cursor;

use base64::Engine;
use image::{ImageFormat, RgbImage};
use serde_json::json;

use super::{bench, calls, frames, go, ok, settings, stub};

#[test]
fn a_resource_that_is_a_file_is_read_only_where_it_may_be() {
    let bench = bench(ok());
    let (home, workspace) = (bench.home.path(), bench.workspace.path());
    std::fs::create_dir(workspace.join("secrets")).unwrap();
    std::fs::create_dir(home.join(".ssh")).unwrap();
    for path in [
        workspace.join("secrets/a.txt"),
        workspace.join("open.txt"),
        home.join(".ssh/id_rsa"),
    ] {
        std::fs::write(path, "canary-7f3a").unwrap();
    }
    std::os::unix::fs::symlink("secrets/a.txt", workspace.join("link.txt")).unwrap();
    std::fs::hard_link(workspace.join("secrets/a.txt"), workspace.join("hard.txt")).unwrap();
    let settings = settings(&json!({"notes": stub(&json!({}))}));
    let read = |path: &str| {
        let prompt = format!("see @notes:file://{path}");
        let ran = go(
            &bench,
            &settings,
            &["--deny", "Read:secrets/**", "-p", &prompt],
        );
        let body = bench.server.model_requests().pop().unwrap().json();
        (ran, body.to_string().contains("canary-7f3a"))
    };
    let (home, workspace) = (home.display(), workspace.display());
    let (ran, was_read) = read(&format!("{workspace}/open.txt"));
    assert!(was_read, "{ran:?}");
    for closed in [
        format!("{workspace}/secrets/a.txt"),
        format!("{workspace}/link.txt"),
        format!("{workspace}/hard.txt"),
        format!("{workspace}/x/../secrets/a.txt"),
        format!("{home}/.ssh/id_rsa"),
    ] {
        let (ran, was_read) = read(&closed);
        assert!(!was_read, "{closed}: {ran:?}");
        let told = ran.stdout.contains("does not go along") || ran.code == Some(66);
        assert!(told, "{closed}: {ran:?}");
    }
}

#[test]
fn a_picture_of_a_server_is_made_to_fit_or_described() {
    let bench = bench(calls("mcp__art__picture", json!({})));
    let picture = bench.home.path().join("picture.png");
    let settings = settings(&json!({"art": stub(&json!({"PICTURE": picture}))}));
    let mut bytes = Cursor::new(Vec::new());
    RgbImage::new(3136, 40)
        .write_to(&mut bytes, ImageFormat::Png)
        .unwrap();
    let bytes = bytes.into_inner();
    let content = |bytes: &[u8]| {
        std::fs::write(&picture, bytes).unwrap();
        let ran = go(&bench, &settings, &["--auto-allow"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!frames(&ran).is_empty());
        let body = bench.server.model_requests().pop().unwrap().json();
        let last = body["messages"].as_array().unwrap().last().unwrap().clone();
        last["content"][0]["content"].clone()
    };
    let shown = content(&bytes);
    assert!(
        shown[0]["text"].as_str().unwrap().contains("[downscaled]"),
        "{shown}"
    );
    let data = shown[1]["source"]["data"].as_str().unwrap();
    let data = base64::engine::general_purpose::STANDARD
        .decode(data)
        .unwrap();
    let seen = image::load_from_memory(&data).unwrap();
    assert_eq!((seen.width(), seen.height()), (1568, 20));
}

#[test]
fn a_damaged_picture_of_a_server_is_described() {
    let bench = bench(calls("mcp__art__picture", json!({})));
    let picture = bench.home.path().join("picture.png");
    std::fs::write(&picture, b"\x89PNG\r\n\x1a\nnothing more").unwrap();
    let settings = settings(&json!({"art": stub(&json!({"PICTURE": picture}))}));
    let ran = go(&bench, &settings, &["--auto-allow"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let body = bench.server.model_requests().pop().unwrap().json();
    let last = body["messages"]
        .as_array()
        .unwrap()
        .last()
        .unwrap()
        .to_string();
    assert!(last.contains("cannot be shown: it is damaged"), "{last}");
    assert!(!last.contains("base64"), "{last}");
}
