//! The way out of the sandbox: the hosts that the settings name, and those that somebody consents
//! to.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use caliban_egress::{
    Answer, Asker, Audit, Connection, Explained, Policy, Proxy, Question, Target,
};
use caliban_sandbox::{Egress, Errand, Refusals};
use caliban_settings::SandboxNetwork;
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::error::{LaunchError, Problem};
use crate::hosts::HostQuestions;
use crate::surroundings::Diagnostics;

/// Where the web is encrypted, which is what a host without a port means.
const WEB: u16 = 443;

/// What the list of the settings makes of a host, or of a host and a port.
pub fn explain_host(network: &SandboxNetwork, host: &str) -> Result<Explained, LaunchError> {
    let target = Target::parse_or(host.as_bytes(), WEB);
    let target = target.map_err(|error| LaunchError::Configuration(Problem::from_error(error)))?;
    Ok(policy(network)?.explain(&target))
}

fn policy(network: &SandboxNetwork) -> Result<Policy, LaunchError> {
    let allowed = network.allowed_domains.as_deref().unwrap_or_default();
    // A port that is none was refused before.
    let upstream = network
        .http_proxy_port
        .and_then(|port| u16::try_from(port).ok());
    Policy::parse(allowed, &[], upstream)
        .map_err(|error| LaunchError::Configuration(Problem::from_error(error)))
}

/// Serves the commands of a session with the hosts of one list.
pub(crate) struct Domains {
    policy: Arc<Policy>,
    diagnostics: Arc<dyn Diagnostics>,
    hosts: Arc<HostQuestions>,
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
        hosts: &Arc<HostQuestions>,
    ) -> Result<Option<Arc<dyn Egress>>, LaunchError> {
        let allowed = network.allowed_domains.as_deref().unwrap_or_default();
        if allowed.is_empty() {
            return Ok(None);
        }
        Ok(Some(Arc::new(Self {
            policy: Arc::new(policy(network)?),
            diagnostics: Arc::clone(diagnostics),
            hosts: Arc::clone(hosts),
        })))
    }
}

impl Egress for Domains {
    fn serve(&self, listener: TcpListener, errand: Errand) -> AbortOnDropHandle<()> {
        let audit = Arc::new(Told {
            diagnostics: Arc::clone(&self.diagnostics),
            refusals: errand.refusals,
        });
        let asker = Arc::new(Asking {
            hosts: Arc::clone(&self.hosts),
            command: errand.command,
        });
        let proxy = Proxy::serve(listener, Arc::clone(&self.policy), asker, audit);
        AbortOnDropHandle::new(tokio::spawn(async move {
            // It ends with the handle.
            let _proxy = proxy;
            std::future::pending::<()>().await;
        }))
    }
}

/// Asks about hosts beyond the list, for one command.
struct Asking {
    hosts: Arc<HostQuestions>,
    command: String,
}

impl Asker for Asking {
    fn ask(&self, question: Question) -> BoxFuture<'_, Answer> {
        async move { self.hosts.ask(&question, &self.command).await }.boxed()
    }
}

/// Says what was refused, and writes every connection to the debug log.
struct Told {
    diagnostics: Arc<dyn Diagnostics>,
    refusals: Arc<Refusals>,
}

impl Audit for Told {
    fn ended(&self, connection: Connection) {
        self.diagnostics.debug(&format!("egress {connection:?}"));
        if let Some(complaint) = connection.complaint() {
            self.diagnostics.warning(&complaint);
            self.refusals.note(complaint);
        }
    }
}
