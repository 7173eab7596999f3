//! An interrupt ends the exchange wherever it is, and nothing else: its result says so, and the
//! next prompt works.

use caliban_testkit::{Block, Prose, Reply};
use rstest::rstest;
use serde_json::Value;

use crate::bench::{Bench, SLEEPER, shell};
use crate::face::Which::{self, Acp, Claude, Heddle, Native};
use crate::face::{Consent, Exchange, Face, Outcome, Point, Setup};

/// Interrupts what is worked on, and sees that the session is none the worse for it.
fn interrupted(face: &mut dyn Face) {
    face.interrupt();
    let result = face.result();
    assert_eq!(result.outcome, Outcome::Cancelled, "{result:?}");
    assert_eq!(face.exchange("and now?"), Exchange::success("after"));
    assert_eq!(face.finish().code, Some(0));
}

/// An answer that stops after its first piece of text.
fn tale() -> Reply {
    let pieces = ["Once upon ", "a time."].map(str::to_owned).to_vec();
    // The message begins, the block begins, the first piece.
    Reply::default()
        .block(Block::Text(Prose::Pieces(pieces)))
        .hold_after(3)
}

#[rstest]
fn while_it_thinks(#[values(Native, Claude, Heddle, Acp)] face: Which) {
    let thoughtful = Reply::text("never").thinking("Let me see, let me see.");
    let bench = Bench::new([thoughtful.hold_after(3), Reply::text("after")]);
    let mut face = face.start(&bench, &Setup::default());
    face.prompt("think");
    bench.request(1);
    face.until(Point::Thinking);
    interrupted(&mut *face);
}

#[rstest]
fn while_text_streams(#[values(Native, Claude, Heddle, Acp)] face: Which) {
    let bench = Bench::new([tale(), Reply::text("after")]);
    let mut face = face.start(&bench, &Setup::default());
    face.prompt("tell");
    face.until(Point::Text);
    interrupted(&mut *face);
}

#[rstest]
fn inside_a_tool(#[values(Native, Claude, Heddle, Acp)] face: Which) {
    let bench = Bench::permitting([shell(SLEEPER), Reply::text("after")]);
    let mut face = face.start(&bench, &Setup::default());
    face.prompt("sleep");
    face.until(Point::Tool);
    let sleeper = bench.process("id");
    assert!(sleeper.lives());
    interrupted(&mut *face);
    sleeper.is_gone_soon();
}

#[rstest]
fn inside_a_question(#[values(Native, Claude, Heddle, Acp)] face: Which) {
    let bench = Bench::new([shell("touch made"), Reply::text("after")]);
    let setup = Setup {
        consent: Consent::Client,
        ..Setup::default()
    };
    let mut face = face.start(&bench, &setup);
    face.prompt("make it");
    face.until(Point::Question);
    interrupted(&mut *face);
    assert!(!bench.has("made"));
}

/// The texts of a message.
fn texts(message: &Value) -> Vec<&str> {
    match &message["content"] {
        Value::String(text) => vec![text],
        content => content
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|block| block["text"].as_str())
            .collect(),
    }
}

#[rstest]
fn what_was_said_stays_in_history(#[values(Native, Claude, Heddle, Acp)] face: Which) {
    let bench = Bench::new([tale(), Reply::text("after")]);
    let mut face = face.start(&bench, &Setup::default());
    face.prompt("tell");
    face.until(Point::Text);
    interrupted(&mut *face);
    let request = bench.request(2);
    let messages = request["messages"].as_array().unwrap();
    let said = messages.iter().position(|message| {
        message["role"] == "assistant" && texts(message).concat().contains("Once upon")
    });
    let said = said.unwrap_or_else(|| panic!("what was said is lost: {messages:#?}"));
    let note = messages[said..]
        .iter()
        .flat_map(texts)
        .find(|text| text.to_lowercase().contains("interrupted"));
    assert!(note.is_some(), "nothing says why it ends: {messages:#?}");
    // What had not come is not made up.
    assert!(!request.to_string().contains("a time."));
}
