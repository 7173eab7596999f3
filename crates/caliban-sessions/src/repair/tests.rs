use caliban_model::Request;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::name::SessionName;
use crate::state::NewSession;

fn replica() -> Replica {
    let new = NewSession {
        session_id: Uuid::nil(),
        provider: "p".into(),
        model: "m".into(),
        mode: None,
        cwd: "/w".into(),
        program_version: "1".into(),
    };
    let name = SessionName::new("s").unwrap();
    Replica::new(name, new, Timestamp::UNIX_EPOCH)
}

fn with(records: Vec<Record>) -> Replica {
    let mut replica = replica();
    for record in records {
        replica.apply(replica.seq + 1, Timestamp::UNIX_EPOCH, record);
    }
    replica
}

fn calls(ids: &[&str]) -> Message {
    let content = ids
        .iter()
        .map(|id| Block::ToolUse {
            id: (*id).to_owned(),
            name: "Bash".into(),
            input: json!({}),
            private: None,
        })
        .collect();
    Message::new(Role::Assistant, content)
}

fn result(id: &str) -> Block {
    Block::ToolResult {
        tool_use_id: id.to_owned(),
        content: vec![ToolContent::Text { text: "ok".into() }],
        is_error: false,
    }
}

fn message(message: Message) -> Record {
    Record::Message(Arc::new(message))
}

fn intent(id: &str, effects: Effects) -> Record {
    Record::ToolIntent {
        id: id.into(),
        agent: None,
        name: "Bash".into(),
        effects,
    }
}

fn settle(replica: &mut Replica, evidence: Evidence) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for record in repairs(replica, evidence, &mut warnings) {
        replica.apply(replica.seq + 1, Timestamp::UNIX_EPOCH, record);
    }
    let mut rest = Vec::new();
    assert_eq!(
        repairs(replica, evidence, &mut rest),
        [],
        "settled for good"
    );
    assert_eq!(rest, []);
    warnings
}

/// What each result of the last message says.
fn results(replica: &Replica) -> Vec<(String, String)> {
    let last = replica.state.messages.last().unwrap();
    let results = last.content.iter().filter_map(|block| match block {
        Block::ToolResult {
            tool_use_id,
            content,
            ..
        } => match &content[..] {
            [ToolContent::Text { text }] => Some((tool_use_id.clone(), text.clone())),
            _ => None,
        },
        _ => None,
    });
    results.collect()
}

#[test]
fn every_call_gets_a_result_that_is_true() {
    let mut replica = with(vec![
        message(Message::user("go")),
        message(calls(&["done", "running", "reading", "waiting", "refused"])),
        intent("done", Effects::SideEffects),
        intent("running", Effects::SideEffects),
        intent("reading", Effects::ReadOnly),
        Record::ToolDone {
            id: "done".into(),
            agent: None,
            status: CallStatus::Ok,
            content: vec![ToolContent::Text {
                text: "finished".into(),
            }],
        },
        Record::ToolDone {
            id: "refused".into(),
            agent: None,
            status: CallStatus::Failed,
            content: vec![ToolContent::Text {
                text: "denied".into(),
            }],
        },
    ]);
    assert_eq!(settle(&mut replica, Evidence::Complete), []);
    let expected = [
        ("done", "finished"),
        ("running", UNKNOWN),
        ("reading", UNKNOWN_READ_ONLY),
        ("waiting", NEVER_STARTED),
        ("refused", "denied"),
    ];
    let expected = expected.map(|(id, text)| (id.to_owned(), text.to_owned()));
    assert_eq!(results(&replica), expected);
    assert!(replica.calls.is_empty());
}

#[test]
fn nothing_is_claimed_that_is_not_known() {
    let records = || vec![message(Message::user("go")), message(calls(&["a"]))];
    let mut damaged = with(records());
    settle(&mut damaged, Evidence::Damaged);
    assert_eq!(results(&damaged), [("a".into(), MISSING.into())]);

    let mut ended = with(records());
    ended.apply(3, Timestamp::UNIX_EPOCH, Record::TurnEnded {});
    settle(&mut ended, Evidence::Complete);
    assert_eq!(results(&ended), [("a".into(), MISSING.into())]);

    let stray = with(vec![
        message(Message::user("go")),
        intent("x", Effects::SideEffects),
    ]);
    let mut warnings = Vec::new();
    let repairs = repairs(&stray, Evidence::Complete, &mut warnings);
    assert!(
        matches!(&repairs[..], [Record::Repaired { keep: 1, messages }] if messages.is_empty())
    );
    let name = "Bash".to_owned();
    assert_eq!(warnings, [Warning::StrayCall { name }]);
}

