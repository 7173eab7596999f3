use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

use super::*;

const ON_ERRORS: [OnError; 3] = [OnError::Allow, OnError::Ask, OnError::Deny];

fn exit(code: i32, stdout: &str, stderr: &str) -> Reply {
    Reply::Exit {
        code,
        stdout: stdout.to_owned(),
        stderr: stderr.to_owned(),
    }
}

fn said(stdout: &str) -> Advice {
    read(
        Ok(exit(0, stdout, "")),
        EventName::PreToolUse,
        OnError::Allow,
    )
}

#[rstest]
#[case("", Stance::Silent, None)]
#[case("fine", Stance::Silent, None)]
#[case("{}", Stance::Silent, None)]
#[case(r#"{"suppressOutput": true}"#, Stance::Silent, None)]
#[case(r#"{"continue": true}"#, Stance::Silent, None)]
#[case(r#"{"decision": null}"#, Stance::Silent, None)]
#[case(
    r#"{"hookSpecificOutput": {"permissionDecision": "allow", "permissionDecisionReason": "r"}}"#,
    Stance::Approve,
    Some("r")
)]
#[case(
    r#"{"hookSpecificOutput": {"permissionDecision": "ask", "permissionDecisionReason": "r"}}"#,
    Stance::Ask,
    Some("r")
)]
#[case(r#"{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "r"}}"#, Stance::Deny, Some("r"))]
#[case(
    r#"{"decision": "approve", "reason": "r"}"#,
    Stance::Approve,
    Some("r")
)]
#[case(r#"{"decision": "block", "reason": "r"}"#, Stance::Deny, Some("r"))]
#[case(r#"{"decision": "block", "reason": "r", "hookSpecificOutput": {"permissionDecision": "allow", "permissionDecisionReason": "a"}}"#, Stance::Deny, Some("r"))]
#[case(r#"{"decision": "approve", "reason": "a", "hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "r"}}"#, Stance::Deny, Some("r"))]
#[case::misplaced(
    r#"{"permissionDecision": "deny", "permissionDecisionReason": "r"}"#,
    Stance::Deny,
    Some("r")
)]
#[case::misplaced(
    r#"{"permissionDecision": "ask", "reason": "r"}"#,
    Stance::Ask,
    Some("r")
)]
#[case::misplaced(r#"{"permissionDecision": "allow"}"#, Stance::Silent, None)]
fn decisions(#[case] stdout: &str, #[case] stance: Stance, #[case] reason: Option<&str>) {
    let advice = said(stdout);
    assert_eq!((advice.stance, advice.reason.as_deref()), (stance, reason));
    assert_eq!(advice.warning, None);
}

#[rstest]
#[case("{")]
#[case("[]")]
#[case(r#"{"hookSpecificOutput": 1}"#)]
#[case(r#"{"hookSpecificOutput": {"permissionDecision": "approve"}}"#)]
#[case(r#"{"hookSpecificOutput": {"permissionDecision": "defer"}}"#)]
#[case(r#"{"hookSpecificOutput": {"permissionDecision": true}}"#)]
#[case(r#"{"hookSpecificOutput": {"permissionDecision": "allow", "updatedInput": "rm"}}"#)]
#[case(r#"{"permissionDecision": "maybe"}"#)]
#[case(r#"{"decision": "maybe"}"#)]
#[case("<html>Please log in</html>")]
#[case(r#"{"continue": "no"}"#)]
#[case("{\"decision\": \"approve\"}\n{\"decision\": \"block\"}")]
#[case("checking\n{\"hookSpecificOutput\": {\"permissionDecision\": \"deny\"}}")]
fn garbage_refuses_or_asks(#[case] stdout: &str) {
    for on_error in ON_ERRORS {
        let advice = read(Ok(exit(0, stdout, "")), EventName::PreToolUse, on_error);
        let expected = match on_error {
            OnError::Ask => Stance::Ask,
            OnError::Allow | OnError::Deny => Stance::Deny,
        };
        assert_eq!(advice.stance, expected);
        assert!(advice.warning.is_some());
    }
    let observed = read(
        Ok(exit(0, stdout, "")),
        EventName::PostToolUse,
        OnError::Allow,
    );
    assert_eq!(observed.stance, Stance::Silent);
    assert!(observed.warning.is_some());
}

#[test]
fn exit_codes() {
    let stance = |code, on_error| {
        let advice = read(Ok(exit(code, "", "why\n")), EventName::PreToolUse, on_error);
        (advice.stance, advice.reason)
    };
    let why = Some("why".to_owned());
    for on_error in ON_ERRORS {
        assert_eq!(stance(2, on_error), (Stance::Deny, why.clone()));
    }
    let odd = Some("it exited with code 1: why".to_owned());
    assert_eq!(stance(1, OnError::Allow), (Stance::Silent, odd.clone()));
    assert_eq!(stance(1, OnError::Ask), (Stance::Ask, odd.clone()));
    assert_eq!(stance(1, OnError::Deny), (Stance::Deny, odd));
}

