//! The terminal interface as a person meets it: the built binary in a real terminal, a scripted
//! model behind it, and what is on the screen.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod agents;
mod beginning;
mod conversation;
mod counted;
mod draft;
mod ending;
mod finding;
mod fuzz;
mod hostile;
mod lines;
mod looks;
#[path = "../support/malformed.rs"]
mod malformed;
mod overlays;
mod panels;
mod person;
mod pictures;
mod questions;
mod rewind;
mod sessions;
mod settings;
mod soak;
mod web;
