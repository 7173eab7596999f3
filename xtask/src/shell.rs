//! Running other programs, and saying what is run.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest.parent().unwrap_or(manifest).to_owned()
}

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Announces a step.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "xtask: {text}");
}

/// The cargo that started us.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// What is distributed has it, so it is checked and tested like the rest.
pub(crate) const KEYRING: &str = "--features=caliban/keyring";

/// The program, built together with the tests: the same units, so that none is built twice.
pub(crate) fn built_program() -> Result<PathBuf> {
    run(cargo().args(["build", "--workspace", "--all-targets", KEYRING, "--quiet"]))?;
    Ok(target().join("debug/caliban"))
}

/// Runs a command to its end; its failure is ours.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let line = describe(command);
    say(&line);
    let status = command
        .status()
        .with_context(|| format!("`{line}` could not be started"))?;
    if !status.success() {
        bail!("`{line}` failed: {status}");
    }
    Ok(())
}

/// Runs a command and returns what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let line = describe(command);
    let output = command
        .output()
        .with_context(|| format!("`{line}` could not be started"))?;
    if !output.status.success() {
        bail!(
            "`{line}` failed: {}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The line by which a command is called.
pub(crate) fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program())
        .file_name()
        .unwrap_or(command.get_program());
    std::iter::once(program)
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect::<Vec<_>>()
        .join(" ")
}
