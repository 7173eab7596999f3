//! Faces for programs that keep sessions open and talk to them over a protocol.

pub(crate) mod acp;
pub(crate) mod app;
pub(crate) mod heddle;
mod host;
mod lines;
#[cfg(unix)]
mod peer;
mod registry;
