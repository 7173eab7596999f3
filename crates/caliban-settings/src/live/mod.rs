//! Settings that follow their files while a run goes on. Tightening applies at once; what a
//! workspace's files loosen waits for consent.

mod difference;
mod directories;
mod holding;
mod settings;
mod watcher;

pub use difference::{Loosening, loosens};
pub use settings::{Change, Consent, LiveSettings, Reload, TakesEffect, takes_effect};
pub use watcher::SettingsWatcher;
