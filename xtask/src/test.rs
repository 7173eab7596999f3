//! `cargo xtask test`: every check, in the order in which a failure is cheapest to find.

use std::process::Command;

use anyhow::Result;

use crate::shell::{self, KEYRING, cargo, say};
use crate::{dependencies, docs, environment, layering, links, suite};

pub(crate) fn run() -> Result<()> {
    shell::run(cargo().args(["fmt", "--all", "--check"]))?;
    layering::check()?;
    dependencies::check()?;
    docs::check()?;
    links::check()?;
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
    #[cfg(target_os = "linux")]
    crate::pictures::check()?;
    suite::run(|| {
        let mut command = cargo();
        command
            .args(["test", "--workspace", "--all-targets", KEYRING])
            .env("CALIBAN_TEST_PYTHON", environment::python())
            .env("CALIBAN_TEST_LITELLM", environment::gateway())
            .env("CALIBAN_TEST_NODE", environment::node())
            .env("CALIBAN_TEST_NODE_PACKAGES", environment::node_packages());
        command
    })?;
    shell::run(cargo().args(["test", "--workspace", "--doc", KEYRING, "--quiet"]))?;
    say("all checks passed");
    Ok(())
}
