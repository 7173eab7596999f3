//! Prompts that wait: each has its turn and exactly one result, and however many there are, an
//! interrupt is heard.

use caliban_testkit::{Checks, Match, Reply, Script};
use rstest::rstest;

use crate::bench::{Bench, shell};
use crate::face::Which::{self, Acp, Claude, Heddle, Native};
use crate::face::{Exchange, Outcome, Point, Setup};

/// The answer to the prompt of this number.
fn numbered(number: usize) -> Reply {
    let prompt = Match::last_user(format!("prompt {number}."));
    Reply::text(format!("answer {number}")).when(prompt)
}

#[rstest]
fn three_at_once_are_answered_in_order(#[values(Native, Claude, Heddle, Acp)] face: Which) {
    let bench = Bench::new((1..=3).map(numbered));
    let mut face = face.start(&bench, &Setup::default());
    for number in 1..=3 {
        face.prompt(&format!("prompt {number}."));
    }
    for number in 1..=3 {
        let expected = Exchange::success(&format!("answer {number}"));
        assert_eq!(face.result(), expected);
    }
    let ended = face.finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(results(&ended.frames), 3);
}

fn results(frames: &[serde_json::Value]) -> usize {
    let is_result = |frame: &&serde_json::Value| {
        frame["type"] == "result" || frame["result"].get("stopReason").is_some()
    };
    frames.iter().filter(is_result).count()
}

/// Prompts behind the one that is worked on.
const WAITING: usize = 1000;

/// No protocol of these faces has a word for a prompt that joins what is worked on, so it waits; at
/// the terminal it joins (`terminal/conversation.rs`).
#[rstest]
fn what_comes_between_two_turns_has_its_own(#[values(Native, Claude, Heddle, Acp)] face: Which) {
    let held = Reply::text("first").hold_after(0);
    let bench = Bench::permitting([shell("true"), held, Reply::text("second")]);
    let mut face = face.start(&bench, &Setup::default());
    face.prompt("prompt one");
    bench.request(2);
    face.prompt("prompt two");
    bench.server.release();
    assert_eq!(face.result(), Exchange::success("first"));
    assert_eq!(face.result(), Exchange::success("second"));
    assert!(!bench.request(2).to_string().contains("prompt two"));
    assert!(bench.request(3).to_string().contains("prompt two"));
    assert_eq!(face.finish().code, Some(0));
}

/// How many prompts of an editor may wait.
const EDITORS: usize = 32;

/// An editor takes everything back with one word, and of its prompts only so many wait.
#[test]
fn an_interrupt_of_an_editor_is_about_all_that_waits() {
    let first = Reply::text("never ever").hold_after(3);
    let bench = Bench::new([first, Reply::text("after")]);
    let mut face = Acp.start(&bench, &Setup::default());
    face.prompt("begin");
    face.until(Point::Text);
    for number in 1..=EDITORS {
        face.prompt(&format!("prompt {number}."));
    }
    face.interrupt();
    for _ in 0..=EDITORS {
        assert_eq!(face.result().outcome, Outcome::Cancelled);
    }
    assert_eq!(face.exchange("and now"), Exchange::success("after"));
    assert_eq!(bench.requests(), 2);
    assert_eq!(face.finish().code, Some(0));
}

/// A heddle client keeps its prompts to itself until their turn, so nothing waits in that face. What
/// waits in an editor's goes with what is interrupted, see above.
#[rstest]
fn an_interrupt_is_heard_behind_a_thousand_prompts(#[values(Native, Claude)] face: Which) {
    let first = Reply::text("never ever").hold_after(3);
    let replies = [first].into_iter().chain((1..=WAITING).map(numbered));
    // Each request holds all that was said before; to look through them all takes the longest.
    let bench = Bench::with(Script::new(replies).checks(Checks::Off));
    let mut face = face.start(&bench, &Setup::default());
    face.prompt("begin");
    face.until(Point::Text);
    for number in 1..=WAITING {
        face.prompt(&format!("prompt {number}."));
    }
    face.interrupt();
    let first = face.result();
    assert_eq!(first.outcome, Outcome::Cancelled, "{first:?}");
    for number in 1..=WAITING {
        let expected = Exchange::success(&format!("answer {number}"));
        assert_eq!(face.result(), expected);
    }
    let ended = face.finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(results(&ended.frames), WAITING + 1);
}
