//! The same server for synchronous tests, with a runtime of its own.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};

use crate::record::Recorded;
use crate::script::{Reply, Script};
use crate::server::ModelServer;

/// A server usable from a plain `#[test]`. Not to be used from within a tokio runtime.
#[derive(Debug)]
pub struct BlockingServer {
    // Dropped before the runtime its tasks run on.
    server: ModelServer,
    runtime: Runtime,
}

impl BlockingServer {
    pub fn start(script: Script) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()?;
        let server = runtime.block_on(ModelServer::start(script))?;
        Ok(Self { server, runtime })
    }

    /// See [`ModelServer::url`].
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// See [`ModelServer::requests`].
    pub fn requests(&self) -> Vec<Recorded> {
        self.server.requests()
    }

    /// See [`ModelServer::model_requests`].
    pub fn model_requests(&self) -> Vec<Recorded> {
        self.server.model_requests()
    }

    /// See [`ModelServer::wait_for_requests`].
    pub fn wait_for_requests(&self, n: usize) -> Vec<Recorded> {
        self.runtime.block_on(self.server.wait_for_requests(n))
    }

    /// See [`ModelServer::wait_for_requests`]; nothing if they did not arrive in time.
    pub fn wait_for_requests_within(&self, n: usize, limit: Duration) -> Option<Vec<Recorded>> {
        let arrived = async {
            let requests = self.server.wait_for_requests(n);
            tokio::time::timeout(limit, requests).await.ok()
        };
        self.runtime.block_on(arrived)
    }

    /// See [`ModelServer::release`].
    pub fn release(&self) {
        self.server.release();
    }

    /// See [`ModelServer::disconnects`].
    pub fn disconnects(&self) -> usize {
        self.server.disconnects()
    }

    /// See [`ModelServer::wait_for_disconnect`].
    pub fn wait_for_disconnect(&self) {
        self.runtime.block_on(self.server.wait_for_disconnect());
    }

    /// See [`ModelServer::push`].
    pub fn push(&self, reply: Reply) {
        self.server.push(reply);
    }
}
