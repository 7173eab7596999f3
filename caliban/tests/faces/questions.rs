//! A call that needs consent: the client gives it or not, and where nobody can, it is refused.

use caliban_testkit::Reply;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench::{Bench, shell};
use crate::face::Which::{self, Acp, Claude, Heddle, Native};
use crate::face::{Answer, Consent, Exchange, Outcome, Point, Setup};

const ATTENDED: Setup<'_> = Setup {
    consent: Consent::Client,
    flags: &[],
    variables: &[],
    tools: &[],
};

fn asking() -> Bench {
    Bench::new([shell("touch made"), Reply::text("done")])
}

#[rstest]
fn the_client_allows(#[values(Native, Claude, Heddle, Acp)] face: Which) {
    let bench = asking();
    let mut face = face.start(&bench, &ATTENDED);
    face.prompt("make it");
    face.until(Point::Question);
    assert!(!bench.has("made"));
    face.answer(Answer::Allow);
    assert_eq!(face.result(), Exchange::success("done"));
    assert!(bench.has("made"));
    assert_eq!(face.finish().code, Some(0));
}

#[rstest]
fn the_client_denies(#[values(Native, Claude, Heddle)] face: Which) {
    let bench = asking();
    let mut face = face.start(&bench, &ATTENDED);
    face.prompt("make it");
    face.until(Point::Question);
    face.answer(Answer::Deny("not today"));
    refused(&face.result(), &bench);
    let request = bench.request(2).to_string();
    assert!(request.contains("not today"), "{request}");
    assert_eq!(face.finish().code, Some(0));
}

#[rstest]
fn nobody_answers(#[values(Native, Claude, Heddle, Acp)] face: Which) {
    let bench = asking();
    let mut face = face.start(&bench, &Setup::default());
    refused(&face.exchange("make it"), &bench);
    assert_eq!(face.finish().code, Some(0));
}

/// The call did not run, the result says so, and the model had the last word.
fn refused(result: &Exchange, bench: &Bench) {
    let expected = Exchange {
        outcome: Outcome::Success,
        text: "done".to_owned(),
        denied: vec!["Bash".to_owned()],
    };
    assert_eq!(*result, expected);
    assert!(!bench.has("made"));
}

fn is_question(frame: &Value) -> bool {
    frame["type"] == "question"
}

fn is_result(frame: &Value) -> bool {
    frame["type"] == "result"
}

/// The frames of the native face in detail: there is no other client's contract to lean on.
#[test]
fn native_questions_and_answers_have_their_documented_form() {
    let bench = Bench::new([
        shell("touch made"),
        shell("touch made again"),
        Reply::text("done"),
    ]);
    let mut face = Native.start(&bench, &ATTENDED);
    face.prompt("make it");
    let question = face.process().until("a question", is_question, is_result);
    assert_eq!(question["kind"], "permission");
    assert_eq!(question["tool"], "Bash");
    assert_eq!(question["input"], json!({"command": "touch made"}));
    for key in ["question", "tool_use_id", "reason"] {
        assert!(question[key].is_string(), "{key}: {question}");
    }
    assert!(question.get("rule").is_some(), "{question}");
    assert!(question["suggestions"].is_array(), "{question}");
    // An answer that fits no question is told and changes nothing.
    let stray = json!({"type": "answer", "question": "no such", "decision": "deny"});
    face.process().write(&stray);
    face.process().write(&json!({
        "type": "answer",
        "question": question["question"],
        "decision": "allow",
        "input": {"command": "touch other"},
    }));
    let second = face.process().until("a question", is_question, is_result);
    assert_ne!(second["question"], question["question"]);
    assert!(bench.has("other") && !bench.has("made"));
    let answer = json!({
        "type": "answer",
        "question": second["question"],
        "decision": "deny",
        "message": "not today",
    });
    face.process().write(&answer);
    let result = face.result();
    assert_eq!((&*result.text, result.denied.len()), ("done", 1));
    let ended = face.finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("no such"), "{}", ended.stderr);
}

#[test]
fn native_consent_for_the_session_is_asked_for_once() {
    let bench = Bench::new([
        shell("touch made"),
        shell("touch made"),
        Reply::text("done"),
    ]);
    let mut face = Native.start(&bench, &ATTENDED);
    face.prompt("make it");
    let question = face.process().until("a question", is_question, is_result);
    face.process().write(&json!({
        "type": "answer",
        "question": question["question"],
        "decision": "allow-session",
    }));
    assert_eq!(face.result(), Exchange::success("done"));
    let frames = face.finish().frames;
    assert_eq!(frames.iter().filter(|frame| is_question(frame)).count(), 1);
}
