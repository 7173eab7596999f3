//! Telemetry of a session, where somebody wants it.

use std::sync::Arc;

use caliban_model::Origin;
use caliban_providers::Wiretap;
use caliban_providers::cassette::Masking;
use caliban_session::SessionHandle;
use caliban_telemetry::{Ambient, Bodies, Config, Half, Means, RawBody, Traces, Wish};

use crate::configuration::Configuration;
use crate::error::LaunchError;
use crate::provider::masking;
use crate::surroundings::Hearers;

/// What hears a session and tells a collector.
#[derive(Debug)]
pub(crate) struct Telemetry {
    config: Config,
    means: Means,
    hearers: Hearers,
    traces: Arc<Traces>,
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
        let bodies = config.wants_bodies().then(Arc::<Bodies>::default);
        Ok(Some(Self {
            traces: Arc::new(config.traces()),
            config,
            means: Means {
                guard: process.guard.clone(),
                environment: configuration.child_environment(),
                directory: configuration.workspace.clone(),
                warn: Arc::new(move |text| diagnostics.warning(text)),
                bodies,
            },
            hearers: process.hearers.clone(),
        }))
    }

    /// Who listens to what is sent to models and answered, where somebody wants that.
    pub(crate) fn wiretap(&self, configuration: &Configuration) -> Option<Arc<dyn Wiretap>> {
        let bodies = Arc::clone(self.means.bodies.as_ref()?);
        let masking = masking(&configuration.workspace, &configuration.process);
        Some(Arc::new(BodyTap { bodies, masking }))
    }

    /// Where the calls of the session stand.
    pub(crate) fn traces(&self) -> Arc<Traces> {
        Arc::clone(&self.traces)
    }

    /// Hears a session from its beginning.
    pub(crate) fn hear(self, session: &SessionHandle) {
        let events = session.subscribe(1);
        let hearer = caliban_telemetry::hear(self.config, &self.traces, events, self.means);
        self.hearers.add(hearer);
    }
}

/// Hands what is sent and answered on, without secrets.
#[derive(Debug)]
struct BodyTap {
    bodies: Arc<Bodies>,
    masking: Masking,
}

impl BodyTap {
    fn tell(&self, half: Half, call: u64, origin: &Origin, body: &[u8]) {
        self.bodies.tell(RawBody {
            half,
            call,
            provider: origin.provider.to_string(),
            model: origin.model.to_string(),
            text: self.masking.redacted(&String::from_utf8_lossy(body)),
        });
    }
}

impl Wiretap for BodyTap {
    fn sent(&self, origin: &Origin, body: &[u8]) -> u64 {
        let call = self.bodies.number();
        self.tell(Half::Request, call, origin, body);
        call
    }

    fn answered(&self, call: u64, origin: &Origin, status: u16, body: &[u8]) {
        self.tell(Half::Response(status), call, origin, body);
    }
}
