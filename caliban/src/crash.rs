//! A panic in our own code is a failure like any other: it is told, and the run has an end.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;

/// Our own code broke.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Crash(String);

impl std::fmt::Display for Crash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "internal error: {}; please report it", self.0)
    }
}

/// Runs something that must not take the program down with it.
pub(crate) async fn guarded<T>(work: impl Future<Output = T>) -> Result<T, Crash> {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .map_err(|panic| Crash(text(&*panic)))
}

fn text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no reason given".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_a_value() {
        assert_eq!(guarded(async { 7 }).await, Ok(7));
        let crashed = guarded(async { panic!("as told") }).await;
        let message = crashed.map(|(): ()| ()).unwrap_err().to_string();
        assert_eq!(message, "internal error: as told; please report it");
    }
}
