//! What a session does and costs, told to a collector of OpenTelemetry.
//!
//! A [`hear`]er of the session's events and nothing else: it [translates](translation) them into
//! metrics, logs and spans, and sends these in the forms of the [schema]. Nothing is exported
//! unless it is [wished](Wish) for, and a collector that is gone, slow or wrong is never felt.

mod bodies;
mod config;
mod data;
mod exporter;
mod headers;
mod hearer;
mod instruments;
mod schema;
mod traces;
mod translation;
mod tree;

pub use bodies::{Bodies, Half, RawBody};
pub use config::{Ambient, Config, Wish};
pub use exporter::PATIENCE;
pub use hearer::{Means, Warn, hear};
pub use traces::Traces;
