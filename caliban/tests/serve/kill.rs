//! What a server acknowledged outlives it, however it dies.

use caliban_testkit::{After, Match, Reply, Script};
use serde_json::{Value, json};

use crate::bench;
use crate::client::App;
use crate::support::{Bench, Wire};

fn send(request: &str) -> Value {
    json!({"tab": "a", "request": request, "content": format!("do {request}")})
}

#[test]
fn every_acknowledged_request_has_one_result_after_a_kill() {
    let bench = bench([
        Reply::text("first").when(Match::last_user("do done")),
        Reply::text("never")
            .hold_after(0)
            .when(Match::last_user("do cut")),
        Reply::text("later").when(Match::last_user("do waits")),
    ]);
    let mut app = App::start(&bench);
    let session = app.wire.done("open", json!({"tab": "a"}))["session"].clone();
    app.wire.done("send", send("done"));
    app.wire.result("done");
    app.wire.done("send", send("cut"));
    app.wire.done("send", send("waits"));
    // The call of the second one is under way.
    bench.server.wait_for_requests(2);
    app.kill();

    let mut app = App::start(&bench);
    app.wire
        .done("open", json!({"tab": "a", "resume": session}));
    let cut = app.wire.result("cut");
    assert_eq!(cut["is_error"], true, "{cut}");
    assert_eq!(app.wire.result("waits")["result"], "later");
    // Sent again, none of them is worked on again.
    for request in ["done", "cut", "waits"] {
        let again = app.wire.done("send", send(request));
        assert_eq!(
            (&again["state"], &again["duplicate"]),
            (&json!("ended"), &json!(true))
        );
    }
    let other = json!({"tab": "a", "request": "done", "content": "other"});
    assert_eq!(app.wire.refused("send", other), "conflict");
    assert_eq!(bench.server.requests().len(), 3);
    app.end();
}

/// Kills at many places: whatever was acknowledged has exactly one result in the end, and no
/// request reached the model twice.
#[test]
fn kills_at_any_moment_lose_and_repeat_nothing() {
    let rounds: u32 = std::env::var("CALIBAN_TEST_KILLS").map_or(6, |text| text.parse().unwrap());
    for round in 0..rounds {
        let script = Script::new([Reply::text("ok")]).after(After::RepeatLast);
        let bench = Bench::new(Wire::Anthropic, script);
        let mut app = App::start(&bench);
        let session = app.wire.done("open", json!({"tab": "a"}))["session"].clone();
        let requests: Vec<String> = (0..4).map(|number| format!("r{number}")).collect();
        for (number, request) in (0_u32..).zip(&requests) {
            app.wire.done("send", send(request));
            if number == round % 4 {
                // Some way into the work.
                for _ in 0..round {
                    app.wire.told();
                }
            }
        }
        app.kill();
        let mut app = App::start(&bench);
        app.wire
            .done("open", json!({"tab": "a", "resume": session}));
        for request in &requests {
            let standing = app.wire.done("send", send(request));
            assert_eq!(standing["duplicate"], true, "round {round}: {standing}");
            if standing["state"] != "ended" {
                app.wire.result(request);
            }
        }
        app.end();
        // What was typed last in each call to the model; earlier prompts may stand before it.
        let typed: Vec<String> = bench
            .server
            .requests()
            .iter()
            .map(|it| typed(&it.json()))
            .collect();
        for request in &requests {
            let text = format!("do {request}");
            let count = typed.iter().filter(|typed| **typed == text).count();
            assert!(
                count <= 1,
                "round {round}: {request} reached the model {count} times"
            );
        }
    }
}

fn typed(body: &Value) -> String {
    let last = body["messages"].as_array().and_then(|it| it.last());
    let blocks = last
        .and_then(|it| it["content"].as_array())
        .cloned()
        .unwrap_or_default();
    let mut texts = blocks.iter().filter_map(|block| block["text"].as_str());
    let typed = texts.rfind(|text| text.starts_with("do r"));
    typed.unwrap_or_default().to_owned()
}
