//! Which plugins are used, and where they may come from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The plugins of a session and the marketplaces that they are installed from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Plugins {
    /// The only plugins that are used, as a list or as a table of `true` and `false`; all that are
    /// installed if left out. Plugins of the organisation are always used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<PluginChoice>,
    /// Plugins that are not used.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub disabled: Vec<String>,
    /// What plugins want to know, by plugin and name. A workspace tells them nothing; what is secret
    /// is kept elsewhere.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, BTreeMap<String, serde_json::Value>>,
    /// What is said before somebody decides on installing a plugin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust_message: Option<String>,
    /// Where plugins may be installed from.
    #[serde(skip_serializing_if = "PluginMarketplaces::is_empty")]
    pub marketplaces: PluginMarketplaces,
}

impl Plugins {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Plugins that are chosen by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum PluginChoice {
    Names(Vec<String>),
    Switches(BTreeMap<String, bool>),
}

impl PluginChoice {
    /// Whether a plugin is one of them.
    pub fn holds(&self, name: &str) -> bool {
        match self {
            Self::Names(names) => names.iter().any(|known| known == name),
            Self::Switches(switches) => switches.get(name).copied() == Some(true),
        }
    }
}

/// Marketplaces by name or source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PluginMarketplaces {
    /// Names for sources: an address of an index, a git repository, `owner/repository` of GitHub,
    /// or a directory.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub known: BTreeMap<String, String>,
    /// The only names and sources that are allowed; an empty list allows none. What the managed
    /// scope says holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strict_known: Option<Vec<String>>,
    /// Names and sources that are refused.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<String>,
    /// Public keys of minisign, by the name of a marketplace: its list counts only with a signature
    /// of that key. A workspace names none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, String>,
}

impl PluginMarketplaces {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}
