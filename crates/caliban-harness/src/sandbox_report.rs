//! What `/sandbox` tells: what confines commands here, what they may do, and what was refused.

use std::fmt::Write as _;
use std::path::PathBuf;

use caliban_sandbox::{Consent, Network, Policy, Reading, Requirement, UnixSockets};
use caliban_session::Engine;
use serde::Serialize;

use crate::reports::columns;
use crate::session::Session;

const OFF: &str = "Commands are not confined. `enabled = true` in `[sandbox]` of the settings confines them from the next session on; `caliban sandbox exec -- COMMAND` tries it out.";
const MORE: &str = "`caliban sandbox explain PATH|HOST` says what commands may do with it; the settings are in `[sandbox]`.";

/// The sandbox of a session, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct SandboxReport {
    backend: String,
    enabled: bool,
    /// What a full sandbox has and this one has not.
    reduced: Vec<String>,
    egress: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", flatten)]
    terms: Option<Terms>,
}

/// What the settings say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Terms {
    /// Where commands may write.
    writable: Vec<PathBuf>,
    /// What alone they may read; everything where nothing is said.
    readable: Option<Vec<PathBuf>>,
    hidden: Vec<PathBuf>,
    read_only: Vec<PathBuf>,
    hosts: Vec<String>,
    http_proxy_port: Option<u16>,
    unix_sockets: bool,
    auto_allow_bash: bool,
    unsandboxed_commands: Vec<String>,
    fail_if_unavailable: bool,
    /// Lines that failed in it, with what it had to say, the latest last.
    failed: Vec<FailedLine>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct FailedLine {
    command: String,
    remarks: Vec<String>,
}

pub(crate) fn report(session: &Session) -> SandboxReport {
    let facts = Engine::facts(session).sandbox;
    let terms = session.sandbox.as_ref().map(|sandbox| {
        let failed = sandbox.failures().into_iter();
        let failed = failed.map(|(command, remarks)| FailedLine { command, remarks });
        terms(sandbox.policy(), failed.collect())
    });
    SandboxReport {
        backend: facts.backend,
        enabled: facts.enabled,
        reduced: facts.reduced,
        egress: facts.egress,
        reason: facts.reason,
        terms,
    }
}

fn terms(policy: &Policy, failed: Vec<FailedLine>) -> Terms {
    let (hosts, http_proxy_port) = match &policy.network {
        Network::Closed => (Vec::new(), None),
        Network::Operator { port } => (Vec::new(), Some(*port)),
        Network::Domains { allowed, upstream } => (allowed.clone(), *upstream),
    };
    Terms {
        writable: policy.roots.clone(),
        readable: match &policy.reading {
            Reading::Everything => None,
            Reading::Only(list) => Some(list.clone()),
        },
        hidden: policy.hidden.clone(),
        read_only: policy.fixed.clone(),
        hosts,
        http_proxy_port,
        unix_sockets: policy.sockets == UnixSockets::Visible,
        auto_allow_bash: policy.consent == Consent::Given,
        unsandboxed_commands: policy.outside.patterns(),
        fail_if_unavailable: policy.requirement == Requirement::Required,
        failed,
    }
}

pub(crate) fn told(report: &SandboxReport) -> String {
    let Some(terms) = report.terms.as_ref().filter(|_| report.enabled) else {
        return OFF.to_owned();
    };
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut row = |name: &str, value: String| rows.push((name.to_owned(), value));
    row("backend", report.backend.clone());
    if let Some(reason) = &report.reason {
        row("why none", reason.clone());
    }
    if !report.reduced.is_empty() {
        row("lacks", report.reduced.join(", "));
    }
    row("writable", paths(&terms.writable, "nothing but /tmp"));
    row(
        "readable",
        match &terms.readable {
            None => "everything but credentials".to_owned(),
            Some(list) => paths(list, "what programs need to start"),
        },
    );
    if !terms.hidden.is_empty() {
        row("hidden", paths(&terms.hidden, ""));
    }
    if !terms.read_only.is_empty() {
        row("read-only", paths(&terms.read_only, ""));
    }
    let egress = match (terms.hosts.as_slice(), terms.http_proxy_port) {
        ([], None) => report.egress.clone(),
        ([], Some(port)) => format!("{}: 127.0.0.1:{port} decides", report.egress),
        (hosts, None) => format!("{}: {}", report.egress, hosts.join(", ")),
        (hosts, Some(port)) => format!(
            "{}: {} by way of 127.0.0.1:{port}",
            report.egress,
            hosts.join(", ")
        ),
    };
    row("egress", egress);
    if !terms.unsandboxed_commands.is_empty() {
        row("run outside", terms.unsandboxed_commands.join(", "));
    }
    if terms.auto_allow_bash {
        row("consent", "confined commands need none".to_owned());
    }
    if !terms.fail_if_unavailable {
        row(
            "without one",
            "commands run unconfined (`fail_if_unavailable` is not set)".to_owned(),
        );
    }
    let mut text = columns(rows);
    for line in &terms.failed {
        // Writing to a text cannot fail.
        let _ = write!(text, "\n\nfailed: {}", line.command);
        for remark in &line.remarks {
            let _ = write!(text, "\n  {remark}");
        }
    }
    format!("{text}\n\n{MORE}")
}

fn paths(paths: &[PathBuf], none: &str) -> String {
    if paths.is_empty() {
        return none.to_owned();
    }
    let shown: Vec<String> = paths.iter().map(|it| it.display().to_string()).collect();
    shown.join(", ")
}
