//! Running commands: each call gets a fresh shell under a guardian, so that nothing a command
//! started outlives its call, its session or this process. Programs that serve a protocol on
//! their standard streams are guarded the same way.

mod background;
mod bash;
mod capture;
mod guard;
mod jobs;
mod process;
mod run;
mod service;
mod text;
mod tree;

pub use background::{BashOutput, KillShell};
pub use bash::Bash;
pub use guard::{GUARD_ARGUMENT, guard_main};
pub use jobs::{JobLimits, Jobs};
pub use process::{Guard, Shell};
pub use service::{Service, ServiceProcess, ServiceStreams};
