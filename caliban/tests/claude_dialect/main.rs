//! The dialect of programs that were written for Claude Code, by the built program under the name
//! they know it by.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may panic, and says why it does nothing"
)]

mod arguments;
mod bench;
mod calls;
mod compaction;
mod control;
mod hooks;
mod options;
mod permissions;
mod print;
mod rewind;
mod sdk;
mod servers;
mod sessions;
mod settings;
mod structured;
mod sub_agents;
mod waiting;
