//! The way out of the sandbox: a proxy that passes on what may reach the hosts that were allowed.
//!
//! One port speaks three protocols: SOCKS5, HTTP `CONNECT` and plain HTTP requests. Every connection
//! goes the same way: its target is read into a [`Host`] that cannot be misread, judged by the
//! [`Policy`], asked about where nobody listed it, and only then looked up; it is connected to an
//! address that was checked, and what it says there is compared with what it asked for.

mod audit;
mod body;
mod connection;
mod entry;
mod environment;
#[cfg(any(test, feature = "fuzzed"))]
pub mod fuzzed;
mod hello;
mod host;
mod http;
mod inbound;
mod network;
mod outward;
mod policy;
mod proxy;
mod question;
mod relay;
mod socks;
mod stop;

pub use audit::{Audit, Connection, Protocol, Rule, Verdict};
pub use entry::EntryError;
pub use environment::environment;
pub use hello::HelloFault;
pub use host::{Host, HostError, Name, Target, TargetError};
pub use network::{Network, System};
pub use policy::{Explained, Policy, PolicyError};
pub use proxy::{Limits, Proxy, Terms};
pub use question::{Answer, Asker, Question};
pub use stop::{Failure, Refusal};
