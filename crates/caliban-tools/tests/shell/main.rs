//! Behaviour of the shell tools under a real guardian.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

mod guard;
mod support;
mod tools;
