//! Tools that reach the network, to read only.

mod backend;
mod body;
mod client;
mod fetch;
mod html;
mod policy;
mod search;

pub use backend::{SearchBackend, SearchConfig, UnknownSearchBackend};
pub use fetch::WebFetch;
pub use policy::{OpenedHosts, PrivateAddresses, WebPolicy};
pub use search::WebSearch;

/// The start of a text, at most `max` characters, with `…` where something was left out.
fn beginning(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
