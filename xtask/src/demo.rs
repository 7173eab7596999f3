//! `cargo xtask record-demo`: plays the demo's script through the built binary and keeps the
//! cassette.

use std::process::Command;

use anyhow::{Context, Result};
use caliban_testkit::{BlockingServer, Script};

use crate::shell::{built_program, root, run, target};

pub(crate) fn record() -> Result<()> {
    let program = built_program()?;
    let demo = root().join("caliban/demo");
    let script = std::fs::read_to_string(demo.join("script.json"))?;
    let prompt = std::fs::read_to_string(demo.join("prompt.txt"))?;
    let server = BlockingServer::start(Script::from_json(&script).context("demo/script.json")?)?;
    let workspace = target().join("demo-workspace");
    if workspace.exists() {
        std::fs::remove_dir_all(&workspace)?;
    }
    std::fs::create_dir_all(&workspace)?;
    for entry in std::fs::read_dir(demo.join("workspace"))? {
        let path = entry?.path();
        let name = path.file_name().context("a file")?;
        std::fs::copy(&path, workspace.join(name))?;
    }
    run(Command::new(program)
        .args(["--auto-allow", "-p", prompt.trim(), "--record"])
        .arg(demo.join("cassette.jsonl"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("ANTHROPIC_API_KEY", "demo")
        .env("ANTHROPIC_BASE_URL", server.url())
        .current_dir(&workspace))
}
