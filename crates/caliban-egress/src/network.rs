//! The network outside the sandbox: names become addresses that were checked, and those alone are
//! connected to.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use caliban_http::special_use;
use futures::future::BoxFuture;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::host::{Host, Name, Target};
use crate::policy::{Judgement, Policy};
use crate::stop::{Failure, Refusal, Stop};

/// How many addresses of a name are looked at.
const ADDRESSES: usize = 16;
/// How long one address of several may take, so that one that swallows packets leaves time for others.
const ATTEMPT: Duration = Duration::from_secs(4);

/// Looks names up and connects to addresses.
pub trait Network: Send + Sync {
    fn resolve<'a>(&'a self, name: &'a Name) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>>;
}

/// The network of this machine, with its own resolver.
#[derive(Debug, Clone, Copy, Default)]
pub struct System;

impl Network for System {
    fn resolve<'a>(&'a self, name: &'a Name) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).take(ADDRESSES).collect())
        })
    }

    fn connect(&self, address: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        Box::pin(TcpStream::connect(address))
    }
}

/// The addresses of a target that was allowed: all of them may be connected to. A name is looked up
/// once, here, so that a name server cannot answer differently after the check.
pub(crate) async fn addresses(
    network: &dyn Network,
    policy: &Policy,
    target: &Target,
    patience: Duration,
) -> Result<Vec<SocketAddr>, Stop> {
    let name = match &target.host {
        // An address is allowed only as itself.
        Host::Address(address) => return Ok(vec![SocketAddr::new(*address, target.port)]),
        Host::Name(_) if target.host.is_localhost() => {
            let both = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
            return Ok(both
                .map(|address: IpAddr| SocketAddr::new(address, target.port))
                .to_vec());
        }
        Host::Name(name) => name,
    };
    let found = match timeout(patience, network.resolve(name)).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => return Err(Failure::Unresolved(error.to_string()).into()),
        Err(_) => return Err(Failure::Unresolved("no name server answered in time".into()).into()),
    };
    let mut refusal = None;
    let mut kept = Vec::new();
    for address in found.into_iter().take(ADDRESSES) {
        match admit(policy, address, target.port) {
            Ok(()) => kept.push(SocketAddr::new(address, target.port)),
            Err(reason) => refusal = refusal.or(Some(reason)),
        }
    }
    match (kept.is_empty(), refusal) {
        (false, _) => Ok(kept),
        (true, Some(refusal)) => Err(refusal.into()),
        (true, None) => Err(Failure::Unresolved("it has no address".into()).into()),
    }
}

/// Whether a name may have this address.
fn admit(policy: &Policy, address: IpAddr, port: u16) -> Result<(), Refusal> {
    if let Some(kind) = special_use(address) {
        return Err(Refusal::Private { address, kind });
    }
    let host = Host::from(address);
    match policy.judge(&Target { host, port }) {
        Judgement::Denied { entry } => Err(Refusal::Denied { entry }),
        Judgement::Allowed(_) | Judgement::Unlisted => Ok(()),
    }
}

/// Connects to the first address that answers.
pub(crate) async fn connect(
    network: &dyn Network,
    addresses: &[SocketAddr],
    patience: Duration,
) -> Result<(TcpStream, SocketAddr), Failure> {
    let attempts = async {
        let mut last = Failure::TimedOut;
        for &address in addresses {
            let attempt = ATTEMPT.min(patience);
            match timeout(attempt, network.connect(address)).await {
                Ok(Ok(stream)) => return Ok((stream, address)),
                Ok(Err(error)) => last = Failure::Unreachable(error.to_string()),
                Err(_) => last = Failure::TimedOut,
            }
        }
        Err(last)
    };
    let (stream, address) = timeout(patience, attempts)
        .await
        .unwrap_or(Err(Failure::TimedOut))?;
    // Small messages of protocols that talk back and forth must not wait for each other. Where it
    // cannot be set they are merely slower.
    let _ = stream.set_nodelay(true);
    Ok((stream, address))
}
