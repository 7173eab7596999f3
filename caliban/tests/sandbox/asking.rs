//! Hosts that the list does not name: whoever attends is asked, and what is refused is said where
//! the model reads it.

use caliban_testkit::Script;
use rstest::rstest;
use serde_json::{Value, json};

use crate::process::{Process, eventually};
use crate::support::{Bench, frame};
use crate::{ON, ask, bash, bench, calls, proxy, result, unavailable};

/// A command that fetches from a host and says what it got.
fn fetch(host: &str) -> String {
    format!(
        "python3 -c 'import urllib.request as u; print(u.urlopen(\"http://{host}/\").read())' 2>&1 | tail -1"
    )
}

/// A list of one host, behind a proxy that answers for all: names are not looked up here.
fn listing(script: Script) -> Bench {
    let port = proxy();
    let network =
        format!("[sandbox.network]\nallowed_domains = ['listed.test']\nhttp_proxy_port = {port}\n");
    bench(&format!("{ON}{network}"), script)
}

pub(crate) fn attended(bench: &Bench, flags: &[&str]) -> Process {
    let mut command = bench.command();
    command
        .args(["--input-format", "stream-json"])
        .args(["--output-format", "stream-json", "-p"])
        .args(["--permission-prompt-tool", "events"])
        .args(flags);
    let process = Process::start(&mut command, frame);
    process.write(&json!({"type": "user", "content": "go"}));
    process
}

pub(crate) fn question(process: &mut Process) -> Value {
    process.until(
        "a question",
        |frame| frame["type"] == "question",
        |frame| frame["type"] == "result",
    )
}

pub(crate) fn answer(process: &Process, question: &Value, decision: &str) {
    process.write(&json!({
        "type": "answer",
        "question": question["question"],
        "decision": decision,
    }));
}

/// Waits for the end; how many questions there were.
pub(crate) fn questions(mut process: Process) -> usize {
    process.until("a result", |frame| frame["type"] == "result", |_| false);
    let ended = process.finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    let asked = ended.frames.iter();
    asked.filter(|frame| frame["type"] == "question").count()
}

#[test]
fn a_new_host_is_asked_about_once() {
    if unavailable() {
        return;
    }
    let command = format!("{}; {}", fetch("new.test"), fetch("new.test"));
    let bench = listing(bash(&command));
    let heard = bench.home.path().join("heard");
    let hooks = json!({"hooks": {"Notification": [{"hooks": [
        {"type": "command", "command": format!("cat > {}", heard.display())}
    ]}]}});
    let hooks = hooks.to_string();
    let mut process = attended(&bench, &["--allow", "Bash", "--settings", &hooks]);
    let asked = question(&mut process);
    assert_eq!(asked["kind"], "permission");
    let told = std::fs::read_to_string(heard).unwrap();
    let told: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["notification_type"], "permission_prompt");
    assert_eq!(told["message"], asked["reason"]);
    assert_eq!(asked["tool"], "SandboxNetworkAccess");
    assert_eq!(asked["input"]["host"], "new.test");
    assert_eq!(asked["input"]["port"], 80);
    assert!(
        asked["input"]["command"]
            .as_str()
            .unwrap()
            .contains("new.test"),
        "{asked}"
    );
    let reason = asked["reason"].as_str().unwrap();
    assert!(
        reason.contains("sandbox.network.allowed_domains"),
        "{reason}"
    );
    answer(&process, &asked, "allow");
    assert_eq!(questions(process), 1);
    let told = result(&bench);
    assert_eq!(told.matches("OPERATORS").count(), 2, "{told}");
}

#[test]
fn a_host_that_is_refused_is_told_to_the_model() {
    if unavailable() {
        return;
    }
    let bench = listing(bash(&fetch("new.test")));
    let mut process = attended(&bench, &["--allow", "Bash"]);
    let asked = question(&mut process);
    answer(&process, &asked, "deny");
    assert_eq!(questions(process), 1);
    let told = result(&bench);
    assert!(!told.contains("OPERATORS"), "{told}");
    assert!(
        told.contains("[sandbox: the user refused `new.test:80`"),
        "{told}"
    );
}

