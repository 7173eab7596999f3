//! What survives what: workers and servers that are killed in the middle of their work.

use caliban_testkit::{Match, Presence, Reply, Script};
use serde_json::json;

use crate::fleet::{Fleet, until};

#[test]
fn a_job_of_a_killed_worker_goes_on_elsewhere_in_its_session() {
    let first = "echo first >> made && echo the-first-step";
    let fleet = Fleet::new(Script::new([
        Reply::tool("Bash", json!({ "command": first })),
        Reply::tool("Bash", json!({"command": "sleep 300"})),
        Reply::text("finished after all").when(Match::last_user("You were cut off")),
    ]));
    let job = fleet.submit("do it", &["--publish", "bundle"]);
    let allow = ["--allow", "Bash"];
    let mut one = fleet.worker("one", &allow, &[]);
    fleet.bench.server.wait_for_requests(2);
    // The second call is on the board before it is begun.
    until("the second call is told", || {
        let frames = fleet.frames(&job);
        frames
            .iter()
            .filter(|frame| frame["type"] == "tool_use")
            .count()
            == 2
    });
    one.kill();
    let _two = fleet.worker("two", &allow, &[]);
    let result = fleet.result(&job);
    assert_eq!(result["outcome"], "done", "{result}");
    assert_eq!(result["text"], "finished after all");
    assert_eq!(result["attempt"], 2);
    assert_eq!(result["worker"], "two");
    // The model knows what was done, and that the second call has no known outcome.
    let requests = fleet.bench.server.model_requests();
    assert_eq!(requests.len(), 3);
    let body = requests[2].json().to_string();
    assert!(
        body.contains("the-first-step") && body.contains("sleep 300"),
        "{body}"
    );
    assert!(body.contains("You were cut off"), "{body}");
    // And the files are those of the first attempt.
    let there = fleet.bench.home.path().join("artefacts");
    let args = ["result", &job, "--download", there.to_str().unwrap()];
    assert_eq!(fleet.fleet(args).code, Some(0));
    let patch = std::fs::read(there.join("changes.bundle")).unwrap();
    assert!(!patch.is_empty());
    let transcript = std::fs::read_to_string(there.join("transcript.md")).unwrap();
    assert!(transcript.contains("finished after all"), "{transcript}");
}

#[test]
fn a_server_that_is_killed_loses_nothing_that_it_acknowledged() {
    let mut fleet = Fleet::new(Script::new([
        Reply::tool("Bash", json!({"command": "sleep 1"}))
            .when(Match::tool_result(Presence::Absent)),
        Reply::text("still there").times(2),
        Reply::tool("Bash", json!({"command": "sleep 1"}))
            .when(Match::tool_result(Presence::Absent)),
    ]));
    let _worker = fleet.worker("one", &["--allow", "Bash"], &["--slots", "2"]);
    let running = fleet.submit("work", &[]);
    fleet.bench.server.wait_for_requests(1);
    fleet.server.kill();
    fleet.server.start();
    let result = fleet.result(&running);
    assert_eq!(result["outcome"], "done", "{result}");
    assert_eq!(result["text"], "still there");
    let frames = fleet.frames(&running);
    let count = |kind: &str| frames.iter().filter(|frame| frame["type"] == kind).count();
    assert_eq!(count("ended"), 1);
    assert!(count("state") >= 1);
}

#[test]
fn a_worker_that_cannot_renew_ends_its_run_by_itself() {
    let mut fleet = Fleet::new(Script::new([
        Reply::text("never whole").hold_after(1),
        Reply::text("second"),
    ]));
    let job = fleet.submit("work", &[]);
    let _one = fleet.worker("one", &[], &[]);
    fleet.bench.server.wait_for_requests(1);
    fleet.server.kill();
    // The run is gone although nobody could tell the worker anything.
    fleet.bench.server.wait_for_disconnect();
    until("the worker says why", || {
        fleet.log("one").contains("the lease could not be renewed")
    });
    fleet.server.start();
    let result = fleet.result(&job);
    assert_eq!(result["text"], "second", "{result}");
    assert_eq!(result["attempt"], 2);
}

#[test]
fn a_worker_that_is_told_to_stop_gives_its_job_back() {
    let fleet = Fleet::new(Script::new([
        Reply::text("never whole").hold_after(1),
        Reply::text("by another"),
    ]));
    let job = fleet.submit("work", &[]);
    let one = fleet.worker("one", &[], &[]);
    fleet.bench.server.wait_for_requests(1);
    assert_eq!(one.stop(), Some(0));
    assert_eq!(fleet.state(&job)["state"], "queued");
    assert_eq!(fleet.state(&job)["released"], 1);
    let _two = fleet.worker("two", &[], &["--attempts", "1"]);
    let result = fleet.result(&job);
    assert_eq!(result["text"], "by another", "{result}");
    assert_eq!(result["worker"], "two");
}
