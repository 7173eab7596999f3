//! Servers of sessions, as applications meet them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may panic, and says why it is skipped"
)]

#[path = "../support/mod.rs"]
mod support;

mod app;
#[cfg(unix)]
mod browser;
mod client;
#[cfg(unix)]
mod http;
mod kill;
mod many;
mod packages;
mod questions;
#[cfg(unix)]
mod sockets;
mod tabs;

use caliban_testkit::{Reply, Script};
use support::{Bench, Wire};

/// A bench whose model answers in this order.
fn bench(replies: impl IntoIterator<Item = Reply>) -> Bench {
    Bench::new(Wire::Anthropic, Script::new(replies))
}
