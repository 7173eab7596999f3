//! Handlers that other parts of the program carry out: tools of MCP servers, models and agents.

use std::fmt::Debug;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;

/// The parts that can carry something out. A handler whose part is missing cannot decide.
#[derive(Debug, Clone, Default)]
pub struct Runners {
    pub mcp: Option<Arc<dyn McpRunner>>,
    pub prompt: Option<Arc<dyn PromptRunner>>,
    pub agent: Option<Arc<dyn AgentRunner>>,
}

/// Calls tools of MCP servers. The answer is the tool's text; an error says why there is none.
/// Dropping the future must stop the call.
pub trait McpRunner: Send + Sync + Debug {
    fn call<'a>(&'a self, call: McpCall<'a>) -> BoxFuture<'a, Result<String, String>>;
}

/// Asks a model. The answer is its text.
pub trait PromptRunner: Send + Sync + Debug {
    fn ask<'a>(&'a self, call: PromptCall<'a>) -> BoxFuture<'a, Result<String, String>>;
}

/// Runs an agent to its end. Nobody waits for its answer.
pub trait AgentRunner: Send + Sync + Debug {
    fn run<'a>(&'a self, call: AgentCall<'a>) -> BoxFuture<'a, Result<String, String>>;
}

#[derive(Debug, Clone, Copy)]
pub struct McpCall<'a> {
    pub server: &'a str,
    pub tool: &'a str,
    pub event: &'a Value,
    /// When the answer comes too late.
    pub deadline: Instant,
}

#[derive(Debug, Clone, Copy)]
pub struct PromptCall<'a> {
    pub prompt: &'a str,
    /// The model to ask, where the handler names one.
    pub model: Option<&'a str>,
    /// The JSON Schema of the answer, where the handler gives one.
    pub schema: Option<&'a Value>,
    pub event: &'a Value,
    pub deadline: Instant,
}

#[derive(Debug, Clone, Copy)]
pub struct AgentCall<'a> {
    /// The kind of agent, where the handler names one.
    pub agent: Option<&'a str>,
    pub prompt: &'a str,
    pub event: &'a Value,
    pub deadline: Instant,
}
