//! `caliban.toml`: where it is found, what it says, and what of it needs trust.

mod discovery;
mod read;
mod types;

pub use discovery::{FoundRouterFile, RouterSource, find_router_file};
pub use read::{LoadedRouterFile, load_router_file};
pub(crate) use read::{check_router, withheld};
pub use types::{
    Breaker, FallbackOn, Hedge, ImageLimits, ProviderBlock, ProviderId, Requirements, Route,
    RouteBudget, RouteEffort, RouteOrder, RouterConfig, RouterFile, Toggle,
};
