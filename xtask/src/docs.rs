//! Documentation that is generated from the code: `cargo xtask docs` writes it, `cargo xtask test`
//! checks it.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::settings_page;
use crate::shell::{KEYRING, cargo, root, run, say};

/// Every generated page: where it is and what it says.
fn pages() -> Result<[(PathBuf, String); 4]> {
    let frames = serde_json::to_string_pretty(&caliban_protocol::frames_schema())?;
    Ok([
        (
            root().join("docs/environment.md"),
            caliban_settings::variables::reference_page(),
        ),
        (root().join("docs/frames.schema.json"), frames + "\n"),
        (
            root().join("docs/reference/settings.md"),
            settings_page::page(),
        ),
        (
            root().join("docs/reference/slash-commands.md"),
            caliban_slash::reference_page(),
        ),
    ])
}

pub(crate) fn write() -> Result<()> {
    for (path, text) in pages()? {
        std::fs::write(&path, text).with_context(|| path.display().to_string())?;
        say(&format!("wrote {}", path.display()));
    }
    // Some pages only the program itself can write; it is built as the tests build it.
    let reference = ["--workspace", KEYRING, "--test", "reference", "--quiet"];
    run(cargo().arg("test").args(reference).env("UPDATE_DOCS", "1"))
}

pub(crate) fn check() -> Result<()> {
    for (path, text) in pages()? {
        if std::fs::read_to_string(&path).ok().as_deref() != Some(&text) {
            bail!("{} is out of date: run `cargo xtask docs`", path.display());
        }
    }
    Ok(())
}
