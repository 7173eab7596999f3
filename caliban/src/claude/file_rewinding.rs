//! `rewind_files`: files go back to how they were when a message of the user's came. The
//! conversation stays.

use std::sync::{Mutex, MutexGuard, PoisonError};

use caliban_agent::Outcome;
use caliban_checkpoints::Plan;
use caliban_harness::Rewinder;
use caliban_protocol::claude::{ControlError, RewindFiles, error_response, success_response};
use caliban_session::{Command, Others, PromptId, Restore, Rewind};
use serde_json::{Value, json};
use uuid::Uuid;

use super::session_profile::Unfit;

/// Takes files back for a client.
#[derive(Debug, Default)]
pub(crate) struct FileRewinding {
    /// Nobody until the session begins, or where the client did not ask for checkpoints.
    rewinder: Mutex<Option<Rewinder>>,
    /// What the session is doing for requests, with their answers if it can be done.
    awaited: Mutex<Vec<Awaited>>,
}

#[derive(Debug)]
struct Awaited {
    work: PromptId,
    request: String,
    answer: Value,
}

/// What a request comes to.
pub(crate) enum Granted {
    Answer(Value),
    /// The answer follows when the session has done this.
    Wants(Command),
}

impl FileRewinding {
    /// The session can begin, and checkpoints are wanted.
    pub(crate) fn enable(&self, rewinder: Option<Rewinder>) {
        *lock(&self.rewinder) = rewinder;
    }

    pub(crate) async fn grant(&self, request: &str, wanted: RewindFiles) -> Result<Granted, Unfit> {
        let disabled = || {
            let message = "File rewinding is not enabled.".to_owned();
            (message, ControlError::Disabled)
        };
        let rewinder = lock(&self.rewinder).clone().ok_or_else(disabled)?;
        let looking = tokio::task::spawn_blocking(move || plan(&rewinder, &wanted));
        let planned = looking.await;
        let planned = planned.map_err(|error| (error.to_string(), ControlError::InvalidRequest))?;
        let (rewind, answer, is_dry_run) =
            planned.map_err(|error| (error, ControlError::InvalidRequest))?;
        if is_dry_run {
            return Ok(Granted::Answer(answer));
        }
        let work = PromptId::from(Uuid::new_v4().to_string());
        lock(&self.awaited).push(Awaited {
            work: work.clone(),
            request: request.to_owned(),
            answer,
        });
        Ok(Granted::Wants(Command::Rewind { id: work, rewind }))
    }

    /// Whether the session works for a request.
    pub(crate) fn is_ours(&self, work: &PromptId) -> bool {
        lock(&self.awaited).iter().any(|it| it.work == *work)
    }

    /// The answer to the request that the session has worked for.
    pub(crate) fn ended(&self, work: &PromptId, outcome: &Outcome) -> Option<Value> {
        let mut awaited = lock(&self.awaited);
        let place = awaited.iter().position(|it| it.work == *work)?;
        let Awaited {
            request, answer, ..
        } = awaited.swap_remove(place);
        Some(match outcome.message() {
            None => success_response(&request, &answer),
            Some(message) => error_response(&request, &message, ControlError::InvalidRequest),
        })
    }

    /// The answers to requests that nobody will work for.
    pub(crate) fn close(&self) -> Vec<Value> {
        let awaited = std::mem::take(&mut *lock(&self.awaited));
        let refused = awaited.into_iter().map(|it| {
            let message = "The session has ended.";
            error_response(&it.request, message, ControlError::InvalidRequest)
        });
        refused.collect()
    }
}

/// What would change, for a message that began a prompt. What others changed since is overwritten,
/// as such a client expects, and kept.
fn plan(rewinder: &Rewinder, wanted: &RewindFiles) -> Result<(Rewind, Value, bool), String> {
    let told = |error: caliban_checkpoints::Error| error.to_string();
    let history = rewinder.history().map_err(told)?;
    let mut prompts = history.checkpoints.iter();
    let found = prompts.rfind(|(_, manifest)| manifest.id.as_ref() == Some(&wanted.message));
    let (index, _) = found.ok_or("No file checkpoint found for this message.")?;
    let rewind = Rewind {
        to: index.saturating_sub(1),
        what: Restore::Code,
        others: Others::Overwritten,
    };
    let plan = rewinder.plan(rewind).map_err(told)?;
    Ok((rewind, answer(rewinder, &plan), wanted.is_dry_run))
}

fn answer(rewinder: &Rewinder, plan: &Plan) -> Value {
    let (mut insertions, mut deletions) = (0_u64, 0_u64);
    for action in &plan.actions {
        let difference = rewinder.difference(action).unwrap_or_default();
        // Two lines name the file.
        for line in difference.lines().skip(2) {
            insertions += u64::from(line.starts_with('+'));
            deletions += u64::from(line.starts_with('-'));
        }
    }
    let files = plan
        .actions
        .iter()
        .map(|action| action.path.to_string_lossy());
    json!({
        "canRewind": true,
        "filesChanged": files.collect::<Vec<_>>(),
        "insertions": insertions,
        "deletions": deletions,
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
