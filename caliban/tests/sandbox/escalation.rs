//! A command that the sandbox made fail may ask to run without it: only a person says yes.

use caliban_testkit::Script;
use rstest::rstest;
use serde_json::{Value, json};

use crate::asking::{answer, attended, question, questions};
use crate::support::Bench;
use crate::{ON, ask, bench, calls, results, unavailable};

/// Fails in the sandbox, and then asks to run outside.
fn twice(command: &str) -> Script {
    calls(vec![
        ("Bash", json!({"command": command})),
        (
            "Bash",
            json!({"command": command, "without_sandbox": "it installs for the user"}),
        ),
    ])
}

/// Writes where only the user may.
const WRITES: &str = "touch $HOME/x";

fn is_done(bench: &Bench) -> bool {
    bench.home.path().join("x").exists()
}

#[rstest]
#[case(&[])]
#[case(&["--allow", "Bash"])]
#[case(&["--auto-allow"])]
#[case(&["--no-permissions"])]
#[case(&["--permission-mode", "dontAsk"])]
#[case(&["--permission-mode", "acceptEdits"])]
fn where_nobody_attends_it_is_denied_with_the_remedy(#[case] flags: &[&str]) {
    if unavailable() {
        return;
    }
    let settings = format!("{ON}auto_allow_bash_if_sandboxed = true\n");
    let bench = bench(&settings, twice(WRITES));
    let (ran, frames) = ask(&bench, flags);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!is_done(&bench));
    let told = results(&bench);
    assert!(told[0].contains("without_sandbox"), "{told:?}");
    assert!(told[1].contains("outside the sandbox"), "{told:?}");
    assert!(
        told[1].contains("sandbox.allow_unsandboxed_commands"),
        "{told:?}"
    );
    let denials = &frames.last().unwrap()["denials"];
    assert_eq!(denials.as_array().unwrap().len(), 1, "{denials}");
    assert_eq!(denials[0]["tool"], "Bash", "{denials}");
}

#[rstest]
#[case::allowed("allow", true)]
#[case::denied("deny", false)]
fn whoever_attends_decides(#[case] decision: &str, #[case] done: bool) {
    if unavailable() {
        return;
    }
    let bench = bench(ON, twice(WRITES));
    // Everything else is allowed: this is asked all the same.
    let mut process = attended(&bench, &["--no-permissions"]);
    let asked = question(&mut process);
    assert_eq!(asked["tool"], "Bash");
    assert_eq!(
        asked["input"]["without_sandbox"],
        "it installs for the user"
    );
    let reason = asked["reason"].as_str().unwrap();
    assert!(reason.contains("it installs for the user"), "{reason}");
    assert!(reason.contains("it failed there"), "{reason}");
    assert_eq!(asked["suggestions"], json!([]));
    answer(&process, &asked, decision);
    assert_eq!(questions(process), 1);
    assert_eq!(is_done(&bench), done);
}

#[rstest]
#[case::in_background(json!({"background": true}))]
#[case::plainly(json!({}))]
fn what_has_not_failed_is_not_asked_about(#[case] more: Value) {
    if unavailable() {
        return;
    }
    let mut input = json!({"command": WRITES, "without_sandbox": "I like it better"});
    let fields = input.as_object_mut().unwrap();
    fields.extend(more.as_object().unwrap().clone());
    let bench = bench(ON, calls(vec![("Bash", input)]));
    assert_eq!(questions(attended(&bench, &["--allow", "Bash"])), 0);
    assert!(!is_done(&bench));
    let told = results(&bench);
    assert!(
        told[0].contains("has not failed in the sandbox"),
        "{told:?}"
    );
}

#[rstest]
#[case::a_rule(&["--deny", "Bash:touch *"])]
#[case::plan_mode(&["--permission-mode", "plan"])]
fn what_denies_denies_it_too(#[case] flags: &[&str]) {
    if unavailable() {
        return;
    }
    let bench = bench(ON, twice(WRITES));
    assert_eq!(questions(attended(&bench, flags)), 0);
    assert!(!is_done(&bench));
}

#[rstest]
#[case::confined(ON, true)]
#[case::not_confined("", false)]
#[case::fallen_back("[sandbox]\nenabled = true\nbwrap_path = '/no'\n", false)]
fn the_model_hears_of_it_only_where_there_is_a_sandbox(
    #[case] settings: &str,
    #[case] offered: bool,
) {
    if unavailable() {
        return;
    }
    let bench = bench(settings, twice(WRITES));
    ask(&bench, &[]);
    let body = bench.server.model_requests().remove(0).json();
    let tools = body["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "Bash").unwrap();
    let properties = &tool["input_schema"]["properties"];
    assert_eq!(
        properties.get("without_sandbox").is_some(),
        offered,
        "{properties}"
    );
}
