//! `cargo xtask test`: every check, in the order in which a failure is cheapest to find.

use std::process::Command;

use anyhow::Result;

use crate::shell::{self, cargo, say};
use crate::{dependencies, docs, environment, layering, links, suite};

/// What is distributed has it, so it is checked and tested like the rest.
pub(crate) const KEYRING: &str = "--features=caliban/keyring";

pub(crate) fn run() -> Result<()> {
    shell::run(cargo().args(["fmt", "--all", "--check"]))?;
    layering::check()?;
    dependencies::check()?;
    docs::check()?;
    links::check()?;
    #[cfg(target_os = "linux")]
    crate::pictures::check()?;
    shell::run(Command::new(environment::typos()).current_dir(shell::root()))?;
    shell::run(cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        KEYRING,
        "--quiet",
        "--",
        "-D",
        "warnings",
    ]))?;
    suite::run(|| {
        let mut command = cargo();
        command
            .args(["test", "--workspace", "--all-targets", KEYRING])
            .env("CALIBAN_TEST_PYTHON", environment::python())
            .env("CALIBAN_TEST_NODE", environment::node())
            .env("CALIBAN_TEST_NODE_PACKAGES", environment::node_packages());
        command
    })?;
    shell::run(cargo().args(["test", "--workspace", "--doc", KEYRING, "--quiet"]))?;
    say("all checks passed");
    Ok(())
}
