//! How long to wait, and how to give up.

use std::env;
use std::time::Duration;

/// The variable with other seconds than these, for slow machines and for impatient people.
const VARIABLE: &str = "CALIBAN_TEST_PATIENCE";
const SECONDS: f64 = 20.0;

/// A synchronised frame that stays open longer than this is shown as it is, as terminals do; longer than a
/// busy machine needs to draw it.
pub(super) const FRAME: Duration = Duration::from_secs(1);

/// Output is over when there was none for so long.
pub(super) const QUIET: Duration = Duration::from_millis(150);

/// How long a condition may take to come true.
pub(super) fn patience() -> Duration {
    env::var(VARIABLE)
        .ok()
        .and_then(|text| text.parse().ok())
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .unwrap_or(Duration::from_secs_f64(SECONDS))
}

/// Fails the test.
#[expect(clippy::panic, reason = "what drives a test ends it by a panic")]
#[track_caller]
pub(super) fn fail(message: &str) -> ! {
    panic!("{message}")
}

/// The value, or a failed test that says what could not be done.
#[track_caller]
pub(super) fn sure<T, E: std::fmt::Display>(result: Result<T, E>, what: &str) -> T {
    match result {
        Ok(value) => value,
        Err(error) => fail(&format!("{what}: {error}")),
    }
}
