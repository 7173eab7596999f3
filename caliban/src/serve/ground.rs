//! What every session of a server has in common, wherever it lives: what the operator said, where it
//! may work, and what is kept.

use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use caliban_harness::options::{Continuation, EarlierSystem, SessionChoice};
use caliban_harness::{
    LaunchError, Process, RunOptions, SystemPrompt, configure, forget_checkpoints, locations,
    provider,
};
use caliban_model::{Message, Reasoning};
use caliban_permissions::{ModeError, Precedence};
use caliban_serve::{Open, Saved, SessionWanted, Unopened, Wanted};
use caliban_sessions::{Store, Summary};
use caliban_settings::{PermissionMode, RuleAction, RuleSpec, claims};
use futures::FutureExt;
use futures::future::BoxFuture;
use rust_decimal::Decimal;
use rust_decimal::prelude::FromPrimitive;
use serde_json::{Map, Value};
use tokio::time::timeout;

/// How long a provider may take to tell which models it has.
const OFFERS: Duration = Duration::from_secs(10);

/// What a server was started with.
#[derive(Debug)]
pub(super) struct Ground {
    /// What the operator said.
    pub(super) options: RunOptions,
    pub(super) process: Process,
    pub(super) roots: Roots,
}

/// Where sessions may work.
#[derive(Debug, Clone)]
pub(super) enum Roots {
    /// Wherever the application says, which has the same rights.
    Anywhere,
    /// In these directories and below.
    #[cfg_attr(not(unix), expect(dead_code, reason = "for servers that others reach"))]
    Only(Vec<PathBuf>),
}

impl Ground {
    pub(super) fn history(
        &self,
        session: &str,
    ) -> BoxFuture<'_, Result<Vec<Arc<Message>>, String>> {
        let (store, session) = (self.store(), session.to_owned());
        blocking(move || {
            let name = store.find(&session).map_err(|error| error.to_string())?;
            let loaded = store.load(&name).map_err(|error| error.to_string())?;
            Ok(loaded.0.messages)
        })
    }

    pub(super) fn saved(&self) -> BoxFuture<'_, Result<Vec<Saved>, String>> {
        let (store, roots) = (self.store(), self.roots.clone());
        blocking(move || {
            let listing = store.list().map_err(|error| error.to_string())?;
            let found = listing.summaries.into_iter();
            // What lies elsewhere is not for this server.
            let found = found.filter(|it| it.has_prompt() && roots.check(&it.cwd).is_ok());
            Ok(found.map(saved).collect())
        })
    }

    pub(super) fn models(&self) -> BoxFuture<'_, Result<Vec<String>, String>> {
        async move {
            let told = |error: LaunchError| error.to_string();
            let configuration = configure(&self.options, self.process.clone()).map_err(told)?;
            let wanted = &self.options.model;
            let kind = provider::kind(wanted.provider, wanted.model.as_deref(), &configuration);
            let provider = provider::connect(kind.map_err(told)?, &[], &configuration);
            let models = timeout(OFFERS, provider.map_err(told)?.models()).await;
            let models = models
                .map_err(|_| "the provider does not say which models it has".to_owned())?
                .map_err(|error| error.to_string())?;
            Ok(models.into_iter().map(|model| model.id).collect())
        }
        .boxed()
    }

    pub(super) fn remove(&self, session: &str) -> BoxFuture<'_, Result<(), String>> {
        let (store, session) = (self.store(), session.to_owned());
        let (options, process) = (self.options.clone(), self.process.clone());
        blocking(move || {
            let name = store.find(&session).map_err(|error| error.to_string())?;
            store.remove(&name).map_err(|error| error.to_string())?;
            let configuration = configure(&options, process).map_err(|error| error.to_string())?;
            // What is left of checkpoints goes with the next that are removed.
            let _ = forget_checkpoints(&configuration, &[name]);
            Ok(())
        })
    }
}

fn saved(summary: Summary) -> Saved {
    Saved {
        session: summary.session_id.to_string(),
        name: summary.name.to_string(),
        title: summary.title,
        model: summary.model,
        cwd: summary.cwd.display().to_string(),
        updated: summary.updated_at,
    }
}

/// Reading and removing sessions takes time that others shall not wait for.
pub(super) fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> BoxFuture<'static, Result<T, String>> {
    async move {
        let done = tokio::task::spawn_blocking(work).await;
        done.unwrap_or_else(|error| Err(error.to_string()))
    }
    .boxed()
}

impl Ground {
    pub(super) fn store(&self) -> Store {
        let directory = self.options.session.directory.clone();
        Store::new(directory.unwrap_or_else(|| locations(&self.process).sessions()))
    }

