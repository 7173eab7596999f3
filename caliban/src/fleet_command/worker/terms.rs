//! On what terms a job runs: those of the worker's operator, tightened by the job. A job can ask
//! for less and never for more.

use std::num::NonZeroU32;
use std::time::Duration;

use caliban_fleet_nats::{JobSpec, OnQuestion};
use caliban_harness::RunOptions;
use caliban_permissions::{AutoAllow, Gating};
use caliban_settings::{PermissionMode, RuleAction, RuleSpec};
use rust_decimal::Decimal;

/// What holds for one job.
#[derive(Debug)]
pub(super) struct Terms {
    pub(super) options: RunOptions,
    pub(super) on_question: OnQuestion,
    pub(super) wall: Duration,
    /// What the job asked for and does not get.
    pub(super) notes: Vec<String>,
}

/// What the operator decided.
#[derive(Debug, Clone, Copy)]
pub(super) struct Operator<'a> {
    pub(super) options: &'a RunOptions,
    /// The mode that runs are in where nobody says.
    pub(super) mode: PermissionMode,
    pub(super) on_question: OnQuestion,
    pub(super) max_time: Duration,
}

/// How much a mode lets pass, where nobody is there to be asked.
fn laxity(mode: PermissionMode) -> u8 {
    match mode {
        PermissionMode::Plan => 0,
        PermissionMode::DontAsk => 1,
        PermissionMode::Default => 2,
        PermissionMode::AcceptEdits => 3,
        PermissionMode::Auto => 4,
        PermissionMode::BypassPermissions => 5,
    }
}

/// The terms, or why the job cannot be run on any.
pub(super) fn terms(operator: Operator<'_>, spec: &JobSpec) -> Result<Terms, String> {
    let mut options = operator.options.clone();
    let mut notes = Vec::new();
    if let Some(text) = &spec.mode {
        let wanted: PermissionMode = text.parse()?;
        let own = options.permissions.mode.unwrap_or(operator.mode);
        if laxity(wanted) <= laxity(own) {
            options.permissions.mode = Some(wanted);
            judge(&mut options);
        } else {
            notes.push(format!(
                "the job asked for the mode {text}, and this worker grants {}",
                own.as_str()
            ));
        }
    }
    if !spec.deny.is_empty() {
        let rules = spec.deny.iter().map(|pattern| RuleSpec {
            pattern: pattern.clone(),
            action: RuleAction::Deny,
            comment: None,
            reason: Some("the job says so".to_owned()),
            expires_at: None,
        });
        // Before all others: the first that matches counts.
        options.permissions.rules.splice(0..0, rules);
        judge(&mut options);
    }
    if let Some(model) = &spec.model {
        options.model.model = Some(model.clone());
    }
    if let Some(turns) = spec.budget.turns {
        let turns = NonZeroU32::new(turns).ok_or("the job may take no turns")?;
        let most = options.limits.max_turns.map_or(turns, |own| own.min(turns));
        options.limits.max_turns = Some(most);
    }
    if let Some(usd) = &spec.budget.usd {
        let usd: Decimal = usd
            .parse()
            .map_err(|_| format!("`{usd}` is not an amount of dollars"))?;
        let most = options.limits.budget.map_or(usd, |own| own.min(usd));
        options.limits.budget = Some(most);
    }
    let on_question = match (operator.on_question, spec.on_question) {
        (OnQuestion::Park, wanted) | (_, wanted @ (OnQuestion::Deny | OnQuestion::Fail)) => wanted,
        (own @ (OnQuestion::Deny | OnQuestion::Fail), OnQuestion::Park) => {
            notes.push("the job wanted questions to wait, and this worker does not".to_owned());
            own
        }
    };
    let wall = spec.budget.wall.map(Duration::from_secs);
    let wall = wall.map_or(operator.max_time, |wall| wall.min(operator.max_time));
    Ok(Terms {
        options,
        on_question,
        wall,
        notes,
    })
}

/// A job that wants its calls judged has them judged, whatever the operator would let pass.
fn judge(options: &mut RunOptions) {
    options.permissions.gating = Gating::On;
    options.permissions.auto_allow = AutoAllow::Off;
}

