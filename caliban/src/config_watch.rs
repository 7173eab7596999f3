//! Follows the settings files while a run goes on and tells the run what changed.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use caliban_agent::{Event, HookEvent, Hooks};
use caliban_harness::LiveRules;
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
}

impl ConfigWatch {
    pub(crate) fn new(
        request: LoadRequest,
        loaded: LoadedSettings,
        flags: Vec<RuleSpec>,
        rules: LiveRules,
    ) -> Self {
        Self {
            live: Arc::new(LiveSettings::new(request, loaded)),
            flags,
            rules,
        }
    }

    /// Judges calls by the rules as they are now. What a workspace would loosen is held back by
    /// the settings themselves.
    fn take_over_rules(&self) -> Result<(), RuleError> {
        let book = RuleBook::new(self.flags.iter().cloned(), &self.live.load())?;
        self.rules.replace(book);
        Ok(())
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
                if let Some(message) = self.tell(reload, hooks).await {
                    let event = Event::Notice {
                        subtype: "config_change",
                        message,
                    };
                    // The face is gone only when the run is.
                    let _ = events.send(event).await;
                }
            }
        }
        std::future::pending().await
    }

    async fn tell(&self, reload: Reload, hooks: &dyn Hooks) -> Option<String> {
        match reload {
            Reload::Unchanged => None,
            Reload::Failed(error) => Some(format!(
                "the settings changed and cannot be used; the old ones stay: {error}"
            )),
            Reload::Applied(change) => {
                let message = match self.take_over_rules() {
                    Ok(()) => describe(&change),
                    Err(error) => format!(
                        "the settings changed and their rules cannot be used; the old ones stay: {error}"
                    ),
                };
                let keys = change.keys;
                hooks.notify(&HookEvent::ConfigChange { keys }).await;
                Some(message)
            }
        }
    }
}

fn describe(change: &Change) -> String {
    let list = |keys: &[String]| {
        let names: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        names.join(", ")
    };
    let mut message = format!(
        "the settings changed ({}); permission rules count from now on, the rest from the next run on",
        list(&change.keys)
    );
    let held: Vec<String> = change.held.iter().map(|held| held.key.clone()).collect();
    if !held.is_empty() {
        message.push_str("; what the workspace would loosen waits for `caliban trust`: ");
        message.push_str(&list(&held));
    }
    message
}
