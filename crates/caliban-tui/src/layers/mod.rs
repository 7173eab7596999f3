//! What lies over the conversation and hears keys first.

mod elicitation;
mod history_search;
mod jobs;
mod pager;
mod permission;
mod picker;
mod rules;
mod servers;
mod trust;

pub(crate) use elicitation::ElicitationForm;
pub(crate) use history_search::HistorySearch;
pub(crate) use jobs::JobsPanel;
pub(crate) use pager::Pager;
pub(crate) use permission::{Around, Chosen, PermissionForm, RulePreview};
pub(crate) use picker::{Choice, Picker};
pub(crate) use rules::RulesPanel;
pub(crate) use servers::ServersPanel;
pub(crate) use trust::TrustQuestion;

use std::sync::Arc;

use caliban_session::{Facts, ServerCommand};
use caliban_settings::RuleAction;
use caliban_terminal::Key;
use ratatui_core::layout::Rect;

use crate::canvas::{Canvas, overlay};
use crate::theme::Theme;

/// An overlay.
#[derive(Debug)]
pub(crate) enum Layer {
    Pager(Pager),
    Picker(Picker),
    Trust(TrustQuestion),
    Jobs(JobsPanel),
    History(HistorySearch),
    Rules(RulesPanel),
    Servers(ServersPanel),
}

/// What comes of a key.
#[derive(Debug)]
pub(crate) enum Reaction {
    Stay,
    Close,
    Do(Wish),
    CloseAnd(Wish),
}

/// What an overlay wants of the face.
#[derive(Debug)]
pub(crate) enum Wish {
    /// Put this into the draft.
    Draft(String),
    /// Send this; nothing where it is empty.
    SendLine(String),
    OpenSession(String),
    Trust,
    GoOnUntrusted,
    Leave,
    /// Show the text in an editor.
    ShowOutside(String),
    Dump(Vec<String>),
    Copy(String),
    EndJob(String),
    ShowJob(String),
    LoadHistories,
    CycleMode,
    ForgetRule {
        pattern: String,
        action: RuleAction,
    },
    Server(ServerCommand),
    SetModel(String),
}

/// What overlays show that is not theirs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) theme: &'a Theme,
    pub(crate) mode: &'a str,
    pub(crate) facts: Option<&'a Arc<Facts>>,
    /// Where one writes.
    pub(crate) input: Rect,
}

impl Layer {
    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        match self {
            Self::Pager(pager) => pager.press(key),
            Self::Picker(picker) => picker.press(key),
            Self::Trust(trust) => trust.press(key),
            Self::Jobs(jobs) => jobs.press(key),
            Self::History(search) => search.press(key),
            Self::Rules(rules) => rules.press(key),
            Self::Servers(servers) => servers.press(key),
        }
    }

    pub(crate) fn paste(&mut self, text: &str) {
        match self {
            Self::Picker(picker) => picker.paste(text),
            Self::History(search) => search.paste(text),
            Self::Pager(_) | Self::Trust(_) | Self::Jobs(_) | Self::Rules(_) | Self::Servers(_) => {
            }
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, known: &Known<'_>) {
        let theme = known.theme;
        let area = overlay(canvas.buffer.area);
        match self {
            Self::Pager(pager) => pager.draw(canvas, area, theme),
            Self::Picker(picker) => picker.draw(canvas, area, theme),
            Self::Trust(trust) => trust.draw(canvas, area, theme),
            Self::Jobs(jobs) => jobs.draw(canvas, area, theme),
            Self::History(search) => search.draw(canvas, known.input, theme),
            Self::Rules(rules) => rules.draw(canvas, area, theme, known.mode),
            Self::Servers(servers) => servers.draw(canvas, area, theme, known.facts),
        }
    }
}
