//! The layering check: a crate may depend only on crates below it.

use std::collections::HashMap;

use anyhow::{Result, bail};
use serde_json::Value;

use crate::shell::{cargo, output};

/// The house from the ground up. Crates of one floor do not know each other.
const FLOORS: [&[&str]; 7] = [
    &["caliban-http", "caliban-model", "caliban-testkit"],
    &["caliban-agent", "caliban-images", "caliban-providers"],
    &[
        "caliban-context",
        "caliban-protocol",
        "caliban-sessions",
        "caliban-settings",
        "caliban-tools",
    ],
    &["caliban-hooks", "caliban-mcp", "caliban-permissions"],
    &["caliban-harness"],
    &["caliban"],
    &["xtask"],
];

/// Floors may be skipped, but only downwards; a test may use the testkit from anywhere.
pub(crate) fn check() -> Result<()> {
    let metadata: Value = serde_json::from_str(&output(cargo().args([
        "metadata",
        "--format-version=1",
        "--no-deps",
    ]))?)?;
    let mut violations = Vec::new();
    for package in items(&metadata["packages"]) {
        violations.extend(violations_of(package));
    }
    if !violations.is_empty() {
        bail!("the layering is broken:\n  {}", violations.join("\n  "));
    }
    Ok(())
}

fn violations_of(package: &Value) -> Vec<String> {
    let floors: HashMap<&str, usize> = FLOORS
        .iter()
        .enumerate()
        .flat_map(|(floor, names)| names.iter().map(move |name| (*name, floor)))
        .collect();
    let name = text(&package["name"]);
    let Some(own) = floors.get(name) else {
        return vec![format!(
            "`{name}` has no floor; add it to xtask/src/layering.rs"
        )];
    };
    items(&package["dependencies"])
        .iter()
        .filter_map(|dependency| {
            let target = text(&dependency["name"]);
            let floor = floors.get(target)?;
            let is_test = text(&dependency["kind"]) == "dev";
            let allowed = floor < own || (is_test && target == "caliban-testkit");
            let shipped_testkit = target == "caliban-testkit" && !is_test && name != "xtask";
            (!allowed || shipped_testkit).then(|| format!("`{name}` must not depend on `{target}`"))
        })
        .collect()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::violations_of;
    use serde_json::json;

    #[test]
    fn upward_edges_and_shipped_test_code_are_found() {
        let package = |name: &str, target: &str, kind: Option<&str>| {
            violations_of(
                &json!({"name": name, "dependencies": [{"name": target, "kind": kind}, {"name": "serde"}]}),
            )
        };
        assert!(package("caliban-providers", "caliban-model", None).is_empty());
        assert!(package("caliban-providers", "caliban-testkit", Some("dev")).is_empty());
        assert_eq!(package("caliban-model", "caliban-providers", None).len(), 1);
        assert_eq!(package("caliban", "caliban-testkit", None).len(), 1);
        assert_eq!(package("stranger", "serde", None).len(), 1);
    }
}
