//! Jobs from their submission to their result.

use caliban_testkit::{After, Match, Reply, Script};
use serde_json::{Value, json};

use crate::fleet::{Fleet, until};

const ID: &str = "0199a0c4-2c6a-7d07-8d55-5f5a8c7d2b11";

#[test]
fn two_workers_share_jobs_and_each_has_one_result() {
    let script = Script::new([Reply::text("hello from afar")]).after(After::RepeatLast);
    let fleet = Fleet::new(script);
    let _one = fleet.worker("one", &[], &["--slots", "2"]);
    let _two = fleet.worker("two", &[], &[]);
    let jobs: Vec<String> = (0..6).map(|_| fleet.submit("say hello", &[])).collect();
    for job in &jobs {
        let result = fleet.result(job);
        assert_eq!(result["outcome"], "done", "{result}");
        assert_eq!(result["text"], "hello from afar");
        assert_eq!(result["exit_code"], 0);
        assert_eq!(result["attempt"], 1);
        assert_eq!(result["files"], Value::Null);
        fleet.wait_for_state(job, "done");
    }
    assert_eq!(fleet.bench.server.model_requests().len(), 6);
    let shown = fleet.fleet(["result", &jobs[0]]);
    assert_eq!(shown.code, Some(0));
    assert_eq!(shown.stdout, "hello from afar\n");
    let frames = fleet.frames(&jobs[0]);
    let kinds: Vec<&str> = frames.iter().filter_map(|it| it["type"].as_str()).collect();
    assert_eq!(kinds[0], "state");
    assert_eq!(kinds.last(), Some(&"ended"));
    assert!(
        kinds.contains(&"message") && kinds.contains(&"result"),
        "{kinds:?}"
    );
    let seqs: Vec<u64> = frames
        .iter()
        .map(|it| it["seq"].as_u64().unwrap())
        .collect();
    assert!(seqs.is_sorted());
    let text = fleet.fleet(["attach", &jobs[0], "--read-only"]).stdout;
    assert!(
        text.contains("hello from afar") && text.contains("-- the agent is done"),
        "{text}"
    );
}

#[test]
fn submitting_again_is_the_same_job() {
    let fleet = Fleet::new(Script::new([Reply::text("once")]));
    let first = fleet.submit("work", &["--id", ID]);
    let again = fleet.fleet(["submit", "--no-repo", "work", "--id", ID, "--json"]);
    assert_eq!(
        again.stdout,
        format!("{{\"job\":\"{ID}\",\"pool\":\"default\",\"new\":false}}\n")
    );
    let _worker = fleet.worker("one", &[], &[]);
    assert_eq!(fleet.result(&first)["text"], "once");
    let after = fleet.fleet(["submit", "--no-repo", "work", "--id", ID]);
    assert_eq!(after.stdout, format!("{ID}\n"));
    assert!(
        after.stderr.contains("submitted before"),
        "{}",
        after.stderr
    );
    let other = fleet.fleet(["submit", "--no-repo", "something else", "--id", ID]);
    assert_eq!(other.code, Some(64), "{other:?}");
    assert!(other.stderr.contains("is another one"), "{}", other.stderr);
    assert_eq!(fleet.bench.server.model_requests().len(), 1);
}

#[test]
fn a_full_queue_says_so() {
    let fleet = Fleet::with(Script::new([]), &["--queue", "2"]);
    fleet.submit("a", &[]);
    fleet.submit("b", &["--id", ID]);
    let third = fleet.fleet(["submit", "--no-repo", "c"]);
    assert_eq!(third.code, Some(75), "{third:?}");
    assert!(
        third.stderr.contains("the queue is full"),
        "{}",
        third.stderr
    );
    // What is there already is not refused.
    let again = fleet.fleet(["submit", "--no-repo", "b", "--id", ID]);
    assert_eq!(again.code, Some(0), "{again:?}");
}

#[test]
fn secrets_and_loosening_are_refused_before_anything_is_sent() {
    let fleet = Fleet::new(Script::new([]));
    let key = format!("use sk-ant-{}", "x".repeat(40));
    let refused = fleet.fleet(["submit", "--no-repo", &key]);
    assert_eq!(refused.code, Some(64), "{refused:?}");
    assert!(
        refused
            .stderr
            .contains("seems to contain a secret (Anthropic key)")
    );
    let loose = fleet.fleet(["submit", "--no-repo", "hello", "--allow", "Bash"]);
    assert_eq!(loose.code, Some(64), "{loose:?}");
    assert!(loose.stderr.contains("a job can only deny"));
    assert_eq!(fleet.fleet(["list"]).stdout, "");
    let unknown = fleet.fleet(["result", ID]);
    assert_eq!(unknown.code, Some(66), "{unknown:?}");
}

