//! What the panel of MCP servers shows, and what it asks to be done.

use std::fmt::Debug;

use futures::future::BoxFuture;

/// MCP servers that can be looked at.
pub trait ServersDesk: Debug + Send + Sync {
    /// The servers as they stand at this moment.
    fn servers(&self) -> Vec<ServerRow>;

    /// The last of what a server wrote on its standard error.
    fn server_log(&self, server: &str) -> Vec<String>;

    /// Logs in to a server. The address that a browser must open is told while it waits.
    fn log_in(
        &self,
        server: &str,
        told: Box<dyn FnOnce(String) + Send>,
    ) -> BoxFuture<'static, Result<(), String>>;
}

/// A server in lists. Everything but the status may be its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRow {
    pub name: String,
    pub status: &'static str,
    /// Why it is not there, or what it says it is.
    pub about: String,
    pub tools: Vec<String>,
    /// Tools that changed and wait for approval.
    pub withheld: Vec<String>,
    pub instructions: Option<String>,
}
