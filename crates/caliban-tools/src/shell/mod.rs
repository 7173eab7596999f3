//! Running commands: each call gets a fresh shell under a guardian, so that nothing a command
//! started outlives its call, its session or this process.

mod background;
mod bash;
mod capture;
mod interpreter;
mod job;
mod jobs;
mod text;

pub use background::{BashOutput, KillShell};
pub use bash::{Bash, WITHOUT_SANDBOX};
pub use interpreter::Shell;
pub use jobs::{JobEnd, JobLimits, Jobs, ListedJob};
