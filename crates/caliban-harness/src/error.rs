//! Why a run cannot begin, by what its caller can do about it.

use std::error::Error;
use std::fmt;

use caliban_providers::ConfigError;
use caliban_providers::cassette::CassetteError;
use caliban_settings::SettingsError;
use caliban_settings::variables::VariableError;

use crate::choices::SetupError;

/// Why a run cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// The options make no sense.
    #[error(transparent)]
    Usage(Problem),
    /// There is nothing to work on.
    #[error(transparent)]
    NoInput(Problem),
    /// Somebody else holds what is needed.
    #[error(transparent)]
    Busy(Problem),
    /// What is configured cannot be used.
    #[error(transparent)]
    Configuration(Problem),
    /// Something went wrong on the way.
    #[error(transparent)]
    Runtime(Problem),
}

/// What is wrong, in words that stand for themselves, and what they were made from.
#[derive(Debug)]
pub struct Problem {
    message: String,
    cause: Option<Box<dyn Error + Send + Sync>>,
}

impl Problem {
    /// The words of an error, which stays known as the cause.
    pub fn from_error(error: impl Error + Send + Sync + 'static) -> Self {
        Self {
            message: error.to_string(),
            cause: Some(Box::new(error)),
        }
    }

    /// Other words for an error.
    pub fn caused(
        message: impl Into<String>,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> Self {
        Self {
            message: message.into(),
            cause: Some(cause.into()),
        }
    }
}

impl From<String> for Problem {
    fn from(message: String) -> Self {
        Self {
            message,
            cause: None,
        }
    }
}

impl From<&str> for Problem {
    fn from(message: &str) -> Self {
        Self::from(message.to_owned())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Problem {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        let cause = self.cause.as_deref()?;
        Some(cause)
    }
}

impl LaunchError {
    pub fn usage(problem: impl Into<Problem>) -> Self {
        Self::Usage(problem.into())
    }

    pub fn no_input(problem: impl Into<Problem>) -> Self {
        Self::NoInput(problem.into())
    }

    pub fn busy(problem: impl Into<Problem>) -> Self {
        Self::Busy(problem.into())
    }

    pub fn configuration(problem: impl Into<Problem>) -> Self {
        Self::Configuration(problem.into())
    }

    pub fn runtime(problem: impl Into<Problem>) -> Self {
        Self::Runtime(problem.into())
    }
}

impl From<ConfigError> for LaunchError {
    fn from(error: ConfigError) -> Self {
        Self::Configuration(Problem::from_error(error))
    }
}

impl From<SetupError> for LaunchError {
    fn from(error: SetupError) -> Self {
        Self::Configuration(Problem::from_error(error))
    }
}

impl From<CassetteError> for LaunchError {
    fn from(error: CassetteError) -> Self {
        Self::Configuration(Problem::from_error(error))
    }
}

impl From<SettingsError> for LaunchError {
    fn from(error: SettingsError) -> Self {
        Self::Configuration(Problem::from_error(error))
    }
}

impl From<VariableError> for LaunchError {
    fn from(error: VariableError) -> Self {
        Self::Configuration(Problem::from_error(error))
    }
}

impl From<caliban_sessions::Error> for LaunchError {
    fn from(error: caliban_sessions::Error) -> Self {
        use caliban_sessions::Error as Session;
        let kind = match &error {
            Session::Name(_) | Session::Ambiguous { .. } => Self::Usage,
            Session::NotFound { .. } => Self::NoInput,
            Session::Busy { .. } => Self::Busy,
            _ => Self::Runtime,
        };
        kind(Problem::from_error(error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_is_found_behind_the_words() {
        let cause = VariableError {
            name: "N".to_owned(),
            expected: "a whole number".to_owned(),
            value: "x".to_owned(),
        };
        let error = LaunchError::from(cause.clone());
        assert_eq!(error.to_string(), cause.to_string());
        let found = error.source().unwrap();
        assert_eq!(found.downcast_ref::<VariableError>(), Some(&cause));
        assert!(LaunchError::usage("no").source().is_none());
    }
}
