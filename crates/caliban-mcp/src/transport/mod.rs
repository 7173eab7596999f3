//! The ways to a server. All of them bound the size of a message and end when dropped.

mod broken;
pub(crate) mod http;
pub(crate) mod link;
pub(crate) mod sse;
pub(crate) mod stdio;
pub(crate) mod web;

/// The most one message of a server may hold, on every transport.
pub(crate) const MAX_MESSAGE: usize = caliban_http::MAX_EVENT;

/// A message grew past [`MAX_MESSAGE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server sent a message of more than {} MiB", MAX_MESSAGE / (1024 * 1024))]
pub(crate) struct TooLarge;

/// A transport failed. The text is for the operator.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{0}")]
pub(crate) struct TransportError(pub(crate) String);
