//! Sessions as actors in this very process, which end with it.

use std::sync::Arc;

use caliban_harness::{DialectParts, Surroundings, launch_apart};
use caliban_model::Message;
use caliban_serve::{HostedSession, News, Saved, SessionHost, Unopened, Wanted};
use caliban_session::{Closed, Command, EventBatch, Events, Facts, SessionHandle};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::ground::{Ground, unopened};
use crate::doctor::Doctor;

/// Makes sessions in this process.
#[derive(Debug)]
pub(super) struct InProcess(pub(super) Ground);

impl SessionHost for InProcess {
    fn open(&self, wanted: Wanted) -> BoxFuture<'_, Result<Box<dyn HostedSession>, Unopened>> {
        async move {
            let options = self.0.options(&wanted)?;
            let attends = options.servers.prompt_tool.is_none();
            let doctor = Doctor {
                options: options.clone(),
                process: self.0.process.clone(),
            };
            let surroundings = Surroundings {
                process: self.0.process.clone(),
                dialect: DialectParts {
                    examiner: Some(Arc::new(doctor)),
                    patience: Some(wanted.patience),
                    ..DialectParts::default()
                },
            };
            let launched = launch_apart(options, surroundings).await;
            let launched = launched.map_err(|error| unopened(&error))?;
            let facts = launched.facts.clone();
            let (handle, mut events) = launched.begin();
            if attends {
                events.attend();
            }
            Ok(Box::new(Actor {
                facts,
                handle,
                events,
            }) as Box<dyn HostedSession>)
        }
        .boxed()
    }

    fn history(&self, session: &str) -> BoxFuture<'_, Result<Vec<Arc<Message>>, String>> {
        self.0.history(session)
    }

    fn saved(&self) -> BoxFuture<'_, Result<Vec<Saved>, String>> {
        self.0.saved()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, String>> {
        self.0.models()
    }

    fn remove(&self, session: &str) -> BoxFuture<'_, Result<(), String>> {
        self.0.remove(session)
    }
}

/// A session in this process.
#[derive(Debug)]
struct Actor {
    facts: Facts,
    handle: SessionHandle,
    events: Events,
}

impl HostedSession for Actor {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn send(&self, command: Command) -> BoxFuture<'_, Result<(), Closed>> {
        self.handle.send(command).boxed()
    }

    fn next(&mut self) -> BoxFuture<'_, Option<News>> {
        async move {
            match self.events.next().await? {
                EventBatch::Events(events) => Some(News::Events(events)),
                // The first hearer misses nothing.
                EventBatch::Missed(_) => Some(News::Events(Vec::new())),
            }
        }
        .boxed()
    }
}
