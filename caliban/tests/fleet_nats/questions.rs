//! Questions of jobs, and those who watch.

use std::process::Stdio;

use caliban_testkit::{Reply, Script};
use serde_json::json;

use crate::fleet::{Fleet, lines, until};

fn wants(command: &str) -> Reply {
    Reply::tool("Bash", json!({ "command": command }))
}

#[test]
fn a_question_waits_and_the_first_answer_counts() {
    let fleet = Fleet::new(Script::new([wants("touch made"), Reply::text("done")]));
    let _worker = fleet.worker("one", &[], &["--on-question", "park"]);
    let job = fleet.submit("make it", &["--on-question", "park"]);
    until("the question is told", || {
        fleet
            .frames(&job)
            .iter()
            .any(|frame| frame["type"] == "question")
    });
    let unknown = fleet.fleet(["answer", &job, "nonsense", "allow"]);
    assert_eq!(unknown.code, Some(66), "{unknown:?}");
    let mut own = fleet.command();
    own.args(["fleet", "answer", &job, "-", "allow"]);
    let own = crate::support::run(own.env("CALIBAN_AGENT_ID", &job));
    assert_eq!(own.code, Some(64), "{own:?}");
    let first = fleet.fleet(["answer", &job, "-", "allow"]);
    assert_eq!(first.stdout, format!("{job} allow\n"));
    let question = fleet.frames(&job);
    let question = question.iter().find(|frame| frame["type"] == "question");
    let question = question.unwrap()["question"].as_str().unwrap().to_owned();
    let second = fleet.fleet(["answer", &job, &question, "deny"]);
    assert_eq!(second.code, Some(1), "{second:?}");
    assert!(
        second.stderr.contains("has answered `allow` already"),
        "{}",
        second.stderr
    );
    let result = fleet.result(&job);
    assert_eq!(result["outcome"], "done", "{result}");
    assert!(result["files"]["patch"]["name"].is_string(), "{result}");
}

#[test]
fn without_the_workers_consent_questions_are_denied() {
    let fleet = Fleet::new(Script::new([wants("touch made"), Reply::text("could not")]));
    let _worker = fleet.worker("one", &[], &[]);
    let job = fleet.submit("make it", &["--on-question", "park"]);
    let result = fleet.result(&job);
    assert_eq!(result["text"], "could not", "{result}");
    assert_eq!(result["files"], serde_json::Value::Null);
}

#[test]
fn a_job_can_fail_instead_of_asking() {
    let fleet = Fleet::new(Script::new([wants("touch made"), Reply::text("could not")]));
    let _worker = fleet.worker("one", &[], &[]);
    let job = fleet.submit("make it", &["--on-question", "fail"]);
    let result = fleet.result(&job);
    assert_eq!(result["outcome"], "failed", "{result}");
    assert_eq!(
        result["reason"],
        "somebody would have to be asked about Bash"
    );
}

#[test]
fn who_is_attached_sees_the_past_and_what_comes_as_it_comes() {
    let fleet = Fleet::new(Script::new([
        Reply::tool("Bash", json!({"command": "echo before"})),
        Reply::text("one two three four").hold_after(4),
    ]));
    let _worker = fleet.worker("one", &["--allow", "Bash"], &[]);
    let job = fleet.submit("talk", &[]);
    let mut attached = fleet
        .command()
        .args(["fleet", "attach", &job, "--json"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = lines(attached.stdout.take().unwrap());
    assert!(seen.any(|line| line.contains("\"tool_result\"")));
    fleet.bench.server.wait_for_requests(2);
    fleet.bench.server.release();
    assert!(seen.any(|line| line.contains("one two three four")));
    assert!(seen.any(|line| line.contains("\"ended\"")));
    assert!(attached.wait().unwrap().success());
}
