//! Follows the settings files while a run goes on and tells the run what changed.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use caliban_agent::{Advice, Adviser, Event, HookEvent, Observer, ToolCall, Workspace};
use caliban_context::Excludes;
use caliban_hooks::ExternalHooks;
use caliban_settings::{Change, Consent, LiveSettings, LoadedSettings, Reload, SettingsWatcher};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::mpsc;

use crate::additions::{configured_hooks, excludes};
use crate::choosing::further_directories;
use crate::command_environment::command_environment;
use crate::configuration::Configuration;
use crate::error::LaunchError;
use crate::notice_sink::NoticeSink;
use crate::options::RunOptions;
use crate::permissions::rule_book;
use crate::session::{LiveEnvironment, LiveRules, Session};

/// Changes that wait to be told; more than this many in a row are one too many for anybody.
const QUEUE: usize = 16;

/// How long a run lasts before its settings are watched: setting up and taking down a watcher
/// costs more than a short run does.
const SHORT_RUN: Duration = Duration::from_secs(1);

/// The settings a session began with, followed while it lives: they are looked at before every
/// prompt and before every call, so that what was tightened holds for the next one, and watched
/// in between.
#[derive(Debug)]
pub struct ConfigWatch {
    live: Arc<LiveSettings>,
    options: RunOptions,
    configuration: Configuration,
    targets: OnceLock<Targets>,
    /// One look after the other, so that nobody goes on with what another is replacing.
    looking: tokio::sync::Mutex<()>,
    /// The settings that are followed.
    taken: Mutex<Arc<LoadedSettings>>,
    /// Directories that the operator added to the session.
    added: Mutex<Vec<PathBuf>>,
    /// What was said last of files that cannot be used.
    told: Mutex<Option<String>>,
}

/// What follows the settings.
#[derive(Debug)]
struct Targets {
    rules: LiveRules,
    environment: LiveEnvironment,
    hooks: Option<Arc<ExternalHooks>>,
    workspace: Arc<Workspace>,
    excludes: Option<Excludes>,
    observers: Vec<Arc<dyn Observer>>,
    notice_sink: NoticeSink,
}

impl ConfigWatch {
    pub(crate) fn new(configuration: Configuration, options: RunOptions) -> Self {
        let (request, loaded) = (configuration.request.clone(), configuration.loaded.clone());
        let live = Arc::new(LiveSettings::new(request, loaded));
        Self {
            taken: Mutex::new(live.load()),
            looking: tokio::sync::Mutex::default(),
            live,
            options,
            configuration,
            targets: OnceLock::new(),
            added: Mutex::default(),
            told: Mutex::default(),
        }
    }

    pub(crate) fn options(&self) -> &RunOptions {
        &self.options
    }

    /// The configuration with the settings as they were read last.
    pub(crate) fn configuration(&self) -> Configuration {
        Configuration {
            loaded: LoadedSettings::clone(&self.live.load()),
            ..self.configuration.clone()
        }
    }

    /// This directory belongs to the session whatever the settings say.
    pub(crate) fn keep_directory(&self, directory: PathBuf) {
        let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        added.push(directory);
    }

    /// From here on this session follows.
    pub(crate) fn lead(&self, session: &Session) {
        // There is one session, so nothing is replaced.
        let _ = self.targets.set(Targets {
            rules: session.rules(),
            environment: session.environment(),
            hooks: session.hooks.clone(),
            workspace: Arc::clone(&session.agent.workspace),
            excludes: session.excludes.clone(),
            observers: session.agent.company.observers.clone(),
            notice_sink: session.notice_sink.clone(),
        });
    }

