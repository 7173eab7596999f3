//! What the server received, kept for assertions.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;

use crate::fault::Fault;

/// A wire API the server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Api {
    AnthropicMessages,
    OpenAiResponses,
    OpenAiChat,
    Gemini,
    Ollama,
    /// Bedrock's own.
    Converse,
}

/// How a request was dealt with.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    Answered,
    Rejected { status: u16, reason: String },
    Fault(Fault),
}

/// One request as it arrived.
#[derive(Debug, Clone)]
pub struct Recorded {
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Names in lower case, in the order received.
    pub headers: Vec<(String, String)>,
    pub body: Bytes,
    /// The API of a generation call; `None` for everything else.
    pub api: Option<Api>,
    pub outcome: Outcome,
}

impl Recorded {
    /// The body as JSON; `Null` when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The first header of that (lower-case) name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// Requests kept; the oldest are forgotten beyond either bound.
const KEPT_REQUESTS: usize = 65_536;
const KEPT_BYTES: usize = 256 << 20;

#[derive(Debug, Default)]
struct Entries {
    kept: VecDeque<Recorded>,
    bytes: usize,
    model_calls: usize,
    disconnects: usize,
}

/// The shared log of one server; every change wakes its waiters.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: Mutex<Entries>,
    changed: Notify,
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn add(&self, entry: Recorded) {
        let mut entries = self.lock();
        entries.bytes += entry.body.len();
        entries.model_calls += usize::from(entry.api.is_some());
        entries.kept.push_back(entry);
        while entries.kept.len() > KEPT_REQUESTS || entries.bytes > KEPT_BYTES {
            let Some(oldest) = entries.kept.pop_front() else {
                break;
            };
            entries.bytes -= oldest.body.len();
        }
        drop(entries);
        self.changed.notify_waiters();
    }

    pub(crate) fn disconnected(&self) {
        self.lock().disconnects += 1;
        self.changed.notify_waiters();
    }

    pub(crate) fn all(&self) -> Vec<Recorded> {
        self.lock().kept.iter().cloned().collect()
    }

    pub(crate) fn model_calls(&self) -> Vec<Recorded> {
        self.lock()
            .kept
            .iter()
            .filter(|entry| entry.api.is_some())
            .cloned()
            .collect()
    }

    pub(crate) fn disconnects(&self) -> usize {
        self.lock().disconnects
    }

    pub(crate) async fn wait_for_calls(&self, n: usize) {
        self.wait_until(|entries| entries.model_calls >= n).await;
    }

    pub(crate) async fn wait_for_disconnect(&self) {
        self.wait_until(|entries| entries.disconnects > 0).await;
    }

    async fn wait_until(&self, holds: impl Fn(&Entries) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Registered before looking, so that a change in between is not missed.
            changed.as_mut().enable();
            if holds(&self.lock()) {
                return;
            }
            changed.await;
        }
    }
}
