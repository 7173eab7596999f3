//! The client against servers: scripted and hostile ones, and those that people run.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod offer;
mod real;
mod scripted;
mod support;
mod web;
