//! What changes in a session while it lives, and what it does not do without being able to keep it.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use caliban_agent::{Event, Outcome};
use caliban_harness::options::{DebugTo, RunOptions};
use caliban_session::{
    ClosedWhy, Command, Delivery, ModelChange, Place, Refused, ServerCommand, What,
};
use caliban_settings::{RuleAction, RuleSpec};
use caliban_testkit::Reply;
use serde_json::{Value, json};

use support::{World, summing_server};

const BASH_ALLOWED: &str = "permissions.allow = ['Bash']\n";
const BASH_DENIED: &str = "permissions.deny = ['Bash']\n";
const BASH_GUARDED: &str = "permissions.allow = ['Bash']
[[hooks.PreToolUse]]
matcher = 'Bash'
handlers = [{ type = 'command', command = ': ; echo guarded >&2; exit 2' }]
";

fn bash(command: &str) -> Reply {
    Reply::tool("Bash", json!({ "command": command }))
}

fn allowing(tool: &str) -> RunOptions {
    let mut options = RunOptions::default();
    options.permissions.rules = vec![RuleSpec::new(tool, RuleAction::Allow)];
    options
}

fn succeeded(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Success { .. } | Outcome::Obeyed { .. })
}

#[tokio::test]
async fn settings_tightened_between_prompts_hold_for_the_next() {
    for tightened in [BASH_DENIED, BASH_GUARDED] {
        let replies = [bash("touch one"), Reply::text("ran")];
        let world = World::new(
            replies
                .into_iter()
                .chain([bash("touch two"), Reply::text("did not")]),
        )
        .await;
        world.user_settings(BASH_ALLOWED);
        let mut face = world.face(RunOptions::default()).await;
        assert!(succeeded(&face.ask("first").await));
        world.user_settings(tightened);
        assert!(succeeded(&face.ask("second").await));
        let made = ["one", "two"].map(|name| world.workspace().join(name).exists());
        assert_eq!(made, [true, false], "{tightened}");
        face.close().await;
    }
}

#[tokio::test]
async fn settings_tightened_in_a_run_hold_for_its_next_call() {
    for tightened in [BASH_DENIED, BASH_GUARDED] {
        let second = bash("touch two").hold_after(0);
        let world = World::new([bash("touch one"), second, Reply::text("done")]).await;
        world.user_settings(BASH_ALLOWED);
        let mut face = world.face(RunOptions::default()).await;
        face.prompt("both", Delivery::Queue).await;
        world.server.wait_for_requests(2).await;
        world.user_settings(tightened);
        world.server.release();
        assert!(succeeded(&face.ended().await));
        let made = ["one", "two"].map(|name| world.workspace().join(name).exists());
        assert_eq!(made, [true, false], "{tightened}");
        let heard = face.close().await;
        let told = heard.iter().any(|event| {
            matches!(&event.what, What::Run(Event::Notice { subtype, .. }) if &**subtype == "config_change")
        });
        assert!(told, "{heard:?}");
    }
}

#[tokio::test]
async fn a_steering_message_joins_between_two_turns() {
    let look = Reply::tool("Glob", json!({"pattern": "*.txt"})).hold_after(0);
    let world = World::new([look, Reply::text("done")]).await;
    let mut face = world.face(RunOptions::default()).await;
    face.prompt("look around", Delivery::Queue).await;
    world.server.wait_for_requests(1).await;
    face.prompt("mind the gap", Delivery::Steer).await;
    face.until(|what| matches!(what, What::Queued { position: 0, .. }).then_some(()))
        .await;
    world.server.release();
    assert!(succeeded(&face.ended().await));
    let requests = world.server.model_requests();
    let holds = |at: usize| {
        requests[at].json()["messages"]
            .to_string()
            .contains("mind the gap")
    };
    assert_eq!((requests.len(), holds(0), holds(1)), (2, false, true));
    let heard = face.close().await;
    let joined = heard.iter().filter(
        |event| matches!(&event.what, What::Run(Event::Steered { prompt, .. }) if &**prompt == "2"),
    );
    assert_eq!(joined.count(), 1);
}

#[tokio::test]
async fn another_model_answers_from_the_next_request_on() {
    let look = Reply::tool("Glob", json!({"pattern": "*.txt"})).hold_after(0);
    let world = World::new([look, Reply::text("done"), Reply::text("back")]).await;
    let mut options = RunOptions::default();
    options.model.model = Some("claude-opus-4-6".to_owned());
    let mut face = world.face(options).await;
    face.prompt("look around", Delivery::Queue).await;
    world.server.wait_for_requests(1).await;
    let model = ModelChange::Named("claude-haiku-4-5".into());
    face.send(Command::SetModel { model }).await;
    face.until(|what| matches!(what, What::ModelChanged { .. }).then_some(()))
        .await;
    world.server.release();
    assert!(succeeded(&face.ended().await));
    let model = ModelChange::Default;
    face.send(Command::SetModel { model }).await;
    face.ask("and now").await;
    let requests = world.server.model_requests().into_iter();
    let models: Vec<Value> = requests.map(|it| it.json()["model"].clone()).collect();
    assert_eq!(
        models,
        ["claude-opus-4-6", "claude-haiku-4-5", "claude-opus-4-6"]
    );
    face.close().await;
}

