//! Puts a session together from choices: tools, gate, system prompt, provider, agent. The only
//! place where parts are wired; knows neither the command line nor a face.

mod agent_settings;
mod asides;
mod assembly;
mod child_environment;
mod choices;
mod edited;
mod extras;
mod gate;
mod hook_parts;
mod permissions;
mod recorder;
mod servers;
mod session;
mod system_prompt;

pub use agent_settings::{agent_settings, model_for};
pub use asides::Asides;
pub use child_environment::child_environment;
pub use choices::{
    BuiltIn, Choices, History, Partners, Selection, SetupError, SubAgents, SystemPrompt, Tools,
};
pub use extras::{Extras, Repository};
pub use permissions::{Permissions, judge, protected};
pub use servers::{Elicitations, MayAsk, PromptTool};
pub use session::{LiveEnvironment, LiveRules, Session};
