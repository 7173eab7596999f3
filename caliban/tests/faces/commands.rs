//! Commands do in every face what the table says of them.

use caliban_slash::{Asks, BUILT_IN};
use caliban_testkit::Reply;
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench::Bench;
use crate::face::Which::{self, Acp, Claude, Heddle, Native};
use crate::face::{Outcome, Setup};

/// Every command that works anywhere and asks nobody, with something to work on. Three of them have
/// nothing to work on here: no repository, nobody who hears feedback, no conversation to copy after
/// `/clear`.
fn lines() -> impl Iterator<Item = String> {
    let anywhere = BUILT_IN.iter().filter(|entry| {
        entry.works_anywhere()
            && entry.asks == Asks::Nobody
            && !matches!(entry.name, "feedback" | "diff" | "fork")
    });
    anywhere.map(|entry| {
        let arguments = match entry.name {
            "rename" => " Better",
            "add-dir" => " /",
            _ => "",
        };
        format!("/{}{arguments}", entry.name)
    })
}

#[rstest]
fn every_command_is_obeyed(#[values(Native, Claude, Heddle, Acp)] face: Which) {
    let bench = Bench::new([Reply::text("Hello.")]);
    let mut face = face.start(&bench, &Setup::default());
    assert_eq!(face.exchange("hi").text, "Hello.");
    for line in lines() {
        let ended = face.exchange(&line);
        assert_eq!(ended.outcome, Outcome::Success, "{line}: {ended:?}");
    }
    assert_eq!(bench.requests(), 1);
    assert_eq!(face.finish().code, Some(0));
}

#[rstest]
fn a_style_counts_once_the_conversation_begins_anew(
    #[values(Native, Claude, Heddle, Acp)] face: Which,
) {
    let bench = Bench::new((0..4).map(|_| Reply::text("Yes.")));
    let mut face = face.start(&bench, &Setup::default());
    let style = "<output-style name=\"explanatory\">";
    let system = |n: usize| bench.request(n)["system"].to_string().replace("\\\"", "\"");
    face.exchange("one");
    bench.settings(&json!({"output_style": "explanatory"}));
    face.exchange("two");
    assert!(!system(2).contains(style), "{}", system(2));
    face.exchange("/clear");
    face.exchange("three");
    assert!(system(3).contains(style), "{}", system(3));
    // And without it everything is as it was.
    bench.settings(&Value::Object(serde_json::Map::new()));
    face.exchange("/clear");
    face.exchange("four");
    assert_eq!(bench.request(4)["system"], bench.request(1)["system"]);
    assert_eq!(face.finish().code, Some(0));
}
