//! The record of connections: one for each, however it ends.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::host::Target;
use crate::relay::Meter;
use crate::stop::{Failure, Refusal, Stop};

/// Who is told of connections.
pub trait Audit: Send + Sync {
    /// Told once for each connection, when it has ended. Called from the tasks that relay; it must not
    /// wait.
    fn ended(&self, connection: Connection);
}

/// One connection out of the sandbox. It has no paths, no headers and nothing of what was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// None where nothing was said that tells.
    pub protocol: Option<Protocol>,
    /// None where no target could be read.
    pub target: Option<Target>,
    /// What was connected to: the target's checked address, or the operator's proxy.
    pub address: Option<SocketAddr>,
    pub verdict: Verdict,
    /// What allowed it, if something did.
    pub rule: Option<Rule>,
    /// Bytes from the sandbox to the target.
    pub sent: u64,
    /// Bytes from the target to the sandbox.
    pub received: u64,
    pub duration: Duration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Socks,
    Connect,
    Http,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Refused(Refusal),
    /// Allowed, but it did not come about.
    Failed(Failure),
}

/// What allowed a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    /// This entry of the allowed domains.
    Entry(String),
    /// The user, for this command.
    Command,
    /// The user, for the session.
    Session,
    /// The proxy that the operator runs decides.
    OperatorsProxy,
}

impl Connection {
    /// One line for the result of a command that was refused something, or could not reach it.
    pub fn complaint(&self) -> Option<String> {
        match &self.verdict {
            // Who goes away in the middle wanted nothing more.
            Verdict::Passed
            | Verdict::Failed(Failure::NothingAsked | Failure::Silent | Failure::Cut) => None,
            Verdict::Refused(refusal) => Some(refusal.text(self.target.as_ref())),
            Verdict::Failed(failure) => Some(failure.text(self.target.as_ref())),
        }
    }
}

impl Protocol {
    pub fn name(self) -> &'static str {
        match self {
            Self::Socks => "socks5",
            Self::Connect => "connect",
            Self::Http => "http",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Entry(entry) => entry,
            Self::Command => "allowed once",
            Self::Session => "allowed for the session",
            Self::OperatorsProxy => "http_proxy_port",
        })
    }
}

/// The record of a connection that goes on. It is told when it is dropped, so that nothing that ends a
/// connection can leave it out, or before its client hears that it was stopped: whoever waits for the
/// client knows then.
pub(crate) struct Log {
    audit: Arc<dyn Audit>,
    since: Instant,
    pub(crate) protocol: Option<Protocol>,
    pub(crate) target: Option<Target>,
    pub(crate) address: Option<SocketAddr>,
    pub(crate) rule: Option<Rule>,
    pub(crate) meter: Meter,
    verdict: Verdict,
    is_told: bool,
}

impl Log {
    pub(crate) fn begin(audit: Arc<dyn Audit>) -> Self {
        Self {
            audit,
            since: Instant::now(),
            protocol: None,
            target: None,
            address: None,
            rule: None,
            meter: Meter::default(),
            verdict: Verdict::Failed(Failure::Cut),
            is_told: false,
        }
    }

    pub(crate) fn passed(&mut self) {
        self.verdict = Verdict::Passed;
    }

    pub(crate) fn stopped(&mut self, stop: Stop) {
        self.verdict = match stop {
            Stop::Refused(refusal) => Verdict::Refused(refusal),
            Stop::Failed(failure) => Verdict::Failed(failure),
        };
        self.tell();
    }

    fn tell(&mut self) {
        if std::mem::replace(&mut self.is_told, true) {
            return;
        }
        let (sent, received) = self.meter.counts();
        self.audit.ended(Connection {
            protocol: self.protocol,
            target: self.target.take(),
            address: self.address,
            verdict: std::mem::replace(&mut self.verdict, Verdict::Passed),
            rule: self.rule.take(),
            sent,
            received,
            duration: self.since.elapsed(),
        });
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.tell();
    }
}
