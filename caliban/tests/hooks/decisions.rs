//! Hooks that decide: the permission server of an application, and every kind of answer from
//! every kind of handler, for every agent.

use std::os::unix::fs::PermissionsExt;

use caliban_testkit::{Match, Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};

use crate::server::{Answer, PermissionServer};
use crate::support::{Bench, Ran, run};
use crate::{
    Caller, bench, frames, go, is_written, recorded, recorder, result, settings, shell, write_call,
    writes,
};

/// Runs a model that writes a file, with a settings file as an application writes it.
fn with_server(url: &str, timeout: &Value, args: &[&str]) -> (Bench, Ran) {
    let bench = bench(writes(Caller::Parent));
    let settings = json!({"hooks": {"PreToolUse": [{
        "matcher": "^(Bash|Edit|Write|MultiEdit|mcp__.*)$",
        "hooks": [{"type": "http", "url": url, "timeout": timeout}],
    }]}});
    let file = bench.home.path().join("run-settings.json");
    std::fs::write(&file, settings.to_string()).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let ran = run(bench
        .command()
        .args(["-p", "go", "--output-format", "stream-json", "--settings"])
        .arg(file)
        .args(args));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for secret in PermissionServer::secrets() {
        assert!(!ran.stdout.contains(secret) && !ran.stderr.contains(secret));
    }
    (bench, ran)
}

#[test]
fn the_permission_server_is_told_what_it_needs() {
    let server = PermissionServer::start(Answer::decision("allow"));
    let (bench, ran) = with_server(&server.url(), &json!(300), &[]);
    // No rule allows it.
    assert!(is_written(&bench), "{}", ran.stdout);
    let questions = server.questions();
    assert_eq!(questions.len(), 1);
    let question = &questions[0];
    let frames = frames(&ran);
    let call = frames
        .iter()
        .find(|frame| frame["type"] == "tool_use")
        .unwrap();
    assert_eq!(question["session_id"], frames[0]["session_id"]);
    assert_eq!(question["hook_event_name"], "PreToolUse");
    assert_eq!(question["tool_name"], "Write");
    assert_eq!(
        question["tool_input"],
        json!({"path": "out.txt", "content": "x"})
    );
    assert_eq!(question["tool_use_id"], call["id"]);
    assert_eq!(question["cwd"], frames[0]["cwd"]);
    assert_eq!(question["permission_mode"], "default");
}

#[rstest]
#[case::deny(Answer::decision("deny"))]
#[case::ask(Answer::decision("ask"))]
#[case::nothing(Answer::Text(""))]
#[case::garbage(Answer::Text("<html>allow</html>"))]
#[case::unknown(Answer::decision("yes"))]
#[case::forbidden(Answer::Status(403))]
#[case::broken(Answer::Status(500))]
#[case::redirect(Answer::Status(302))]
#[case::crash(Answer::Close)]
#[case::silence(Answer::Hang)]
fn only_an_approval_of_the_permission_server_lets_a_call_run(#[case] answer: Answer) {
    let timeout = match answer {
        Answer::Hang => json!("200ms"),
        _ => json!(300),
    };
    let server = PermissionServer::start(answer);
    let (bench, ran) = with_server(&server.url(), &timeout, &[]);
    assert!(!is_written(&bench), "{}", ran.stdout);
    assert_eq!(result(&ran)["denials"].as_array().unwrap().len(), 1);
    assert_eq!(server.questions().len(), 1, "it is not asked again");
}

#[test]
fn a_wrong_token_and_a_dead_server_deny() {
    let server = PermissionServer::start(Answer::decision("allow"));
    let (bench, ran) = with_server(&server.url_with("other"), &json!(5), &["--allow", "Write"]);
    assert!(!is_written(&bench), "{}", ran.stdout);
    let denial = result(&ran)["denials"][0]["reason"].to_string();
    assert!(denial.contains("403"), "{denial}");
    assert!(server.questions().is_empty());
    let (bench, _) = with_server("http://127.0.0.1:1/x", &json!(5), &["--allow", "Write"]);
    assert!(!is_written(&bench));
}

