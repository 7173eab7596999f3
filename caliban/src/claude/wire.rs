//! Standard output of this dialect: one line per frame, or the result alone.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use caliban_model::CancellationToken;
use caliban_protocol::claude::fit;
use serde_json::Value;

use crate::args::OutputFormat;
use crate::console::Console;
use crate::exit::Failure;

/// What is written, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    /// The answer.
    Text,
    /// The last result.
    Result,
    /// All frames as one list, at the end.
    List,
    /// Each frame when it is complete.
    Lines,
}

impl Format {
    pub(crate) fn new(output: OutputFormat, verbose: bool) -> Self {
        match (output, verbose) {
            (OutputFormat::Text, _) => Self::Text,
            (OutputFormat::Json, false) => Self::Result,
            (OutputFormat::Json, true) => Self::List,
            (OutputFormat::StreamJson, _) => Self::Lines,
        }
    }
}

/// Shared by all who write. Once nobody reads, everything stops.
#[derive(Clone)]
pub(crate) struct Wire(Arc<Inner>);

struct Inner {
    format: Format,
    state: Mutex<State>,
    closed: CancellationToken,
}

struct State {
    console: Console,
    held: Vec<Value>,
    failure: Option<Failure>,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("Wire").field(&self.0.format).finish()
    }
}

impl Wire {
    /// `closed` is cancelled when nobody reads any more.
    pub(crate) fn new(format: Format, closed: CancellationToken) -> Self {
        Self(Arc::new(Inner {
            format,
            state: Mutex::new(State {
                console: Console::new(),
                held: Vec::new(),
                failure: None,
            }),
            closed,
        }))
    }

    /// Writes a frame, or keeps it for the end.
    pub(crate) fn frame(&self, frame: Value) {
        match self.0.format {
            Format::Lines => self.line(&fit(&frame)),
            Format::List => self.lock().held.push(frame),
            Format::Text | Format::Result => {
                if frame.get("type").and_then(Value::as_str) == Some("result") {
                    self.lock().held = vec![frame];
                }
            }
        }
    }

    /// Writes a line as it is.
    pub(crate) fn line(&self, line: &str) {
        let mut state = self.lock();
        if state.failure.is_some() {
            return;
        }
        if let Err(failure) = state.console.write(line) {
            state.failure = Some(failure);
            self.0.closed.cancel();
        }
    }

    /// Writes what was kept.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        let held = std::mem::take(&mut self.lock().held);
        match self.0.format {
            Format::Lines => {}
            Format::List => self.line(&caliban_protocol::line(&Value::Array(held))),
            Format::Result => {
                for result in &held {
                    self.line(&fit(result));
                }
            }
            Format::Text => {
                for result in &held {
                    self.line(&format!("{}\n", text(result)));
                }
            }
        }
        match self.lock().failure.take() {
            Some(failure) => Err(failure),
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a person reads of a result: the answer, or what went wrong.
fn text(result: &Value) -> String {
    let texts = |key: &str| -> Vec<&str> {
        let list = result.get(key).and_then(Value::as_array);
        list.into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    };
    match result.get("result").and_then(Value::as_str) {
        Some(text) => text.to_owned(),
        None => format!("Error: {}", texts("errors").join("; ")),
    }
}
