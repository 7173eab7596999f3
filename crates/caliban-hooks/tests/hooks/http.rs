//! Handlers that are URLs.

use caliban_agent::{Advice, Adviser};
use caliban_hooks::{HookLayer, Runners};
use caliban_settings::Scope;
use rstest::rstest;
use serde_json::{Value, json};

use crate::server::{Response, Server};
use crate::support::{Session, bash, layer, tool};

/// The permission server of an application: a secret and a run's token in the path, one answer
/// per call.
fn permission_server() -> Server {
    Server::start(|request| {
        if request.path != "/hook/pre-tool-use/app-secret/run-token" {
            return Response::Status(403, "{}".to_owned());
        }
        let (decision, reason) = if request.body["tool_input"]["command"] == json!("ls") {
            ("allow", "Approved by user")
        } else {
            ("deny", "User denied")
        };
        let answer = json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": decision,
            "permissionDecisionReason": reason,
        }});
        Response::Status(200, answer.to_string())
    })
}

fn settings(server: &Server, path: &str) -> Value {
    json!({"PreToolUse": [{
        "matcher": "^(Bash|Edit|Write|MultiEdit|mcp__.*)$",
        "hooks": [{"type": "http", "url": server.url(path), "timeout": 300}],
    }]})
}

#[tokio::test]
async fn a_permission_server_decides() {
    let server = permission_server();
    let session = Session::new(settings(&server, "/hook/pre-tool-use/app-secret/run-token"));
    let verdict = session.hooks.advise(&bash("ls")).await;
    let reason = Some("Approved by user".to_owned());
    assert_eq!(
        verdict,
        Advice::Approve {
            reason,
            input: None
        }
    );
    let verdict = session.hooks.advise(&bash("rm -rf /tmp/test")).await;
    assert!(matches!(&verdict, Advice::Deny(denial) if denial.reason == "User denied"));
    let read = tool("Read", json!({"path": "x"}));
    assert_eq!(session.hooks.advise(&read).await, Advice::Allow);
    let mcp = tool("mcp__server__tool", json!({}));
    let verdict = session.hooks.advise(&mcp).await;
    assert!(matches!(verdict, Advice::Deny(_)));

    let requests = server.requests();
    assert_eq!(requests.len(), 3, "Read is not asked about");
    assert_eq!(requests[1].method, "POST");
    assert_eq!(requests[1].header("content-type"), Some("application/json"));
    let body = &requests[1].body;
    let expected = json!({
        "session_id": "abc-123",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "rm -rf /tmp/test"},
        "tool_use_id": "toolu_xyz",
        "cwd": session.dir.path(),
        "permission_mode": "default",
        "transcript_path": "/path/to/transcript.jsonl",
    });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&body[name], value, "{name}");
    }
    assert_eq!(body["tool"]["useId"], json!("toolu_xyz"));
}

#[tokio::test]
async fn a_wrong_token_is_a_refusal_that_shows_no_secret() {
    let server = permission_server();
    let session = Session::new(settings(
        &server,
        "/hook/pre-tool-use/app-secret/other-token",
    ));
    let Advice::Deny(denial) = session.hooks.advise(&bash("ls")).await else {
        panic!();
    };
    assert!(denial.reason.contains("status 403"), "{}", denial.reason);
    let firing = session.firing();
    let everything = format!(
        "{denial:?} {firing:?} {} {:?}",
        firing.output(),
        session.hooks
    );
    assert!(!everything.contains("app-secret") && !everything.contains("other-token"));
}

#[tokio::test]
async fn an_unreachable_server_shows_no_secret_either() {
    let url = "http://127.0.0.1:1/hook/app-secret";
    let session = Session::new(json!({"PreToolUse": [{"type": "http", "url": url}]}));
    let Advice::Deny(denial) = session.hooks.advise(&bash("ls")).await else {
        panic!();
    };
    assert!(
        denial.reason.contains("could not be called"),
        "{}",
        denial.reason
    );
    assert!(!denial.reason.contains("app-secret"), "{}", denial.reason);
}

