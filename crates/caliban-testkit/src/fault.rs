//! The ways an answer can fail, and the error kinds every family has words for.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A failure that takes the place of (part of) an answer. On a request that does not stream, the
/// mid-stream faults act on half of the single body.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Fault {
    Status {
        code: u16,
        /// Derived from the code when absent.
        #[serde(default)]
        kind: Option<ErrorKind>,
        #[serde(default)]
        retry_after: Option<String>,
        #[serde(default)]
        retry_after_ms: Option<u64>,
        /// Further response headers.
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// Replaces the family's own error body.
        #[serde(default)]
        body: Option<Value>,
    },
    ResetBeforeHeaders,
    ResetMidStream {
        after_events: usize,
    },
    /// The response ends properly, but its terminal marker never came.
    CloseMidStream {
        after_events: usize,
    },
    /// Nothing is sent until the client goes away.
    StallBeforeHeaders,
    StallMidStream {
        after_events: usize,
    },
    /// An event of invalid JSON; the rest of the answer follows.
    MalformedEvent {
        after_events: usize,
    },
    /// The response ends within an event.
    TruncatedEvent {
        after_events: usize,
    },
    /// An error of the family's shape inside the successful stream, which then ends.
    ErrorEvent {
        after_events: usize,
        kind: ErrorKind,
    },
    /// Bytes that are no text at all, always the same.
    Garbage,
    /// A proxy's error page.
    HtmlBody {
        status: u16,
    },
    /// A JSON error body under status 200.
    JsonErrorWith200,
}

impl Fault {
    pub fn status(code: u16) -> Self {
        Self::Status {
            code,
            kind: None,
            retry_after: None,
            retry_after_ms: None,
            headers: BTreeMap::new(),
            body: None,
        }
    }

    /// A status fault of a kind its code alone does not tell (spend limits, long prompts).
    pub fn status_of(code: u16, error: ErrorKind) -> Self {
        let mut fault = Self::status(code);
        if let Self::Status { kind, .. } = &mut fault {
            *kind = Some(error);
        }
        fault
    }

    /// Adds `retry-after`; only status faults have headers to add to.
    #[must_use]
    pub fn retry_after(mut self, value: impl Into<String>) -> Self {
        if let Self::Status { retry_after, .. } = &mut self {
            *retry_after = Some(value.into());
        }
        self
    }

    /// Adds `retry-after-ms`; only status faults have headers to add to.
    #[must_use]
    pub fn retry_after_ms(mut self, millis: u64) -> Self {
        if let Self::Status { retry_after_ms, .. } = &mut self {
            *retry_after_ms = Some(millis);
        }
        self
    }

    /// Replaces the error body of a status fault.
    #[must_use]
    pub fn body(mut self, value: Value) -> Self {
        if let Self::Status { body, .. } = &mut self {
            *body = Some(value);
        }
        self
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    InvalidRequest,
    Auth,
    Permission,
    /// Out of credit.
    Billing,
    ModelNotFound,
    /// The request body is too large for the API.
    TooLarge,
    /// The prompt does not fit the model's window.
    ContextTooLong,
    RateLimit,
    /// A rate-limit status that waiting does not cure.
    SpendLimit,
    Server,
    Overloaded,
    Timeout,
}

impl ErrorKind {
    pub(crate) fn of_status(code: u16) -> Self {
        match code {
            401 => Self::Auth,
            402 => Self::Billing,
            403 => Self::Permission,
            404 => Self::ModelNotFound,
            408 | 504 => Self::Timeout,
            413 => Self::TooLarge,
            429 => Self::RateLimit,
            503 | 529 => Self::Overloaded,
            500..=599 => Self::Server,
            _ => Self::InvalidRequest,
        }
    }
}

/// A request refused, in neutral terms; the families phrase it.
#[derive(Debug, Clone)]
pub(crate) struct Rejection {
    pub(crate) status: u16,
    pub(crate) kind: ErrorKind,
    /// OpenAI's machine-readable code, where the kind does not imply it.
    pub(crate) code: Option<&'static str>,
    pub(crate) param: Option<String>,
    pub(crate) message: String,
    pub(crate) retry_after: Option<String>,
}

impl Rejection {
    pub(crate) fn new(status: u16, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            status,
            kind,
            code: None,
            param: None,
            message: message.into(),
            retry_after: None,
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, ErrorKind::InvalidRequest, message)
    }

    pub(crate) fn code(mut self, code: &'static str) -> Self {
        self.code = Some(code);
        self
    }

    pub(crate) fn param(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }
}

/// The outcome of every check.
pub(crate) type Verdict = Result<(), Rejection>;

/// Fails with the message unless the condition holds.
pub(crate) fn ensure(holds: bool, message: impl FnOnce() -> String) -> Verdict {
    if holds {
        Ok(())
    } else {
        Err(Rejection::invalid(message()))
    }
}
