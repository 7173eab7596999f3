//! Telemetry of a session, where somebody wants it.

use std::sync::Arc;

use caliban_session::SessionHandle;
use caliban_telemetry::{Ambient, Config, Means, Wish};

use crate::configuration::Configuration;
use crate::error::LaunchError;
use crate::surroundings::Hearers;

/// What hears a session and tells a collector.
#[derive(Debug)]
pub(crate) struct Telemetry {
    config: Config,
    means: Means,
    hearers: Hearers,
}

impl Telemetry {
    /// Reads what is wanted; what cannot be had is a warning.
    pub(crate) fn wished(
        ambient: Ambient,
        configuration: &Configuration,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Self>, LaunchError> {
        let environment = configuration.environment();
        let config = match Wish::read(environment, configuration.settings(), ambient)? {
            Wish::Off => return Ok(None),
            Wish::Nowhere(missing) => {
                warnings.push(missing);
                return Ok(None);
            }
            Wish::On(config) => *config,
        };
        let process = &configuration.process;
        let diagnostics = Arc::clone(&process.diagnostics);
        Ok(Some(Self {
            config,
            means: Means {
                guard: process.guard.clone(),
                environment: configuration.child_environment(),
                directory: configuration.workspace.clone(),
                warn: Arc::new(move |text| diagnostics.warning(text)),
            },
            hearers: process.hearers.clone(),
        }))
    }

    /// Hears a session from its beginning.
    pub(crate) fn hear(self, session: &SessionHandle) {
        let events = session.subscribe(1);
        let hearer = caliban_telemetry::hear(self.config, events, self.means);
        self.hearers.add(hearer);
    }
}
