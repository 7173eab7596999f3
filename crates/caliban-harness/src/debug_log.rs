//! What happened, appended to a private file, for those who look for a fault.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use caliban_agent::Event;
use caliban_model::{
    CancellationToken, Capabilities, Error, EventStream, ModelInfo, Provider, Request, RouteAccount,
};
use caliban_settings::variables::names;
use futures::future::BoxFuture;
use jiff::Timestamp;

use crate::configuration::Configuration;
use crate::error::{LaunchError, Problem};
use crate::options::DebugTo;
use crate::surroundings::Diagnostics;

/// A log beyond this is put aside.
const ROTATION_BYTES: u64 = 50 * 1024 * 1024;
/// How many are kept besides the one that is written.
const KEPT: u32 = 3;
/// How much of one event is written.
const MAX_CHARS: usize = 4_000;

/// An open log. Trouble with it never troubles the run.
#[derive(Debug)]
pub enum DebugLog {
    File(File),
    /// For those who listen to the program instead of looking into files.
    Diagnostics(Arc<dyn Diagnostics>),
}

impl DebugLog {
    /// Opens the log where one is wanted.
    pub(crate) fn wanted(
        to: &DebugTo,
        configuration: &Configuration,
    ) -> Result<Option<Self>, LaunchError> {
        let log = || Self::at(&configuration.locations.debug_log()).map(Some);
        match to {
            DebugTo::AsConfigured if configuration.environment().is_on(names::CALIBAN_DEBUG) => {
                log()
            }
            DebugTo::AsConfigured => Ok(None),
            DebugTo::Log => log(),
            DebugTo::File(path) => Self::at(path).map(Some),
            DebugTo::Diagnostics => {
                let diagnostics = Arc::clone(&configuration.process.diagnostics);
                Ok(Some(Self::Diagnostics(diagnostics)))
            }
        }
    }

    fn at(path: &Path) -> Result<Self, LaunchError> {
        Self::open(path).map_err(|error| {
            let path = path.display();
            let message = format!("the debug log `{path}` cannot be written: {error}");
            LaunchError::Runtime(Problem::caused(message, error))
        })
    }

    fn open(path: &Path) -> std::io::Result<Self> {
        if let Some(directory) = path.parent().filter(|directory| !directory.exists()) {
            caliban_settings::ensure_private_dir(directory)?;
        }
        if std::fs::metadata(path).is_ok_and(|meta| meta.len() > ROTATION_BYTES) {
            rotate(path)?;
        }
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        Ok(Self::File(options.open(path)?))
    }

    pub fn note(&mut self, event: &Event) {
        self.line(&format!("{event:?}"));
    }

    pub fn line(&mut self, text: &str) {
        let text: String = text.chars().take(MAX_CHARS).collect();
        let (now, id) = (Timestamp::now(), std::process::id());
        match self {
            Self::File(file) => {
                let _ = file.write_all(format!("{now} [{id}] {text}\n").as_bytes());
            }
            Self::Diagnostics(diagnostics) => diagnostics.debug(&format!("{now} [DEBUG] {text}")),
        }
    }
}

/// Writes down what a provider is asked, before it is asked.
#[derive(Debug)]
pub(crate) struct LoggedProvider {
    provider: Arc<dyn Provider>,
    log: Mutex<DebugLog>,
}

impl LoggedProvider {
    /// The provider, whose requests are written down where a log is wanted.
    pub(crate) fn around(
        provider: Arc<dyn Provider>,
        to: &DebugTo,
        configuration: &Configuration,
    ) -> Result<Arc<dyn Provider>, LaunchError> {
        let Some(log) = DebugLog::wanted(to, configuration)? else {
            return Ok(provider);
        };
        let log = Mutex::new(log);
        Ok(Arc::new(Self { provider, log }))
    }
}

impl Provider for LoggedProvider {
    fn accounts(&self) -> Vec<RouteAccount> {
        self.provider.accounts()
    }

    fn id(&self) -> &str {
        self.provider.id()
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        self.provider.capabilities(model)
    }

    fn stream(&self, request: Request, cancel: CancellationToken) -> EventStream {
        let text = described(self.id(), &request);
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.line(&text);
        drop(log);
        self.provider.stream(request, cancel)
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, Error>> {
        self.provider.models()
    }
}

/// What is particular about a request: earlier ones told the messages before the last.
fn described(provider: &str, request: &Request) -> String {
    let last = request.messages().last();
    let last = last.and_then(|message| serde_json::to_string(message).ok());
    format!(
        "request to {provider}: model={} purpose={:?} max_tokens={} temperature={:?} \
         reasoning={:?} messages={} tools={} last={}",
        request.model,
        request.metadata.purpose,
        request.max_tokens,
        request.temperature,
        request.reasoning,
        request.messages().len(),
        request.tools.len(),
        last.unwrap_or_default()
    )
}

/// `debug.log` becomes `debug.log.1`, that `debug.log.2`, and so on; the oldest goes.
fn rotate(path: &Path) -> std::io::Result<()> {
    let numbered = |number: u32| PathBuf::from(format!("{}.{number}", path.display()));
    for number in (1..KEPT).rev() {
        if numbered(number).exists() {
            std::fs::rename(numbered(number), numbered(number + 1))?;
        }
    }
    std::fs::rename(path, numbered(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_logs_are_put_aside_and_three_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logs/debug.log");
        for round in 0..6 {
            let mut log = DebugLog::open(&path).unwrap();
            log.note(&Event::TurnStarted { turn: round });
            let DebugLog::File(file) = log else {
                panic!("{log:?}");
            };
            file.set_len(ROTATION_BYTES + 1).unwrap();
        }
        let mut names: Vec<_> = std::fs::read_dir(path.parent().unwrap())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(
            names,
            ["debug.log", "debug.log.1", "debug.log.2", "debug.log.3"]
        );
    }
}
