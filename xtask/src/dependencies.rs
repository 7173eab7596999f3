//! The licence, ban and source check of `deny.toml`, over `cargo metadata`. The part of cargo-deny
//! that needs no download.

use std::collections::HashSet;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::shell::{cargo, output, root};

#[derive(Debug, Deserialize)]
struct Policy {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Debug, Deserialize)]
struct Licenses {
    allow: HashSet<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Debug, Deserialize)]
struct Ban {
    name: String,
}

pub(crate) fn check() -> Result<()> {
    let text = std::fs::read_to_string(root().join("deny.toml")).context("deny.toml")?;
    let policy: Policy = toml::from_str(&text).context("deny.toml")?;
    let metadata: Value = serde_json::from_str(&output(cargo().args([
        "metadata",
        "--format-version=1",
        "--locked",
    ]))?)?;
    let problems: Vec<String> = metadata["packages"]
        .as_array()
        .map_or(&[][..], Vec::as_slice)
        .iter()
        .flat_map(|package| problems_of(package, &policy))
        .collect();
    if !problems.is_empty() {
        bail!("dependencies break deny.toml:\n  {}", problems.join("\n  "));
    }
    Ok(())
}

fn problems_of(package: &Value, policy: &Policy) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let license = package["license"].as_str().unwrap_or_default();
    let mut problems = Vec::new();
    if !is_allowed(license, &policy.licenses.allow) {
        problems.push(format!("`{name}` has the licence `{license}`"));
    }
    if policy.bans.deny.iter().any(|ban| ban.name == name) {
        problems.push(format!("`{name}` is banned"));
    }
    match package["source"].as_str() {
        None => {}
        Some(source) if source.starts_with("registry+") || source.starts_with("sparse+") => {}
        Some(source) => problems.push(format!("`{name}` comes from `{source}`")),
    }
    problems
}

/// Whether some choice among the alternatives is allowed. Understands `OR`, `AND`, `WITH`,
/// parentheses and the old `/`.
fn is_allowed(license: &str, allowed: &HashSet<String>) -> bool {
    let license = license.replace('/', " OR ").replace(['(', ')'], " ");
    license
        .split(" AND ")
        .all(|part| part.split(" OR ").any(|name| allowed.contains(name.trim())))
}

#[cfg(test)]
mod tests {
    use super::is_allowed;

    #[test]
    fn licence_expressions_are_read() {
        let allowed = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception"]
            .map(String::from)
            .into();
        assert!(is_allowed("MIT OR GPL-3.0", &allowed));
        assert!(is_allowed("MIT/Apache-2.0", &allowed));
        assert!(is_allowed("Apache-2.0 WITH LLVM-exception", &allowed));
        assert!(is_allowed("(MIT OR GPL-3.0) AND Apache-2.0", &allowed));
        assert!(!is_allowed("MIT AND GPL-3.0", &allowed));
        assert!(!is_allowed("", &allowed));
    }
}
