//! The registry of sessions over HTTP: resources, server-sent events, WebSocket. Who may come in is
//! decided once, by a layer round everything.

mod access;
mod body;
mod connection;
mod document;
mod events;
mod extract;
mod guard;
mod page;
mod paging;
mod problem;
mod routes;
mod tls;

pub use access::{Access, Scheme, Token};
pub use connection::{Connections, Place, serve, serve_after};
pub use document::openapi;
pub use page::page_paths;
pub use tls::{Encryption, Unusable};

pub use axum::Router;

use caliban_serve::Registry;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Streams of events at the same time.
const STREAMS: usize = 64;

/// Hears of every request that was answered: method, route, status.
pub type AccessLog = Arc<dyn Fn(String) + Send + Sync>;

/// What every route knows.
#[derive(Clone)]
pub(crate) struct Server {
    pub(crate) registry: Registry,
    pub(crate) access: Arc<Access>,
    pub(crate) streams: Arc<Semaphore>,
    pub(crate) log: AccessLog,
}

/// Everything that is served.
pub fn router(registry: Registry, access: Access, log: AccessLog) -> Router {
    let server = Server {
        registry,
        access: Arc::new(access),
        streams: Arc::new(Semaphore::new(STREAMS)),
        log,
    };
    routes::routes()
        .layer(axum::middleware::from_fn_with_state(
            server.clone(),
            guard::guard,
        ))
        .with_state(server)
}
