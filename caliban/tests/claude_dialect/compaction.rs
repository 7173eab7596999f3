//! History that is shortened because the client's user wants it.

use caliban_testkit::{Reply, Script};
use serde_json::json;

use crate::bench::{Bench, kinds, of_type};

#[test]
fn a_conversation_is_condensed_on_request() {
    let bench = Bench::new(Script::new([
        Reply::text("Noted."),
        Reply::text("SUMMARY OF IT"),
        Reply::text("after"),
    ]));
    let mut client = bench.client(&[]);
    client.say("remember the elephant");
    client.until("result");
    client.say("/compact keep the animals");
    let frames = client.until("result");
    assert_eq!(
        kinds(&frames),
        [
            "system/init",
            "system/status",
            "system/status",
            "system/compact_boundary",
            "user",
            "result/success",
        ]
    );
    assert_eq!(frames[1]["status"], "compacting");
    let boundary = &frames[3]["compact_metadata"];
    assert_eq!(boundary["trigger"], "manual");
    assert!(boundary["pre_tokens"].is_u64() && boundary["post_tokens"].is_u64());
    let summary = of_type(&frames, "user")[0];
    assert_eq!(summary["isSynthetic"], true);
    assert!(
        summary["message"]["content"]
            .to_string()
            .contains("SUMMARY OF IT")
    );
    assert!(
        bench
            .last_request()
            .to_string()
            .contains("keep the animals")
    );
    client.say("go on");
    assert_eq!(client.last_until("result")["result"], "after");
    let messages = bench.last_request()["messages"].to_string();
    assert!(messages.contains("SUMMARY OF IT"), "{messages}");
    assert!(!messages.contains("elephant"), "{messages}");
    assert!(!messages.contains("/compact"), "{messages}");
}

#[test]
fn nothing_to_condense_costs_nothing() {
    let bench = Bench::new(Script::new([]));
    let mut client = bench.client(&[]);
    client.say("/compact");
    let end = client.last_until("result");
    assert_eq!(
        (&end["subtype"], &end["is_error"]),
        (&json!("success"), &json!(false))
    );
    assert!(bench.server.model_requests().is_empty());
}
