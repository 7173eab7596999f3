//! `caliban serve heddle` through the built binary: every message of the protocol, the malformed
//! ones included, written out by a client of its own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod client;
mod endings;
mod failures;
mod guide;
mod permissions;
mod requests;
mod sessions;
#[path = "../support/mod.rs"]
mod support;

use caliban_testkit::{Fault, Reply, Script};
use serde_json::{Value, json};
use support::{Bench, Wire};

fn bench(replies: impl IntoIterator<Item = Reply>) -> Bench {
    Bench::new(Wire::Anthropic, Script::new(replies))
}

/// An answer that begins and never goes on.
fn held() -> Reply {
    Reply::text("never ever").with_fault(Fault::StallMidStream { after_events: 3 })
}

/// The smallest `init`.
fn init() -> Value {
    json!({
        "type": "init",
        "id": "1",
        "config": {
            "model": "anthropic/claude-sonnet-4-6",
            "system_prompt": "Be brief.",
            "tools": ["read_file", "write_file", "edit_file", "glob", "grep", "bash"],
        },
    })
}

fn send(id: &str, message: &str) -> Value {
    json!({"type": "send", "id": id, "message": message})
}

fn status(id: &str) -> Value {
    json!({"type": "status", "id": id})
}

fn cancel(id: &str, target: &str) -> Value {
    json!({"type": "cancel", "id": id, "target_id": target})
}

fn shutdown(id: &str) -> Value {
    json!({"type": "shutdown", "id": id})
}

/// The answer to a request that cannot be served.
fn refused(id: impl Into<Value>, message: &str) -> Value {
    json!({
        "type": "error",
        "id": id.into(),
        "error": {"code": "protocol_error", "message": message, "retryable": false},
    })
}

/// The documented end of a cancelled send of this session.
fn cancelled(id: &str, session: &str) -> Value {
    json!({
        "type": "result",
        "id": id,
        "status": "error",
        "tool_calls_made": [],
        "iterations": 0,
        "error": {"code": "cancelled", "message": "cancelled", "retryable": false},
        "session_id": session,
    })
}