#[test]
fn a_static_deny_holds_whatever_the_permission_server_says() {
    for args in [
        &["--deny", "Write"] as &[&str],
        &["--permission-mode", "plan"],
    ] {
        let server = PermissionServer::start(Answer::decision("allow"));
        let (bench, ran) = with_server(&server.url(), &json!(300), args);
        assert!(!is_written(&bench), "{args:?} {}", ran.stdout);
    }
    // Nor does it get around a rule by changing what is called.
    let elsewhere = json!({"path": "forbidden.txt", "content": "x"});
    let server = PermissionServer::start(Answer::rewrite(&elsewhere));
    let args = ["--deny", "Write:forbidden.txt", "--allow", "Write"];
    let (bench, _) = with_server(&server.url(), &json!(300), &args);
    assert!(!bench.workspace.path().join("forbidden.txt").exists());
}

#[test]
fn the_permission_server_may_change_the_input() {
    let other = json!({"path": "other.txt", "content": "changed"});
    let server = PermissionServer::start(Answer::rewrite(&other));
    let (bench, _) = with_server(&server.url(), &json!(300), &[]);
    assert!(!is_written(&bench));
    let written = std::fs::read_to_string(bench.workspace.path().join("other.txt"));
    assert_eq!(written.unwrap(), "changed");
    // What the tool does not understand is refused.
    let server = PermissionServer::start(Answer::rewrite(&json!({"file": 1})));
    let (bench, ran) = with_server(&server.url(), &json!(300), &[]);
    assert!(!is_written(&bench));
    let denial = result(&ran)["denials"][0]["reason"].to_string();
    assert!(denial.contains("a hook changed the input"), "{denial}");
}

#[test]
fn a_url_elsewhere_must_be_listed() {
    let url = "https://hooks.example.com/x";
    let (bench, ran) = with_server(url, &json!(5), &["--allow", "Write"]);
    assert!(!is_written(&bench));
    let warnings = frames(&ran)[0]["warnings"].to_string();
    assert!(warnings.contains("allowed_http_hook_urls"), "{warnings}");
}

/// What a handler says about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    Allow,
    DenyByCode,
    DenyByJson,
    Ask,
    Nothing,
    Garbage,
    Hang,
    Missing,
    /// A code that is neither yes nor no; a server has none.
    OddCode,
}

impl Says {
    fn command(self) -> Value {
        let json = |decision: &str| {
            shell(&format!(
                "cat > /dev/null; echo '{{\"hookSpecificOutput\": {{\"permissionDecision\": \"{decision}\"}}}}'"
            ))
        };
        match self {
            Self::Allow => json("allow"),
            Self::DenyByCode => shell("echo no >&2; exit 2"),
            Self::DenyByJson => json("deny"),
            Self::Ask => json("ask"),
            Self::Nothing => shell("exit 0"),
            Self::Garbage => shell("echo '{\"hookSpecificOutput\": '"),
            Self::Hang => {
                let mut handler = shell("sleep 100");
                handler["timeout"] = "200ms".into();
                handler
            }
            Self::Missing => json!({"type": "command", "command": "/nowhere/guard"}),
            Self::OddCode => shell("exit 3"),
        }
    }

    fn answer(self) -> Answer {
        match self {
            Self::Allow => Answer::decision("allow"),
            Self::DenyByCode => Answer::Status(500),
            Self::DenyByJson => Answer::decision("deny"),
            Self::Ask => Answer::decision("ask"),
            Self::Nothing => Answer::Text(""),
            Self::Garbage => Answer::Text("{\"hookSpecificOutput\": "),
            Self::Hang => Answer::Hang,
            Self::Missing | Self::OddCode => Answer::Close,
        }
    }

