//! Logins and tokens against a server that keeps the rules, and against ones that do not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod login;
mod renewal;
mod support;
