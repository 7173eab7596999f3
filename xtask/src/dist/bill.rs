//! The crates that are in the program: a bill of materials, and the licences they come with.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};

use super::hex;
use crate::shell::{KEYRING, cargo, output, root};

/// The crates of the program, by name and version.
pub(super) struct Crates(BTreeMap<Key, Part>);

type Key = (String, String);

struct Part {
    licence: Option<String>,
    directory: PathBuf,
    checksum: Option<String>,
    needs: BTreeSet<Key>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    manifest_path: PathBuf,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Edge>,
}

#[derive(Deserialize)]
struct Edge {
    pkg: String,
    dep_kinds: Vec<EdgeKind>,
}

#[derive(Deserialize)]
struct EdgeKind {
    /// Nothing for what is linked; `build` and `dev` are not in the program.
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

impl Crates {
    pub(super) fn of_the_program() -> Result<Self> {
        let host = output(std::process::Command::new("rustc").arg("-vV"))?;
        let host = host
            .lines()
            .find_map(|line| line.strip_prefix("host: "))
            .context("rustc names no host")?;
        let printed = output(cargo().args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--filter-platform",
            host,
            KEYRING,
        ]))?;
        let metadata: Metadata = serde_json::from_str(&printed)?;
        let lock = fs::read_to_string(root().join("Cargo.lock")).context("Cargo.lock")?;
        Self::reached(&metadata, toml::from_str(&lock).context("Cargo.lock")?)
    }

    fn reached(metadata: &Metadata, lock: Lock) -> Result<Self> {
        let sums: HashMap<Key, String> = lock
            .package
            .into_iter()
            .filter_map(|it| Some(((it.name, it.version), it.checksum?)))
            .collect();
        let packages: HashMap<&str, &Package> =
            metadata.packages.iter().map(|it| (&*it.id, it)).collect();
        let nodes: HashMap<&str, &Node> = metadata
            .resolve
            .nodes
            .iter()
            .map(|it| (&*it.id, it))
            .collect();
        let first = metadata.packages.iter().find(|it| it.name == "caliban");
        let mut open = vec![&*first.context("there is no crate `caliban`")?.id];
        let mut parts = BTreeMap::new();
        while let Some(id) = open.pop() {
            let package = packages.get(id).with_context(|| id.to_owned())?;
            if parts.contains_key(&package.key()) {
                continue;
            }
            let node = nodes.get(id).with_context(|| id.to_owned())?;
            let linked = node.deps.iter().filter(|it| it.is_linked());
            let linked: Vec<&str> = linked.map(|it| &*it.pkg).collect();
            let needs = linked.iter().filter_map(|id| packages.get(id));
            let part = Part {
                licence: package.license.clone(),
                directory: package
                    .manifest_path
                    .parent()
                    .unwrap_or(Path::new(""))
                    .to_owned(),
                checksum: sums.get(&package.key()).cloned(),
                needs: needs.map(|it| it.key()).collect(),
            };
            parts.insert(package.key(), part);
            open.extend(linked);
        }
        Ok(Self(parts))
    }

    /// The bill of materials as `CycloneDX` 1.6 has it.
    pub(super) fn bill(&self, version: &str, time: u64) -> Result<Vec<u8>> {
        let time = Timestamp::from_second(time.try_into()?)?;
        let program = ("caliban".to_owned(), version.to_owned());
        let components: Vec<_> = self
            .0
            .iter()
            .filter(|(key, _)| **key != program)
            .map(|(key, part)| {
                let mut component = json!({
                    "type": "library",
                    "bom-ref": purl(key),
                    "name": key.0,
                    "version": key.1,
                    "purl": purl(key),
                });
                if let Some(licence) = &part.licence {
                    // Slashes are how crates wrote `OR` before licences had expressions.
                    let expression = licence.replace('/', " OR ");
                    component["licenses"] = json!([{"expression": expression}]);
                }
                if let Some(sum) = &part.checksum {
                    component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
                }
                component
            })
            .collect();
        let dependencies: Vec<_> = self
            .0
            .iter()
            .map(|(key, part)| {
                json!({"ref": purl(key), "dependsOn": part.needs.iter().map(purl).collect::<Vec<_>>()})
            })
            .collect();
        let bill = json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {
                "timestamp": time.to_string(),
                "component": {
                    "type": "application",
                    "bom-ref": purl(&program),
                    "name": "caliban",
                    "version": version,
                    "purl": purl(&program),
                    "licenses": [{"expression": "AGPL-3.0-only"}],
                },
            },
            "components": components,
            "dependencies": dependencies,
        });
        let mut bytes = serde_json::to_vec_pretty(&bill)?;
        bytes.push(b'\n');
        Ok(bytes)
    }

    /// Who has rights in the program, and the texts of their licences, each once.
    pub(super) fn licences(&self) -> Result<String> {
        let mut text = String::from("caliban contains the work of others:\n\n");
        let mut texts: BTreeMap<String, (String, Vec<String>)> = BTreeMap::new();
        for ((name, version), part) in &self.0 {
            if part.checksum.is_none() {
                continue; // Ours.
            }
            let licence = part.licence.as_deref().unwrap_or("see below");
            writeln!(text, "{name} {version} ({licence})")?;
            for found in licence_files(&part.directory)? {
                let digest = hex(&Sha256::digest(&found));
                let holders = &mut texts.entry(digest).or_insert((found, Vec::new())).1;
                holders.push(format!("{name} {version}"));
            }
        }
        for (found, holders) in texts.values() {
            writeln!(text, "\n{}\n{}\n", "-".repeat(80), holders.join(", "))?;
            text.push_str(found.trim_end());
            text.push('\n');
        }
        Ok(text)
    }
}

impl Package {
    fn key(&self) -> Key {
        (self.name.clone(), self.version.clone())
    }
}

impl Edge {
    fn is_linked(&self) -> bool {
        self.dep_kinds.iter().any(|it| it.kind.is_none())
    }
}

fn licence_files(directory: &Path) -> Result<Vec<String>> {
    const BEGINNINGS: [&str; 4] = ["licen", "copying", "notice", "unlicense"];
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().to_lowercase();
        if BEGINNINGS.iter().any(|it| name.starts_with(it)) && entry.file_type()?.is_file() {
            paths.push(entry.path());
        }
    }
    paths.sort();
    paths
        .iter()
        .map(|path| Ok(String::from_utf8_lossy(&fs::read(path)?).into_owned()))
        .collect()
}

fn purl((name, version): &Key) -> String {
    format!("pkg:cargo/{name}@{version}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_builds_or_tests_is_not_in_the_program() {
        let crates = Crates::of_the_program().expect("cargo knows");
        let names: Vec<&str> = crates.0.keys().map(|(name, _)| &**name).collect();
        assert!(names.contains(&"caliban-agent") && names.contains(&"tokio"));
        assert!(
            !names.contains(&"rstest") && !names.contains(&"xtask"),
            "{names:?}"
        );
        let told = crates.licences().expect("they can be read");
        assert!(told.contains("tokio ") && !told.contains("caliban-agent "));
    }
}
