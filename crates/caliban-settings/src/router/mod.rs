//! `caliban.toml`: where it is found, what it says, and what of it needs trust.

mod discovery;
mod read;
mod types;

pub use discovery::{FoundRouterFile, RouterSource, find_router_file};
pub use read::{LoadedRouterFile, load_router_file};
pub use types::{
    Breaker, Hedge, ImageLimits, ProviderBlock, ProviderId, Requirements, Route, RouteEffort,
    RouterConfig, RouterFile, Toggle,
};
