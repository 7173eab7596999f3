//! Runs the programs that print a cloud's credentials, or log in to it.

use std::sync::Arc;
use std::time::Duration;

use caliban_providers::Programs;
use caliban_settings::key_helper::{Credential, Surroundings};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::configuration::Configuration;

/// The programs of one configuration, run like those that print keys.
#[derive(Debug)]
pub(crate) struct CredentialPrograms(Surroundings);

impl CredentialPrograms {
    pub(crate) fn new(configuration: &Configuration) -> Self {
        let diagnostics = Arc::clone(&configuration.process.diagnostics);
        Self(Surroundings {
            directory: configuration.workspace.clone(),
            environment: configuration.helper_environment(),
            guard: configuration.process.guard.clone(),
            ttl: None,
            warn: Arc::new(move |message| diagnostics.warning(&message)),
        })
    }
}

impl Programs for CredentialPrograms {
    fn run(&self, line: String, limit: Duration) -> BoxFuture<'_, Result<String, String>> {
        async move { Credential::parse(&line)?.printed(&self.0, limit).await }.boxed()
    }
}
