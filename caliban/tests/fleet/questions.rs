//! Questions of agents that nobody watches.

use std::time::{Duration, Instant};

use caliban_testkit::Reply;
use serde_json::json;

use crate::fleet::{Fleet, PATIENCE};

fn wants(command: &str) -> Reply {
    Reply::tool("Bash", json!({ "command": command }))
}

#[test]
fn a_question_waits_and_is_answered_from_any_terminal() {
    let fleet = Fleet::new([
        wants("touch made"),
        wants("touch not-made"),
        Reply::text("done"),
    ]);
    let id = fleet.spawn("make it");
    let asks = |agent: &serde_json::Value| agent["needs"]["kind"] == "permission";
    let agent = fleet.until(&id, asks);
    assert_eq!(agent["state"], "idle");
    assert_eq!(agent["needs"]["summary"], "Bash touch made");
    let question = agent["needs"]["id"].as_str().unwrap().to_owned();
    let table = fleet.ok(&["agents", "list"]);
    let hint = format!("caliban agents answer {id} {} allow", &question[..8]);
    assert!(table.contains(&hint), "{table}");
    // A call that waits has not failed.
    let log = fleet.ok(&["logs", &id]);
    assert!(
        log.contains("touch made") && !log.contains("## Failure"),
        "{log}"
    );

    let unknown = fleet.run(&["agents", "answer", &id, "ffff", "allow"]);
    assert_eq!(unknown.code, Some(66), "{}", unknown.stderr);
    let said = fleet.ok(&["agents", "answer", &id, &question[..8], "allow"]);
    assert_eq!(said, format!("{id} allow\n"));
    fleet.until(&id, |agent| {
        asks(agent) && agent["needs"]["id"] != question.as_str()
    });
    assert!(fleet.bench.workspace.path().join("made").exists());

    // Somebody who is attached can answer as well.
    let mut attached = fleet.attach(&id, &[]);
    attached.until(|line| line.starts_with("? Bash") && line.contains("not-made"));
    attached.type_in("/deny not that one");
    attached.until(|line| line.contains("answered: deny"));
    attached.until(|line| line.starts_with("-- success"));
    attached.detach();
    assert!(!fleet.bench.workspace.path().join("not-made").exists());
    let requests = fleet.bench.server.model_requests();
    assert!(requests[2].json().to_string().contains("not that one"));
    let agent = fleet.until_state(&id, "idle");
    assert_eq!(agent["needs"]["kind"], "input");
}

#[test]
fn an_answer_can_hold_for_the_session() {
    let fleet = Fleet::new([wants("touch a"), wants("touch a"), Reply::text("done")]);
    let id = fleet.spawn("make it");
    fleet.until(&id, |agent| agent["needs"]["kind"] == "permission");
    fleet.ok(&["agents", "answer", &id, "-", "allow-session"]);
    let agent = fleet.until(&id, |agent| agent["turns"] == 3);
    assert_eq!(agent["state"], "idle");
}

#[test]
fn where_nobody_answers_in_time_nobody_was_there() {
    let fleet = Fleet::new([wants("touch made"), Reply::text("done")]);
    fleet.settings("[fleet]\nquestion_patience = \"100ms\"\n");
    let id = fleet.spawn("make it");
    fleet.until(&id, |agent| agent["turns"] == 2);
    assert!(!fleet.bench.workspace.path().join("made").exists());
    let body = fleet.bench.server.model_requests()[1].json().to_string();
    assert!(body.contains("nobody was there to answer"), "{body}");
    assert!(!body.contains("the user refused"), "{body}");
    // Whoever looks at it later finds no decision of anybody's.
    let mut attached = fleet.attach(&id, &["--json", "--read-only"]);
    let answered = attached.frame("answered");
    assert_eq!(answered["how"], "timed_out", "{answered}");
}

