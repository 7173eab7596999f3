//! The face for people: a session on a terminal. It sends commands, hears events, and decides
//! nothing about the work.
//!
//! What the terminal, the session and the clock say goes into [`app`] through one function; what
//! the state looks like comes out of `view`; what is to be done outside are values that
//! `errands` runs.

mod app;
mod canvas;
mod clipboard;
mod completion;
mod errands;
mod face;
mod farewell;
mod host;
mod inline;
mod keys;
mod layers;
mod panic_guard;
mod paths;
mod plain;
mod preferences;
mod questions;
mod setup;
mod status;
mod theme;
mod transcript;
mod view;
mod viewer;

pub use face::run;
pub use farewell::Farewell;
pub use host::{
    Desk, Host, JobRow, JobState, Look, Matched, Opened, RuleDraft, RuleHome, RuleRow, RuleScope,
    SessionRow, Which,
};
pub use plain::{Interruption, run_plain};
pub use preferences::{
    Cost, Glyphs, Lines, Motion, Mouse, Notify, OnExit, Preferences, Screen, StatusCommand,
    ThemeChoice, View,
};
pub use setup::{FaceError, Setup, Variables};
