//! Packages for npm: one that carries the program of a platform, and one in front that finds it.

use anyhow::Result;
use serde_json::{Value, json};

use super::Artefact;
use super::payload::Payload;
use super::platform::Platform;
use super::tarball::{Content, Directories, Entry, gzipped_tar};

const LAUNCHER: &str = include_str!("launcher.js");

/// The platforms that the package in front knows.
const PLATFORMS: [(&str, &str); 4] = [
    ("linux", "x64"),
    ("linux", "arm64"),
    ("darwin", "x64"),
    ("darwin", "arm64"),
];

pub(super) fn packages(payload: &Payload, platform: &Platform) -> Result<[Artefact; 2]> {
    let (os, cpu) = platform.npm;
    let mut carrier = manifest(payload, &carrier_name(os, cpu));
    carrier["os"] = json!([os]);
    carrier["cpu"] = json!([cpu]);
    let program = Entry::new("bin/caliban", Content::Program(&payload.program));

    let mut front = manifest(payload, "caliban");
    front["bin"] = json!({"caliban": "bin/caliban.js"});
    front["engines"] = json!({"node": ">=18"});
    for (os, cpu) in PLATFORMS {
        front["optionalDependencies"][carrier_name(os, cpu)] = json!(payload.version);
    }
    let launcher = Entry::new("bin/caliban.js", Content::Program(LAUNCHER.as_bytes()));
    Ok([
        package(payload, &carrier, program)?,
        package(payload, &front, launcher)?,
    ])
}

fn carrier_name(os: &str, cpu: &str) -> String {
    format!("caliban-{os}-{cpu}")
}

fn manifest(payload: &Payload, name: &str) -> Value {
    json!({
        "name": name,
        "version": payload.version,
        "description": "A provider-agnostic AI agent harness for scripts, applications and the terminal.",
        "license": "AGPL-3.0-only",
    })
}

fn package(payload: &Payload, manifest: &Value, program: Entry<'_>) -> Result<Artefact> {
    let text = serde_json::to_vec_pretty(manifest)?;
    let mut entries = payload.papers();
    entries.push(program);
    entries.push(Entry::new("package.json", Content::Text(&text)));
    for entry in &mut entries {
        entry.path = format!("package/{}", entry.path);
    }
    let name = manifest["name"].as_str().unwrap_or_default();
    Ok(Artefact {
        name: format!("npm-{name}-{}.tgz", payload.version),
        bytes: gzipped_tar(entries, payload.time, Directories::Implied)?,
    })
}