#[test]
fn who_must_not_wait_is_refused_and_gives_up_at_the_second_time() {
    let fleet = Fleet::new([wants("touch a"), wants("touch b"), Reply::text("no")]);
    fleet.settings("[fleet]\non_question = \"deny\"\n");
    let id = fleet.spawn("make it");
    let agent = fleet.until_state(&id, "failed");
    let reason = agent["reason"].as_str().unwrap();
    assert!(reason.contains("nobody was there to ask"), "{reason}");
    assert_eq!(fleet.bench.server.model_requests().len(), 2);

    let fleet = Fleet::new([wants("touch a"), Reply::text("no")]);
    fleet.settings("[fleet]\non_question = \"fail\"\n");
    let id = fleet.spawn("make it");
    let agent = fleet.until_state(&id, "failed");
    assert!(
        agent["reason"].as_str().unwrap().contains("Bash touch a"),
        "{agent}"
    );
}

#[test]
#[cfg(target_os = "linux")]
fn an_agent_cannot_answer_its_own_questions() {
    let attempt = format!(
        "id=$CALIBAN_AGENT_ID\n\
         while :; do\n\
         env -u CALIBAN_AGENT_ID {} agents answer $id - allow > attempt.new 2>&1\n\
         echo \"exit $?\" >> attempt.new\n\
         if grep -q 'nor answer' attempt.new; then mv attempt.new attempt; exit; fi\n\
         sleep 0.1\n\
         done\n",
        env!("CARGO_BIN_EXE_caliban")
    );
    let fleet = Fleet::new([
        Reply::tool(
            "Bash",
            json!({"command": "sh attempt.sh", "run_in_background": true}),
        ),
        wants("touch made"),
        Reply::text("done"),
    ]);
    let workspace = fleet.bench.workspace.path();
    std::fs::write(workspace.join("attempt.sh"), attempt).unwrap();
    let id = fleet.ok(&["--allow", "Bash:sh attempt.sh", "--bg", "try it"]);
    let id = id.trim();
    let deadline = Instant::now() + PATIENCE;
    while !workspace.join("attempt").exists() {
        let tried = std::fs::read_to_string(workspace.join("attempt.new"));
        assert!(Instant::now() < deadline, "{} {tried:?}", fleet.agent(id));
        std::thread::sleep(Duration::from_millis(50));
    }
    let said = std::fs::read_to_string(workspace.join("attempt")).unwrap();
    assert!(said.contains("nor answer its questions"), "{said}");
    assert!(said.contains("exit 1"), "{said}");
    assert_eq!(fleet.agent(id)["needs"]["kind"], "permission");
    assert!(!workspace.join("made").exists());
    fleet.ok(&["agents", "answer", id, "-", "allow"]);
    fleet.until(id, |agent| agent["needs"]["kind"] == "input");
    assert!(workspace.join("made").exists());
}

#[test]
#[cfg(target_os = "linux")]
fn agents_that_hide_whose_they_are_have_a_parent_all_the_same() {
    // One hides its name, one takes another's.
    let begin = |marked: &str| {
        format!(
            "env {marked} {} --bg nested >> begun 2>&1; echo \"exit $?\" >> begun",
            env!("CARGO_BIN_EXE_caliban")
        )
    };
    let fleet = Fleet::new([
        Reply::tool("Bash", json!({"command": "sh attempt.sh"})),
        Reply::text("done"),
        Reply::text("nested"),
        Reply::text("nested"),
    ]);
    let workspace = fleet.bench.workspace.path();
    let lines = [
        begin("-u CALIBAN_AGENT_ID"),
        begin("CALIBAN_AGENT_ID=0000000a"),
    ];
    std::fs::write(workspace.join("attempt.sh"), lines.join("\n")).unwrap();
    let id = fleet.ok(&["--allow", "Bash:sh attempt.sh", "--bg", "try it"]);
    let id = id.trim();
    fleet.until(id, |agent| {
        agent["turns"] == 2 || agent["turns"] == 1 && agent["state"] == "idle"
    });
    let written = std::fs::read_to_string(workspace.join("begun")).unwrap();
    let nested: Vec<&str> = written.lines().filter(|line| line.len() == 8).collect();
    assert_eq!(nested.len(), 2, "{written}");
    for other in nested {
        let spec = fleet.file(other, "spec.json");
        assert_eq!(spec["depth"], 1, "{spec}");
        assert!(
            spec.to_string().contains(&format!("\"parent\":\"{id}\"")),
            "{spec}"
        );
    }
}
