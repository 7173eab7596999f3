//! What the face looks up and writes down while a session lives.

use std::path::PathBuf;
use std::time::Duration;

use caliban_harness::{Configuration, SessionDesk};
use caliban_model::RateCard;
use caliban_permissions::Origin;
use caliban_settings::write::RuleRef;
use caliban_settings::{RuleSpec, Scope};
use caliban_tools::JobEnd;
use caliban_tui::{Desk, JobRow, JobState, Matched, RuleDraft, RuleHome, RuleRow, RuleScope};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::timeout;

use crate::consent::Consent;

use super::rule_file;

/// How long a provider may take to say which models it has.
const MODELS: Duration = Duration::from_secs(10);

/// A session and the configuration it was begun with.
#[derive(Debug)]
pub(super) struct ProgramDesk {
    pub(super) session: SessionDesk,
    pub(super) configuration: Configuration,
}

/// The scope of settings that a rule is written to; none for the session's own.
fn settings_scope(scope: RuleScope) -> Option<Scope> {
    match scope {
        RuleScope::Session => None,
        RuleScope::Project => Some(Scope::Project),
        RuleScope::Local => Some(Scope::Local),
        RuleScope::User => Some(Scope::User),
    }
}

impl Desk for ProgramDesk {
    fn jobs(&self) -> Vec<JobRow> {
        let jobs = self.session.jobs().into_iter().map(|job| JobRow {
            state: match job.end {
                None => JobState::Running { since: job.age },
                Some(JobEnd::Exited(code)) => JobState::Ended { code: Some(code) },
                Some(JobEnd::Killed) => JobState::Ended { code: None },
            },
            id: job.id,
            command: job.command,
        });
        jobs.collect()
    }

    fn job_output(&self, job: &str) -> String {
        self.session.job_output(job)
    }

    fn rule_file(&self, scope: RuleScope) -> Option<PathBuf> {
        rule_file(&self.configuration, settings_scope(scope)?)
    }

    fn save_rule(&self, rule: &RuleDraft) -> Result<PathBuf, String> {
        let scope = settings_scope(rule.scope).ok_or("the session's rules have no file")?;
        let path = rule_file(&self.configuration, scope)
            .ok_or_else(|| format!("the {scope} scope has no file for rules"))?;
        let spec = RuleSpec {
            comment: rule.comment.clone(),
            ..RuleSpec::new(rule.pattern.clone(), rule.action)
        };
        let consent = Consent::of(&self.configuration);
        self.configuration
            .writer()
            .append_rule(&path, &spec)
            .map_err(|error| error.to_string())?;
        consent.keep(scope, &self.configuration);
        Ok(path)
    }

    fn matches(&self, patterns: &[String], calls: &[(String, Value)]) -> Vec<Matched> {
        let permitted = self.session.permits(patterns, calls).into_iter();
        permitted
            .map(|is_permitted| {
                if is_permitted {
                    Matched::Yes
                } else {
                    Matched::No
                }
            })
            .collect()
    }

    fn rules(&self) -> Vec<RuleRow> {
        let rules = self.session.rules().into_iter().map(|rule| RuleRow {
            action: rule.action,
            pattern: rule.pattern.text().to_owned(),
            origin: rule.origin.described(),
            comment: rule.spec().comment,
            home: match rule.origin {
                Origin::Runtime => RuleHome::Session,
                Origin::Local => RuleHome::File(RuleScope::Local),
                Origin::Project => RuleHome::File(RuleScope::Project),
                Origin::User => RuleHome::File(RuleScope::User),
                Origin::Server
                | Origin::Flag
                | Origin::Overlay
                | Origin::Managed
                | Origin::Client
                | Origin::BuiltIn => RuleHome::Fixed,
            },
        });
        rules.collect()
    }

    fn remove_rule(&self, scope: RuleScope, pattern: &str) -> Result<PathBuf, String> {
        let scope = settings_scope(scope).ok_or("the session's rules have no file")?;
        let path = rule_file(&self.configuration, scope)
            .ok_or_else(|| format!("the {scope} scope has no file for rules"))?;
        let consent = Consent::of(&self.configuration);
        let which = RuleRef::Pattern(pattern.to_owned());
        let removed = self.configuration.writer().remove_rule(&path, &which);
        let removed = removed.map_err(|error| error.to_string())?;
        consent.keep(scope, &self.configuration);
        match removed {
            0 => Err(format!("`{pattern}` is not in `{}`", path.display())),
            _ => Ok(path),
        }
    }

    fn judged(&self, call: &str) -> String {
        self.session.judged(call)
    }

    fn models(&self) -> BoxFuture<'static, Result<Vec<(String, String)>, String>> {
        let provider = self.session.provider();
        async move {
            let models = timeout(MODELS, provider.models()).await;
            let models = models.map_err(|_| "The provider does not say which models it has.")?;
            let models = models.map_err(|error| error.to_string())?;
            let known = models.into_iter().map(|model| {
                let window = model
                    .context_window
                    .map_or_else(String::new, |tokens| format!("{tokens} tokens"));
                let rate = RateCard::builtin().lookup(provider.id(), &model.id);
                let price = rate.map_or_else(String::new, |rate| {
                    format!("  ${}/${} per million", rate.input, rate.output)
                });
                (model.id, format!("{window}{price}"))
            });
            Ok(known.collect())
        }
        .boxed()
    }

    fn system_prompt(&self) -> String {
        self.session.system.clone()
    }
}
