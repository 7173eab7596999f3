//! Agents that a session sends into the background: never with more rights than it has itself.

use std::fmt::Debug;
use std::sync::Arc;

use caliban_permissions::Regime;
use caliban_settings::RuleSpec;
use caliban_tools::{Background, BackgroundHooks, BackgroundTask};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::gate::Gate;
use crate::switches::Switches;

/// Where agents in the background are started and looked after.
pub trait Fleet: Debug + Send + Sync {
    /// Starts an agent and returns its id; the error says why there is none.
    fn start(&self, task: BackgroundTask, rights: Rights) -> BoxFuture<'_, Result<String, String>>;

    /// How it is doing, in one line.
    fn status(&self) -> String;
}

/// What a session may do at this moment, beyond what it was begun with: an agent that it sends away
/// may do no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rights {
    pub regime: Regime,
    /// What was forbidden, or made a question of, while the session ran; the first that matches
    /// counts. What was allowed meanwhile was allowed to the session alone.
    pub rules: Vec<RuleSpec>,
}

/// Whether somebody looks into this session who cannot look into another process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Company {
    Elsewhere,
    InThisProcess,
}

/// Starts agents for a session, by its rules as they are at that moment.
#[derive(Debug)]
pub(crate) struct Detacher {
    pub(crate) fleet: Arc<dyn Fleet>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) switches: Arc<Switches>,
    pub(crate) company: Company,
}

impl Background for Detacher {
    fn start(&self, task: BackgroundTask) -> BoxFuture<'_, Result<String, String>> {
        async move {
            let hooks = task.hooks;
            let mut rights = self.gate.rights();
            // A server that is switched off here is not on there.
            rights.rules.splice(0..0, self.switches.denials());
            let id = self.fleet.start(task, rights).await?;
            let mut told = format!(
                "The agent {id} works on it in the background and goes on after this session. Its \
                 answer does not come back here: `caliban attach {id}` shows it to the user."
            );
            if self.company == Company::InThisProcess && hooks == BackgroundHooks::Inherited {
                told.push_str(
                    "\nWarning: hooks that live in the program which drives this session do not \
                     reach it; those in the settings do.",
                );
            }
            Ok(told)
        }
        .boxed()
    }
}
