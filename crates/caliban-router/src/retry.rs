//! How patiently a route is tried again.

use std::time::Duration;

use caliban_model::{Error, ErrorKind};

use crate::consequence::follows;

/// How often and how patiently a call is repeated on the last route that is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    pub max_retries: u32,
    /// The first pause; each further one is twice as long, up to `longest`.
    pub base: Duration,
    pub longest: Duration,
    /// A server that asks for a longer wait than this is given up on. A call waits no longer than
    /// this in all.
    pub patience: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: 5,
            base: Duration::from_millis(500),
            longest: Duration::from_secs(16),
            patience: Duration::from_mins(10),
        }
    }
}

/// How often a route is tried again while another one is left: moving on costs a prompt cache,
/// waiting costs the person's time.
pub(crate) const RETRIES_BEFORE_ANOTHER: u32 = 1;

/// Whether a route is the last that is left for a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    Others,
    Nothing,
}

impl RetryPolicy {
    /// How often a route may be tried again.
    pub(crate) fn limit(&self, left: Left) -> u32 {
        match left {
            Left::Others => self.max_retries.min(RETRIES_BEFORE_ANOTHER),
            Left::Nothing => self.max_retries,
        }
    }

    /// Whether a failure may be got over by trying the same route again.
    pub(crate) fn may_repeat(error: &Error, left: Left) -> bool {
        let is_worth_it = match left {
            Left::Others => follows(error).again.allows(error),
            Left::Nothing => true,
        };
        is_worth_it && error.is_retryable() && error.kind != ErrorKind::Cancelled
    }

    /// Doubling pauses, shortened by up to a quarter so that clients do not march in step.
    pub(crate) fn pause(&self, attempt: u32, error: &Error, chance: f64) -> Duration {
        error.retry_after.unwrap_or_else(|| {
            let doubled = self
                .base
                .saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
            doubled.min(self.longest).mul_f64(1.0 - chance / 4.0)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest_and_never_exceed_it() {
        let policy = RetryPolicy::default();
        let error = Error::new(ErrorKind::Server, "p", "m", "no");
        let pauses: Vec<u128> = (1..=7)
            .map(|attempt| policy.pause(attempt, &error, 0.0).as_millis())
            .collect();
        assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 16_000]);
        assert_eq!(policy.pause(1, &error, 1.0).as_millis(), 375);
        let mut asked = error;
        asked.retry_after = Some(Duration::from_millis(3));
        assert_eq!(policy.pause(5, &asked, 0.5), Duration::from_millis(3));
    }

    #[test]
    fn a_timeout_is_not_waited_for_twice_while_another_route_is_left() {
        let policy = RetryPolicy::default();
        let error = Error::new(ErrorKind::Timeout, "p", "m", "no");
        assert!(!RetryPolicy::may_repeat(&error, Left::Others));
        assert!(RetryPolicy::may_repeat(&error, Left::Nothing));
        assert_eq!(policy.limit(Left::Others), 1);
        assert_eq!(policy.limit(Left::Nothing), 5);
    }
}
