//! The configured hooks where no session runs: commands tell them of what they do to the worktrees
//! of agents that are no more.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use caliban_agent::{HookEvent, Observer as _};
use caliban_hooks::{
    EventName, ExternalHooks, Firing, FiringSink, HookParts, Runners, SessionFacts,
};
use caliban_settings::PermissionMode;

use crate::additions::configured_hooks;
use crate::configuration::Configuration;
use crate::options::RunOptions;

/// How long handlers that nobody waits for may take before the command ends.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tells the hooks of the settings and plugins; returns what went wrong. There is no model here and
/// no server, so that only programs and addresses are told, and none that is to be confined.
pub(crate) async fn tell(
    options: &RunOptions,
    configuration: &Configuration,
    session: &str,
    events: &[HookEvent],
) -> Vec<String> {
    let config = match configured_hooks(options, configuration) {
        Ok(config) => config,
        Err(error) => return vec![format!("hooks were not told: {error}")],
    };
    let heard = Arc::new(Heard::default());
    let hooks = ExternalHooks::new(HookParts {
        config,
        facts: Arc::new(Facts {
            session: Arc::from(session),
            cwd: configuration.workspace.clone(),
        }),
        project_dir: configuration.workspace.clone(),
        environment: configuration.child_environment(),
        guard: configuration.process.guard.clone(),
        confiner: None,
        runners: Runners::default(),
        sink: Arc::clone(&heard) as _,
    });
    for event in events {
        hooks.notify(event).await;
    }
    hooks.drain(PATIENCE).await;
    heard.take()
}

/// What hooks are told about the session that was.
#[derive(Debug)]
struct Facts {
    session: Arc<str>,
    cwd: PathBuf,
}

impl SessionFacts for Facts {
    fn session_id(&self) -> Arc<str> {
        Arc::clone(&self.session)
    }

    fn cwd(&self) -> PathBuf {
        self.cwd.clone()
    }

    fn permission_mode(&self) -> PermissionMode {
        PermissionMode::Default
    }

    fn transcript_path(&self) -> Option<PathBuf> {
        None
    }
}

/// What handlers complained of.
#[derive(Debug, Default)]
struct Heard(Mutex<Vec<String>>);

impl Heard {
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl FiringSink for Heard {
    fn fired(&self, firing: Firing) {
        let Firing {
            event,
            scope,
            handler,
            warning,
            ..
        } = firing;
        if let Some(warning) = warning {
            let text = format!("the {event} hook `{handler}` in the {scope} settings: {warning}");
            let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            heard.push(text);
        }
    }

    fn passed(&self, _: EventName, _: Option<&str>) {}
}
