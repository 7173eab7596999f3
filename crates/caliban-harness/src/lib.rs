//! Puts a session together from choices: tools, gate, system prompt, provider, agent. The only
//! place where parts are wired; knows neither the command line nor a face.

mod agent_settings;
mod child_environment;
mod gate;
mod permissions;
mod session;
mod system_prompt;

pub use agent_settings::{agent_settings, model_for};
pub use child_environment::child_environment;
pub use permissions::{Permissions, judge, protected};
pub use session::{BuiltIn, Choices, Session, SetupError, SubAgents, SystemPrompt, Tools};
