//! The ways to a server. All of them bound the size of a message and end when dropped.

pub(crate) mod http;
pub(crate) mod link;
pub(crate) mod sse;
pub(crate) mod stdio;
pub(crate) mod web;

/// A transport failed. The text is for the operator.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct TransportError(pub(crate) String);
