//! The environment variables this program reads, and their meaning.

use std::time::Duration;

use caliban_providers::{RetryPolicy, Timeouts};

use crate::exit::Failure;

/// The environment, read through one function so that tests can pass their own.
pub(crate) struct Environment<'a> {
    read: &'a dyn Fn(&str) -> Option<String>,
}

/// The environment of this process.
pub(crate) fn process(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl<'a> Environment<'a> {
    pub(crate) fn new(read: &'a dyn Fn(&str) -> Option<String>) -> Self {
        Self { read }
    }

    pub(crate) fn reader(&self) -> &dyn Fn(&str) -> Option<String> {
        self.read
    }

    /// A variable's value; an empty one counts as unset.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        (self.read)(name).filter(|value| !value.is_empty())
    }

    /// Whether a switch is on: any non-empty value, `0` included.
    pub(crate) fn is_set(&self, name: &str) -> bool {
        self.text(name).is_some()
    }

    /// `CALIBAN_CONNECT_TIMEOUT_MS`, `CALIBAN_FIRST_BYTE_TIMEOUT_MS` and
    /// `CALIBAN_IDLE_TIMEOUT_MS`.
    pub(crate) fn timeouts(&self) -> Result<Timeouts, Failure> {
        let default = Timeouts::default();
        Ok(Timeouts {
            connect: self
                .millis("CALIBAN_CONNECT_TIMEOUT_MS")?
                .unwrap_or(default.connect),
            first_byte: self
                .millis("CALIBAN_FIRST_BYTE_TIMEOUT_MS")?
                .unwrap_or(default.first_byte),
            idle: self
                .millis("CALIBAN_IDLE_TIMEOUT_MS")?
                .unwrap_or(default.idle),
        })
    }

    /// `CALIBAN_MAX_RETRIES` and `CALIBAN_RETRY_BASE_DELAY_MS`.
    pub(crate) fn retries(&self) -> Result<RetryPolicy, Failure> {
        let default = RetryPolicy::default();
        Ok(RetryPolicy {
            max_retries: self
                .number("CALIBAN_MAX_RETRIES")?
                .unwrap_or(default.max_retries),
            base: self
                .millis("CALIBAN_RETRY_BASE_DELAY_MS")?
                .unwrap_or(default.base),
            ..default
        })
    }

    fn millis(&self, name: &str) -> Result<Option<Duration>, Failure> {
        Ok(self.number(name)?.map(Duration::from_millis))
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, Failure> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        match text.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(Failure::Config(format!(
                "`{name}` must be a whole number, not `{text}`"
            ))),
        }
    }
}
