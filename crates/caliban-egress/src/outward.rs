//! The way to a target that was allowed: straight to a checked address, or through the operator's
//! proxy.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::host::Target;
use crate::http::Form;
use crate::inbound::HEAD;
use crate::network::{self, Network};
use crate::policy::Policy;
use crate::relay::End;
use crate::stop::{Failure, Stop};

/// What is to be carried there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Carriage {
    /// One plain request.
    Request,
    /// Whatever is said.
    Tunnel,
}

/// A connection to the outside.
#[derive(Debug)]
pub(crate) struct Outward {
    pub(crate) end: End,
    pub(crate) address: SocketAddr,
    /// How requests are written for whoever is there.
    pub(crate) form: Form,
}

/// Connects, within `patience` for each thing that has to be waited for.
pub(crate) async fn reach(
    network: &dyn Network,
    policy: &Policy,
    target: &Target,
    carriage: Carriage,
    patience: Duration,
) -> Result<Outward, Stop> {
    let Some(proxy) = policy.upstream() else {
        let addresses = network::addresses(network, policy, target, patience).await?;
        let (stream, address) = network::connect(network, &addresses, patience).await?;
        let ahead = Vec::new();
        return Ok(Outward {
            end: End { stream, ahead },
            address,
            form: Form::Origin,
        });
    };
    let (mut stream, address) = network::connect(network, &[proxy], patience)
        .await
        .map_err(|failure| Failure::UpstreamBroken(failure.text(None)))?;
    let ahead = match carriage {
        Carriage::Request => Vec::new(),
        Carriage::Tunnel => timeout(patience, open(&mut stream, target))
            .await
            .unwrap_or(Err(Failure::TimedOut))?,
    };
    Ok(Outward {
        end: End { stream, ahead },
        address,
        form: Form::Absolute,
    })
}

/// Asks the operator's proxy for a tunnel; what came behind its answer belongs to the client.
async fn open(stream: &mut TcpStream, target: &Target) -> Result<Vec<u8>, Failure> {
    let broken = |reason: &str| Failure::UpstreamBroken(reason.to_owned());
    let request = format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n");
    stream
        .write_all(request.as_bytes())
        .await
        .map_err(|error| broken(&error.to_string()))?;
    let mut answer = Vec::new();
    loop {
        if let Some((status, length)) =
            status(&answer).ok_or_else(|| broken("its answer is not HTTP/1"))?
        {
            return match status {
                200..=299 => Ok(answer.split_off(length)),
                status => Err(Failure::Upstream(status)),
            };
        }
        let room = HEAD.saturating_sub(answer.len());
        if room == 0 {
            return Err(broken("its answer is too long"));
        }
        match (&mut *stream).take(room as u64).read_buf(&mut answer).await {
            Ok(0) => return Err(broken("it closed the connection")),
            Ok(_) => {}
            Err(error) => return Err(broken(&error.to_string())),
        }
    }
}

/// The status and length of the head of an answer, if it is complete; nothing where it is none.
#[expect(clippy::option_option, reason = "incomplete and wrong are different")]
fn status(answer: &[u8]) -> Option<Option<(u16, usize)>> {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut parsed = httparse::Response::new(&mut fields);
    match parsed.parse(answer) {
        Ok(httparse::Status::Partial) => Some(None),
        Ok(httparse::Status::Complete(length)) if length <= answer.len() => {
            Some(Some((parsed.code?, length)))
        }
        Ok(httparse::Status::Complete(_)) | Err(_) => None,
    }
}
