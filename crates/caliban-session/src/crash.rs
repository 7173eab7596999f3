//! A panic in our own code is a failure like any other: it is told, and the work has an end.

use std::any::Any;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;

/// Runs something that must not take the session down with it; the error is for the user to read.
pub(crate) async fn guarded<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .map_err(|panic| format!("internal error: {}; please report it", text(&*panic)))
}

fn text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_a_value() {
        assert_eq!(guarded(async { 7 }).await, Ok(7));
        let crashed = guarded(async { panic!("as told") }).await;
        let message = crashed.map(|(): ()| ()).unwrap_err();
        assert_eq!(message, "internal error: as told; please report it");
    }
}
