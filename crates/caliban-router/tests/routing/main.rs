//! What a router promises, on a clock that nobody waits for: who is asked in which order, what is
//! told, what it costs, and what holds whatever goes wrong.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod breaking;
mod hedging;
mod matrix;
mod rehearsing;
mod resolving;
mod staying;
mod support;
