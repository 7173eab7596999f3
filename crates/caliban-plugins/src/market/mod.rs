//! Marketplaces: lists of plugins and where each of them lies.

mod address;
mod index;
mod known;
mod policy;
mod signature;
mod source;

use serde::{Deserialize, Serialize};

pub use address::{AddressError, GitAddress, MarketSource};
pub use index::{Entry, INDEX_BYTES, INDEX_FILES, IndexError, Marketplace, Renamed};
pub use known::{Acknowledgements, KnownMarketplace, KnownMarketplaces};
pub use policy::{MarketPolicy, Refusal};
pub use signature::{MarketKey, SIGNATURE_BYTES, SIGNATURE_SUFFIX, SignatureError};
pub use source::EntrySource;

/// Where an installed plugin came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Origin {
    /// A directory of this machine, whose owner has it anyway.
    Directory { path: std::path::PathBuf },
    Marketplace {
        name: String,
        source: MarketSource,
        plugin: Box<EntrySource>,
        /// The commit that it was taken from.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        commit: Option<String>,
    },
}

impl Origin {
    /// Whether it counts only with the files that somebody agreed to.
    pub fn is_gated(&self) -> bool {
        match self {
            Self::Directory { .. } => false,
            Self::Marketplace { .. } => true,
        }
    }

    pub fn marketplace(&self) -> Option<&str> {
        match self {
            Self::Directory { .. } => None,
            Self::Marketplace { name, .. } => Some(name),
        }
    }
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Directory { path } => write!(f, "{}", path.display()),
            Self::Marketplace {
                source,
                plugin,
                commit,
                ..
            } => {
                match &**plugin {
                    EntrySource::Path { path } => write!(f, "{source}, {path}")?,
                    other => write!(f, "{other}")?,
                }
                match commit {
                    Some(commit) => write!(f, " at {commit}"),
                    None => Ok(()),
                }
            }
        }
    }
}
