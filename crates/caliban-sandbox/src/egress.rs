//! Who serves the connections that confined programs make, and decides whom they reach.

use std::fmt::Debug;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::task::AbortOnDropHandle;

/// The most connections of one call at a time.
const MAX_CONNECTIONS: usize = 64;
/// How long connecting to the operator's proxy may take.
const CONNECTING: Duration = Duration::from_secs(10);

/// Serves the connections that confined programs make.
pub trait Egress: Send + Sync + Debug {
    /// Serves what arrives at a port of one call until the handle is dropped.
    fn serve(&self, listener: TcpListener) -> AbortOnDropHandle<()>;
}

/// Passes everything on to the operator's own proxy, which decides, and to nobody else.
#[derive(Debug, Clone, Copy)]
pub struct OperatorProxy {
    pub port: u16,
}

impl Egress for OperatorProxy {
    fn serve(&self, listener: TcpListener) -> AbortOnDropHandle<()> {
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
