//! `cargo xtask test`: every check, in the order in which a failure is cheapest to find.

use std::process::Command;

use anyhow::Result;

use crate::shell::{self, cargo, say};
use crate::{dependencies, docs, environment, layering, links};

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
        "--quiet",
        "--",
        "-D",
        "warnings",
    ]))?;
    shell::run(
        cargo()
            .args(["test", "--workspace", "--all-targets", "--no-fail-fast"])
            .env("CALIBAN_TEST_PYTHON", environment::python())
            .env("CALIBAN_TEST_NODE", environment::node())
            .env("CALIBAN_TEST_NODE_PACKAGES", environment::node_packages()),
    )?;
    shell::run(cargo().args(["test", "--workspace", "--doc", "--quiet"]))?;
    say("all checks passed");
    Ok(())
}