#[test]
fn an_id_used_again_is_another_call() {
    let mut replica = with(vec![
        message(Message::user("go")),
        message(calls(&["1"])),
        intent("1", Effects::SideEffects),
        message(Message::new(Role::User, vec![result("1")])),
        message(calls(&["1"])),
    ]);
    settle(&mut replica, Evidence::Complete);
    assert_eq!(results(&replica), [("1".into(), NEVER_STARTED.into())]);

    let done = Record::ToolDone {
        id: "1".into(),
        agent: None,
        status: CallStatus::Ok,
        content: Vec::new(),
    };
    let mut again = with(vec![
        message(Message::user("go")),
        intent("1", Effects::SideEffects),
        done,
        message(calls(&["1"])),
        intent("1", Effects::SideEffects),
    ]);
    settle(&mut again, Evidence::Complete);
    assert_eq!(results(&again), [("1".into(), UNKNOWN.into())]);
}

/// A call that another agent makes on behalf of the call `agent`.
fn inner(agent: &str, id: &str) -> Record {
    Record::ToolIntent {
        id: id.into(),
        agent: Some(agent.into()),
        name: "Bash".into(),
        effects: Effects::SideEffects,
    }
}

fn inner_done(agent: &str, id: &str) -> Record {
    Record::ToolDone {
        id: id.into(),
        agent: Some(agent.into()),
        status: CallStatus::Ok,
        content: Vec::new(),
    }
}

#[test]
fn what_another_agent_did_is_told_by_the_call_it_worked_for() {
    // The inner agent counts its calls from 1 as the outer one does.
    let begun = || {
        vec![
            message(Message::user("go")),
            message(calls(&["1"])),
            intent("1", Effects::SideEffects),
            inner("1", "1"),
            inner_done("1", "1"),
            inner("1", "2"),
        ]
    };
    let mut killed = with(begun());
    assert_eq!(settle(&mut killed, Evidence::Complete), []);
    assert_eq!(results(&killed), [("1".into(), UNKNOWN.into())]);
    assert_eq!(killed.calls, []);

    // One that was dropped has no end of its own.
    let done = message(Message::new(Role::User, vec![result("1")]));
    let mut ended = with(begun().into_iter().chain([done]).collect());
    assert_eq!(settle(&mut ended, Evidence::Complete), []);
    assert_eq!(ended.calls, []);

    let mut stray = with(vec![message(Message::user("go")), inner("hook", "1")]);
    let name = "Bash".to_owned();
    assert_eq!(
        settle(&mut stray, Evidence::Complete),
        [Warning::StrayCall { name }]
    );
}

#[test]
fn a_valid_conversation_stays_as_it_is() {
    let replica = with(vec![
        message(Message::system("be good")),
        message(Message::user("go")),
        message(calls(&["a", "b"])),
        message(Message::new(
            Role::User,
            vec![result("a"), result("b"), Block::text("and")],
        )),
        message(Message::assistant("done")),
        message(Message::user("more")),
    ]);
    assert_eq!(repairs(&replica, Evidence::Complete, &mut Vec::new()), []);
}

#[test]
fn a_broken_middle_is_replaced_from_there_on() {
    let mut replica = with(vec![
        message(Message::user("go")),
        message(calls(&["a", "", "a"])),
        message(Message::new(
            Role::User,
            vec![Block::text("stop"), result("nobody")],
        )),
        message(Message::system("late")),
    ]);
    let records = repairs(&replica, Evidence::Complete, &mut Vec::new());
    assert!(
        matches!(&records[..], [Record::Repaired { keep: 1, messages }] if messages.len() == 4)
    );
    settle(&mut replica, Evidence::Complete);
    let texts: Vec<String> = replica.state.messages.iter().map(|m| m.text()).collect();
    assert_eq!(texts, ["go", "", "", "stop", "late"]);
}

proptest! {
    #[test]
    fn whatever_was_recorded_becomes_a_conversation(script in proptest::collection::vec((0u8..8, 0u8..4), 0..14)) {
        let records = script.iter().map(|(kind, id)| {
            let id = format!("t{id}");
            match kind {
                0 => message(Message::user("x")),
                1 => message(Message::new(Role::User, vec![result(&id)])),
                2 => message(calls(&[&id])),
                3 => message(calls(&[&id, "z", ""])),
                4 => intent(&id, Effects::SideEffects),
                5 => message(Message::system("s")),
                6 => message(Message::new(Role::User, Vec::new())),
                _ => Record::TurnEnded {},
            }
        }).collect();
        let mut replica = with(records);
        settle(&mut replica, Evidence::Complete);
        let messages = &replica.state.messages;
        if messages.iter().any(|message| message.role != Role::System) {
            prop_assert!(Request::new("m", messages.clone().into()).is_ok());
        }
        for (at, message) in messages.iter().enumerate() {
            prop_assert!(!message.content.is_empty());
            let wanted: Vec<&str> = message.tool_uses().map(|(id, _, _)| id).collect();
            let next = messages.get(at + 1);
            prop_assert!(wanted.is_empty() || next.is_some_and(|next| leads_with(next, &wanted)));
        }
    }
}