/// Whether a worker reaches for this repository.
pub(super) fn allows(allowed: &[String], remote: &str) -> bool {
    if allowed.is_empty() {
        return is_far(remote);
    }
    allowed.iter().any(|prefix| {
        let rest = remote.strip_prefix(prefix.as_str());
        // `https://host/team` is not `https://host/team-of-others`, and nothing leads back up.
        rest.is_some_and(|rest| {
            let is_whole = rest.is_empty() || prefix.ends_with(['/', ':']) || rest.starts_with('/');
            is_whole && !rest.split('/').any(|part| part == "..")
        })
    })
}

/// Whether it is on another machine: by https, ssh, or the short form of ssh.
pub(super) fn is_far(remote: &str) -> bool {
    if let Some((scheme, _)) = remote.split_once("://") {
        return scheme == "https" || scheme == "ssh" || scheme == "http";
    }
    // `host:path`, before any slash; and nothing that git would take for a flag or a helper.
    let host = remote.split(':').next().unwrap_or_default();
    remote.contains(':')
        && !remote.contains("::")
        && !host.is_empty()
        && !host.contains('/')
        && !host.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::super::attempt::tests::spec;
    use super::*;

    fn operator(options: &RunOptions, mode: PermissionMode) -> Operator<'_> {
        Operator {
            options,
            mode,
            on_question: OnQuestion::Deny,
            max_time: Duration::from_secs(100),
        }
    }

    #[test]
    fn a_job_tightens_and_never_loosens() {
        let mut own = RunOptions::default();
        own.permissions.gating = Gating::Off;
        own.limits.max_turns = NonZeroU32::new(5);
        let mut spec = spec();
        spec.mode = Some("bypassPermissions".to_owned());
        spec.on_question = OnQuestion::Park;
        spec.budget.turns = Some(50);
        spec.budget.wall = Some(1_000);
        let terms = super::terms(operator(&own, PermissionMode::AcceptEdits), &spec).unwrap();
        assert_eq!(terms.options.permissions, own.permissions);
        assert_eq!(terms.options.limits.max_turns, own.limits.max_turns);
        assert_eq!(terms.on_question, OnQuestion::Deny);
        assert_eq!(terms.wall, Duration::from_secs(100));
        assert_eq!(terms.notes.len(), 2);
        spec.mode = Some("plan".to_owned());
        spec.deny = vec!["Bash".to_owned()];
        spec.budget.turns = Some(2);
        spec.budget.usd = Some("0.5".to_owned());
        spec.on_question = OnQuestion::Fail;
        let terms = super::terms(operator(&own, PermissionMode::AcceptEdits), &spec).unwrap();
        let permissions = &terms.options.permissions;
        assert_eq!(permissions.mode, Some(PermissionMode::Plan));
        assert_eq!(permissions.gating, Gating::On);
        assert_eq!(permissions.rules[0].action, RuleAction::Deny);
        assert_eq!(terms.options.limits.max_turns, NonZeroU32::new(2));
        assert_eq!(terms.options.limits.budget, Some("0.5".parse().unwrap()));
        assert_eq!(terms.on_question, OnQuestion::Fail);
        spec.mode = Some("whatever".to_owned());
        assert!(super::terms(operator(&own, PermissionMode::Default), &spec).is_err());
    }

    #[test]
    fn repositories_are_far_away_or_allowed() {
        for remote in ["https://host/x", "ssh://git@host/x", "git@host:me/x.git"] {
            assert!(allows(&[], remote), "{remote}");
        }
        for remote in [
            "/etc",
            "../x",
            "file:///etc",
            "ext::sh -c id",
            "-oProxyCommand=id:x",
            "./a:b",
        ] {
            assert!(!allows(&[], remote), "{remote}");
        }
        let allowed = ["https://host/team".to_owned(), "/srv/git/".to_owned()];
        assert!(allows(&allowed, "https://host/team/x") && allows(&allowed, "/srv/git/x"));
        for remote in [
            "https://host/team-of-others/x",
            "/srv/git/../../etc",
            "https://other/x",
        ] {
            assert!(!allows(&allowed, remote), "{remote}");
        }
    }
}
