//! How the program ends: every exit code in one place.

use std::fmt;
use std::process::ExitCode;

use caliban_model as model;
use caliban_providers::cassette::CassetteError;
use caliban_providers::{ConfigError, UnknownProvider};

/// A reason to stop, by exit code.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Something went wrong while running: 1.
    Runtime(String),
    /// The command line makes no sense: 64.
    Usage(String),
    /// Nothing to work on: 66.
    NoInput(String),
    /// The configuration or the input cannot be used: 78.
    Config(String),
    /// The user stopped it: 124.
    Cancelled,
    /// Nobody reads our output any more; there is nobody to tell.
    OutputClosed,
}

impl Failure {
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(match self {
            Self::Runtime(_) | Self::OutputClosed => 1,
            Self::Usage(_) => 64,
            Self::NoInput(_) => 66,
            Self::Config(_) => 78,
            Self::Cancelled => 124,
        })
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Runtime(message)
            | Self::Usage(message)
            | Self::NoInput(message)
            | Self::Config(message) => f.write_str(message),
            Self::Cancelled => f.write_str("cancelled"),
            Self::OutputClosed => f.write_str("standard output was closed"),
        }
    }
}

impl From<model::Error> for Failure {
    fn from(error: model::Error) -> Self {
        match error.kind {
            model::ErrorKind::Cancelled => Self::Cancelled,
            _ => Self::Runtime(error.to_string()),
        }
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Self::Config(error.to_string())
    }
}

impl From<CassetteError> for Failure {
    fn from(error: CassetteError) -> Self {
        Self::Config(error.to_string())
    }
}

impl From<UnknownProvider> for Failure {
    fn from(error: UnknownProvider) -> Self {
        Self::Usage(error.to_string())
    }
}
