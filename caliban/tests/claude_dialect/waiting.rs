//! Prompts that wait: which they are, taking them back, and sending one again.

use std::time::{Duration, Instant};

use caliban_testkit::{Fault, Reply, Script};
use serde_json::{Value, json};

use crate::bench::{Bench, Client, STREAM, of_type};

/// An answer that begins and never goes on.
fn held() -> Reply {
    Reply::text("never ever").with_fault(Fault::StallMidStream { after_events: 4 })
}

fn say(client: &mut Client, uuid: &str, text: &str) {
    let message = json!({"role": "user", "content": text});
    client.send(&json!({"type": "user", "uuid": uuid, "message": message}));
}

/// A client whose first prompt is being answered while two wait.
fn busy(bench: &Bench) -> Client {
    let mut client = bench.client(&["--include-partial-messages"]);
    say(&mut client, "a", "first");
    client.until("stream_event");
    say(&mut client, "b", "second");
    say(&mut client, "c", "third");
    client
}

fn results(frames: &[Value]) -> Vec<&Value> {
    let results = of_type(frames, "result");
    results.iter().map(|frame| &frame["result"]).collect()
}

#[test]
fn an_interrupt_tells_what_still_waits() {
    let bench = Bench::new(Script::new([
        held(),
        Reply::text("two"),
        Reply::text("three"),
    ]));
    let mut client = busy(&bench);
    let answer = client.ask(&json!({"subtype": "interrupt"}));
    assert_eq!(answer["response"], json!({"still_queued": ["b", "c"]}));
    let end = client.last_until("result");
    assert_eq!(end["subtype"], "error_during_execution");
    let (rest, code) = client.close();
    assert_eq!(results(&rest), [&json!("two"), &json!("three")]);
    assert_eq!(code, Some(0));
}

#[test]
fn an_interrupt_may_drop_what_waits() {
    let bench = Bench::new(Script::new([held(), Reply::text("after")]));
    let mut client = busy(&bench);
    let answer = client.ask(&json!({"subtype": "interrupt", "cancel_queued": true}));
    assert_eq!(answer["response"], json!({"still_queued": []}));
    say(&mut client, "d", "fourth");
    let (rest, code) = client.close();
    assert_eq!(results(&rest), [&Value::Null, &json!("after")]);
    assert_eq!(bench.server.model_requests().len(), 2);
    assert_eq!(code, Some(0));
}

#[test]
fn an_interrupt_while_nothing_goes_on_is_answered() {
    let bench = Bench::new(Script::new([Reply::text("one")]));
    let mut client = bench.client(&[]);
    let nothing = json!({"still_queued": []});
    let interrupt = json!({"subtype": "interrupt"});
    assert_eq!(client.ask(&interrupt)["response"], nothing);
    client.say("hi");
    client.until("result");
    assert_eq!(client.ask(&interrupt)["response"], nothing);
}

#[test]
fn a_prompt_that_waits_is_taken_back() {
    let bench = Bench::new(Script::new([held(), Reply::text("three")]));
    let mut client = busy(&bench);
    for (uuid, expected) in [("b", true), ("b", false), ("a", false), ("x", false)] {
        let request = json!({"subtype": "cancel_async_message", "message_uuid": uuid});
        let answer = client.ask(&request);
        assert_eq!(answer["response"], json!({"cancelled": expected}), "{uuid}");
    }
    client.ask(&json!({"subtype": "interrupt"}));
    let (rest, _) = client.close();
    assert_eq!(results(&rest), [&Value::Null, &json!("three")]);
}

#[test]
fn a_prompt_that_is_sent_again_is_not_run_again() {
    let bench = Bench::new(Script::new([Reply::text("one"), Reply::text("two")]));
    let mut client = bench.client(&[]);
    say(&mut client, "a", "first");
    let first = client.last_until("result");
    say(&mut client, "a", "first");
    assert_eq!(client.next(), Some(first));
    say(&mut client, "b", "second");
    assert_eq!(client.last_until("result")["result"], "two");
    assert_eq!(bench.server.model_requests().len(), 2);
    assert_eq!(client.close(), (Vec::new(), Some(0)));
}

#[test]
fn a_prompt_that_is_sent_again_while_it_is_worked_on_has_one_result() {
    let bench = Bench::new(Script::new([Reply::text("one").delay_ms(50)]));
    let frame = json!({"type": "user", "uuid": "a", "message": {"role": "user", "content": "hi"}});
    let ran = bench.run_with_input(&STREAM, &format!("{frame}\n{frame}\n"));
    assert_eq!(of_type(&ran.frames(), "result").len(), 1, "{ran:?}");
    assert_eq!(bench.server.model_requests().len(), 1);
}

#[test]
fn an_interrupt_of_a_command_is_quick() {
    let command = "echo begun > begun; sleep 44";
    let script = Script::new((0..5).map(|_| Reply::tool("Bash", json!({"command": command}))));
    let bench = Bench::new(script);
    let begun = bench.workspace.path().join("begun");
    let mut client = bench.client(&["--allowedTools", "Bash"]);
    let mut took = || {
        client.say("go");
        client.until("assistant");
        while !begun.exists() {
            std::thread::yield_now();
        }
        std::fs::remove_file(&begun).unwrap();
        let started = Instant::now();
        client.ask(&json!({"subtype": "interrupt"}));
        client.until("result");
        started.elapsed()
    };
    // A busy machine may delay any of them.
    let quickest = (0..5).map(|_| took()).min().unwrap();
    assert!(quickest < Duration::from_millis(250), "{quickest:?}");
}
