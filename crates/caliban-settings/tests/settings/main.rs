//! Settings from files to types, through the public interface.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a helper that fails is a test that fails"
)]

mod errors;
mod files;
mod gating;
mod live;
mod precedence;
mod schema;
mod support;
mod uses;
