//! What the panel of settings shows, and what it asks to be written.

use std::fmt::Debug;

use caliban_settings::write::SettingEdit;
use caliban_settings::{Scope, TakesEffect};

use crate::host::FileChanged;

/// Settings that can be looked at and changed.
pub trait SettingsDesk: Debug + Send + Sync {
    /// Every key there is, with what the files say now.
    fn settings(&self) -> Result<Vec<SettingRow>, String>;

    /// Writes one key to the file of a scope; the error says why it does not fit.
    fn change_setting(&self, change: &SettingChange) -> Result<FileChanged, String>;
}

/// A key of the settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingRow {
    pub key: String,
    /// What it may be, in words.
    pub kind: String,
    pub about: String,
    /// What counts, without secrets, and whose it is; nothing where the default does.
    pub effective: Option<(String, Scope)>,
    /// What each scope's file says, without secrets, the lowest scope first.
    pub written: Vec<(Scope, String)>,
    pub takes_effect: TakesEffect,
    pub state: SettingState,
    /// Why nobody here can change it.
    pub locked: Option<String>,
}

/// Whether what counts is what the session began with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettingState {
    AsBegun,
    Changed,
}

/// A key as the operator wants it in the file of a scope.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingChange {
    pub key: String,
    pub scope: Scope,
    pub edit: SettingEdit,
}

impl SettingRow {
    /// Whether it counts differently after the next start only.
    pub fn needs_restart(&self) -> bool {
        self.state == SettingState::Changed && self.takes_effect == TakesEffect::NextStart
    }

    /// What the file of a scope says.
    pub fn written_in(&self, scope: Scope) -> Option<&str> {
        let written = self.written.iter().find(|(known, _)| *known == scope);
        written.map(|(_, value)| value.as_str())
    }
}
