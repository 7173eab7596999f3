//! What can be changed in a session while it works.

use std::sync::{Arc, Mutex, PoisonError};

use caliban_agent::Dial;
use caliban_mcp::Servers;
use caliban_model::Reasoning;
use caliban_permissions::{Latch, Regime};
use caliban_session::{Controls, ModelChange, RuleChange, ServerCommand};
use caliban_settings::PermissionMode;
use caliban_tools::Jobs;

use crate::gate::Gate;
use crate::mcp::server_states;
use crate::model_list::ModelList;
use crate::switches::{Switch, Switches};

#[derive(Debug)]
pub(crate) struct SessionControls {
    pub(crate) gate: Arc<Gate>,
    /// Whether everything may be allowed without asking.
    pub(crate) latch: Mutex<Latch>,
    pub(crate) dial: Dial,
    pub(crate) default_model: Arc<str>,
    pub(crate) models: ModelList,
    pub(crate) servers: Option<Servers>,
    pub(crate) switches: Arc<Switches>,
    pub(crate) jobs: Option<Arc<Jobs>>,
}

impl SessionControls {
    fn latch(&self) -> Latch {
        *self.latch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Controls for SessionControls {
    fn set_mode(&self, mode: PermissionMode) -> Result<(), String> {
        if mode == PermissionMode::BypassPermissions && self.latch() == Latch::Absent {
            return Err(
                "the session was not begun with `--allow-dangerously-skip-permissions`".to_owned(),
            );
        }
        self.gate.set_mode(mode);
        Ok(())
    }

    fn set_model(&self, model: &ModelChange) -> Result<Arc<str>, String> {
        let model = match model {
            ModelChange::Default => &self.default_model,
            ModelChange::Named(name) if name.trim().is_empty() => {
                return Err("a model has a name".to_owned());
            }
            ModelChange::Named(name) => {
                self.models.check(name)?;
                name
            }
        };
        self.dial.set_model(Arc::clone(model));
        Ok(Arc::clone(model))
    }

    fn drop_latch(&self) -> PermissionMode {
        *self.latch.lock().unwrap_or_else(PoisonError::into_inner) = Latch::Absent;
        let mode = match self.gate.regime() {
            Regime::Rules(mode) if mode != PermissionMode::BypassPermissions => mode,
            Regime::Rules(_) | Regime::Disabled => PermissionMode::Default,
        };
        self.gate.set_mode(mode);
        mode
    }

    fn set_reasoning(&self, reasoning: Reasoning) {
        self.dial.set_reasoning(reasoning);
    }

    fn change_rule(&self, change: &RuleChange) -> Result<(), String> {
        match change {
            RuleChange::Add { pattern, action } => self
                .gate
                .remember(pattern, *action)
                .map_err(|error| error.to_string())?,
            RuleChange::Remove { pattern, action } => self.gate.forget(Some(pattern), *action),
            RuleChange::Clear { action } => self.gate.forget(None, *action),
        }
        Ok(())
    }

    fn command_server(&self, command: &ServerCommand) -> Result<(), String> {
        let states = server_states(self.servers.as_ref());
        let name = command.server();
        let missing = || format!("there is no MCP server `{name}`");
        let servers = self.servers.as_ref().ok_or_else(missing)?;
        if !states.iter().any(|state| state.name == name) {
            return Err(missing());
        }
        let all = || states.iter().map(|state| state.name.as_str());
        match command {
            ServerCommand::Reconnect { server } => {
                servers.reconnect(server).map_err(|error| error.to_string())
            }
            ServerCommand::Enable { server } => {
                self.switches.turn(server, all(), Switch::On);
                Ok(())
            }
            ServerCommand::Disable { server } => {
                self.switches.turn(server, all(), Switch::Off);
                Ok(())
            }
        }
    }

    fn send_to_background(&self) {
        if let Some(jobs) = &self.jobs {
            jobs.send_to_background();
        }
    }

    fn end_job(&self, job: &str) -> Result<(), String> {
        let missing = || format!("there is no background job `{job}`");
        let jobs = self.jobs.as_ref().ok_or_else(missing)?;
        jobs.end(job).then_some(()).ok_or_else(missing)
    }
}
