//! Agents in the background. Each is a process of its own that needs nobody to go on: it holds a
//! lock for as long as it lives, writes down how it ended, and listens on a socket for those who
//! want to watch or steer it. A daemon for each repository starts them, lists them and notices when
//! they are gone; it carries no conversation, and nothing is lost with it.

mod attach;
mod client;
mod control;
mod daemon;
mod directory;
mod id;
mod join;
mod joining;
mod orphans;
mod peer;
mod places;
mod spec;
mod state;
mod wire;
pub mod worker;

pub use attach::{Answers, Attachment, Input, Past, Wanted};
pub use client::{Client, ClientError, Starter, Watching, holder};
pub use control::{DaemonStatus, KillHow, Refusal, RefusedBecause, Resumption, RmWhich};
pub use daemon::{DAEMON_ARGUMENT, Setup, serve};
pub use directory::{AgentDirectory, Registry};
pub use id::{AgentId, InvalidId, Unresolved};
pub use join::{Joint, NotJoined};
pub use joining::{From, Told};
pub use orphans::{Orphan, sweep_orphans};
pub use peer::{AGENT_VARIABLE, WORKER_ARGUMENT, is_of_an_agent, is_within_tool};
pub use places::Places;
pub use spec::{
    Begin, CallerWorld, Handover, Isolation, Launch, Limits, Restart, Served, Spec, Task,
    TreeFiles, TreeWish,
};
pub use state::{AgentView, End, Needs, NeedsKind, Phase, Report};
pub use wire::PROTOCOL;
