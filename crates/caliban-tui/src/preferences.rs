//! What the operator wants the face to be like.

use std::time::Duration;

use caliban_compose::KeySet;

use crate::custom_theme::CustomTheme;

/// Set by settings and variables; a value that makes no sense was told and left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preferences {
    pub keys: KeySet,
    /// Keys beside or instead of the usual ones, as they are written.
    pub bindings: Vec<(String, String)>,
    /// Nothing is as variables and the command line say.
    pub screen: Option<Screen>,
    /// Whether lines are wanted instead of drawing.
    pub lines: Lines,
    pub view: View,
    pub diffs: Diffs,
    pub theme: ThemeChoice,
    /// Colours of the operator's own; they have their own base.
    pub custom_theme: Option<CustomTheme>,
    /// What is set and cannot be used, to be told once.
    pub faults: Vec<String>,
    pub motion: Motion,
    pub glyphs: Glyphs,
    pub mouse: Mouse,
    pub on_exit: OnExit,
    pub notify: Notify,
    pub cost: Cost,
    pub status: Option<StatusCommand>,
    /// A program that lists files for `@`, instead of looking through the workspace.
    pub files: Option<String>,
}

impl Default for Preferences {
    fn default() -> Self {
        Self {
            keys: KeySet::Emacs,
            bindings: Vec::new(),
            screen: None,
            lines: Lines::Unwanted,
            view: View::Compact,
            diffs: Diffs::BesideEachOther,
            theme: ThemeChoice::Auto,
            custom_theme: None,
            faults: Vec::new(),
            motion: Motion::Usual,
            glyphs: Glyphs::Unicode,
            mouse: Mouse::Off,
            on_exit: OnExit::Transcript,
            notify: Notify::Terminal,
            cost: Cost::Hidden,
            status: None,
            files: None,
        }
    }
}

/// What is drawn on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    /// The whole screen, which is as it was when one leaves.
    Fullscreen,
    /// Below what is on the screen; what is finished stays in the terminal's own scrollback.
    Inline,
}

/// Whether the face talks in lines that are only ever added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    Wanted,
    Unwanted,
}

/// How changes of files are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Diffs {
    /// Both texts beside each other where the screen is wide enough.
    BesideEachOther,
    /// What was taken away above what came instead.
    BelowEachOther,
}

/// How much of calls and thoughts is shown at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    Compact,
    Expanded,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ThemeChoice {
    /// As the terminal's background is.
    Auto,
    Dark,
    Light,
    /// As `Auto`, and nothing is told by red and green.
    ColourBlind,
    /// Attributes only.
    Colourless,
}

impl ThemeChoice {
    /// Those that are built in, with their names and what they are.
    pub(crate) const ALL: [(&'static str, Self, &'static str); 5] = [
        ("auto", Self::Auto, "as the terminal's background is"),
        ("dark", Self::Dark, "for dark backgrounds"),
        ("light", Self::Light, "for light backgrounds"),
        (
            "colour-blind",
            Self::ColourBlind,
            "blue and orange for green and red",
        ),
        (
            "none",
            Self::Colourless,
            "bold, underline and the like only",
        ),
    ];

    /// One that is built in, by its name.
    pub fn named(name: &str) -> Option<Self> {
        let mut all = Self::ALL.iter();
        all.find(|(known, ..)| *known == name)
            .map(|(_, choice, _)| *choice)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Motion {
    Usual,
    None,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Glyphs {
    Unicode,
    Ascii,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mouse {
    On,
    Off,
}

/// What is left on the main screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnExit {
    Transcript,
    Last,
    None,
}

/// How the operator is called when he does not look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notify {
    Terminal,
    Bell,
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    Shown,
    Hidden,
}

/// A program whose output stands first in the status line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusCommand {
    pub command: String,
    pub patience: Duration,
    pub padding: usize,
}
