//! The proxy of one command: it accepts connections until it is dropped.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::{JoinHandle, JoinSet};

use crate::audit::Audit;
use crate::connection::{self, Call};
use crate::network::{Network, System};
use crate::policy::Policy;
use crate::question::{Asker, Asking};

/// How long nothing is accepted after it failed, which it does when there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// How much one command may take, and how long things may last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time; further ones wait to be accepted.
    pub connections: usize,
    /// For the head of a request, for a hello, for finding and reaching a host: each of them.
    pub patience: Duration,
    /// How long a connection waits for an answer of the user.
    pub answer: Duration,
    /// How long a connection may be quiet.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 64,
            patience: Duration::from_secs(10),
            answer: Duration::from_secs(30),
            idle: Duration::from_mins(5),
        }
    }
}

/// Under which terms connections are served.
#[derive(Clone)]
pub struct Terms {
    pub policy: Arc<Policy>,
    pub asker: Arc<dyn Asker>,
    pub audit: Arc<dyn Audit>,
    pub network: Arc<dyn Network>,
    pub limits: Limits,
}

/// A proxy at work. Dropping it ends its connections and withdraws its questions.
#[derive(Debug)]
pub struct Proxy {
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Proxy {
    /// Serves the connections of one command, over the network of this machine.
    pub fn serve(
        listener: TcpListener,
        policy: Arc<Policy>,
        asker: Arc<dyn Asker>,
        audit: Arc<dyn Audit>,
    ) -> Self {
        Self::serve_under(
            listener,
            Terms {
                policy,
                asker,
                audit,
                network: Arc::new(System),
                limits: Limits::default(),
            },
        )
    }

    pub fn serve_under(listener: TcpListener, terms: Terms) -> Self {
        let (end, ended) = oneshot::channel();
        let task = tokio::spawn(accept(listener, terms, ended));
        Self { end, task }
    }

    /// Ends everything, and waits until every connection has been told to the audit.
    pub async fn close(self) {
        drop(self.end);
        // It fails only where the runtime ends, and then nothing is left either.
        let _ = self.task.await;
    }
}

impl std::fmt::Debug for Terms {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Terms")
            .field("policy", &self.policy)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

async fn accept(listener: TcpListener, terms: Terms, mut ended: oneshot::Receiver<()>) {
    let Terms {
        policy,
        asker,
        audit,
        network,
        limits,
    } = terms;
    let call = Arc::new(Call {
        asking: Asking::new(asker, policy.clone(), limits.answer),
        policy,
        audit,
        network,
        limits,
    });
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            _ = &mut ended => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < limits.connections => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection::serve(stream, call.clone()));
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
        }
    }
    connections.shutdown().await;
}
