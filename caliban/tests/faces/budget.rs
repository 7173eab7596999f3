//! A session that has cost more than it may is over.

use caliban_testkit::{Reply, Usage};
use rstest::rstest;

use crate::bench::{Bench, shell};
use crate::face::Which::{self, Acp, Claude, Heddle, Native};
use crate::face::{Outcome, Setup};

#[rstest]
#[case::native(Native, Some(137))]
#[case::claude(Claude, Some(1))]
// These protocols have no exit code for it.
#[case::heddle(Heddle, None)]
#[case::acp(Acp, None)]
fn over_budget_is_the_end(#[case] which: Which, #[case] code: Option<i32>) {
    // What it costs is known only afterwards: nothing of it can be foreseen from the prompt.
    let dear = Usage {
        input: 1_000_000,
        ..Usage::SMALL
    };
    let bench = Bench::permitting([
        shell("touch made").usage(dear),
        Reply::text("never"),
        Reply::text("never"),
    ]);
    let mut face = which.start(&bench, &Setup::flags(&["--max-budget-usd", "0.5"]));
    let first = face.exchange("spend");
    assert_eq!(first.outcome, Outcome::OverBudget, "{first:?}");
    // It may still be told that it will not be worked on.
    face.prompt("more");
    let ended = face.finish();
    assert_eq!(bench.requests(), 1, "{:#?}", ended.frames);
    assert!(
        code.is_none_or(|code| ended.code == Some(code)),
        "{ended:?}"
    );
    let successes = ended.frames.iter().filter(|frame| {
        frame["type"] == "result" && (frame["subtype"] == "success" || frame["status"] == "ok")
    });
    assert_eq!(successes.count(), 0, "{:#?}", ended.frames);
}