#[test]
fn a_queued_job_and_a_running_one_are_cancelled() {
    let fleet = Fleet::new(Script::new([Reply::text("never whole")
        .hold_after(1)
        .when(Match::last_user("run"))]));
    let queued = fleet.submit("wait", &[]);
    let none = fleet.fleet(["result", &queued]);
    assert_eq!(none.code, Some(75), "{none:?}");
    let ran = fleet.fleet(["cancel", &queued]);
    assert_eq!(ran.stdout, format!("{queued} cancelling\n"));
    let running = fleet.submit("run", &[]);
    let _worker = fleet.worker("one", &[], &[]);
    let result = fleet.result(&queued);
    assert_eq!(result["outcome"], "cancelled", "{result}");
    assert_eq!(result["exit_code"], 124);
    fleet.bench.server.wait_for_requests(1);
    fleet.fleet(["cancel", &running]);
    let result = fleet.result(&running);
    assert_eq!(result["outcome"], "cancelled", "{result}");
    fleet.bench.server.wait_for_disconnect();
    fleet.wait_for_state(&running, "cancelled");
    let again = fleet.fleet(["cancel", &running]);
    assert_eq!(again.stdout, format!("{running} is cancelled already\n"));
    assert_eq!(fleet.bench.server.model_requests().len(), 1);
}

#[test]
fn a_job_tightens_what_the_worker_allows_and_never_loosens_it() {
    let bash = |command: &str| Reply::tool("Bash", json!({ "command": command }));
    let fleet = Fleet::new(Script::new([
        bash("touch made-a").when(Match::last_user("job a")),
        bash("touch made-b").when(Match::last_user("job b")),
        bash("touch made-c").when(Match::last_user("job c")),
        Reply::text("done").times(3),
    ]));
    // This worker lets files be touched, and nothing else.
    let _worker = fleet.worker("one", &["--allow", "Bash:touch *"], &[]);
    let done = |job: &str| {
        let result = fleet.result(job);
        assert_eq!(result["outcome"], "done", "{result}");
        result["files"].clone()
    };
    let plain = fleet.submit("job a", &[]);
    assert!(done(&plain)["patch"]["name"].is_string());
    let denied = fleet.submit("job b", &["--deny", "Bash:touch *"]);
    assert_eq!(done(&denied), Value::Null);
    let body = fleet.bench.server.model_requests()[3].json().to_string();
    assert!(
        body.contains("the job says so") || body.contains("denied"),
        "{body}"
    );
    let loose = fleet.submit(
        "job c",
        &["--permission-mode", "plan", "--on-question", "park"],
    );
    assert_eq!(done(&loose), Value::Null);
    let warned = fleet.frames(&loose);
    assert!(warned.iter().any(|frame| {
        let message = frame["message"].as_str().unwrap_or_default();
        frame["type"] == "warning" && message.contains("questions to wait")
    }));
}

#[test]
fn what_nobody_can_do_fails_after_three_attempts() {
    let fleet = Fleet::new(Script::new([Reply::text("too late")]));
    // A repository that is not there: every attempt ends without a result.
    let gone = fleet.bench.home.path().join("gone");
    let gone = gone.to_str().unwrap();
    let commit = "a".repeat(40);
    let args = ["submit", "work", "--repo", gone, "--commit", &commit];
    let job = fleet.fleet(args).stdout.trim().to_owned();
    let _worker = fleet.worker("one", &[], &["--allow-repo", gone]);
    let result = fleet.result(&job);
    assert_eq!(result["outcome"], "failed", "{result}");
    let reason = result["reason"].as_str().unwrap();
    assert!(
        reason.starts_with("3 attempts ended without a result"),
        "{reason}"
    );
    assert_eq!(fleet.bench.server.model_requests().len(), 0);
    until("the queue is empty", || {
        let next = fleet.submit("say", &[]);
        fleet.result(&next)["outcome"] == "done"
    });
}

#[test]
fn a_directory_of_the_worker_is_no_repository() {
    let fleet = Fleet::new(Script::new([]));
    let commit = "a".repeat(40);
    let args = ["submit", "work", "--repo", "/etc", "--commit", &commit];
    let job = fleet.fleet(args).stdout.trim().to_owned();
    let _worker = fleet.worker("one", &[], &[]);
    let result = fleet.result(&job);
    assert_eq!(result["outcome"], "failed", "{result}");
    assert_eq!(result["exit_code"], 78);
    assert!(
        result["reason"]
            .as_str()
            .unwrap()
            .contains("does not work on `/etc`")
    );
}
