//! Servers of tools that live in the client: their messages travel over the control protocol.

use caliban_mcp::Link;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::channel::Channel;

/// Messages that wait on either side of a link.
const QUEUE: usize = 64;

/// A link to a server of the client's.
fn link(channel: &Channel, server: &str) -> Link {
    let (outgoing, mut to_send) = mpsc::channel::<Value>(QUEUE);
    let (received, incoming) = mpsc::channel(QUEUE);
    let (channel, server) = (channel.clone(), server.to_owned());
    tokio::spawn(async move {
        while let Some(message) = to_send.recv().await {
            let (channel, server) = (channel.clone(), server.clone());
            let received = received.clone();
            // Each message is a question of its own, so that a slow one holds up no other.
            tokio::spawn(async move {
                let id = message.get("id").cloned();
                let question = json!({
                    "subtype": "mcp_message",
                    "server_name": server,
                    "message": message,
                });
                let answer = channel.ask(&question).await;
                let Some(id) = id else {
                    return;
                };
                let reply = match answer {
                    Ok(mut answer) => answer["mcp_response"].take(),
                    Err(unanswered) => json!({
                        "jsonrpc": "2.0",
                        "id": id,
                        "error": {"code": -32000, "message": unanswered.to_string()},
                    }),
                };
                // Nobody listens once the session is over.
                let _ = received.send(reply).await;
            });
        }
    });
    Link { outgoing, incoming }
}

/// Links to the servers that live in the client.
pub(crate) fn links(channel: &Channel, servers: &[String]) -> Vec<(String, Link)> {
    let of = |server: &String| (server.clone(), link(channel, server));
    servers.iter().map(of).collect()
}
