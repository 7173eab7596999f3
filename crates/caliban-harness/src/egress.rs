//! The way out of the sandbox: the hosts that the settings name, and no others.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use caliban_egress::{Answer, Asker, Audit, Connection, Policy, Proxy, Question};
use caliban_sandbox::Egress;
use caliban_settings::SandboxNetwork;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::error::{LaunchError, Problem};
use crate::surroundings::Diagnostics;

/// Serves the commands of a session with the hosts of one list.
pub(crate) struct Domains {
    policy: Arc<Policy>,
    diagnostics: Arc<dyn Diagnostics>,
}

impl Debug for Domains {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("Domains")
    }
}

impl Domains {
    /// The list of the settings; none where it names nobody.
    pub(crate) fn listed(
        network: &SandboxNetwork,
        diagnostics: &Arc<dyn Diagnostics>,
    ) -> Result<Option<Arc<dyn Egress>>, LaunchError> {
        let allowed = network.allowed_domains.as_deref().unwrap_or_default();
        if allowed.is_empty() {
            return Ok(None);
        }
        // A port that is none was refused before.
        let upstream = network
            .http_proxy_port
            .and_then(|port| u16::try_from(port).ok());
        let policy = Policy::parse(allowed, &[], upstream)
            .map_err(|error| LaunchError::Configuration(Problem::from_error(error)))?;
        Ok(Some(Arc::new(Self {
            policy: Arc::new(policy),
            diagnostics: Arc::clone(diagnostics),
        })))
    }
}

impl Egress for Domains {
    fn serve(&self, listener: TcpListener) -> AbortOnDropHandle<()> {
        let audit = Arc::new(Told(Arc::clone(&self.diagnostics)));
        let proxy = Proxy::serve(listener, Arc::clone(&self.policy), Arc::new(Nobody), audit);
        AbortOnDropHandle::new(tokio::spawn(async move {
            // It ends with the handle.
            let _proxy = proxy;
            std::future::pending::<()>().await;
        }))
    }
}

/// Hosts beyond the list are refused.
struct Nobody;

impl Asker for Nobody {
    fn ask(&self, _: Question) -> BoxFuture<'_, Answer> {
        ready(Answer::NobodyAttends).boxed()
    }
}

/// Says what was refused, and writes every connection to the debug log.
struct Told(Arc<dyn Diagnostics>);

impl Audit for Told {
    fn ended(&self, connection: Connection) {
        self.0.debug(&format!("egress {connection:?}"));
        if let Some(complaint) = connection.complaint() {
            self.0.warning(&complaint);
        }
    }
}
