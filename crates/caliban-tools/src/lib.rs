//! The built-in tools.

mod shell;

pub use shell::{
    Bash, BashOutput, GUARD_ARGUMENT, Guard, JobLimits, Jobs, KillShell, Shell, guard_main,
};
