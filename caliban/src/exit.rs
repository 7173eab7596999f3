//! How the program ends: every exit code in one place.

use std::error::Error;
use std::fmt;
use std::process::ExitCode;

use caliban_agent::Outcome;
use caliban_harness::{LaunchError, Problem, SetupError};
use caliban_mcp::authorization::AuthError;
use caliban_mcp::oauth::ServerError;
use caliban_model::{self as model, UnknownProvider};
use caliban_providers::cassette::CassetteError;
use caliban_settings::SettingsError;
use caliban_settings::variables::VariableError;
use caliban_settings::write::WriteError;

/// Every exit code and what it says.
const CODES: [(u8, &str); 10] = [
    (0, "done"),
    (
        1,
        "the provider, a hook, or something else failed; the answer was cut at `--max-tokens`; \
         with `--fail-on-denial`, a call was not permitted",
    ),
    (2, "the answer does not fit `--json-schema`"),
    (64, "flags or input frames that make no sense"),
    (66, "nothing to work on, or no such session"),
    (
        75,
        "`--max-turns` reached, or the session is in use; the queue of the fleet is full, or a job \
         has no result yet",
    ),
    (
        78,
        "settings that cannot be used, a missing key, too much on standard input",
    ),
    (124, "interrupted (first Ctrl-C, SIGTERM)"),
    (130, "interrupted again"),
    (137, "`--max-budget-usd` reached"),
];

/// What `--help` says about them.
pub(crate) fn help() -> String {
    // A line for each part, so that none is broken elsewhere and loses its indentation.
    let rows = CODES.map(|(code, meaning)| {
        let meaning = meaning.replace("; ", ";\n       ");
        format!("\n  {code:>3}  {meaning}")
    });
    format!("Exit codes:{}", rows.concat())
}

/// A reason to stop, by exit code.
#[derive(Debug)]
pub(crate) enum Failure {
    /// A run that did not succeed; its outcome knows the code.
    Outcome(Outcome),
    /// A run could not begin; the error knows what kind it is.
    Launch(LaunchError),
    /// Something went wrong outside a run: 1.
    Runtime(String),
    /// The command line makes no sense: 64.
    Usage(String),
    /// Nothing to work on: 66.
    NoInput(String),
    /// Somebody else is at it, or there is too much to do: 75.
    Busy(String),
    /// The configuration or the input cannot be used: 78.
    Config(String),
    /// Everything was said already; only the code remains.
    Silent(u8),
    /// Nobody reads our output any more; there is nobody to tell.
    OutputClosed,
}

impl Failure {
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.number())
    }

    /// The same as a number.
    pub(crate) fn number(&self) -> u8 {
        match self {
            Self::Outcome(outcome) => outcome.exit_code(),
            Self::Launch(error) => match error {
                LaunchError::Usage(_) => 64,
                LaunchError::NoInput(_) => 66,
                LaunchError::Busy(_) => 75,
                LaunchError::Configuration(_) => 78,
                LaunchError::Runtime(_) => 1,
            },
            Self::Runtime(_) | Self::OutputClosed => 1,
            Self::Silent(code) => *code,
            Self::Usage(_) => 64,
            Self::NoInput(_) => 66,
            Self::Busy(_) => 75,
            Self::Config(_) => 78,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Outcome(outcome) => f.write_str(&outcome.message().unwrap_or_default()),
            Self::Launch(error) => error.fmt(f),
            Self::Runtime(message)
            | Self::Usage(message)
            | Self::NoInput(message)
            | Self::Busy(message)
            | Self::Config(message) => f.write_str(message),
            Self::Silent(_) => Ok(()),
            Self::OutputClosed => f.write_str("standard output was closed"),
        }
    }
}

impl From<model::Error> for Failure {
    fn from(error: model::Error) -> Self {
        Self::Outcome(error.into())
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Launch(error) => error.source(),
            Self::Outcome(_)
            | Self::Runtime(_)
            | Self::Usage(_)
            | Self::NoInput(_)
            | Self::Busy(_)
            | Self::Config(_)
            | Self::Silent(_)
            | Self::OutputClosed => None,
        }
    }
}

impl From<LaunchError> for Failure {
    fn from(error: LaunchError) -> Self {
        Self::Launch(error)
    }
}

impl From<SetupError> for Failure {
    fn from(error: SetupError) -> Self {
        Self::Launch(error.into())
    }
}

impl From<CassetteError> for Failure {
    fn from(error: CassetteError) -> Self {
        Self::Launch(error.into())
    }
}

impl From<SettingsError> for Failure {
    fn from(error: SettingsError) -> Self {
        Self::Launch(error.into())
    }
}

impl From<VariableError> for Failure {
    fn from(error: VariableError) -> Self {
        Self::Launch(error.into())
    }
}

impl From<caliban_sessions::Error> for Failure {
    fn from(error: caliban_sessions::Error) -> Self {
        Self::Launch(error.into())
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Self::Launch(LaunchError::Configuration(Problem::from_error(error)))
    }
}

impl From<ServerError> for Failure {
    fn from(error: ServerError) -> Self {
        Self::Launch(LaunchError::Configuration(Problem::from_error(error)))
    }
}

impl From<AuthError> for Failure {
    fn from(error: AuthError) -> Self {
        Self::Launch(LaunchError::Runtime(Problem::from_error(error)))
    }
}

impl From<UnknownProvider> for Failure {
    fn from(error: UnknownProvider) -> Self {
        Self::Launch(LaunchError::Usage(Problem::from_error(error)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guide_tells_every_code_as_the_program_does() {
        let guide = include_str!("../../docs/headless.md");
        let rows = CODES.map(|(code, meaning)| format!("| {code} | {meaning} |\n"));
        assert!(guide.contains(&rows.concat()), "{}", rows.concat());
    }

    #[test]
    fn no_failure_has_a_code_that_is_not_told() {
        let text = String::new;
        for failure in [
            Failure::Outcome(Outcome::Cancelled),
            Failure::Launch(LaunchError::usage("")),
            Failure::Launch(LaunchError::no_input("")),
            Failure::Launch(LaunchError::busy("")),
            Failure::Launch(LaunchError::configuration("")),
            Failure::Launch(LaunchError::runtime("")),
            Failure::Runtime(text()),
            Failure::Usage(text()),
            Failure::NoInput(text()),
            Failure::Busy(text()),
            Failure::Config(text()),
            Failure::OutputClosed,
        ] {
            let code = failure.code();
            assert!(CODES.iter().any(|(told, _)| ExitCode::from(*told) == code));
        }
    }

    #[test]
    fn what_went_wrong_is_found_behind_a_failure() {
        let error = "klingon"
            .parse::<caliban_model::ProviderKind>()
            .unwrap_err();
        let failure = Failure::from(error.clone());
        assert_eq!(failure.to_string(), error.to_string());
        let source = failure.source().and_then(|it| it.downcast_ref());
        assert_eq!(source, Some(&error));
        assert!(Failure::Usage(String::new()).source().is_none());
    }
}
