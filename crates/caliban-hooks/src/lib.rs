//! External hook handlers: what an operator attaches to the events of a run. A handler is a
//! program, a URL, a tool of an MCP server, a question to a model or an agent; it is told what
//! happens, and where an event gates something it may refuse.

mod action;
mod answer;
mod command;
mod config;
mod dispatch;
mod event;
mod external;
mod facts;
mod firing;
mod http;
mod matcher;
mod occasion;
mod pool;
mod runner;
mod tally;
mod urls;

pub use config::{
    CallPattern, CompilePattern, Configured, HookConfig, HookConfigError, HookFault, HookLayer,
    HookPlace, HookSwitch, ParseWith, PluginHooks,
};
pub use event::EventName;
pub use external::{ExternalHooks, HookParts};
pub use facts::{EventWording, SessionFacts};
pub use firing::{Decision, Firing, FiringSink, Phase};
pub use matcher::{BadMatcher, Matcher};
pub use runner::{AgentCall, AgentRunner, McpCall, McpRunner, PromptCall, PromptRunner, Runners};
pub use tally::{HandlerReport, LastRun};
pub use urls::BadUrlPattern;
