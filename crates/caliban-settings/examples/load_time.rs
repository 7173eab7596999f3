//! How long settings that come from all five scopes take to load. `cargo xtask bench` runs it.

use std::error::Error;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use caliban_settings::{LoadRequest, Locations, Platform, Scope, TrustDecision, load};
use serde_json::json;

/// Rules in each scope that has a file.
const RULES: usize = 50;
/// What the command line adds.
const OVERLAY: &str = r#"{"permissions": {"rules": [{"pattern": "Read", "action": "ask"}]}}"#;
const RUNS: usize = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let temp = tempfile::tempdir()?;
    let workspace = temp.path().join("workspace");
    let locations = Locations::new(Platform::current(), temp.path().join("home"), &|_| None)
        .with_managed_dir(temp.path().join("managed"));
    for scope in Scope::ALL {
        if let Some(files) = locations.settings(scope, &workspace) {
            write(&files.toml, scope)?;
        }
    }
    let request = LoadRequest {
        overlay: Some(OVERLAY.to_owned()),
        trust: TrustDecision::Granted,
        ..LoadRequest::new(locations, &workspace)
    };
    let mut milliseconds = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let start = Instant::now();
        let loaded = load(&request)?;
        milliseconds.push(start.elapsed().as_secs_f64() * 1e3);
        let rules = loaded.settings.permissions.rules.len();
        if rules != RULES * 4 + 1 {
            return Err(format!("{rules} rules were merged").into());
        }
    }
    writeln!(
        std::io::stdout(),
        "{}",
        json!({"milliseconds": milliseconds})
    )?;
    Ok(())
}

fn write(path: &Path, scope: Scope) -> Result<(), Box<dyn Error>> {
    let mut text = String::new();
    for number in 0..RULES {
        let _ = writeln!(
            text,
            "[[permissions.rules]]\npattern = \"Bash:{scope}{number} *\"\naction = \"deny\""
        );
    }
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)?;
    }
    std::fs::write(path, text)?;
    Ok(())
}
