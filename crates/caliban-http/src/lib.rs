//! What everything here that speaks HTTP shares: how clients are built, which addresses are this
//! machine or public, and how server-sent events are read.

mod address;
mod client;
mod events;

pub use address::special_use;
pub use client::{Proxies, builder, causes, install_crypto, is_loopback};
pub use events::{Event, EventTooLarge, Events, MAX_EVENT};
