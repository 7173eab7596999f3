//! Who serves the connections that confined programs make, and decides whom they reach.

use std::fmt::Debug;
use std::io;
use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

/// The most connections of one call at a time.
const MAX_CONNECTIONS: usize = 64;
/// How long connecting to the operator's proxy may take.
const CONNECTING: Duration = Duration::from_secs(10);

/// The most lines about connections that are added to a result.
const MAX_REFUSALS: usize = 8;

/// Serves the connections that confined programs make.
pub trait Egress: Send + Sync + Debug {
    /// Serves what arrives at a port of one call until the handle is dropped.
    fn serve(&self, listener: TcpListener, errand: Errand) -> AbortOnDropHandle<()>;
}

/// The call whose connections are served.
#[derive(Debug, Clone)]
pub struct Errand {
    /// What runs, for whoever is asked about a host.
    pub command: String,
    /// Where it is noted what the call did not get.
    pub refusals: Arc<Refusals>,
}

/// What one call was refused, each thing once. Most programs do not show what a proxy answers, so
/// it is said beside their output.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<Vec<String>>);

impl Refusals {
    /// Notes one thing that was refused. Beyond a few nothing is gained by more.
    pub fn note(&self, line: String) {
        let mut noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.len() < MAX_REFUSALS && !noted.contains(&line) {
            noted.push(line);
        }
    }

    /// What was noted so far.
    pub(crate) fn noted(&self) -> Vec<String> {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        noted.clone()
    }
}

/// Passes everything on to the operator's own proxy, which decides, and to nobody else.
#[derive(Debug, Clone, Copy)]
pub struct OperatorProxy {
    pub port: u16,
}

impl Egress for OperatorProxy {
    fn serve(&self, listener: TcpListener, _: Errand) -> AbortOnDropHandle<()> {
        let port = self.port;
        AbortOnDropHandle::new(tokio::spawn(async move {
            let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
            // Connections end with this task, which ends with the call.
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let Ok(place) = Arc::clone(&room).acquire_owned().await else {
                    return;
                };
                let Ok((stream, _)) = listener.accept().await else {
                    return;
                };
                while connections.try_join_next().is_some() {}
                connections.spawn(async move {
                    // Whoever connected sees the end of the connection.
                    let _ = relay(stream, port).await;
                    drop(place);
                });
            }
        }))
    }
}

async fn relay(mut stream: TcpStream, port: u16) -> io::Result<()> {
    let proxy = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
    let mut proxy = tokio::time::timeout(CONNECTING, proxy).await??;
    tokio::io::copy_bidirectional(&mut stream, &mut proxy).await?;
    Ok(())
}