#[test]
fn a_refusal_counts_whatever_the_exit_code_and_an_approval_does_not() {
    let stance = |stdout| {
        read(
            Ok(exit(1, stdout, "")),
            EventName::PreToolUse,
            OnError::Allow,
        )
        .stance
    };
    assert_eq!(stance(r#"{"decision": "block"}"#), Stance::Deny);
    assert_eq!(stance(r#"{"decision": "approve"}"#), Stance::Silent);
    let refusal = exit(2, r#"{"decision": "block", "reason": "r"}"#, "");
    let advice = read(Ok(refusal), EventName::PreToolUse, OnError::Allow);
    assert_eq!(advice.reason.as_deref(), Some("r"));
}

#[test]
fn who_could_not_run_never_allows() {
    for on_error in ON_ERRORS {
        let advice = read(
            Err(Failure::Killed(9)),
            EventName::UserPromptSubmit,
            on_error,
        );
        assert!(advice.stance >= Stance::Ask, "{on_error:?}");
        let stop = read(Err(Failure::Killed(9)), EventName::Stop, on_error);
        assert_eq!(stop.stance, Stance::Silent);
    }
}

#[test]
fn a_service_answers_with_an_object_or_nothing() {
    let stance = |body: &str| {
        let reply = Ok(Reply::Body(body.to_owned()));
        read(reply, EventName::PreToolUse, OnError::Allow).stance
    };
    assert_eq!(stance(""), Stance::Silent);
    assert_eq!(stance(r#"{"decision": "approve"}"#), Stance::Approve);
    assert_eq!(stance("<html>"), Stance::Deny);
    assert_eq!(stance("{"), Stance::Deny);
    assert_eq!(stance("ok"), Stance::Silent);
}

#[test]
fn who_is_not_waited_for_may_say_anything_but_that_it_failed() {
    for reply in [
        exit(0, "{", ""),
        exit(2, "", ""),
        Reply::Body("[1]".to_owned()),
        Reply::Opinion("hm".to_owned()),
    ] {
        assert_eq!(overhear(Ok(reply)), Advice::default());
    }
    let failed = [Ok(exit(1, "", "oops")), Err(Failure::Killed(9))];
    assert!(
        failed
            .into_iter()
            .all(|reply| overhear(reply).warning.is_some())
    );
    let message = overhear(Ok(exit(0, r#"{"systemMessage": "note"}"#, ""))).message;
    assert_eq!(message.as_deref(), Some("note"));
}

#[test]
fn a_model_may_object_and_never_approves() {
    let stance = |body: &str| {
        let reply = Ok(Reply::Opinion(body.to_owned()));
        read(reply, EventName::PreToolUse, OnError::Allow).stance
    };
    assert_eq!(stance(r#"{"ok": true}"#), Stance::Silent);
    assert_eq!(stance(r#"{"ok": false, "reason": "r"}"#), Stance::Deny);
    assert_eq!(stance(r#"{"ok": "yes"}"#), Stance::Deny);
    assert_eq!(stance(r#"{"decision": "approve"}"#), Stance::Silent);
    assert_eq!(stance(r#"{"decision": "block"}"#), Stance::Deny);
    assert_eq!(stance("I think it is fine."), Stance::Deny);
    assert_eq!(stance(""), Stance::Deny);
}

#[test]
fn text_is_context_for_prompts_and_starts_only() {
    let context = |event| read(Ok(exit(0, " hi \n", "")), event, OnError::Allow).context;
    assert_eq!(context(EventName::UserPromptSubmit).as_deref(), Some("hi"));
    assert_eq!(context(EventName::SessionStart).as_deref(), Some("hi"));
    assert_eq!(context(EventName::PreToolUse), None);
    assert_eq!(context(EventName::Stop), None);
    let object = json!({"hookSpecificOutput": {"additionalContext": "more"}}).to_string();
    assert_eq!(said(&object).context.as_deref(), Some("more"));
}

#[test]
fn other_fields_are_read() {
    let object = json!({
        "continue": false,
        "stopReason": "enough",
        "systemMessage": "note",
        "hookSpecificOutput": {"updatedInput": {"command": "ls"}},
    });
    let advice = said(&object.to_string());
    let reason = Some("enough".to_owned());
    assert_eq!(advice.halt, Some(Halt { reason }));
    assert_eq!(advice.message.as_deref(), Some("note"));
    assert_eq!(advice.input, Some(json!({"command": "ls"})));
}

#[test]
fn what_is_passed_on_is_bounded() {
    let text = "é".repeat(CONTEXT);
    let advice = read(
        Ok(exit(0, &text, "")),
        EventName::SessionStart,
        OnError::Allow,
    );
    assert!(advice.context.unwrap().len() < CONTEXT + 50);
    let advice = read(
        Ok(exit(2, "", &text)),
        EventName::PreToolUse,
        OnError::Allow,
    );
    assert!(advice.reason.unwrap().len() < REASON + 50);
}

proptest! {
    /// Whatever a handler writes, only the words for it approve.
    #[test]
    fn nothing_but_an_approval_approves(stdout in ".{0,60}", code in 0..5i32) {
        let advice = read(Ok(exit(code, &stdout, "")), EventName::PreToolUse, OnError::Allow);
        prop_assert_ne!(advice.stance, Stance::Approve);
    }

    #[test]
    fn an_unknown_decision_refuses(word in "[a-z]{0,8}") {
        let known = ["allow", "deny", "ask"].contains(&word.as_str());
        let object = json!({"hookSpecificOutput": {"permissionDecision": word}});
        let advice = said(&object.to_string());
        prop_assert_eq!(advice.warning.is_some(), !known);
        if !known {
            prop_assert_eq!(advice.stance, Stance::Deny);
        }
    }
}
