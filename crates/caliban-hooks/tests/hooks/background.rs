//! Handlers that nobody waits for.

use std::time::Duration;

use caliban_agent::{Advice, Adviser, HookEvent, NotificationKind, Observer};
use caliban_hooks::{Decision, Firing, Phase};
use serde_json::{Value, json};

use crate::support::{Session, bash, eventually, is_alive, script, with};

fn beside(text: &str) -> Value {
    with(script(text), "async", json!(true))
}

fn count(session: &Session, phase: Phase) -> usize {
    let all = session.heard.all();
    all.iter().filter(|firing| firing.phase == phase).count()
}

async fn notify(session: &Session) {
    let message = "m".to_owned();
    session
        .hooks
        .notify(&HookEvent::Notification {
            kind: NotificationKind::Question,
            message,
        })
        .await;
}

#[tokio::test]
async fn its_decision_does_not_count_and_it_is_told_of_twice() {
    let session = Session::new(json!({"PreToolUse": [beside("echo no >&2; exit 2")]}));
    assert_eq!(session.hooks.advise(&bash("ls")).await, Advice::Allow);
    session.hooks.drain(Duration::from_mins(1)).await;
    let told = session.heard.all();
    let phases: Vec<Phase> = told.iter().map(|firing| firing.phase).collect();
    assert_eq!(phases, [Phase::Started, Phase::Finished]);
    let Firing {
        decision, reason, ..
    } = &told[1];
    assert_eq!((*decision, reason.as_deref()), (Decision::None, Some("no")));
}

#[tokio::test]
async fn nobody_waits_for_it() {
    // The handler ends only after the event did, which is when the file appears.
    let text = "while [ ! -e go ]; do sleep 0.01; done; cat >seen";
    let session = Session::new(json!({"Notification": [beside(text)]}));
    notify(&session).await;
    assert_eq!(session.read("seen"), "");
    session.write("go", "");
    session.hooks.drain(Duration::from_mins(1)).await;
    assert!(session.read("seen").contains("\"message\":\"m\""));
}

#[tokio::test]
async fn no_more_than_sixteen_run_and_what_does_not_fit_is_dropped() {
    let text = "mktemp running.XXXXXX >/dev/null; while [ ! -e go ]; do sleep 0.05; done";
    let session = Session::new(json!({"Notification": [beside(text)]}));
    for _ in 0..90 {
        notify(&session).await;
    }
    let dropped = session
        .heard
        .all()
        .into_iter()
        .filter(|f| f.phase == Phase::Dropped);
    let dropped: Vec<Firing> = dropped.collect();
    assert_eq!(dropped.len(), 10, "16 run and 64 wait");
    assert!(dropped[0].warning.as_ref().unwrap().contains("too many"));
    let running = || {
        let entries = std::fs::read_dir(session.dir.path()).unwrap();
        entries.count()
    };
    eventually("sixteen", || running() == 16).await;
    assert_eq!(count(&session, Phase::Started), 16);
    session.write("go", "");
    session.hooks.drain(Duration::from_mins(1)).await;
    assert_eq!(count(&session, Phase::Finished), 80);
    assert_eq!(running(), 81);
}

#[tokio::test]
async fn at_the_end_the_rest_is_stopped() {
    let session = Session::new(json!({"Notification": [beside("echo $$ >self; sleep 300")]}));
    notify(&session).await;
    eventually("the start", || !session.read("self").trim().is_empty()).await;
    session.hooks.drain(Duration::from_millis(10)).await;
    let pid = session.read("self");
    eventually("the end", || !is_alive(&pid)).await;
    let told = session.heard.all();
    assert_eq!(told[1].phase, Phase::Finished);
    assert!(told[1].warning.as_ref().unwrap().contains("stopped"));
}

#[tokio::test]
async fn letting_go_of_everything_stops_it_too() {
    let session = Session::new(json!({"Notification": [beside("echo $$ >self; sleep 300")]}));
    notify(&session).await;
    eventually("the start", || !session.read("self").trim().is_empty()).await;
    let pid = session.read("self");
    drop(session.hooks);
    eventually("the end", || !is_alive(&pid)).await;
}
