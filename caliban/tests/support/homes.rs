//! Files of a home and a workspace: settings above all.

use std::path::Path;
use std::process::Command;

use super::{Bench, bare};

/// The binary without `--provider`, which would decide more than some tests want.
pub(crate) fn plain(bench: &Bench) -> Command {
    let mut command = bare(bench.home.path(), bench.workspace.path());
    command
        .env("ANTHROPIC_API_KEY", "test-key")
        .env("ANTHROPIC_BASE_URL", bench.server.url())
        .env("OPENAI_API_KEY", "test-key")
        .env("OPENAI_BASE_URL", format!("{}/v1", bench.server.url()))
        .env("CALIBAN_RETRY_BASE_DELAY_MS", "1");
    command
}

/// A file with the directories above it.
pub(crate) fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// The user's settings.
pub(crate) fn user(bench: &Bench, text: &str) {
    write(
        &bench.home.path().join(".config/caliban/settings.toml"),
        text,
    );
}

/// The settings of the project.
pub(crate) fn project(bench: &Bench, text: &str) {
    write(&bench.workspace.path().join(".caliban/settings.toml"), text);
}
