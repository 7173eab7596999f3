//! Pictures on their way in and out, and lists in pages.

use caliban_testkit::{After, Reply, Script};
use serde_json::json;

use super::Http;
use crate::bench;
use crate::support::{Bench, Wire};

/// A PNG of one point, with so many bytes behind it that messages leave it out.
fn picture() -> Vec<u8> {
    let mut bytes =
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\
        \0\0\0\rIDATx\xdacd\xf8\xcfP\x0f\0\x03\x86\x01\x80Z4}k\0\0\0\0IEND\xaeB`\x82"
            .to_vec();
    bytes.resize(20_000, 0);
    bytes
}

#[test]
fn a_picture_is_uploaded_once_sent_by_its_digest_and_fetched_again() {
    let bench = bench([Reply::text("A point.")]);
    let http = Http::start(&bench, &[]);
    http.call("POST", "/v1/sessions", &json!({"tab": "a"}));
    let upload = |kind: &str, body: &[u8]| {
        let request = http.local("POST", "/v1/sessions/a/blobs");
        request.header("content-type", kind).body(body).answer()
    };
    assert_eq!(upload("text/html", b"<script>").status, 415);
    assert_eq!(upload("image/svg+xml", b"<svg/>").status, 415);
    assert_eq!(upload("image/png", b"").status, 413);
    let uploaded = upload("image/png", &picture());
    assert_eq!(uploaded.status, 201, "{uploaded:?}");
    let digest = uploaded.json()["digest"].as_str().unwrap().to_owned();

    let prompt = |digest: &str, request: &str| {
        json!({"request_id": request, "content": [
            {"type": "text", "text": "what is it?"},
            {"type": "image", "source": {"type": "blob", "digest": digest}},
        ]})
    };
    let path = "/v1/sessions/a/prompts?wait=true";
    assert_eq!(http.call("POST", path, &prompt("nothing", "x")).status, 400);
    let sent = http.call("POST", path, &prompt(&digest, "r"));
    assert_eq!(sent.json()["result"]["result"], "A point.");
    let request = bench.server.model_requests()[0].json().to_string();
    assert!(request.contains("image/png") && request.contains("iVBORw0KGgo"));

    // The message names it, and it is there under that name.
    let messages = http.local("GET", "/v1/sessions/a/messages").answer().json();
    let content = messages["messages"][0]["content"].as_array().unwrap();
    let source = content.iter().find(|block| block["type"] == "image");
    let source = &source.unwrap()["source"];
    assert_eq!(source["type"], "blob", "{messages}");
    let named = source["digest"].as_str().unwrap();
    let fetched = http
        .local("GET", &format!("/v1/sessions/a/blobs/{named}"))
        .bytes();
    assert_eq!(fetched.0, 200);
    assert!(fetched.1.starts_with(b"\x89PNG"));
    let missing = http.local("GET", "/v1/sessions/a/blobs/0123").answer();
    assert_eq!(
        (missing.status, &missing.json()["code"]),
        (404, &json!("no_such_blob"))
    );
    http.stop();
}

#[test]
fn lists_come_in_pages() {
    let script = Script::new([Reply::text("ok")]).after(After::RepeatLast);
    let bench = Bench::new(Wire::Anthropic, script);
    let http = Http::start(&bench, &[]);
    let get = |path: &str| http.local("GET", path).answer().json();
    for tab in ["a", "b", "c"] {
        http.call("POST", "/v1/sessions", &json!({"tab": tab}));
        let prompt = json!({"request_id": "r", "content": format!("prompt of {tab}")});
        http.call(
            "POST",
            &format!("/v1/sessions/{tab}/prompts?wait=true"),
            &prompt,
        );
    }
    let first = get("/v1/sessions?limit=2");
    assert_eq!(
        (&first["sessions"][1]["tab"], &first["cursor"]),
        (&json!("b"), &json!("b"))
    );
    let second = get("/v1/sessions?limit=2&cursor=b");
    assert_eq!(
        (&second["sessions"][0]["tab"], &second["cursor"]),
        (&json!("c"), &json!(null))
    );
    let stale = http.local("GET", "/v1/sessions?cursor=x").answer();
    assert_eq!(
        (stale.status, &stale.json()["code"]),
        (400, &json!("stale_cursor"))
    );

    // What is kept outlives its tab, and can be gone on with.
    http.local("DELETE", "/v1/sessions/a").answer();
    let saved = get("/v1/saved?limit=2");
    assert_eq!(saved["sessions"].as_array().unwrap().len(), 2);
    let rest = get(&format!(
        "/v1/saved?cursor={}",
        saved["cursor"].as_str().unwrap()
    ));
    let all = [&saved["sessions"], &rest["sessions"]].map(|it| it.as_array().unwrap().clone());
    let all = all.concat();
    let kept = all.iter().find(|it| it["title"] == "prompt of a").unwrap();
    let opened = http.call("POST", "/v1/sessions", &json!({"resume": kept["session"]}));
    assert_eq!(opened.status, 201, "{}", opened.text);

    // Events without a stream, for whoever asks from time to time.
    let page = |after: u64| {
        let path = format!("/v1/sessions/b/events?after={after}");
        let request = http
            .local("GET", &path)
            .header("accept", "application/json");
        request.answer().json()
    };
    let (mut after, mut seen) = (0, Vec::new());
    loop {
        let found = page(after);
        let events = found["events"].as_array().unwrap();
        if events.is_empty() {
            break;
        }
        for event in events {
            let seq = event["seq"].as_u64().unwrap();
            seen.extend(event["first"].as_u64().unwrap_or(seq)..=seq);
        }
        after = found["after"].as_u64().unwrap();
    }
    assert!(after > 3);
    assert_eq!(seen, (1..=after).collect::<Vec<_>>());
    let models = http.local("GET", "/v1/models").answer();
    assert_eq!(models.status, 200, "{}", models.text);
    http.stop();
}
