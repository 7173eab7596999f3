//! This very process as the surroundings of a run: the only place that reads the environment, the
//! home and the current directory.

use std::path::PathBuf;
use std::sync::Arc;

use caliban_harness::{Hearers, Process};
use caliban_process::Guard;
use caliban_settings::variables::Environment;

use crate::console::StandardError;

/// The variables of this process; a value that is not Unicode counts as unset.
pub(crate) fn environment() -> Environment {
    Environment::new(|name| std::env::var(name).ok())
}

/// This process, its variables read through `environment`.
pub(crate) fn current(environment: Environment) -> Process {
    let home = environment
        .text("HOME")
        .map(PathBuf::from)
        .or_else(std::env::home_dir)
        .unwrap_or_else(std::env::temp_dir);
    Process {
        environment,
        variables: std::env::vars_os().collect(),
        home,
        // Where it cannot be named, relative paths still mean it.
        current_directory: std::env::current_dir().unwrap_or_default(),
        guard: guard(),
        diagnostics: Arc::new(StandardError),
        hearers: Hearers::default(),
    }
}

/// A process whose variables and directory are not those it was started with.
pub(crate) fn of(environment: Environment, current_directory: PathBuf) -> Process {
    Process {
        current_directory,
        ..current(environment)
    }
}

/// This very program, also when its file is replaced while it runs.
fn guard() -> Guard {
    if cfg!(target_os = "linux") {
        return Guard::ReExec(PathBuf::from("/proc/self/exe"));
    }
    std::env::current_exe().map_or(Guard::None, Guard::ReExec)
}
