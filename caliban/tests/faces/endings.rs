//! What a session leaves when it ends, and how long that takes: faults of our own, jobs that do
//! not want to end, the log for those who look for a fault.

use std::time::{Duration, Instant};

use caliban_testkit::Reply;
use rstest::rstest;
use serde_json::json;

use crate::bench::Bench;
use crate::face::Which::{self, Acp, Claude, Heddle, Native};
use crate::face::{Exchange, Outcome, Setup};

/// In a debug build a prompt that holds the text of this variable makes the run panic.
const PANIC: &str = "CALIBAN_TEST_PANIC";

#[rstest]
fn a_panic_is_a_result(#[values(Native, Claude, Heddle, Acp)] which: Which) {
    let bench = Bench::new([Reply::text("fine"), Reply::text("unharmed")]);
    let setup = Setup {
        variables: &[(PANIC, "break now")],
        ..Setup::default()
    };
    let mut face = which.start(&bench, &setup);
    assert_eq!(face.exchange("hello"), Exchange::success("fine"));
    let broken = face.exchange("please break now");
    assert_eq!(broken.outcome, Outcome::Internal, "{broken:?}");
    let ended = face.finish();
    // An editor may have other sessions in the same program.
    let code = match which {
        Native | Claude | Heddle => 1,
        Acp => 0,
    };
    assert_eq!(ended.code, Some(code), "{}", ended.stderr);
    let is_result = |frame: &&serde_json::Value| match which {
        Native | Claude | Heddle => frame["type"] == "result",
        Acp => frame["result"].get("stopReason").is_some() || frame.get("error").is_some(),
    };
    assert_eq!(ended.frames.iter().filter(is_result).count(), 2);
}

/// The promise is about two seconds; the rest is for a busy machine.
const GOODBYE: Duration = Duration::from_secs(10);

#[rstest]
fn a_job_that_does_not_want_to_end_keeps_nobody(
    #[values(Native, Claude, Heddle, Acp)] face: Which,
) {
    let command = "trap '' TERM; echo $$ > id; exec sleep 600";
    let job = json!({"command": command, "run_in_background": true});
    let bench = Bench::permitting([Reply::tool("Bash", job), Reply::text("left").hold_after(0)]);
    let mut face = face.start(&bench, &Setup::default());
    face.prompt("leave it");
    let job = bench.process("id");
    bench.server.release();
    assert_eq!(face.result(), Exchange::success("left"));
    assert!(job.lives());
    let since = Instant::now();
    assert_eq!(face.finish().code, Some(0));
    assert!(since.elapsed() < GOODBYE, "{:?}", since.elapsed());
    job.is_gone_soon();
}

#[rstest]
fn the_debug_log_is_written(#[values(Native, Claude, Heddle, Acp)] face: Which) {
    let bench = Bench::new([Reply::text("ok")]);
    let setup = Setup {
        variables: &[("CALIBAN_DEBUG", "1")],
        ..Setup::default()
    };
    let mut face = face.start(&bench, &setup);
    let id = face.process().id();
    assert_eq!(face.exchange("hello"), Exchange::success("ok"));
    let ended = face.finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let log = std::fs::read_to_string(bench.debug_log()).unwrap();
    assert!(log.contains(&format!("[{id}]")), "{log}");
}