    /// Whether the call runs without a rule, and with one that allows it.
    fn expected(self, kind: Kind) -> (bool, bool) {
        match (self, kind) {
            (Self::Allow, _) => (true, true),
            (Self::Nothing, _) | (Self::OddCode, Kind::Command) => (false, true),
            _ => (false, false),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Command,
    Http,
}

#[rstest]
fn every_answer_of_every_handler_counts_for_every_agent(
    #[values(Caller::Parent, Caller::SubAgent)] caller: Caller,
    #[values(Kind::Command, Kind::Http)] kind: Kind,
    #[values(
        Says::Allow,
        Says::DenyByCode,
        Says::DenyByJson,
        Says::Ask,
        Says::Nothing,
        Says::Garbage,
        Says::Hang,
        Says::Missing,
        Says::OddCode
    )]
    says: Says,
) {
    let server = PermissionServer::start(says.answer());
    let handler = match (kind, says) {
        (Kind::Command, _) => says.command(),
        (Kind::Http, Says::Hang) => {
            json!({"type": "http", "url": server.url(), "timeout": "200ms"})
        }
        (Kind::Http, _) => json!({"type": "http", "url": server.url()}),
    };
    let settings = settings(&[("PreToolUse", "Write", handler)]);
    let runs = |args: &[&str]| {
        let bench = bench(writes(caller));
        let ran = go(&bench, &settings, args);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        is_written(&bench)
    };
    let (unruled, allowed) = says.expected(kind);
    assert_eq!(runs(&[]), unruled, "without a rule");
    assert_eq!(runs(&["--allow", "Write"]), allowed, "allowed by a rule");
    assert!(!runs(&["--deny", "Write"]), "denied by a rule");
}

#[test]
fn on_error_makes_an_odd_code_stricter() {
    for (on_error, runs) in [("allow", true), ("ask", false), ("deny", false)] {
        let mut handler = shell("exit 3");
        handler["on_error"] = on_error.into();
        let bench = bench(writes(Caller::Parent));
        let settings = settings(&[("PreToolUse", "Write", handler)]);
        go(&bench, &settings, &["--allow", "Write"]);
        assert_eq!(is_written(&bench), runs, "{on_error}");
    }
}

#[rstest]
#[case(&["--auto-allow"])]
#[case(&["--permission-mode", "dontAsk"])]
#[case(&["--permission-mode", "acceptEdits"])]
fn what_a_hook_asks_no_mode_answers(#[case] args: &[&str]) {
    let bench = bench(writes(Caller::Parent));
    let settings = settings(&[("PreToolUse", "Write", Says::Ask.command())]);
    let ran = go(&bench, &settings, args);
    assert!(!is_written(&bench), "{}", ran.stdout);
    let denial = &result(&ran)["denials"][0];
    assert!(
        denial["remedy"].to_string().contains("change the hook"),
        "{denial}"
    );
}

#[test]
fn the_first_refusal_ends_it_and_the_model_reads_why() {
    let settings = settings(&[
        (
            "PreToolUse",
            "*",
            shell("echo 'not on a Friday' >&2; exit 2"),
        ),
        ("PreToolUse", "*", recorder()),
    ]);
    let bench = bench(writes(Caller::Parent));
    let ran = go(&bench, &settings, &["--allow", "Write"]);
    assert!(!is_written(&bench) && recorded(&bench).is_empty());
    let told = bench.server.model_requests()[1].json().to_string();
    assert!(told.contains("not on a Friday"), "{told}");
    let denial = &result(&ran)["denials"][0];
    assert_eq!(denial["reason"], "not on a Friday");
}

#[test]
fn a_model_may_object_and_never_approves() {
    let says = |answer: &str, args: &[&str]| {
        let settings = settings(&[(
            "PreToolUse",
            "Write",
            json!({"type": "prompt", "prompt": "Is it about money?"}),
        )]);
        let script = Script::new([
            write_call(),
            Reply::text(answer).when(Match::any_text("Is it about money?")),
            Reply::text("done"),
        ]);
        let bench = bench(script);
        let ran = go(&bench, &settings, args);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        is_written(&bench)
    };
    let allow = r#"{"hookSpecificOutput": {"permissionDecision": "allow"}}"#;
    let deny = r#"{"hookSpecificOutput": {"permissionDecision": "deny"}}"#;
    assert!(!says(allow, &[]));
    assert!(says(allow, &["--allow", "Write"]));
    assert!(!says(deny, &["--allow", "Write"]));
    assert!(!says("it seems fine", &["--allow", "Write"]));
}

#[test]
fn an_approval_with_an_empty_change_leaves_the_input_as_it_is() {
    let bench = bench(writes(Caller::Parent));
    let answer = r#"{"hookSpecificOutput": {"permissionDecision": "allow",
        "permissionDecisionReason": "matched allowlist", "updatedInput": {}}}"#;
    let handler = shell(&format!("echo '{answer}'"));
    let ran = go(&bench, &settings(&[("PreToolUse", "Write", handler)]), &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(is_written(&bench));
}
