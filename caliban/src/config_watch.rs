//! Follows the settings files while a run goes on and tells the run what changed.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use caliban_agent::{Event, HookEvent, Hooks};
use caliban_harness::{LiveEnvironment, LiveRules, Session, child_environment};
use caliban_permissions::{RuleBook, RuleError};
use caliban_settings::{
    Change, Consent, LiveSettings, LoadRequest, LoadedSettings, Reload, RuleSpec, SettingsWatcher,
};
use tokio::sync::mpsc;

/// Changes that wait to be told; more than this many in a row are one too many for anybody.
const QUEUE: usize = 16;

/// How long a run lasts before its settings are watched: setting up and taking down a watcher
/// costs more than a short run does.
const SHORT_RUN: Duration = Duration::from_secs(1);

/// The settings a run began with, ready to be followed.
pub(crate) struct ConfigWatch {
    live: Arc<LiveSettings>,
    /// The rules of the command line, which stay above all others.
    flags: Vec<RuleSpec>,
    rules: LiveRules,
    environment: LiveEnvironment,
    /// The variables that hold keys, which no command sees.
    key_variables: Vec<String>,
}

/// Whether the settings files may differ from what was read of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Files {
    JustRead,
    Older,
}

impl ConfigWatch {
    pub(crate) fn new(
        request: LoadRequest,
        loaded: LoadedSettings,
        flags: Vec<RuleSpec>,
        key_variables: Vec<String>,
        session: &Session,
    ) -> Self {
        Self {
            live: Arc::new(LiveSettings::new(request, loaded)),
            flags,
            rules: session.rules(),
            environment: session.environment(),
            key_variables,
        }
    }

    /// Judges calls and runs commands by the settings as they are now. What a workspace would
    /// loosen is held back by the settings themselves.
    fn take_over(&self) -> Result<(), RuleError> {
        let loaded = self.live.load();
        let hidden: Vec<&str> = self.key_variables.iter().map(String::as_str).collect();
        let environment = child_environment(std::env::vars_os(), &hidden, &loaded.settings.env);
        self.environment.replace(environment);
        let book = RuleBook::new(self.flags.iter().cloned(), &loaded)?;
        self.rules.replace(book);
        Ok(())
    }

    /// Takes over, before a further prompt, what changed while nobody watched.
    pub(crate) async fn catch_up(
        &self,
        files: Files,
        hooks: &dyn Hooks,
        events: &mpsc::Sender<Event>,
    ) {
        match files {
            Files::JustRead => {}
            Files::Older => {
                let reload = self.live.reload(Consent::Withheld);
                self.tell(reload, hooks, events).await;
            }
        }
    }

    /// Tells of changes, for ever. Dropping the future ends the watching.
    pub(crate) async fn follow(
        &self,
        hooks: &dyn Hooks,
        events: &mpsc::Sender<Event>,
    ) -> Infallible {
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
                self.tell(reload, hooks, events).await;
            }
        }
        std::future::pending().await
    }

    async fn tell(&self, reload: Reload, hooks: &dyn Hooks, events: &mpsc::Sender<Event>) {
        let message = match reload {
            Reload::Unchanged => return,
            Reload::Failed(error) => {
                format!("the settings changed and cannot be used; the old ones stay: {error}")
            }
            Reload::Applied(change) => {
                let message = match self.take_over() {
                    Ok(()) => describe(&change),
                    Err(error) => format!(
                        "the settings changed and their rules cannot be used; the old ones stay: {error}"
                    ),
                };
                let keys = change.keys;
                hooks.notify(&HookEvent::ConfigChange { keys }).await;
                message
            }
        };
        let event = Event::Notice {
            subtype: "config_change",
            message,
        };
        // The face is gone only when the run is.
        let _ = events.send(event).await;
    }
}

fn describe(change: &Change) -> String {
    let list = |keys: &[String]| {
        let names: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        names.join(", ")
    };
    let mut message = format!(
        "the settings changed ({}); permission rules and `env` count from now on, the rest from the next run on",
        list(&change.keys)
    );
    if !change.restart_required.is_empty() {
        message.push_str("; a restart is required for ");
        message.push_str(&list(&change.restart_required));
    }
    let held: Vec<String> = change.held.iter().map(|held| held.key.clone()).collect();
    if !held.is_empty() {
        message.push_str("; what the workspace would loosen waits for `caliban trust`: ");
        message.push_str(&list(&held));
    }
    message
}
