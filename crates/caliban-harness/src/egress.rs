//! The way out of the sandbox: the hosts that the settings name, and those that somebody consents
//! to.

use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use caliban_egress::{
    Answer, Asker, Audit, Connection, Explained, Policy, Protocol, Proxy, Question, Refusal, Rule,
    Target, Verdict,
};
use caliban_permissions::{AuditLog, DecidedBy, Entry, MatchedRule};
use caliban_sandbox::{Egress, Errand, Refusals};
use caliban_settings::{RuleAction, SandboxNetwork};
use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::error::{LaunchError, Problem};
use crate::hosts::HostQuestions;
use crate::surroundings::Diagnostics;

/// Where the web is encrypted, which is what a host without a port means.
const WEB: u16 = 443;
/// What connections are called in the log of decisions.
const NETWORK: &str = "Network";

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
    log: Option<AuditLog>,
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
        log: Option<AuditLog>,
        hosts: &Arc<HostQuestions>,
    ) -> Result<Option<Arc<dyn Egress>>, LaunchError> {
        let allowed = network.allowed_domains.as_deref().unwrap_or_default();
        if allowed.is_empty() {
            return Ok(None);
        }
        Ok(Some(Arc::new(Self {
            policy: Arc::new(policy(network)?),
            diagnostics: Arc::clone(diagnostics),
            log,
            hosts: Arc::clone(hosts),
        })))
    }
}

impl Egress for Domains {
    fn serve(&self, listener: TcpListener, errand: Errand) -> AbortOnDropHandle<()> {
        let audit = Arc::new(Told {
            diagnostics: Arc::clone(&self.diagnostics),
            log: self.log.clone(),
            command: errand.command.clone(),
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

/// Notes what was refused, and writes every connection to the log of decisions.
struct Told {
    diagnostics: Arc<dyn Diagnostics>,
    log: Option<AuditLog>,
    command: String,
    refusals: Arc<Refusals>,
}

impl Audit for Told {
    fn ended(&self, connection: Connection) {
        let now = Timestamp::now();
        if let Some(log) = &self.log
            && let Err(error) = log.append(&entry(&connection, &self.command, now), now)
        {
            let text =
                format!("a connection could not be written to the log of decisions: {error}");
            self.diagnostics.warning(&text);
        }
        // The result of the command says it.
        if let Some(complaint) = connection.complaint() {
            self.refusals.note(complaint);
        }
    }
}

/// A connection as a line of the log of decisions.
fn entry(connection: &Connection, command: &str, now: Timestamp) -> Entry {
    let target = connection.target.as_ref();
    let by = match (&connection.rule, &connection.verdict) {
        (Some(Rule::Command | Rule::Session), _) | (None, Verdict::Refused(Refusal::Declined)) => {
            DecidedBy::Operator
        }
        (None, Verdict::Refused(Refusal::Unanswered | Refusal::Unlisted)) => DecidedBy::Unattended,
        (Some(Rule::Entry(_) | Rule::OperatorsProxy) | None, _) => DecidedBy::Rule,
    };
    let (action, verdict) = match &connection.verdict {
        Verdict::Passed => (RuleAction::Allow, "passed"),
        Verdict::Refused(_) => (RuleAction::Deny, "refused"),
        Verdict::Failed(_) => (RuleAction::Allow, "failed"),
    };
    let rule = connection.rule.as_ref().map(ToString::to_string);
    let about = json!({
        "host": target.map(|it| it.host.to_string()),
        "port": target.map(|it| it.port),
        "address": connection.address.map(|it| it.ip().to_string()),
        "protocol": connection.protocol.map(|protocol| match protocol {
            Protocol::Socks => "socks",
            Protocol::Connect => "connect",
            Protocol::Http => "http",
        }),
        "sent": connection.sent,
        "received": connection.received,
        "duration_ms": u64::try_from(connection.duration.as_millis()).unwrap_or(u64::MAX),
        "verdict": verdict,
        "command": command,
    });
    Entry {
        ts: Entry::stamp(now),
        // A sandbox serves whoever runs commands in it.
        session_id: String::new(),
        turn_index: 0,
        tool_use_id: String::new(),
        tool_name: NETWORK.to_owned(),
        input_excerpt: Entry::excerpt(&about.to_string()),
        action,
        matched_rule: MatchedRule {
            pattern: rule.unwrap_or_default(),
            action,
            scope: None,
        },
        decided_by: by,
        permission_mode: String::new(),
    }
}
