//! Begins sessions: from the options of a run to its configuration, provider, permissions, servers
//! and history, and from these to a session. The only place where parts are wired; knows neither
//! the command line nor a face.

mod accounts;
mod additions;
mod agent_settings;
mod asides;
mod assembly;
mod attachments;
mod checkpoints;
mod child_environment;
mod choices;
mod choosing;
mod config_watch;
mod configuration;
mod controls;
mod credential_programs;
mod debug_log;
mod desk;
mod draft;
mod edited;
mod egress;
mod engine;
mod error;
mod exporting;
mod extras;
mod feedback;
mod gate;
mod git;
mod history;
mod hook_parts;
mod intake;
mod inventory;
mod journal;
mod keys;
mod launch;
mod logins;
mod mcp;
mod naming;
mod notice_sink;
mod obedience;
pub mod options;
mod permissions;
pub mod provider;
mod recorder;
mod reminders;
mod repeating;
mod reported;
mod reports;
pub mod rewind_report;
mod rewinding;
pub mod routes;
mod sandbox;
mod servers;
mod session;
mod surroundings;
mod switches;
mod system_prompt;
mod taking_back;
mod telemetry;
mod tending;
mod tool_sources;
mod window_report;

pub use additions::{context_options, context_places, load_extras};
pub use agent_settings::{agent_settings, model_for};
pub use attachments::{Attached, Attachments};
pub use caliban_slash::Depth;
pub use caliban_telemetry::Ambient;
pub use checkpoints::{CheckpointPlace, checkpoint_store, forget_checkpoints, rewinder};
pub use child_environment::{Child, child_environment};
pub use choices::{
    BuiltIn, Choices, History, Partners, Selection, SetupError, SubAgents, SystemPrompt, Tools,
};
pub use choosing::{further_directories, rates};
pub use configuration::{Configuration, locations, workspace};
pub use debug_log::DebugLog;
pub use desk::{Earlier, ServerView, SessionDesk};
pub use error::{LaunchError, Problem};
pub use extras::{Extras, Repository};
pub use history::{glimpse, session_age, session_store};
pub use keys::{Forgotten, KeptIn, forget_key, save_key};
pub use launch::{Launched, Prepared, configure, launch, launch_apart};
pub use logins::{HAS_SECRET_STORE, LoginPlace, login_place, logins};
pub use mcp::{ServerState, server_parts, server_states, server_variables, status_name};
pub use naming::{copy_session, rename_session};
pub use notice_sink::NoticeSink;
pub use options::RunOptions;
pub use permissions::{Permissions, idle_rules, judge, protected, rule_book};
pub use rewinding::{RewindError, Rewinder, prompt_after};
pub use sandbox::{confiner, make_sandbox, sandbox_policy, start_sandbox};
pub use servers::{Elicitations, MayAsk, Onlookers, PromptTool};
pub use session::LiveMode;
pub use surroundings::{
    Diagnostics, DialectParts, Examiner, Hearers, Process, StandIn, Surroundings, Wrap,
};
pub use switches::Switches;
