//! Commands that need a living session: `/loop` ends when somebody writes something or interrupts
//! it, and `/context` counts the tools of servers.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use caliban_agent::{Event, Outcome};
use caliban_harness::options::{RunOptions, ServerOptions};
use caliban_session::{Command, Delivery, What};
use caliban_testkit::Reply;
use support::{World, summing_server};

#[tokio::test]
async fn a_message_ends_the_rest_and_is_worked_on() {
    let world = World::new(["one", "two", "mine"].map(Reply::text)).await;
    let mut face = world.face(RunOptions::default()).await;
    face.prompt("go", Delivery::Queue).await;
    face.ended().await;
    face.prompt("/loop --n=5 --interval=3600", Delivery::Queue)
        .await;
    world.server.wait_for_requests(2).await;
    face.prompt("something else", Delivery::Steer).await;
    let repeated = face.ended().await;
    assert!(matches!(repeated, Outcome::Success { text } if text == "two" || text == "mine"));
    let requests = world.server.wait_for_requests(3).await;
    let last = requests[2].json()["messages"].to_string();
    assert!(last.contains("something else"), "{last}");
    face.close().await;
    assert_eq!(world.server.model_requests().len(), 3);
}

#[tokio::test]
async fn an_interrupt_ends_the_rest() {
    let world = World::new(["one", "two"].map(Reply::text)).await;
    let mut face = world.face(RunOptions::default()).await;
    face.prompt("go", Delivery::Queue).await;
    face.ended().await;
    face.prompt("/loop --interval=3600", Delivery::Queue).await;
    world.server.wait_for_requests(2).await;
    face.until(|what| match what {
        What::Run(Event::TurnEnded { .. }) => Some(()),
        _ => None,
    })
    .await;
    face.send(Command::Interrupt).await;
    assert!(matches!(face.ended().await, Outcome::Cancelled));
    face.close().await;
}

#[tokio::test]
async fn the_tools_of_servers_are_counted_against_their_cap() {
    let world = World::new([]).await;
    world.user_settings("[tools]\nmax_active_schemas = 9\n");
    let options = RunOptions {
        servers: ServerOptions {
            configs: vec![summing_server()],
            ..ServerOptions::default()
        },
        ..RunOptions::default()
    };
    let mut face = world.face(options).await;
    match face.ask("/context").await {
        Outcome::Obeyed { text, .. } => {
            assert!(text.contains("MCP active: 7/9 (mcp__sums__add, "), "{text}");
        }
        other => panic!("{other:?}"),
    }
    face.close().await;
}
