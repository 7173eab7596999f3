//! Theme and layout of the terminal interface.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Tui {
    /// What is drawn on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screen: Option<TuiScreen>,
    /// Talk in lines that are only ever added, as `screen = "plain"` does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub screen_reader: Option<bool>,
    /// `auto`, `dark`, `light`, `none`, the name of a file with a theme, or the theme itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theme: Option<Value>,
    /// Whether both sides of changes stand beside each other on wide screens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<TuiDiff>,
    /// Signs and frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub glyphs: Option<TuiGlyphs>,
    /// With `none` nothing turns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub motion: Option<TuiMotion>,
    /// Whether the mouse is caliban's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mouse: Option<TuiMouse>,
    /// How somebody who looks elsewhere is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notify: Option<TuiNotify>,
    /// What is printed on leaving.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_exit: Option<TuiOnExit>,
    /// Who lists the files that `@` offers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<TuiFiles>,
    /// Keys and what they do.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<String, String>,
    /// Show what the session has cost.
    #[serde(
        rename = "showCostInStatusline",
        skip_serializing_if = "Option::is_none"
    )]
    pub show_cost_in_statusline: Option<bool>,
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

impl Tui {
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TuiScreen {
    Fullscreen,
    Inline,
    Plain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TuiDiff {
    Auto,
    Unified,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TuiGlyphs {
    Unicode,
    Ascii,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TuiMotion {
    Usual,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TuiMouse {
    Off,
    On,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TuiNotify {
    Terminal,
    Bell,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TuiOnExit {
    Transcript,
    Last,
    None,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TuiFiles {
    /// A command that prints one path a line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}
