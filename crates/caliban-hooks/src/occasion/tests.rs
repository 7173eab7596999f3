use std::path::PathBuf;
use std::sync::Arc;

use caliban_agent::{Denial, Effect, NotificationKind, Opinion};
use caliban_model::Usage;
use caliban_settings::PermissionMode;
use rstest::rstest;

use super::*;

#[derive(Debug)]
struct Facts(Option<&'static str>);

impl SessionFacts for Facts {
    fn session_id(&self) -> Arc<str> {
        "s-1".into()
    }

    fn cwd(&self) -> PathBuf {
        "/w".into()
    }

    fn permission_mode(&self) -> PermissionMode {
        PermissionMode::AcceptEdits
    }

    fn transcript_path(&self) -> Option<PathBuf> {
        self.0.map(PathBuf::from)
    }
}

fn call() -> ToolCall {
    ToolCall {
        id: "t-1".into(),
        agent: None,
        name: "Bash".into(),
        input: json!({"command": "ls"}),
        effect: Effect::Executes,
        first_arg: Some("ls".to_owned()),
        turn: 3,
        opinion: Opinion::None,
    }
}

/// What the event adds to what every event says.
fn additions(occasion: &Occasion<'_>) -> String {
    let payload = occasion.payload(&Facts(None));
    let text = payload.to_string();
    let name = occasion.event().as_str();
    let common = format!(
        r#"{{"session_id":"s-1","hook_event_name":"{name}","hookEventName":"{name}","cwd":"/w","permission_mode":"acceptEdits""#
    );
    let rest = text
        .strip_prefix(&common)
        .unwrap_or_else(|| panic!("{text}"));
    rest.trim_start_matches(',')
        .strip_suffix('}')
        .unwrap()
        .to_owned()
}

const CALL: &str = r#""turn_index":3,"tool_name":"Bash","tool_input":{"command":"ls"},"tool_use_id":"t-1","tool":{"name":"Bash","useId":"t-1","input":{"command":"ls"}}"#;

#[test]
fn the_transcript_is_named_where_there_is_one() {
    let payload = Occasion::Start(SessionSource::Startup).payload(&Facts(Some("/t.jsonl")));
    assert_eq!(payload["transcript_path"], json!("/t.jsonl"));
}

#[test]
fn session_start() {
    let occasion = Occasion::Start(SessionSource::Resume);
    assert_eq!(additions(&occasion), r#""source":"resume""#);
    assert_eq!(occasion.subject(), Some("resume"));
}

#[rstest]
#[case("hi", r#""prompt":"hi","is_slash":false"#)]
#[case(
    "/help",
    r#""prompt":"/help","is_slash":true,"command":"help","args":"""#
)]
#[case(
    "/p:run  a b ",
    r#""prompt":"/p:run  a b ","is_slash":true,"command":"p:run","args":"a b""#
)]
#[case("/usr/bin/env", r#""prompt":"/usr/bin/env","is_slash":false"#)]
#[case("/", r#""prompt":"/","is_slash":false"#)]
fn user_prompt_submit(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(additions(&Occasion::Prompt(text)), expected);
}

#[test]
fn pre_tool_use() {
    let call = call();
    let occasion = Occasion::Tool(&call);
    assert_eq!(additions(&occasion), CALL);
    assert_eq!(occasion.subject(), Some("Bash"));
}

#[test]
fn a_call_of_a_sub_agent_names_it() {
    let call = ToolCall {
        agent: Some("t-0".into()),
        ..call()
    };
    assert_eq!(
        additions(&Occasion::Tool(&call)),
        format!(r#"{CALL},"agent_id":"t-0""#)
    );
}

#[test]
fn stop() {
    let occasion = Occasion::Stop {
        text: "done",
        rerun: Rerun::Yes,
    };
    assert_eq!(
        additions(&occasion),
        r#""stop_hook_active":true,"last_assistant_message":"done""#
    );
    assert_eq!(occasion.subject(), None);
}

#[rstest]
#[case(HookEvent::SessionEnd { reason: "exit".to_owned() }, r#""reason":"exit""#)]
#[case(HookEvent::PreCompact { reason: CompactionReason::TooLong }, r#""trigger":"auto","reason":"too_long""#)]
#[case(HookEvent::PostCompact { before_tokens: 9, after_tokens: 4 }, r#""trigger":"auto","before_tokens":9,"after_tokens":4"#)]
#[case(HookEvent::ConfigChange { keys: vec!["env".to_owned()] }, r#""keys":["env"]"#)]
#[case(HookEvent::CwdChanged { from: "/a".into(), to: "/b".into() }, r#""old_cwd":"/a","new_cwd":"/b""#)]
#[case(HookEvent::FileChanged { path: "/a".into() }, r#""path":"/a","file_path":"/a""#)]
#[case(HookEvent::SubagentStart { call_id: "c".into(), prompt: "p".to_owned() }, r#""agent_id":"c","prompt":"p""#)]
#[case(HookEvent::SubagentStop { call_id: "c".into(), outcome: Outcome::Success { text: "t".to_owned() } }, r#""agent_id":"c","subtype":"success","last_assistant_message":"t""#)]
#[case(HookEvent::TaskCreated { id: "1".to_owned(), task: "x".to_owned() }, r#""task_id":"1","task":"x""#)]
#[case(HookEvent::TaskCompleted { id: "1".to_owned() }, r#""task_id":"1""#)]
#[case(HookEvent::Notification { kind: NotificationKind::Question, message: "m".to_owned() }, r#""notification_type":"permission_prompt","message":"m""#)]
#[case(HookEvent::StopFailure { outcome: Outcome::Cancelled }, r#""subtype":"cancelled","error":"cancelled""#)]
fn told(#[case] event: HookEvent, #[case] expected: &str) {
    let occasion = Occasion::Told(&event);
    assert_eq!(additions(&occasion), expected);
    assert_eq!(occasion.event().as_str(), event.name());
}

#[test]
fn events_about_calls() {
    let failed = ToolOutput::failed("no");
    let denial = Denial {
        source: DenialSource::Rule,
        reason: "never".to_owned(),
        rule: Some("Bash".to_owned()),
        remedy: None,
    };
    let events = [
        (
            HookEvent::PostToolUse {
                call: call(),
                output: ToolOutput::ok("files"),
            },
            r#","tool_response":{"status":"ok","is_error":false,"content":"files"}"#,
        ),
        (
            HookEvent::PostToolUseFailure {
                call: call(),
                output: failed,
            },
            r#","tool_response":{"status":"failed","is_error":true,"content":"no"},"error":"no""#,
        ),
        (HookEvent::PermissionRequest { call: call() }, ""),
        (
            HookEvent::PermissionDenied {
                call: call(),
                denial,
            },
            r#","reason":"never","denied_by":"rule","rule":"Bash""#,
        ),
    ];
    for (event, expected) in events {
        let occasion = Occasion::Told(&event);
        assert_eq!(additions(&occasion), format!("{CALL}{expected}"));
        assert_eq!(occasion.event().as_str(), event.name());
        assert_eq!(occasion.subject(), Some("Bash"));
    }
}

#[test]
fn an_end_nobody_was_asked_about() {
    let event = HookEvent::Stopped {
        usage: Usage::default(),
    };
    let added = additions(&Occasion::Told(&event));
    assert!(
        added.starts_with(r#""stop_hook_active":true,"usage":{"#),
        "{added}"
    );
}
