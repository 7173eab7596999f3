//! A face in few lines: all that one needs are commands and events.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::path::Path;
use std::sync::Arc;

use caliban_agent::{Answer, Outcome};
use caliban_harness::options::RunOptions;
use caliban_session::{Command, Delivery, EventBatch, PROTOCOL, SessionEvent, SessionHandle, What};
use caliban_settings::PermissionMode;
use caliban_testkit::Reply;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{UnixListener, UnixStream};

use support::{Face, World, allow, deny};

/// Tells a session from its beginning to whoever connects first, one event per line.
fn serve(handle: &SessionHandle, socket: &Path) {
    let (listener, mut events) = (UnixListener::bind(socket).unwrap(), handle.subscribe(1));
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        while let Some(EventBatch::Events(events)) = events.next().await {
            for event in events {
                let line = serde_json::to_string(&*event).unwrap() + "\n";
                stream.write_all(line.as_bytes()).await.unwrap();
            }
        }
    });
}

/// Has a command asked about and answers it; whether it ran.
async fn asked(world: &World, face: &mut Face, answer: Answer) -> bool {
    let call = json!({"command": "touch ran"});
    world.server.push(Reply::tool("Bash", call));
    world.server.push(Reply::text("done"));
    face.prompt("touch it", Delivery::Queue).await;
    let question = face.question().await;
    face.send(Command::Answer { question, answer }).await;
    assert!(matches!(face.ended().await, Outcome::Success { .. }));
    world.workspace().join("ran").exists()
}

#[tokio::test]
async fn a_face_needs_nothing_but_commands_and_events() {
    let (here, there) = tokio::join!(World::new([]), World::new([]));
    let (mut one, mut two) = tokio::join!(
        here.face(RunOptions::default()),
        there.face(RunOptions::default())
    );
    one.events.attend();
    two.events.attend();
    let socket = here.folder.path().join("socket");
    serve(&one.handle, &socket);
    let second = BufReader::new(UnixStream::connect(&socket).await.unwrap());

    let ran = tokio::join!(
        asked(&here, &mut one, allow()),
        asked(&there, &mut two, deny())
    );
    assert_eq!(ran, (true, false));

    let mode = PermissionMode::Plan;
    one.send(Command::SetMode { mode }).await;
    one.until(|what| (*what == What::ModeChanged { mode }).then_some(()))
        .await;
    here.server.push(Reply::text("never said").hold_after(1));
    one.prompt("wait", Delivery::Queue).await;
    let facts = |what: &What| match what {
        What::Began { facts, .. } => Some(Arc::clone(facts)),
        _ => None,
    };
    let facts = one.until(facts).await;
    assert_eq!(facts.permission_mode, "plan");
    assert_eq!(facts.protocol, Some(PROTOCOL));
    here.server.wait_for_requests(3).await;
    one.send(Command::Interrupt).await;
    assert_eq!(one.ended().await, Outcome::Cancelled);

    let heard = one.close().await;
    let mut lines = second.lines();
    for (seq, event) in (1..).zip(&heard) {
        let line = lines.next_line().await.unwrap().unwrap();
        let told: SessionEvent = serde_json::from_str(&line).unwrap();
        assert_eq!((told.seq, &told), (seq, &**event));
    }
    assert_eq!(lines.next_line().await.unwrap(), None);
    two.close().await;
}
