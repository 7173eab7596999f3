//! Why a plugin is not installed, brought up to date or removed.

use caliban_plugins::{
    AddressError, ArchiveError, IndexError, LeadsOut, LockError, PackageError, PluginName, Refusal,
    SignatureError, StagingError, StateError,
};
use caliban_settings::TreeError;

#[derive(Debug, thiserror::Error)]
pub enum ManageError {
    #[error("`{place}`: {reason}")]
    Fetch { place: String, reason: String },
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("`{place}`: {source}")]
    Index { place: String, source: IndexError },
    #[error("`{place}`: {source}")]
    Signature {
        place: String,
        source: SignatureError,
    },
    #[error(transparent)]
    Lock(#[from] LockError),
    #[error(
        "the plugin `{plugin}` is not as it is locked: its files are {found} and not {locked}; nothing was installed"
    )]
    NotAsLocked {
        plugin: PluginName,
        locked: String,
        found: String,
    },
    #[error("the archive `{place}` is not taken: {source}")]
    Archive { place: String, source: ArchiveError },
    #[error(transparent)]
    Package(#[from] PackageError),
    #[error(transparent)]
    Staging(#[from] StagingError),
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error(transparent)]
    LeadsOut(#[from] LeadsOut),
    #[error(transparent)]
    State(#[from] StateError),
    #[error("there is no marketplace `{0}`; `caliban plugin marketplace add` adds one")]
    NoMarketplace(String),
    #[error("the marketplace `{marketplace}` has no plugin `{plugin}`{remedy}")]
    NoEntry {
        marketplace: String,
        plugin: String,
        remedy: String,
    },
    #[error("the plugin `{plugin}` of `{marketplace}` cannot be installed: {reason}")]
    Uninstallable {
        marketplace: String,
        plugin: String,
        reason: String,
    },
    #[error("the plugin `{0}` cannot be used here: {1}")]
    Unsuitable(PluginName, String),
    #[error("the organisation has a plugin `{0}`, which cannot be replaced")]
    Managed(PluginName),
    #[error("`{0}` is installed from {1}; `caliban plugin remove {0}` makes room")]
    Another(PluginName, String),
    #[error(
        "there is a marketplace `{0}` already, {1}; `caliban plugin marketplace remove {0}` makes room"
    )]
    AnotherMarket(String, String),
    #[error("`{0}` was put there by hand; take it away to install another of its name")]
    ByHand(PluginName),
    #[error("there is no installed plugin `{0}`; `caliban plugin list` shows those there are")]
    NotInstalled(String),
    #[error(
        "`{plugin}` needs the plugin `{needed}`; install that first{}",
        marketplace.as_ref().map_or_else(String::new, |it| format!(", from the marketplace `{it}`, which is not known here"))
    )]
    Needs {
        plugin: PluginName,
        needed: PluginName,
        marketplace: Option<String>,
    },
    #[error("`{plugin}` needs `{needed}` {wanted}, and there is {version}")]
    Unfit {
        plugin: PluginName,
        needed: PluginName,
        wanted: String,
        version: String,
    },
    #[error("the plugins {0} need each other in a circle")]
    Circle(String),
    #[error("more than {0} plugins would have to be installed")]
    TooMany(usize),
    #[error("`{0}` is needed by {1}; disable or remove that first")]
    Needed(String, String),
    #[error("`{key}` of `{plugin}` must be {expected}")]
    Value {
        plugin: PluginName,
        key: String,
        expected: &'static str,
    },
    #[error("{0}")]
    Settings(String),
}

impl ManageError {
    pub(super) fn fetch(place: &str, reason: &str) -> Self {
        Self::Fetch {
            place: place.to_owned(),
            reason: reason.to_owned(),
        }
    }
}
