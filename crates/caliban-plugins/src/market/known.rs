//! The marketplaces that somebody added, and the addresses that were acknowledged.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::MarketSource;
use crate::state_file::{StateError, StateFile};

/// A marketplace that was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownMarketplace {
    pub source: MarketSource,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub commit: Option<String>,
    pub updated_at: Timestamp,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Records {
    marketplaces: BTreeMap<String, KnownMarketplace>,
}

/// The marketplaces on disk: a list, and a copy of each.
#[derive(Debug, Clone)]
pub struct KnownMarketplaces {
    root: PathBuf,
    file: StateFile<Records>,
}

impl KnownMarketplaces {
    /// In a directory of the program's data.
    pub fn of(data: &Path) -> Self {
        let root = data.join("marketplaces");
        Self {
            file: StateFile::new(root.join("known.json")),
            root,
        }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where the copy of one is.
    pub fn copy(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    pub fn all(&self) -> Result<BTreeMap<String, KnownMarketplace>, StateError> {
        Ok(self.file.read()?.marketplaces)
    }

    pub fn put(&self, name: &str, market: KnownMarketplace) -> Result<(), StateError> {
        self.file.update(|records| {
            records.marketplaces.insert(name.to_owned(), market);
        })
    }

    pub fn remove(&self, name: &str) -> Result<bool, StateError> {
        self.file
            .update(|records| records.marketplaces.remove(name).is_some())
    }
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Allowlist {
    marketplaces: BTreeMap<String, Timestamp>,
}

/// The addresses of marketplaces that somebody agreed to, which a strict policy recognises.
#[derive(Debug, Clone)]
pub struct Acknowledgements(StateFile<Allowlist>);

impl Acknowledgements {
    pub fn new(path: PathBuf) -> Self {
        Self(StateFile::new(path))
    }

    /// None where the list cannot be used.
    pub fn all(&self) -> Vec<String> {
        let list = self.0.read().unwrap_or_default();
        list.marketplaces.into_keys().collect()
    }

    pub fn add(&self, source: &MarketSource) -> Result<(), StateError> {
        self.0.update(|list| {
            list.marketplaces
                .insert(source.to_string(), Timestamp::now());
        })
    }
}
