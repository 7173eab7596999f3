//! What the face looks up and writes down while a session lives.

use std::path::PathBuf;
use std::time::Duration;

use caliban_checkpoints::Manifest;
use caliban_harness::{
    Configuration, Rewinder, RunOptions, ServerView, SessionDesk, rewind_report,
};
use caliban_model::{Provider, ProviderKind, RateCard, Reasoning};
use caliban_permissions::{Latch, Origin};
use caliban_session::Rewind;
use caliban_settings::write::RuleRef;
use caliban_settings::{RuleSpec, Scope};
use caliban_tools::JobEnd;
use caliban_tui::{
    BypassLatch, Desk, FileChanged, JobRow, JobState, ListRow, Matched, PointRow, RewindPreview,
    RuleDraft, RuleHome, RuleRow, RuleScope, ServerRow, ServersDesk, Standing,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::timeout;

use crate::consent::Consent;
use crate::mcp_command::log_in;

/// How long a provider may take to say which models it has.
const MODELS: Duration = Duration::from_secs(10);

/// A session and the configuration it was begun with.
#[derive(Debug)]
pub(super) struct ProgramDesk {
    pub(super) session: SessionDesk,
    pub(super) configuration: Configuration,
    /// What the session was begun with.
    pub(super) options: RunOptions,
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
        self.configuration.rule_file(settings_scope(scope)?)
    }

    fn save_rule(&self, rule: &RuleDraft) -> Result<FileChanged, String> {
        let scope = settings_scope(rule.scope).ok_or("the session's rules have no file")?;
        let path = self
            .configuration
            .rule_file(scope)
            .ok_or_else(|| format!("the {scope} scope has no file for rules"))?;
        let spec = RuleSpec {
            comment: rule.comment.clone(),
            ..RuleSpec::new(rule.pattern.clone(), rule.action)
        };
        let consent = Consent::of(&self.configuration);
        self.session.write_settings(|| {
            self.configuration
                .writer()
                .append_rule(&path, &spec)
                .map_err(|error| error.to_string())?;
            let remark = consent.kept(scope, &self.configuration);
            Ok(FileChanged { path, remark })
        })
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

    fn remove_rule(&self, scope: RuleScope, pattern: &str) -> Result<FileChanged, String> {
        let scope = settings_scope(scope).ok_or("the session's rules have no file")?;
        let path = self
            .configuration
            .rule_file(scope)
            .ok_or_else(|| format!("the {scope} scope has no file for rules"))?;
        let consent = Consent::of(&self.configuration);
        let which = RuleRef::Pattern(pattern.to_owned());
        self.session.write_settings(|| {
            let removed = self.configuration.writer().remove_rule(&path, &which);
            let removed = removed.map_err(|error| error.to_string())?;
            let remark = consent.kept(scope, &self.configuration);
            match removed {
                0 => Err(format!("`{pattern}` is not in `{}`", path.display())),
                _ => Ok(FileChanged { path, remark }),
            }
        })
    }

    fn bypass_latch(&self) -> BypassLatch {
        match self.options.permissions.latch {
            Latch::Given => BypassLatch::On,
            Latch::Absent => BypassLatch::Off,
        }
    }

    fn judged(&self, call: &str) -> String {
        self.session.judged(call)
    }

    fn models(&self) -> BoxFuture<'static, Result<Vec<ListRow>, String>> {
        let provider = self.session.provider();
        let listed = self.session.models.clone();
        async move {
            let own: Vec<ListRow> = match timeout(MODELS, provider.models()).await {
                Ok(Ok(models)) if !models.is_empty() => models
                    .into_iter()
                    .map(|model| model_row(&*provider, &model.id, model.context_window))
                    .collect(),
                // Whoever does not say what it offers is asked for what is known to have a price.
                Ok(_) | Err(_) => RateCard::builtin()
                    .models(provider.id())
                    .map(|model| model_row(&*provider, model, None))
                    .collect(),
            };
            let others = ProviderKind::ALL
                .into_iter()
                .filter(|kind| kind.as_str() != provider.id() && !kind.is_cloud())
                .flat_map(other_models);
            let mut rows: Vec<ListRow> = own.into_iter().chain(others).collect();
            listed.keep(&mut rows, |row| &row.value);
            Ok(rows)
        }
        .boxed()
    }

    fn reasoning(&self) -> Reasoning {
        self.session.reasoning()
    }

    fn has_prompt_hooks(&self) -> bool {
        self.session.has_prompt_hooks()
    }

    fn vet(&self, line: String) -> BoxFuture<'static, Result<String, String>> {
        let session = self.session.clone();
        async move { session.vet(line).await }.boxed()
    }

    fn system_prompt(&self) -> String {
        self.session.system.clone()
    }

    fn points(&self) -> Result<Vec<PointRow>, String> {
        let history = self.rewinder()?.history();
        let history = history.map_err(|error| error.to_string())?;
        let standing = history.standing();
        let row = |(index, manifest): (&u32, &Manifest)| PointRow {
            to: *index,
            title: manifest.title.clone(),
            at: Some(manifest.created_at),
            changes: rewind_report::changes(manifest),
            standing: match manifest.rewound_to {
                Some(_) => Standing::Rewind,
                None if standing.contains(index) => Standing::Counts,
                None => Standing::TakenBack,
            },
            next: self.session.prompt_after(&history, *index),
        };
        let mut rows: Vec<PointRow> = history.checkpoints.iter().rev().map(row).collect();
        rows.push(PointRow {
            to: 0,
            title: "before the first prompt".to_owned(),
            at: None,
            changes: String::new(),
            standing: Standing::Counts,
            next: self.session.prompt_after(&history, 0),
        });
        Ok(rows)
    }

    fn preview(&self, rewind: Rewind) -> Result<RewindPreview, String> {
        let rewinder = self.rewinder()?;
        let plan = rewinder.plan(rewind).map_err(|error| error.to_string())?;
        let mut text = rewind_report::remainder(&plan);
        text.push_str(&rewind_report::differences(rewinder, &plan));
        Ok(RewindPreview {
            changes: plan.actions.len(),
            conflicts: plan.conflicts.len(),
            text,
        })
    }

    fn session_name(&self) -> Option<String> {
        self.session.current_name()
    }
}

