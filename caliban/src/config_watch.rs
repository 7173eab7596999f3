//! Follows the settings files while a run goes on and tells the run what changed.

use std::convert::Infallible;
use std::sync::Arc;

use caliban_agent::{Event, HookEvent, Hooks};
use caliban_settings::{
    Change, LiveSettings, LoadRequest, LoadedSettings, Reload, SettingsWatcher,
};
use tokio::sync::mpsc;

/// Changes that wait to be told; more than this many in a row are one too many for anybody.
const QUEUE: usize = 16;

/// A watcher and the changes it has seen. Dropping it ends the watching.
pub(crate) struct ConfigWatch {
    _watcher: SettingsWatcher,
    reloads: mpsc::Receiver<Reload>,
}

impl ConfigWatch {
    /// Starts to watch. A system that cannot watch files is no reason not to run.
    pub(crate) fn start(request: LoadRequest, loaded: LoadedSettings) -> Option<Self> {
        let live = Arc::new(LiveSettings::new(request, loaded));
        let (sender, reloads) = mpsc::channel(QUEUE);
        let watcher = SettingsWatcher::start(live, move |reload| {
            // A full queue holds news enough.
            let _ = sender.try_send(reload);
        });
        Some(Self {
            _watcher: watcher.ok()?,
            reloads,
        })
    }

    /// Tells of changes, for ever.
    pub(crate) async fn follow(
        &mut self,
        hooks: &dyn Hooks,
        events: &mpsc::Sender<Event>,
    ) -> Infallible {
        while let Some(reload) = self.reloads.recv().await {
            let message = match reload {
                Reload::Unchanged => continue,
                Reload::Failed(error) => {
                    format!("the settings changed and cannot be used; the old ones stay: {error}")
                }
                Reload::Applied(change) => {
                    let message = describe(&change);
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
        std::future::pending().await
    }
}

fn describe(change: &Change) -> String {
    let list = |keys: &[String]| {
        let names: Vec<String> = keys.iter().map(|key| format!("`{key}`")).collect();
        names.join(", ")
    };
    let mut message = format!(
        "the settings changed ({}); this run goes on as it began",
        list(&change.keys)
    );
    let held: Vec<String> = change.held.iter().map(|held| held.key.clone()).collect();
    if !held.is_empty() {
        message.push_str("; what the workspace would loosen waits for `caliban trust`: ");
        message.push_str(&list(&held));
    }
    message
}
