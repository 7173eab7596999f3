//! A key from a helper: remembered for a while, renewed when rejected, and fetched by one run
//! however many ask for it.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use caliban_model::{Credentials, Error, ErrorKind, Freshness, SecretString};
use caliban_process::Guard;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared, WeakShared};
use tokio::time::{Instant, sleep};

use super::HelperSpec;
use super::run::Run;

/// What a helper runs in.
#[derive(Clone)]
pub struct Surroundings {
    pub directory: PathBuf,
    /// The whole environment, already without what helpers must not see.
    pub environment: Vec<(OsString, OsString)>,
    /// Who makes sure that nothing outlives the helper.
    pub guard: Guard,
    /// Overrides the helper's `refreshIntervalMs`.
    pub ttl: Option<Duration>,
    /// Is told about slow helpers.
    pub warn: Arc<dyn Fn(String) + Send + Sync>,
}

impl fmt::Debug for Surroundings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment may hold secrets.
        f.debug_struct("Surroundings")
            .field("directory", &self.directory)
            .field("ttl", &self.ttl)
            .finish_non_exhaustive()
    }
}

/// The key that a helper prints for one provider. Another helper may take its place.
#[derive(Debug)]
pub struct HelperKey(Mutex<Arc<Helper>>);

#[derive(Debug)]
struct Helper {
    provider: String,
    spec: HelperSpec,
    surroundings: Surroundings,
    memory: Mutex<Memory>,
}

type Flight = BoxFuture<'static, Result<SecretString, Error>>;

#[derive(Default)]
struct Memory {
    key: Option<(SecretString, Instant)>,
    /// The run in progress. It belongs to those who wait for it: when they all go, it ends.
    flight: Option<WeakShared<Flight>>,
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").finish_non_exhaustive()
    }
}

impl HelperKey {
    pub fn new(provider: impl Into<String>, spec: HelperSpec, surroundings: Surroundings) -> Self {
        Self(Mutex::new(Arc::new(Helper {
            provider: provider.into(),
            spec,
            surroundings,
            memory: Mutex::default(),
        })))
    }

    /// Asks what another one asks from now on; what was remembered is forgotten, unless it is the
    /// same helper.
    pub fn replace(&self, other: &Self) {
        let other = other.helper();
        let mut helper = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if helper.spec != other.spec {
            *helper = other;
        }
    }

    fn helper(&self) -> Arc<Helper> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Credentials for HelperKey {
    fn key(&self, freshness: Freshness) -> BoxFuture<'_, Result<Option<SecretString>, Error>> {
        async move {
            let flight = match self.helper().remembered(freshness) {
                Remembered::Key(key) => return Ok(Some(key)),
                Remembered::Flight(flight) => flight,
            };
            flight.await.map(Some)
        }
        .boxed()
    }

    fn renewable(&self) -> bool {
        true
    }

    fn remedy(&self) -> Option<String> {
        let helper = self.helper();
        let program = helper.program();
        Some(format!(
            "`api_key_helper` `{program}` printed the key that was refused: have it print a valid one"
        ))
    }
}

enum Remembered {
    Key(SecretString),
    Flight(Shared<Flight>),
}

impl Helper {
    fn ttl(&self) -> Duration {
        self.surroundings.ttl.unwrap_or(self.spec.refresh)
    }

    fn memory(&self) -> MutexGuard<'_, Memory> {
        // Nothing that can fail happens under this lock.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remembered(self: &Arc<Self>, freshness: Freshness) -> Remembered {
        let mut memory = self.memory();
        match freshness {
            Freshness::Cached => {
                if let Some((key, fetched)) = &memory.key
                    && fetched.elapsed() < self.ttl()
                {
                    return Remembered::Key(key.clone());
                }
            }
            Freshness::Renewed => memory.key = None,
        }
        // Whatever run is in progress began after the rejected key was handed out.
        let current = memory.flight.as_ref().and_then(WeakShared::upgrade);
        Remembered::Flight(current.unwrap_or_else(|| {
            let flight = Arc::clone(self).fly().boxed().shared();
            memory.flight = flight.downgrade();
            flight
        }))
    }

    async fn fly(self: Arc<Self>) -> Result<SecretString, Error> {
        let started = Instant::now();
        let result = self.run().await;
        let mut memory = self.memory();
        memory.flight = None;
        if let Ok(key) = &result {
            memory.key = Some((key.clone(), started));
        }
        result
    }

    async fn run(&self) -> Result<SecretString, Error> {
        let run = Run {
            command: &self.spec.command,
            directory: &self.surroundings.directory,
            environment: &self.surroundings.environment,
            guard: &self.surroundings.guard,
            additions: [
                ("CALIBAN_PROVIDER", self.provider.clone()),
                (
                    "CALIBAN_API_KEY_HELPER_TTL_MS",
                    self.ttl().as_millis().to_string(),
                ),
            ],
        };
        let slow = async {
            sleep(self.spec.slow).await;
            (self.surroundings.warn)(format!(
                "`api_key_helper` `{}` for {} has been running for {:?}",
                self.program(),
                self.provider,
                self.spec.slow
            ));
            std::future::pending().await
        };
        let key = tokio::select! {
            key = run.key() => key,
            never = slow => never,
        };
        key.map(SecretString::from).map_err(|error| {
            let message = format!("`api_key_helper` `{}` {error}", self.program());
            Error::new(ErrorKind::Auth, &self.provider, "", message)
                .with_remedy("run the helper by hand, or check `api_key_helper` in the settings")
        })
    }

    fn program(&self) -> &str {
        self.spec.command.first().map_or("", String::as_str)
    }
}

#[cfg(test)]
mod tests;
