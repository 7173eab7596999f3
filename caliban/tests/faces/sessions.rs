//! A session goes on in the face that began it and in every other, with its history and without
//! the consent that it was given.

use caliban_testkit::Reply;
use rstest::rstest;

use crate::bench::{Bench, shell};
use crate::face::Which::{self, Acp, Claude, Heddle, Native};
use crate::face::{Exchange, Outcome, Setup};

/// One exchange, and the id of its session.
fn begun(bench: &Bench, face: Which, setup: &Setup<'_>, answer: &str) -> String {
    let mut face = face.start(bench, setup);
    assert_eq!(face.exchange("first"), Exchange::success(answer));
    let id = face.session();
    let ended = face.finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    id
}

#[rstest]
fn resumed(
    #[values(Native, Claude, Heddle, Acp)] from: Which,
    #[values(Native, Claude, Heddle, Acp)] to: Which,
) {
    let bench = Bench::new([Reply::text("answer one"), Reply::text("answer two")]);
    let id = begun(&bench, from, &Setup::default(), "answer one");
    let mut face = to.start(&bench, &Setup::flags(&["--resume", &id]));
    assert_eq!(face.exchange("second"), Exchange::success("answer two"));
    assert_eq!(face.session(), id);
    let ended = face.finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let messages = bench.request(2)["messages"].to_string();
    for text in ["first", "answer one", "second"] {
        assert!(messages.contains(text), "{text} in {messages}");
    }
}

#[test]
fn resumed_by_one_face_after_the_other() {
    let bench = Bench::new((1..=3).map(|n| Reply::text(format!("answer {n}"))));
    let id = begun(&bench, Native, &Setup::default(), "answer 1");
    for (face, answer) in [(Claude, "answer 2"), (Heddle, "answer 3")] {
        let flags = ["--resume", &id];
        begun(&bench, face, &Setup::flags(&flags), answer);
    }
    let messages = bench.request(3)["messages"].to_string();
    assert!(
        messages.contains("answer 1") && messages.contains("answer 2"),
        "{messages}"
    );
}

/// Ways to begin a session that asks nobody.
#[rstest]
#[case::claude_bypass(Claude, &["--dangerously-skip-permissions"])]
#[case::native_mode(Native, &["--permission-mode", "dontAsk"])]
#[case::native_auto_allow(Native, &["--auto-allow"])]
#[case::heddle_mode(Heddle, &["--permission-mode", "dontAsk"])]
fn consent_given_to_all_is_not_inherited(
    #[case] from: Which,
    #[case] flags: &[&str],
    #[values(Native, Claude, Heddle, Acp)] to: Which,
) {
    let done = || Reply::text("done");
    let bench = Bench::new([shell("touch one"), done(), shell("touch two"), done()]);
    let id = begun(&bench, from, &Setup::flags(flags), "done");
    assert!(bench.has("one"));
    let mut face = to.start(&bench, &Setup::flags(&["--resume", &id]));
    let second = face.exchange("second");
    assert_eq!(second.outcome, Outcome::Success, "{second:?}");
    assert!(!bench.has("two"), "what needs consent ran without");
    assert_eq!(second.denied, ["Bash"]);
    let ended = face.finish();
    let is_told = |warning: &String| warning.contains("mode") && warning.contains("default");
    let warnings = ended.warnings();
    assert!(warnings.iter().any(is_told), "{warnings:#?}");
}