    /// The operator's options with what an application asks for.
    pub(super) fn options(&self, wanted: &Wanted) -> Result<RunOptions, Unopened> {
        let Wanted { open, session, .. } = wanted;
        let mut options = self.options.clone();
        if let Some(cwd) = &open.cwd {
            let place = self.process.current_directory.join(cwd);
            if !place.is_dir() {
                let wrong = format!("`cwd` is no directory: `{}`", place.display());
                return Err(Unopened::Misused(wrong));
            }
            options.workspace = Some(place);
        }
        let cwd = options.workspace.clone();
        let cwd = cwd.as_ref().unwrap_or(&self.process.current_directory);
        self.roots.check(cwd)?;
        if let Some(settings) = &open.settings {
            if options.settings.overlay.is_some() {
                return Err(Unopened::Misused(
                    "the server was started with `--settings`; a session cannot have its own"
                        .to_owned(),
                ));
            }
            self.roots.admit(settings, cwd)?;
            options.settings.overlay = Some(Value::from(settings.clone()).to_string());
        }
        options.model.model = open.model.clone().or(options.model.model);
        if let Some(effort) = open.effort {
            options.model.reasoning = Some(Reasoning::Effort(effort.into()));
        }
        options.permissions.mode = open.mode.or(options.permissions.mode);
        if let Some(tools) = &open.tools {
            // What the operator offers is the most.
            let offered = options.tools.selection.only.take();
            let is_offered =
                |name: &&String| offered.as_ref().is_none_or(|known| known.contains(name));
            options.tools.selection.only = Some(tools.iter().filter(is_offered).cloned().collect());
        }
        if let Some(turns) = open.max_turns.and_then(NonZeroU32::new) {
            let allowed = options.limits.max_turns;
            options.limits.max_turns = Some(allowed.map_or(turns, |most| most.min(turns)));
        }
        if let Some(budget) = open.max_budget_usd {
            let wanted = Decimal::from_f64(budget).filter(|budget| *budget > Decimal::ZERO);
            let Some(wanted) = wanted else {
                let wrong = format!("`max_budget_usd` must be more than 0, not {budget}");
                return Err(Unopened::Misused(wrong));
            };
            // What the operator allows is the most.
            let allowed = options.limits.budget;
            options.limits.budget = Some(allowed.map_or(wanted, |most| most.min(wanted)));
        }
        add_rules(&mut options, open);
        match (&open.system, &open.append_system) {
            (Some(text), _) => options.system = SystemPrompt::Text(text.clone()),
            (None, Some(more)) => options.system = SystemPrompt::Extended(more.clone()),
            (None, None) => {}
        }
        options.session.earlier_system = EarlierSystem::Replaceable;
        choose_session(&mut options, session, open.name.as_deref());
        Ok(options)
    }
}

/// Rules of the application: it cannot undo what the user or the operator forbade.
fn add_rules(options: &mut RunOptions, open: &Open) {
    let allowed = open
        .allow
        .iter()
        .map(|pattern| (pattern, RuleAction::Allow));
    let denied = open.deny.iter().map(|pattern| (pattern, RuleAction::Deny));
    let rules = denied
        .chain(allowed)
        .map(|(pattern, action)| RuleSpec::new(pattern, action));
    options.permissions.rules.extend(rules);
    options.permissions.precedence = Precedence::StrictestFirst;
}

fn choose_session(options: &mut RunOptions, session: &SessionWanted, name: Option<&str>) {
    let chosen = &mut options.session;
    match session {
        SessionWanted::New(id) => {
            chosen.id = Some(*id);
            chosen.choice = match name {
                Some(name) => SessionChoice::Named(name.to_owned()),
                None => SessionChoice::New,
            };
        }
        SessionWanted::Earlier { session, copy } => {
            chosen.choice = SessionChoice::Resume(session.clone());
            chosen.id = *copy;
            if copy.is_some() {
                chosen.continuation = Continuation::Fork;
            }
        }
    }
}

impl Roots {
    /// Settings of somebody who reaches the server must run nothing on this machine and loosen
    /// nothing; an application that started it could do all of that itself.
    fn admit(&self, settings: &Map<String, Value>, cwd: &Path) -> Result<(), Unopened> {
        match self {
            Self::Anywhere => return Ok(()),
            Self::Only(_) => {}
        }
        // What the field `mode` may say, they may say.
        let claimed = claims(settings, PermissionMode::DontAsk)
            .map_err(|error| Unopened::Misused(error.to_string()))?;
        let refused = |key: &str, remedy: &str| {
            Err(Unopened::Refused(format!(
                "`{key}` runs or loosens something on this machine; {remedy}"
            )))
        };
        if let Some(key) = claimed.keys.first() {
            return match key.as_str() {
                key if key == "permissions.allow" || key.starts_with("permissions.rules") => {
                    refused(key, "say what runs unasked in `allow`")
                }
                key => refused(key, "it belongs into the server's own settings"),
            };
        }
        for directory in &claimed.directories {
            if self.check(&cwd.join(directory)).is_err() {
                let outside = format!("additional_directories: {directory}");
                return refused(&outside, "start the server with `--root` for it");
            }
        }
        Ok(())
    }

    pub(super) fn check(&self, cwd: &Path) -> Result<(), Unopened> {
        let roots = match self {
            Self::Anywhere => return Ok(()),
            Self::Only(roots) => roots,
        };
        // A link that leads out of a root is outside.
        let place = cwd.canonicalize().map_err(|error| {
            Unopened::Misused(format!("`{}` cannot be used: {error}", cwd.display()))
        })?;
        let is_inside = |root: &PathBuf| {
            root.canonicalize()
                .is_ok_and(|root| place.starts_with(root))
        };
        if roots.iter().any(is_inside) {
            return Ok(());
        }
        Err(Unopened::Misused(format!(
            "`{}` is outside the directories that this server may work in; start it with `--root`",
            cwd.display()
        )))
    }
}

pub(super) fn unopened(error: &LaunchError) -> Unopened {
    let reason = error.to_string();
    let is_of_mode = std::error::Error::source(error)
        .and_then(|cause| cause.downcast_ref::<ModeError>())
        .is_some();
    match error {
        LaunchError::Configuration(_) if is_of_mode => Unopened::Refused(reason),
        LaunchError::Usage(_) | LaunchError::NoInput(_) => Unopened::Misused(reason),
        LaunchError::Busy(_) => busy(&reason),
        LaunchError::Configuration(_) | LaunchError::Runtime(_) => Unopened::Failed(reason),
    }
}

/// Another process works in it. Whoever asks has a request, and no command line.
pub(super) fn busy(reason: &str) -> Unopened {
    Unopened::Busy(reason.replace("`--fork-session`", "`\"fork\": true`"))
}
