//! What the user forbids while a session lives holds from the next call on.

use caliban_testkit::Reply;
use rstest::rstest;
use serde_json::json;

use crate::bench::{Bench, shell};
use crate::face::Which::{self, Acp, Claude, Heddle, Native};
use crate::face::{Exchange, Outcome, Setup};

/// How the user forbids a command that was allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum By {
    Rule,
    Hook,
}

impl By {
    fn forbids_touch(self, bench: &Bench) {
        bench.settings(&match self {
            Self::Rule => json!({"permissions": {"allow": ["Bash"], "deny": ["Bash:touch *"]}}),
            Self::Hook => json!({
                "permissions": {"allow": ["Bash"]},
                "hooks": {"PreToolUse": [{
                    "matcher": "Bash",
                    "hooks": [{"type": "command", "command": "exit 2"}],
                }]},
            }),
        });
    }
}

/// The result of an exchange in which one call was not permitted.
fn refused() -> Exchange {
    Exchange {
        outcome: Outcome::Success,
        text: "done".to_owned(),
        denied: vec!["Bash".to_owned()],
    }
}

#[rstest]
fn tightened_between_two_prompts(
    #[values(Native, Claude, Heddle, Acp)] face: Which,
    #[values(By::Rule, By::Hook)] by: By,
) {
    let done = || Reply::text("done");
    let bench = Bench::permitting([shell("touch one"), done(), shell("touch two"), done()]);
    let mut face = face.start(&bench, &Setup::default());
    assert_eq!(face.exchange("first"), Exchange::success("done"));
    assert!(bench.has("one"));
    by.forbids_touch(&bench);
    assert_eq!(face.exchange("second"), refused());
    assert!(!bench.has("two"));
    assert_eq!(face.finish().code, Some(0));
}

#[rstest]
fn tightened_before_the_next_call_of_a_run(
    #[values(Native, Claude, Heddle, Acp)] face: Which,
    #[values(By::Rule, By::Hook)] by: By,
) {
    let bench = Bench::permitting([
        shell("touch one"),
        shell("touch two").hold_after(0),
        Reply::text("done"),
    ]);
    let mut face = face.start(&bench, &Setup::default());
    face.prompt("both");
    // The first call has run, the second is not yet known.
    bench.request(2);
    assert!(bench.has("one"));
    by.forbids_touch(&bench);
    bench.server.release();
    assert_eq!(face.result(), refused());
    assert!(!bench.has("two"));
    assert_eq!(face.finish().code, Some(0));
}
