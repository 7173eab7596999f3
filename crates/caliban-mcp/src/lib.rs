//! MCP client on the official SDK: the servers people already run become tools of an agent. No
//! type of the SDK leaves this crate.
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use caliban_agent::{Registry, Toolbox};
//! use caliban_mcp::{Parts, PinStore, Servers, Variables};
//! use caliban_settings::McpServer;
//! use caliban_process::Guard;
//!
//! # async fn example(settings: std::collections::BTreeMap<String, McpServer>, fixed: Registry) {
//! let mut parts = Parts::new(
//!     "/workspace".into(),
//!     vec![("PATH".into(), "/usr/bin".into())],
//!     Variables::new(|name| std::env::var(name).ok()),
//!     Guard::ReExec("/usr/bin/caliban".into()),
//! );
//! parts.pins = Some(PinStore::new("/home/me/.local/share/caliban"));
//! let configs = settings.into_iter().map(|(name, server)| (name, server.into()));
//! let servers = Servers::start(configs, parts); // returns at once
//! servers.settle(servers.startup_patience()).await; // up to a second for a handful of servers
//! let toolbox = Toolbox::new(fixed, Some(Arc::new(servers.clone())));
//! let notice = servers.notice(); // a paragraph for the system prompt
//! # drop((toolbox, notice));
//! servers.shutdown(Duration::from_secs(3)).await;
//! # }
//! ```

mod active;
pub mod authorization;
mod connection;
mod definition;
mod elicit;
mod endpoint;
mod expand;
mod handler;
mod log;
mod names;
pub mod oauth;
mod parts;
mod pins;
mod resources;
mod results;
mod search;
mod server;
mod servers;
mod session;
mod source;
mod status;
mod text;
mod tool;
mod transport;

pub use authorization::{AuthError, Authorization};
pub use elicit::{Elicited, Elicitor};
pub use expand::Variables;
pub use log::{Log, Silence};
pub use parts::{DEFAULT_MAX_OUTPUT_TOKENS, Laziness, Parts, Reconnection, Timeouts};
pub use pins::{PinError, PinStore};
pub use resources::{McpError, Prompt, PromptArgument, Resource, ResourceAddress, ResourceUri};
pub use servers::{ApproveError, ServerConfig, Servers, Withheld};
pub use status::{ServerInfo, ServerStatus, Status};
pub use transport::link::Link;
