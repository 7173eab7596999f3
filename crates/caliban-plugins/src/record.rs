//! Which plugins somebody has looked at and agreed to, by everything they are made of.

use std::collections::BTreeMap;
use std::path::PathBuf;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::name::PluginName;
use crate::state_file::{StateError, StateFile};

/// How many versions of one plugin stay acknowledged.
const KEPT: usize = 16;

/// A plugin that was acknowledged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledged {
    /// Of all its files.
    pub digest: String,
    pub manifest_sha256: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Where it came from.
    pub source: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Records {
    plugins: BTreeMap<PluginName, Vec<Acknowledged>>,
    /// What plugins that nobody was asked about run, as it was told last.
    told: BTreeMap<PluginName, String>,
}

/// The record on disk.
#[derive(Debug, Clone)]
pub struct TrustRecords(StateFile<Records>);

impl TrustRecords {
    pub fn new(path: PathBuf) -> Self {
        Self(StateFile::new(path))
    }

    /// Whether a plugin was acknowledged with exactly these files. A record that cannot be read
    /// acknowledges nothing.
    pub fn holds(&self, name: &PluginName, digest: &str) -> bool {
        let records = self.0.read().unwrap_or_default();
        let known = records.plugins.get(name).into_iter().flatten();
        known.into_iter().any(|known| known.digest == digest)
    }

    pub fn acknowledge(&self, name: &PluginName, entry: Acknowledged) -> Result<(), StateError> {
        self.0.update(|records| {
            let known = records.plugins.entry(name.clone()).or_default();
            known.retain(|known| known.digest != entry.digest);
            known.push(entry);
            let surplus = known.len().saturating_sub(KEPT);
            known.drain(..surplus);
        })
    }

    /// Forgets every version of a plugin.
    pub fn forget(&self, name: &PluginName) -> Result<(), StateError> {
        self.0.update(|records| {
            records.plugins.remove(name);
            records.told.remove(name);
        })
    }

    /// Whether what a plugin runs was told already.
    pub fn has_told(&self, name: &PluginName, effects: &str) -> bool {
        let records = self.0.read().unwrap_or_default();
        records.told.get(name).is_some_and(|told| told == effects)
    }

    pub fn tell(&self, name: &PluginName, effects: String) -> Result<(), StateError> {
        self.0.update(|records| {
            records.told.insert(name.clone(), effects);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(digest: &str) -> Acknowledged {
        Acknowledged {
            digest: digest.to_owned(),
            manifest_sha256: String::new(),
            version: None,
            source: "s".to_owned(),
            at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn a_plugin_is_acknowledged_by_its_files() {
        let temp = tempfile::tempdir().unwrap();
        let records = TrustRecords::new(temp.path().join("trust/plugins.json"));
        let name: PluginName = "p".parse().unwrap();
        assert!(!records.holds(&name, "a"));
        records.acknowledge(&name, entry("a")).unwrap();
        records.acknowledge(&name, entry("b")).unwrap();
        assert!(records.holds(&name, "a") && records.holds(&name, "b"));
        assert!(!records.holds(&"q".parse().unwrap(), "a"));
        for index in 0..KEPT {
            records
                .acknowledge(&name, entry(&index.to_string()))
                .unwrap();
        }
        assert!(!records.holds(&name, "a"), "the oldest goes");
        records.forget(&name).unwrap();
        assert!(!records.holds(&name, "1"));
    }
}
