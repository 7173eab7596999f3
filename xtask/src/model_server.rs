//! `cargo xtask model-server`: the testkit's server, alone.

use std::io::Write;
use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};
use caliban_testkit::{ModelServer, Script};

use crate::shell::say;

pub(crate) fn run(script: &Path, listen: SocketAddr) -> Result<()> {
    let text = std::fs::read_to_string(script)
        .with_context(|| format!("script `{}`", script.display()))?;
    let script: Script =
        Script::from_json(&text).with_context(|| format!("script `{}`", script.display()))?;
    tokio::runtime::Runtime::new()?.block_on(async {
        let server = ModelServer::bind(listen, script).await?;
        let url = server.url();
        writeln!(std::io::stdout(), "{url}")?;
        say(&format!(
            "set ANTHROPIC_BASE_URL={url}, OPENAI_BASE_URL={url}/v1, GEMINI_BASE_URL={url} or OLLAMA_BASE_URL={url}; stop with Ctrl-C"
        ));
        tokio::signal::ctrl_c().await?;
        Ok(())
    })
}
