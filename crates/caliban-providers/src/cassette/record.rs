//! Writes exchanges while they happen.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use async_stream::try_stream;
use caliban_model::{
    CancellationToken, Capabilities, Error, ErrorKind, EventStream, ModelInfo, Provider, Request,
    RouteAccount, Shown, StreamEvent,
};
use futures::StreamExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};

use super::{Asked, CassetteError, Masking, VERSION};

/// A provider whose exchanges are kept. An exchange is written in one piece when it ends, so a
/// cassette never holds half of one; attempts that were retried are not kept.
#[derive(Debug, Clone)]
pub struct Recording {
    inner: Arc<dyn Provider>,
    tape: Arc<Tape>,
}

#[derive(Debug)]
struct Tape {
    path: PathBuf,
    file: Mutex<File>,
    masking: Masking,
}

impl Recording {
    /// Starts a new cassette at `path`, replacing what is there.
    pub fn start(
        inner: Arc<dyn Provider>,
        path: &Path,
        masking: Masking,
    ) -> Result<Self, CassetteError> {
        let failed = |source| CassetteError::Io {
            path: path.to_owned(),
            source,
        };
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        // Conversations are private, even without their secrets.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path).map_err(failed)?;
        let header = json!({"cassette": VERSION, "caliban": env!("CARGO_PKG_VERSION")});
        file.write_all(format!("{header}\n").as_bytes())
            .map_err(failed)?;
        Ok(Self {
            inner,
            tape: Arc::new(Tape {
                path: path.to_owned(),
                file: Mutex::new(file),
                masking,
            }),
        })
    }
}

impl Tape {
    fn write(&self, exchange: Vec<Value>) -> std::io::Result<()> {
        let mut lines = String::new();
        for mut line in exchange {
            self.masking.mask(&mut line);
            lines.push_str(&line.to_string());
            lines.push('\n');
        }
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.write_all(lines.as_bytes())?;
        file.sync_data()
    }

    /// A recording that cannot be kept is a failure of the run: the user asked for it.
    fn keep(&self, exchange: Vec<Value>, provider: &str, model: &str) -> Result<(), Error> {
        self.write(exchange).map_err(|error| {
            Error::new(
                ErrorKind::Invalid,
                provider,
                model,
                format!("cannot write cassette `{}`: {error}", self.path.display()),
            )
        })
    }
}

impl Provider for Recording {
    fn accounts(&self) -> Vec<RouteAccount> {
        self.inner.accounts()
    }

    fn id(&self) -> &str {
        self.inner.id()
    }

    fn capabilities(&self, model: &str) -> Capabilities {
        self.inner.capabilities(model)
    }

    fn stream(&self, request: Request, cancel: CancellationToken) -> EventStream {
        let Self { inner, tape } = self.clone();
        Box::pin(try_stream! {
            let asked = json!({"request": Asked::new(inner.id(), &request)});
            let model = Arc::clone(&request.model);
            let mut exchange = vec![asked.clone()];
            let mut answering = exchange.len();
            let mut answer = inner.stream(request, cancel);
            while let Some(event) = answer.next().await {
                match &event {
                    Ok(StreamEvent::Retrying(retry)) => {
                        if retry.shown == Shown::Superseded {
                            exchange.truncate(answering);
                        }
                    }
                    // Who answers is known whatever becomes of the answer.
                    Ok(StreamEvent::Routed { .. } | StreamEvent::Rerouted(_)) => {
                        exchange.truncate(1);
                        exchange.push(json!(event.as_ref().ok()));
                        answering = exchange.len();
                    }
                    Ok(event) => exchange.push(json!(event)),
                    Err(error) => exchange.push(json!({"error": error.to_string()})),
                }
                // Kept before it is told: whoever saw the end of an answer can replay it.
                if matches!(event, Ok(StreamEvent::Stopped { .. }) | Err(_)) {
                    tape.keep(std::mem::take(&mut exchange), inner.id(), &model)?;
                }
                yield event?;
            }
        })
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<ModelInfo>, Error>> {
        self.inner.models()
    }
}