impl ProgramDesk {
    fn rewinder(&self) -> Result<&Rewinder, String> {
        let rewinder = self.session.rewinder();
        rewinder.ok_or_else(|| "This session keeps no checkpoints".to_owned())
    }
}

/// A model of the provider that answers.
fn model_row(provider: &dyn Provider, model: &str, window: Option<u64>) -> ListRow {
    let known = provider.capabilities(model);
    let mut about = Vec::new();
    if let Some(tokens) = window.or(known.context_window) {
        about.push(format!("{tokens} tokens"));
    }
    about.extend(price(provider.id(), model));
    let abilities = [(known.vision, "images"), (known.thinking, "thinking")];
    about.extend(
        abilities
            .into_iter()
            .filter(|(is_able, _)| *is_able)
            .map(|(_, ability)| ability.to_owned()),
    );
    ListRow {
        group: provider.id().to_owned(),
        name: model.to_owned(),
        about: about.join("  "),
        value: model.to_owned(),
    }
}

fn price(provider: &str, model: &str) -> Option<String> {
    let rate = RateCard::builtin().lookup(provider, model)?;
    Some(format!("${}/${} per million", rate.input, rate.output))
}

/// Models of another provider, which another start brings.
fn other_models(kind: ProviderKind) -> Vec<ListRow> {
    let card = RateCard::builtin();
    let row = |model: &str| {
        let price = price(kind.as_str(), model).unwrap_or_default();
        ListRow {
            group: kind.as_str().to_owned(),
            name: model.to_owned(),
            about: format!("{price}  start with `--provider {kind} --model {model}`"),
            value: String::new(),
        }
    };
    card.models(kind.as_str()).map(row).collect()
}

impl ServersDesk for ProgramDesk {
    fn servers(&self) -> Vec<ServerRow> {
        let servers = self.session.servers().into_iter();
        let row = |server: ServerView| ServerRow {
            name: server.name,
            status: server.status,
            about: server.about,
            tools: server.tools,
            withheld: server.withheld,
            instructions: server.instructions,
        };
        servers.map(row).collect()
    }

    fn server_log(&self, server: &str) -> Vec<String> {
        self.session.server_log(server)
    }

    fn log_in(
        &self,
        server: &str,
        told: Box<dyn FnOnce(String) + Send>,
    ) -> BoxFuture<'static, Result<(), String>> {
        let (configuration, server) = (self.configuration.clone(), server.to_owned());
        async move { log_in(&configuration, &server, |url| told(url.to_string())).await }.boxed()
    }
}