#[tokio::test]
async fn a_conversation_is_shortened_on_demand() {
    let world = World::new(["a long story", "in short", "go on"].map(Reply::text)).await;
    let mut face = world.face(RunOptions::default()).await;
    face.ask("tell me").await;
    let instructions = Some("keep the names".to_owned());
    let id = "shorten".into();
    face.send(Command::Compact { id, instructions }).await;
    let outcome = face.ended().await;
    assert!(succeeded(&outcome), "{outcome:?}");
    assert!(world.last_request().to_string().contains("keep the names"));
    face.ask("more").await;
    let messages = world.last_request()["messages"].to_string();
    assert!(messages.contains("in short"), "{messages}");
    assert!(!messages.contains("a long story"), "{messages}");
    face.close().await;
}

#[tokio::test]
async fn a_background_job_is_ended_by_a_command() {
    let call = json!({"command": "exec 3>pipe; echo ready >&3; sleep 1000", "background": true});
    let world = World::new([Reply::tool("Bash", call), Reply::text("started")]).await;
    let pipe = world.workspace().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let mut face = world.face(allowing("Bash")).await;
    let (ready, started) = tokio::sync::oneshot::channel();
    let ended = tokio::task::spawn_blocking(move || {
        let mut pipe = BufReader::new(std::fs::File::open(pipe).unwrap());
        let (mut line, mut rest) = (String::new(), String::new());
        pipe.read_line(&mut line).unwrap();
        ready.send(line).unwrap();
        // Nobody holds the other end any more.
        pipe.read_to_string(&mut rest).unwrap()
    });
    assert!(succeeded(&face.ask("start it").await));
    assert_eq!(started.await.unwrap(), "ready\n");
    for job in ["bash_1", "bash_9"] {
        let job = job.to_owned();
        face.send(Command::EndJob { job }).await;
    }
    let refused = |what: &What| match what {
        What::Refused(Refused { what, reason }) => Some((what.clone(), reason.clone())),
        _ => None,
    };
    let (place, reason) = face.until(refused).await;
    assert_eq!(place, Place::Job("bash_9".to_owned()), "{reason}");
    let ended = tokio::time::timeout(Duration::from_secs(20), ended).await;
    assert_eq!(ended.expect("the job goes on").unwrap(), 0);
    face.close().await;
}

#[tokio::test]
async fn the_tools_of_a_server_that_is_switched_off_are_not_offered() {
    let world = World::new(["one", "two", "three"].map(Reply::text)).await;
    let mut options = RunOptions::default();
    options.servers.configs = vec![summing_server()];
    let mut face = world.face(options).await;
    let is_offered = || {
        world.last_request()["tools"]
            .to_string()
            .contains("mcp__sums__add")
    };
    face.ask("with it").await;
    assert!(is_offered());
    let server = || "sums".to_owned();
    face.send(Command::Servers(ServerCommand::Disable {
        server: server(),
    }))
    .await;
    face.ask("without it").await;
    assert!(!is_offered());
    face.send(Command::Servers(ServerCommand::Enable { server: server() }))
        .await;
    face.ask("with it again").await;
    assert!(is_offered());
    face.close().await;
}

#[tokio::test]
async fn what_happens_is_written_to_the_debug_log() {
    let world = World::new(["one", "two"].map(Reply::text)).await;
    let path = world.folder.path().join("debug.log");
    let mut options = RunOptions {
        debug: DebugTo::File(path.clone()),
        ..RunOptions::default()
    };
    let mut face = world.face(options.clone()).await;
    face.ask("the question").await;
    face.close().await;
    let log = std::fs::read_to_string(&path).unwrap();
    for part in ["PromptAccepted", "the question", "TurnStarted", "Finished"] {
        assert!(log.contains(part), "{part}: {log}");
    }
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(world.said.text(), "");
    options.debug = DebugTo::Diagnostics;
    let mut face = world.face(options).await;
    face.ask("another question").await;
    face.close().await;
    assert!(world.said.text().contains("another question"));
}

#[tokio::test]
async fn without_a_journal_nothing_with_side_effects_runs() {
    let read = Reply::tool("Read", json!({"path": "notes.txt"}));
    let world = World::new([bash("touch ran"), read, Reply::text("done")]).await;
    world.write("workspace/notes.txt", "remember the milk");
    let sessions = world.folder.path().join("sessions");
    let mut options = allowing("Bash");
    options.session.directory = Some(sessions.clone());
    let mut face = world.face(options).await;
    // Where the directory was is a file, which stops even those who may write everywhere.
    std::fs::remove_dir_all(&sessions).unwrap();
    std::fs::write(&sessions, "").unwrap();
    assert!(succeeded(&face.ask("do both").await));
    assert!(!world.workspace().join("ran").exists());
    let messages = world.last_request()["messages"].to_string();
    assert!(
        messages.contains("Bash did not run, because the session cannot be saved"),
        "{messages}"
    );
    assert!(messages.contains("remember the milk"), "{messages}");
    let heard = face.close().await;
    let told = heard.iter().filter(|event| {
        matches!(&event.what, What::Run(Event::Notice { subtype, .. }) if &**subtype == "session_not_saved")
    });
    assert!(told.count() > 0, "{heard:?}");
    let Some(What::Closed {
        why: ClosedWhy::Shutdown,
        trouble: Some(trouble),
    }) = heard.last().map(|event| &event.what)
    else {
        panic!("{heard:?}");
    };
    assert!(trouble.contains("sessions"), "{trouble}");
}
