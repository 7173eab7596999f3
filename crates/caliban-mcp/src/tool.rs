//! A tool of a server as a tool of an agent.

use std::sync::Weak;

use caliban_agent::{Effect, Tool, ToolContext, ToolOutput, Workspace};
use caliban_model::ToolSpec;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::definition::Definition;
use crate::server::Server;

/// A tool of a server. What it does to the world is not known, whatever the server says about
/// it: hints are claims and confer nothing.
#[derive(Debug)]
pub(crate) struct McpTool {
    spec: ToolSpec,
    /// The server's own name for it.
    own_name: String,
    server: Weak<Server>,
    bytes: usize,
}

impl McpTool {
    pub(crate) fn new(name: String, definition: &Definition, server: Weak<Server>) -> Self {
        let spec = ToolSpec {
            name,
            description: definition.description.clone(),
            input_schema: definition.schema.clone(),
        };
        Self {
            own_name: definition.name.clone(),
            server,
            bytes: spec.name.len() + spec.description.len() + spec.input_schema.to_string().len(),
            spec,
        }
    }

    pub(crate) fn own_name(&self) -> &str {
        &self.own_name
    }

    /// About how much of a request its specification takes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn effect(&self) -> Effect {
        Effect::Executes
    }

    /// Which argument identifies a call is not known, and a guess must not decide about rules.
    fn first_arg(&self, _input: &Value) -> Option<String> {
        None
    }

    fn conflict_key(&self, _input: &Value, _workspace: &Workspace) -> Option<String> {
        None
    }

    fn supersession_key(&self, _input: &Value) -> Option<String> {
        None
    }

    fn run(&self, input: Value, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        async move {
            let Some(server) = self.server.upgrade() else {
                return crate::server::gone();
            };
            // What is always offered needs no place among those that were searched for.
            if server.lazy != Some(false) {
                server.common.touch(&self.spec.name);
            }
            server
                .call(
                    &self.own_name,
                    input,
                    &context.cancel,
                    context.progress,
                    context.trace.as_deref(),
                )
                .await
        }
        .boxed()
    }
}
