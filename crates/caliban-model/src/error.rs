//! Why a model call failed, in classes that say what can be done about it.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A failed model call. Displays as one line that names provider, model, status, cause and
/// remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Error {
    pub kind: ErrorKind,
    pub provider: String,
    pub model: String,
    pub status: Option<u16>,
    pub message: String,
    /// How long the provider asks us to wait before the next attempt.
    pub retry_after: Option<Duration>,
    pub advice: RetryAdvice,
    /// What the user can do; the default text of the kind where the adapter knows nothing better.
    pub remedy: Option<String>,
    pub request_id: Option<String>,
}

/// What went wrong, by what can be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// Too many requests; the same call works later.
    RateLimited,
    /// The provider is out of capacity; the same call works later.
    Overloaded,
    /// The provider failed internally.
    Server,
    /// The connection could not be made or broke.
    Network,
    /// Nothing came in time.
    Timeout,
    /// The answer violated the wire format or ended without its end marker.
    Malformed,
    /// The prompt does not fit; `limit` is the window the provider named.
    TooLong { limit: Option<u64> },
    /// The key is missing, wrong or lacks a right.
    Auth,
    /// No credit, or a spend limit was reached.
    Billing,
    /// A content policy refused the request.
    Filtered,
    /// No such model, or not for this account.
    Unavailable,
    /// The request itself is wrong; sending it again cannot help.
    Invalid,
    /// The caller asked to stop.
    Cancelled,
    /// A recorded exchange does not fit the request that was made.
    Mismatch,
}

/// What the server said about retrying, overriding what the kind would suggest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryAdvice {
    #[default]
    ByKind,
    Retry,
    GiveUp,
}

/// The coarse cause of a retry, as protocol frames name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryCategory {
    Overloaded,
    RateLimit,
    Timeout,
    Network,
    ServerError,
    Other,
}

impl Error {
    pub fn new(
        kind: ErrorKind,
        provider: impl Into<String>,
        model: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            provider: provider.into(),
            model: model.into(),
            status: None,
            message: message.into(),
            retry_after: None,
            advice: RetryAdvice::ByKind,
            remedy: None,
            request_id: None,
        }
    }

    pub fn cancelled(provider: &str, model: &str) -> Self {
        Self::new(ErrorKind::Cancelled, provider, model, "cancelled")
    }

    #[must_use]
    pub fn with_status(mut self, status: u16) -> Self {
        self.status = Some(status);
        self
    }

    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// Whether the same call may succeed when it is made again.
    pub fn is_retryable(&self) -> bool {
        match (self.advice, &self.kind) {
            (_, ErrorKind::Cancelled) | (RetryAdvice::GiveUp, _) => false,
            (RetryAdvice::Retry, _) => true,
            (RetryAdvice::ByKind, kind) => match kind {
                ErrorKind::RateLimited
                | ErrorKind::Overloaded
                | ErrorKind::Server
                | ErrorKind::Network
                | ErrorKind::Timeout
                | ErrorKind::Malformed => true,
                ErrorKind::TooLong { .. }
                | ErrorKind::Auth
                | ErrorKind::Billing
                | ErrorKind::Filtered
                | ErrorKind::Unavailable
                | ErrorKind::Invalid
                | ErrorKind::Cancelled
                | ErrorKind::Mismatch => false,
            },
        }
    }

    pub fn category(&self) -> RetryCategory {
        match self.kind {
            ErrorKind::RateLimited => RetryCategory::RateLimit,
            ErrorKind::Overloaded => RetryCategory::Overloaded,
            ErrorKind::Server => RetryCategory::ServerError,
            ErrorKind::Network | ErrorKind::Malformed => RetryCategory::Network,
            ErrorKind::Timeout => RetryCategory::Timeout,
            ErrorKind::TooLong { .. }
            | ErrorKind::Auth
            | ErrorKind::Billing
            | ErrorKind::Filtered
            | ErrorKind::Unavailable
            | ErrorKind::Invalid
            | ErrorKind::Cancelled
            | ErrorKind::Mismatch => RetryCategory::Other,
        }
    }

    /// What the user can do about it.
    pub fn remedy(&self) -> Option<&str> {
        self.remedy.as_deref().or_else(|| self.kind.remedy())
    }
}

impl ErrorKind {
    fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::RateLimited | Self::Overloaded => {
                Some("wait a little and try again, or use another model")
            }
            Self::Server => Some("try again; if it persists, see the provider's status page"),
            Self::Network => Some("check the network, the proxy settings and the base URL"),
            Self::Timeout => Some("try again, or raise the time-out"),
            Self::Malformed => {
                Some("try again; check that the base URL speaks this provider's API")
            }
            Self::TooLong { .. } => Some("shorten the prompt or use a model with a larger window"),
            Self::Auth => Some("check the API key"),
            Self::Billing => Some("check the account's credit and spend limits"),
            Self::Filtered => Some("rephrase the request"),
            Self::Unavailable => Some("check the model name with `--model`"),
            Self::Mismatch => Some("record the cassette again with `--record`"),
            Self::Invalid | Self::Cancelled => None,
        }
    }
}

impl RetryCategory {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Overloaded => "overloaded",
            Self::RateLimit => "rate_limit",
            Self::Timeout => "timeout",
            Self::Network => "network",
            Self::ServerError => "server_error",
            Self::Other => "other",
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.provider)?;
        if !self.model.is_empty() {
            write!(f, " ({})", self.model)?;
        }
        if let Some(status) = self.status {
            write!(f, ": HTTP {status}")?;
        }
        // Providers send paragraphs and HTML; the contract here is one line.
        let message: Vec<&str> = self.message.split_whitespace().collect();
        write!(f, ": {}", message.join(" "))?;
        if let Some(id) = &self.request_id {
            write!(f, " [request {id}]")?;
        }
        if let Some(remedy) = self.remedy() {
            write!(f, "; {remedy}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_with_provider_model_status_and_remedy() {
        let mut error = Error::new(
            ErrorKind::Auth,
            "anthropic",
            "claude-sonnet-4-6",
            "invalid\n x-api-key",
        )
        .with_status(401)
        .with_remedy("set `ANTHROPIC_API_KEY`");
        error.request_id = Some("req_1".into());
        assert_eq!(
            error.to_string(),
            "anthropic (claude-sonnet-4-6): HTTP 401: invalid x-api-key [request req_1]; set `ANTHROPIC_API_KEY`"
        );
    }

    #[test]
    fn the_servers_word_on_retrying_wins_except_over_cancellation() {
        let mut error = Error::new(ErrorKind::RateLimited, "p", "m", "spend limit");
        assert!(error.is_retryable());
        error.advice = RetryAdvice::GiveUp;
        assert!(!error.is_retryable());
        let mut cancelled = Error::cancelled("p", "m");
        cancelled.advice = RetryAdvice::Retry;
        assert!(!cancelled.is_retryable());
    }
}
