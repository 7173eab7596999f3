//! An MCP server behind OAuth and the authorization server that guards it, on one loopback
//! address. It keeps the rules that real ones keep, consents by itself, and misbehaves on demand.

mod grants;
mod mcp;
mod routes;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::BytesMut;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use crate::http::{self, Persistence};
use grants::Grants;

/// Who the server says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Issuer {
    Honest,
    /// Its metadata names another issuer.
    OtherInMetadata,
    /// Its answer to the browser names another issuer: a mix-up.
    OtherInAnswer,
    /// It promises to name itself in its answer, and does not.
    MissingInAnswer,
}

/// What becomes of a refresh token that was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rotation {
    /// It is replaced; one that is used twice ends the whole login, as a stolen one would.
    Replace,
    Keep,
    /// There are none.
    NoRefreshTokens,
}

/// What the person says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    Given,
    Denied,
}

/// How the server behaves; can be changed while it runs.
#[derive(Debug, Clone)]
pub struct Behaviour {
    pub issuer: Issuer,
    pub rotation: Rotation,
    pub consent: Consent,
    /// What tokens are said to live for, in seconds.
    pub expires_in: Option<u64>,
    /// How long the token endpoint takes to answer.
    pub token_delay: Duration,
    /// The status that the token endpoint fails with.
    pub token_failure: Option<u16>,
    /// Scopes that the MCP server demands of calls.
    pub required_scope: Option<String>,
    /// The token endpoint that metadata names, where it is not the real one.
    pub token_endpoint: Option<String>,
}

impl Default for Behaviour {
    fn default() -> Self {
        Self {
            issuer: Issuer::Honest,
            rotation: Rotation::Replace,
            consent: Consent::Given,
            expires_in: Some(3600),
            token_delay: Duration::ZERO,
            token_failure: None,
            required_scope: None,
            token_endpoint: None,
        }
    }
}

/// A request as it arrived; a query or a form is taken apart.
#[derive(Debug, Clone)]
pub struct Hit {
    pub method: String,
    pub path: String,
    pub parameters: Vec<(String, String)>,
    pub authorization: Option<String>,
}

impl Hit {
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A running server on a thread of its own, for tests with a runtime and tests without.
#[derive(Debug)]
pub struct AuthServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    base: String,
    behaviour: Mutex<Behaviour>,
    grants: Mutex<Grants>,
    hits: Mutex<Vec<Hit>>,
}

impl AuthServer {
    /// Listens on a free loopback port.
    pub fn start() -> io::Result<Self> {
        Self::with(Behaviour::default())
    }

    pub fn with(behaviour: Behaviour) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let shared = Arc::new(Shared {
            base: format!("http://{address}"),
            behaviour: Mutex::new(behaviour),
            grants: Mutex::default(),
            hits: Mutex::default(),
        });
        let (stop, stopped) = oneshot::channel();
        let served = shared.clone();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                tokio::select! {
                    _ = stopped => {}
                    _ = accept(listener, served) => {}
                }
            });
        });
        Ok(Self {
            address,
            shared,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Without a trailing slash; also the name of the issuer.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The MCP endpoint.
    pub fn mcp_url(&self) -> String {
        format!("{}/mcp", self.url())
    }

    /// Changes how the server behaves from now on.
    pub fn change(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut lock(&self.shared.behaviour));
    }

    /// Registers a client out of band.
    pub fn add_client(&self, id: &str, secret: Option<&str>) {
        lock(&self.shared.grants).add_client(id, secret);
    }

    /// Every access token stops working.
    pub fn revoke_access_tokens(&self) {
        lock(&self.shared.grants).access.clear();
    }

    /// Every refresh token stops working.
    pub fn revoke_refresh_tokens(&self) {
        lock(&self.shared.grants).refresh.clear();
    }

    /// Everything received so far, in order.
    pub fn hits(&self) -> Vec<Hit> {
        lock(&self.shared.hits).clone()
    }

    /// What the token endpoint received with this grant type.
    pub fn token_requests(&self, grant_type: &str) -> Vec<Hit> {
        self.hits()
            .into_iter()
            .filter(|hit| hit.path == "/token" && hit.parameter("grant_type") == Some(grant_type))
            .collect()
    }

    /// How often a refresh token was used a second time.
    pub fn replays(&self) -> usize {
        lock(&self.shared.grants).replays
    }
}

impl Drop for AuthServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has said so.
            let _ = thread.join();
        }
    }
}

async fn accept(listener: std::net::TcpListener, shared: Arc<Shared>) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await?;
        let shared = shared.clone();
        connections.spawn(async move { serve(stream, &shared).await });
        while connections.try_join_next().is_some() {}
    }
}

async fn serve(mut stream: TcpStream, shared: &Shared) {
    let mut buffer = BytesMut::with_capacity(8 << 10);
    while let Ok(Some(request)) = http::read(&mut stream, &mut buffer).await {
        let reply = routes::answer(&request, shared).await;
        let length = http::Framing::Length(reply.body.len());
        let mut bytes =
            http::head(reply.status, reply.content_type, &reply.headers, length).into_bytes();
        bytes.extend_from_slice(reply.body.as_bytes());
        if stream.write_all(&bytes).await.is_err() || request.persistence == Persistence::Close {
            return;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
