//! The page of `caliban serve web`, photographed in a browser. Browsers draw letters each in their
//! own way, so these pictures are not compared.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use caliban_testkit::{Block, BlockingServer, Match, Presence, Prose, Reply, Script};
use serde_json::json;

use super::session::{BEGINNING, FILE, REST};
use crate::environment::{node, node_packages};
use crate::shell::{root, run, say};

/// The pictures that are taken.
pub(super) const NAMES: [&str; 3] = ["page-light.png", "page-dark.png", "page-narrow.png"];

/// Where it is played; the path is seen.
const HOME: &str = "/tmp/caliban-page";

pub(super) fn photograph(program: &Path, folder: &Path) -> Result<()> {
    let home = Path::new(HOME);
    if home.exists() {
        std::fs::remove_dir_all(home)?;
    }
    let taken = taken(program, home, folder);
    std::fs::remove_dir_all(home)?;
    taken
}

fn taken(program: &Path, home: &Path, folder: &Path) -> Result<()> {
    let work = home.join("shop");
    std::fs::create_dir_all(work.join("src"))?;
    std::fs::write(work.join("src/cart.rs"), FILE)?;
    let server = BlockingServer::start(Script::new(replies()))?;
    let mut child = Command::new(program)
        .args(["--provider", "anthropic", "serve", "web", "--in-process"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("ANTHROPIC_API_KEY", "picture")
        .env("ANTHROPIC_BASE_URL", server.url())
        .current_dir(&work)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let output = child.stdout.take().context("the output of the server")?;
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let address = lines.find_map(|line| line.strip_prefix("open ").map(str::to_owned));
    let photographed = address
        .context("the server says no address")
        .and_then(|address| shoot(&address, home, folder));
    child.kill()?;
    child.wait()?;
    photographed
}

fn shoot(address: &str, home: &Path, folder: &Path) -> Result<()> {
    run(Command::new(node())
        .arg(root().join("xtask/src/pictures/page.mjs"))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home)
        .env("TMPDIR", home)
        .env("PACKAGES", node_packages())
        .env("CHROMIUM", "/usr/bin/chromium")
        .env("PAGE", address)
        .env("FOLDER", folder))?;
    for name in NAMES {
        let path = folder.join(name);
        let size = std::fs::metadata(&path).context(name)?.len();
        // They are part of the repository for ever.
        ensure!(size < 200 * 1024, "{name} has {size} bytes");
        say(&format!("wrote {}", path.display()));
    }
    Ok(())
}

fn replies() -> Vec<Reply> {
    let pieces = BEGINNING.iter().chain(&REST);
    let said = Prose::Pieces(pieces.map(|text| (*text).to_owned()).collect());
    let edit = json!({
        "path": "src/cart.rs",
        "old_string": "    sum - discount\n",
        "new_string": "    sum.saturating_sub(discount)\n",
    });
    let mend = |presence| Match {
        tool_result: Some(presence),
        ..Match::last_user("Mend it")
    };
    vec![
        Reply::text("It compiles the grammar and writes `parser.rs`.")
            .when(Match::last_user("build script")),
        Reply::default()
            .block(Block::Text(said))
            .when(Match::last_user("Why can")),
        Reply::tool("Read", json!({"path": "src/cart.rs"})).when(mend(Presence::Absent)),
        Reply::tool("Edit", edit).when(mend(Presence::Present)),
        Reply::text("The subtraction stops at zero now. I run the tests to be sure.")
            .and_tool("Bash", json!({"command": "cargo test --package shop"}))
            .when(mend(Presence::Present)),
    ]
}
