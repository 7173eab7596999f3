//! The face for people: a session on a terminal. It sends commands, hears events, and decides
//! nothing about the work.
//!
//! What the terminal, the session and the clock say goes into [`app`] through one function; what
//! the state looks like comes out of `view`; what is to be done outside are values that
//! `errands` runs.

mod agents_desk;
mod app;
mod asking;
mod canvas;
mod clipboard;
mod completion;
mod custom_theme;
mod errands;
mod face;
mod farewell;
mod host;
mod inline;
mod keys;
mod keys_desk;
mod layers;
mod lists_desk;
mod panel_errands;
mod panic_guard;
mod partial;
mod paths;
mod pictures;
mod plain;
mod plain_questions;
mod preferences;
mod programs;
mod questions;
mod servers_desk;
mod sessions_desk;
mod settings_desk;
mod setup;
mod status;
mod theme;
mod transcript;
mod view;
mod viewer;

pub use agents_desk::{
    AgentAnswer, AgentChange, AgentLife, AgentQuestion, AgentRow, AgentsDesk, age,
};
pub use custom_theme::CustomTheme;
pub use face::run;
pub use farewell::{Farewell, Next};
pub use host::{
    BypassLatch, Desk, Earlier, FileChanged, Host, ImportVerdict, JobRow, JobState, Look, Matched,
    Opened, PointRow, RewindPreview, RuleDraft, RuleHome, RuleRow, RuleScope, Standing, Which,
};
pub use keys_desk::KeysDesk;
pub use lists_desk::{ListRow, ListsDesk};
pub use plain::{Interruption, run_plain};
pub use preferences::{
    Cost, Diffs, Glyphs, Lines, Motion, Mouse, Notify, OnExit, Preferences, Screen, StatusCommand,
    ThemeChoice, View,
};
pub use programs::Programs;
pub use servers_desk::{ServerRow, ServersDesk};
pub use sessions_desk::{SessionChange, SessionRow, SessionsDesk};
pub use settings_desk::{SettingChange, SettingRow, SettingState, SettingsDesk};
pub use setup::{FaceError, Setup, Variables};