#[rstest]
#[case(200, "", true)]
#[case(204, "", true)]
#[case(201, "{}", true)]
#[case(200, "<html>welcome</html>", false)]
#[case(200, "fine with me", true)]
#[case(200, "{null", false)]
#[case(401, "{}", false)]
#[case(404, "", false)]
#[case(
    500,
    r#"{"hookSpecificOutput": {"permissionDecision": "allow"}}"#,
    false
)]
#[tokio::test]
async fn only_success_decides(#[case] status: u16, #[case] body: &str, #[case] passes: bool) {
    let server = Server::saying(status, body);
    let session = Session::new(settings(&server, "/"));
    let verdict = session.hooks.advise(&bash("ls")).await;
    assert_eq!(verdict == Advice::Allow, passes, "{verdict:?}");
    assert_eq!(matches!(verdict, Advice::Deny(_)), !passes);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let other = Server::saying(200, r#"{"decision": "approve"}"#);
    let target = other.url("/");
    let server = Server::start(move |_| Response::Redirect(target.clone()));
    let session = Session::new(settings(&server, "/"));
    let verdict = session.hooks.advise(&bash("ls")).await;
    assert!(matches!(verdict, Advice::Deny(_)));
    assert!(other.requests().is_empty());
}

#[tokio::test]
async fn an_endless_answer_is_a_refusal() {
    let server = Server::saying(200, &format!("{{\"a\": \"{}\"}}", "x".repeat(2 << 20)));
    let session = Session::new(settings(&server, "/"));
    let Advice::Deny(denial) = session.hooks.advise(&bash("ls")).await else {
        panic!();
    };
    assert!(denial.reason.contains("longer than"), "{}", denial.reason);
}

fn listed(scope: Scope, urls: &[String], hooks: Value) -> HookLayer {
    HookLayer {
        allowed_urls: Some(urls.to_vec()),
        allowed_variables: Some(vec!["AUDIT_TOKEN".to_owned()]),
        ..layer(scope, hooks)
    }
}

#[tokio::test]
async fn a_workspace_calls_only_listed_urls() {
    let server = Server::saying(200, "{}");
    let hooks = settings(&server, "/");
    let verdict = async |layer: HookLayer| {
        let session = Session::made(&[layer], Runners::default());
        session.hooks.advise(&bash("ls")).await
    };
    let unlisted = verdict(layer(Scope::Project, hooks.clone())).await;
    assert!(
        matches!(&unlisted, Advice::Deny(denial) if denial.reason.contains("allowed_http_hook_urls")),
        "{unlisted:?}"
    );
    assert!(server.requests().is_empty());
    let urls = [server.url("/*")];
    let listed = verdict(listed(Scope::Project, &urls, hooks)).await;
    assert_eq!(listed, Advice::Allow);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn listed_variables_are_sent_and_no_others() {
    let server = Server::saying(200, "{}");
    let hooks = |header: &str| {
        json!({"PreToolUse": [{
            "type": "http",
            "url": server.url("/"),
            "headers": {"Authorization": header},
        }]})
    };
    let urls = [server.url("/*")];
    let layers = [listed(Scope::User, &urls, hooks("Bearer ${AUDIT_TOKEN}"))];
    let session = Session::made(&layers, Runners::default());
    assert_eq!(session.hooks.advise(&bash("ls")).await, Advice::Allow);
    let request = &server.requests()[0];
    assert_eq!(request.header("authorization"), Some("Bearer t0ken"));

    let layers = [listed(Scope::User, &urls, hooks("Bearer ${PATH}"))];
    let session = Session::made(&layers, Runners::default());
    let verdict = session.hooks.advise(&bash("ls")).await;
    assert!(
        matches!(&verdict, Advice::Deny(denial) if denial.reason.contains("http_hook_allowed_env_vars")),
        "{verdict:?}"
    );
    assert_eq!(server.requests().len(), 1);
}