    /// Judges calls, runs commands and asks hooks by the settings as they are now. What a
    /// workspace would loosen is held back by the settings themselves.
    fn take_over(&self, targets: &Targets) -> Result<(), LaunchError> {
        let loaded = self.live.load();
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&taken, &loaded) {
            return Ok(());
        }
        *taken = Arc::clone(&loaded);
        let configuration = Configuration {
            loaded: LoadedSettings::clone(&loaded),
            ..self.configuration.clone()
        };
        targets
            .environment
            .replace(command_environment(&self.options, &configuration));
        let book = rule_book(&self.options.permissions, &configuration.loaded)?;
        targets.rules.replace(book);
        if let Some(hooks) = &targets.hooks {
            hooks.replace(configured_hooks(&self.options, &configuration)?);
        }
        if let Some(own) = &targets.excludes {
            own.replace(&excludes(&configuration));
        }
        let mut further = further_directories(&self.options.tools, &configuration)?;
        let added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        further.extend(added.iter().cloned());
        targets.workspace.replace_additional(&further);
        configuration.key_helpers.follow(&configuration)
    }

    /// Lets the operator write settings by this program and takes them over: nothing of it is held
    /// back, and it is told by whoever wrote it. While somebody looks, it is only written, and
    /// that look or the next one finds it.
    pub(crate) fn rewrite<T>(
        &self,
        write: impl FnOnce() -> Result<T, String>,
    ) -> Result<T, String> {
        let Ok(_looking) = self.looking.try_lock() else {
            return write();
        };
        let (written, reload) = self.live.rewrite(write)?;
        if let (Some(targets), Reload::Applied(change)) = (self.targets.get(), reload) {
            self.take_over(targets).map_err(|error| error.to_string())?;
            tell_observers(targets, change.keys);
        }
        Ok(written)
    }

    /// Takes over what has changed since the last look.
    pub(crate) async fn look(&self) {
        let _looking = self.looking.lock().await;
        if self.live.look_changed() {
            self.tell(self.live.reload(Consent::Withheld)).await;
        }
        // Who watches may have read them and not come to tell.
        if let Some(targets) = self.targets.get() {
            // What is wrong with them is told by who read them.
            let _ = self.take_over(targets);
        }
    }

    /// Tells of changes, for ever. Dropping the future ends the watching.
    pub(crate) async fn follow(&self) -> Infallible {
        tokio::time::sleep(SHORT_RUN).await;
        let (sender, mut reloads) = mpsc::channel(QUEUE);
        let missed = sender.clone();
        let watcher = SettingsWatcher::start(Arc::clone(&self.live), move |reload| {
            // A full queue holds news enough.
            let _ = sender.try_send(reload);
        });
        // A system that cannot watch files is no reason not to run.
        if watcher.is_ok() {
            // What changed before anybody watched.
            let _ = missed.try_send(self.live.reload(Consent::Withheld));
            while let Some(reload) = reloads.recv().await {
                self.tell(reload).await;
            }
        }
        std::future::pending().await
    }

    /// The change, with what only a restart brings about here.
    fn with_restarts(&self, mut change: Change) -> Change {
        let now = self.live.load().settings.api_key_helper.is_some();
        let is_changed = |key: &&String| key.split('.').next() == Some("api_key_helper");
        // A program takes the place of another, not of a key that does not come from one.
        if now == self.configuration.key_helpers.is_empty() {
            let keys = change.keys.iter().filter(is_changed).cloned();
            change.restart_required.extend(keys);
        }
        change
    }

    /// Whether this was said last: who watches and who looks before a call meet the same file.
    fn is_told_already(&self, message: Option<&str>) -> bool {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = told.as_deref() == message;
        *told = message.map(str::to_owned);
        is_same
    }

    async fn tell(&self, reload: Reload) {
        let Some(targets) = self.targets.get() else {
            return;
        };
        let message = match reload {
            Reload::Unchanged => {
                self.is_told_already(None);
                return;
            }
            Reload::Failed(error) => {
                let message =
                    format!("the settings changed and cannot be used; the old ones stay: {error}");
                if self.is_told_already(Some(&message)) {
                    return;
                }
                message
            }
            Reload::Applied(change) => {
                self.is_told_already(None);
                let message = match self.take_over(targets) {
                    Ok(()) => describe(&self.with_restarts(change.clone())),
                    Err(error) => format!(
                        "the settings changed and their rules cannot be used; the old ones stay: {error}"
                    ),
                };
                let event = HookEvent::ConfigChange { keys: change.keys };
                for observer in &targets.observers {
                    observer.notify(&event).await;
                }
                message
            }
        };
        targets.notice_sink.say(Event::Notice {
            subtype: "config_change".into(),
            message,
        });
    }
}

impl Adviser for ConfigWatch {
    /// Has no opinion, and sees to it that those asked after it have the current one.
    fn advise<'a>(&'a self, _: &'a ToolCall) -> BoxFuture<'a, Advice> {
        async {
            self.look().await;
            Advice::Allow
        }
        .boxed()
    }
}

/// Observers hear of a change while whoever made it goes on.
fn tell_observers(targets: &Targets, keys: Vec<String>) {
    let observers = targets.observers.clone();
    let event = HookEvent::ConfigChange { keys };
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        runtime.spawn(async move {
            for observer in &observers {
                observer.notify(&event).await;
            }
        });
    }
}

/// Keys that count while a session goes on; those of the screen are followed by the face.
const LIVE: [&str; 11] = [
    "permissions",
    "hooks",
    "env",
    "additional_directories",
    "api_key_helper",
    "claude_md_excludes",
    "tui",
    "editor_mode",
    "view_mode",
    "statusLine",
    "status_line",
];

fn describe(change: &Change) -> String {
    let list = |keys: &[&str]| {
        let names: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        names.join(", ")
    };
    let count = |keys: &[&str]| match keys {
        [_] => "counts",
        _ => "count",
    };
    let known = change.keys.iter().map(String::as_str);
    let soon = known.filter(|key| !change.restart_required.iter().any(|it| it == key));
    let root = |key: &str| key.split('.').next().unwrap_or_default().to_owned();
    let (now, later): (Vec<&str>, Vec<&str>) =
        soon.partition(|key| LIVE.contains(&root(key).as_str()));
    let mut parts = Vec::new();
    if !now.is_empty() {
        let files = if now.contains(&"claude_md_excludes") {
            ", for instruction files that were not read yet"
        } else {
            ""
        };
        parts.push(format!("{} {} from now on{files}", list(&now), count(&now)));
    }
    if !later.is_empty() {
        let when = "from the next run on";
        parts.push(format!("{} {} {when}", list(&later), count(&later)));
    }
    let restarts: Vec<&str> = change.restart_required.iter().map(String::as_str).collect();
    if !restarts.is_empty() {
        parts.push(format!("a restart is required for {}", list(&restarts)));
    }
    let held: Vec<&str> = change.held.iter().map(|held| held.key.as_str()).collect();
    if !held.is_empty() {
        parts.push(format!(
            "what the workspace would loosen waits for `caliban trust`: {}",
            list(&held)
        ));
    }
    format!("the settings changed: {}", parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_says_of_each_key_when_it_counts() {
        let keys = |keys: &[&str]| keys.iter().map(ToString::to_string).collect();
        let change = |all: &[&str], restarts: &[&str]| Change {
            keys: keys(all),
            restart_required: keys(restarts),
            held: Vec::new(),
        };
        assert_eq!(
            describe(&change(&["permissions.rules"], &[])),
            "the settings changed: `permissions.rules` counts from now on"
        );
        assert_eq!(
            describe(&change(
                &["env.A", "hooks", "feedback_url", "model"],
                &["model"]
            )),
            "the settings changed: `env.A`, `hooks` count from now on; `feedback_url` counts from \
             the next run on; a restart is required for `model`"
        );
    }
}