#[test]
fn what_a_background_command_asks_outlives_the_prompt() {
    if unavailable() {
        return;
    }
    let command = format!("({}) > got", fetch("new.test"));
    let script = calls(vec![(
        "Bash",
        json!({"command": command, "background": true}),
    )]);
    let bench = listing(script);
    let mut process = attended(&bench, &["--allow", "Bash"]);
    let is_result = |frame: &Value| frame["type"] == "result";
    let is_question = |frame: &Value| frame["type"] == "question";
    let asked = process.until("a question", is_question, |_| false);
    if !process.frames().iter().any(is_result) {
        process.until("a result", is_result, |_| false);
    }
    // Another prompt begins and ends while the question is open.
    process.write(&json!({"type": "user", "content": "and on"}));
    process.until("a result", is_result, |_| false);
    answer(&process, &asked, "allow");
    let got = bench.workspace.path().join("got");
    eventually("the command has its answer", || {
        std::fs::read_to_string(&got).is_ok_and(|text| text.contains("OPERATORS"))
    });
    let ended = process.finish();
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
}

#[test]
fn consent_for_the_session_is_a_rule_about_the_host() {
    if unavailable() {
        return;
    }
    let script = calls(vec![
        ("Bash", json!({"command": fetch("new.test")})),
        ("Bash", json!({"command": fetch("new.test")})),
    ]);
    let bench = listing(script);
    let mut process = attended(&bench, &["--allow", "Bash"]);
    let asked = question(&mut process);
    let suggested = asked["suggestions"].to_string();
    assert!(suggested.contains("new.test"), "{suggested}");
    answer(&process, &asked, "allow-session");
    assert_eq!(questions(process), 1);
    let told = result(&bench);
    assert_eq!(told.matches("OPERATORS").count(), 2, "{told}");
}

#[rstest]
#[case::no_rule(&[], false)]
#[case::of_the_host(&["--allow", "WebFetch(domain:new.test)"], true)]
#[case::of_another(&["--allow", "WebFetch(domain:other.test)"], false)]
#[case::of_everything(&["--allow", "WebFetch"], false)]
#[case::everything_allowed(&["--auto-allow"], false)]
fn where_nobody_attends_only_a_rule_opens_a_host(#[case] flags: &[&str], #[case] reached: bool) {
    if unavailable() {
        return;
    }
    let bench = listing(bash(&fetch("new.test")));
    let flags: Vec<&str> = ["--allow", "Bash"].iter().chain(flags).copied().collect();
    where_nobody_attends(&bench, &flags, reached);
}

#[test]
fn without_rules_a_host_is_closed_all_the_same() {
    if unavailable() {
        return;
    }
    let bench = listing(bash(&fetch("new.test")));
    where_nobody_attends(&bench, &["--no-permissions"], false);
}

fn where_nobody_attends(bench: &Bench, flags: &[&str], reached: bool) {
    let (ran, frames) = ask(bench, flags);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(frames[0]["sandbox"]["egress"], "proxy");
    let told = result(bench);
    assert_eq!(told.contains("OPERATORS"), reached, "{told}");
    let remedy = r#"[sandbox: `new.test:80` is not in `sandbox.network.allowed_domains`; add \"new.test\" there to allow it]"#;
    assert_eq!(told.contains(remedy), !reached, "{told}");
}

#[test]
fn a_rule_denies_a_host_and_nobody_is_asked() {
    if unavailable() {
        return;
    }
    let bench = listing(bash(&fetch("new.test")));
    let flags = ["--allow", "Bash", "--deny", "WebFetch(domain:new.test)"];
    assert_eq!(questions(attended(&bench, &flags)), 0);
    let told = result(&bench);
    assert!(!told.contains("OPERATORS"), "{told}");
    assert!(told.contains("[sandbox: "), "{told}");
}
