//! What lies over the conversation and hears keys first.

mod agents;
mod catalogue;
mod context;
mod elicitation;
mod field;
mod history_search;
mod jobs;
mod legend;
mod list;
mod login;
mod opening;
mod pager;
mod parts;
mod permission;
mod picker;
mod plan;
mod queue;
mod rewind;
mod rules;
mod servers;
mod sessions;
mod settings;
mod themes;

pub(crate) use agents::AgentsPanel;
pub(crate) use catalogue::{
    COMMANDS, Catalogue, MEMORY, MODELS, PROFILES, READING, STYLES, Step, Thing,
};
pub(crate) use context::ContextPanel;
pub(crate) use elicitation::ElicitationForm;
pub(crate) use history_search::HistorySearch;
pub(crate) use jobs::JobsPanel;
pub(crate) use login::{Begins, LoginPanel};
pub(crate) use opening::{OpeningQuestion, OpeningSubject};
pub(crate) use pager::Pager;
pub(crate) use parts::PartsPanel;
pub(crate) use permission::{Around, Chosen, PermissionForm, RulePreview};
pub(crate) use picker::{Choice, Picker};
pub(crate) use plan::{PlanForm, PlanVerdict, TOOL as PLAN_TOOL};
pub(crate) use queue::{QueuePanel, QueuedRow};
pub(crate) use rewind::RewindPanel;
pub(crate) use rules::RulesPanel;
pub(crate) use servers::ServersPanel;
pub(crate) use sessions::SessionsPanel;
pub(crate) use settings::SettingsPanel;
pub(crate) use themes::ThemesPanel;

use std::sync::Arc;
use std::time::Instant;

use caliban_session::{PromptId, Rewind, ServerCommand};
use caliban_settings::RuleAction;
use caliban_terminal::Key;
use ratatui_core::layout::Rect;
use serde_json::Value;

use crate::agents_desk::AgentChange;
use crate::app::Towards;
use crate::canvas::{Canvas, overlay};
use crate::custom_theme::CustomTheme;
use crate::host::{BypassLatch, ImportVerdict};
use crate::preferences::ThemeChoice;
use crate::sessions_desk::SessionChange;
use crate::theme::Theme;

/// An overlay.
#[derive(Debug)]
pub(crate) enum Layer {
    Pager(Pager),
    Picker(Picker),
    Opening(OpeningQuestion),
    Jobs(JobsPanel),
    Agents(AgentsPanel),
    Queue(QueuePanel),
    History(HistorySearch),
    Rules(RulesPanel),
    Servers(ServersPanel),
    Rewind(RewindPanel),
    Settings(SettingsPanel),
    Sessions(SessionsPanel),
    Context(ContextPanel),
    Catalogue(Catalogue),
    Login(LoginPanel),
    Themes(Box<ThemesPanel>),
    Parts(Box<PartsPanel>),
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
    JudgeImports(ImportVerdict),
    Leave,
    /// Show the text in an editor.
    ShowOutside(String),
    Dump(Vec<String>),
    Copy(String),
    EditQueued(PromptId),
    DropQueued(PromptId),
    MoveQueued {
        prompt: PromptId,
        towards: Towards,
    },
    EndJob(String),
    ShowJob(String),
    ShowJobs,
    ShowAgents,
    AttachAgent(String),
    ChangeAgent(AgentChange),
    LoadHistories,
    CycleMode,
    ForgetRule {
        pattern: String,
        action: RuleAction,
    },
    Server(ServerCommand),
    LogInToServer(String),
    /// Show this text under this title.
    Read(String, String),
    SetModel(String),
    /// Ask whether the conversation is to be condensed.
    AskToCompact,
    /// Show what going back would do.
    PreviewRewind(Rewind),
    Rewind {
        rewind: Rewind,
        /// What was typed for the first prompt that goes.
        next: Option<String>,
    },
    /// The face's own settings may be others now.
    SettingsWritten,
    /// Read what was said in a session.
    PreviewSession(String),
    /// Find the sessions in which this was said.
    SearchSessions(String),
    ChangeSession(SessionChange),
    /// Offer to write this value.
    ProposeSetting {
        key: &'static str,
        value: String,
    },
    ChangeEffort(Step),
    ReadMemory(String),
    EditMemory(String),
    AskToForget(String),
    /// Delete a note; nothing where it is empty.
    ForgetMemory(String),
    SaveKey {
        provider: String,
        key: String,
        begins: Begins,
    },
    /// Forget the key of a provider; nothing where it is empty.
    ForgetKey(String),
    /// Permit a call with this input instead of its own.
    AllowParts {
        question: Arc<str>,
        input: Value,
    },
    /// Show everything in these colours.
    TryTheme(ThemeChoice, Option<CustomTheme>),
    /// There is no session, and there will be none.
    GiveUp,
}

/// What overlays show that is not theirs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Known<'a> {
    pub(crate) theme: &'a Theme,
    pub(crate) mode: &'a str,
    pub(crate) latch: BypassLatch,
    pub(crate) now: Instant,
    /// Where one writes.
    pub(crate) input: Rect,
}

impl Layer {
    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        match self {
            Self::Pager(pager) => pager.press(key),
            Self::Picker(picker) => picker.press(key),
            Self::Opening(question) => question.press(key),
            Self::Jobs(jobs) => jobs.press(key),
            Self::Agents(agents) => agents.press(key),
            Self::Queue(queue) => queue.press(key),
            Self::History(search) => search.press(key),
            Self::Rules(rules) => rules.press(key),
            Self::Servers(servers) => servers.press(key),
            Self::Rewind(rewind) => rewind.press(key),
            Self::Settings(settings) => settings.press(key),
            Self::Sessions(sessions) => sessions.press(key),
            Self::Context(context) => context.press(key),
            Self::Catalogue(catalogue) => catalogue.press(key),
            Self::Login(login) => login.press(key),
            Self::Themes(themes) => themes.press(key),
            Self::Parts(parts) => parts.press(key),
        }
    }

    pub(crate) fn paste(&mut self, text: &str) {
        match self {
            Self::Picker(picker) => picker.paste(text),
            Self::Agents(agents) => agents.paste(text),
            Self::History(search) => search.paste(text),
            Self::Settings(settings) => settings.paste(text),
            Self::Sessions(sessions) => sessions.paste(text),
            Self::Servers(servers) => servers.paste(text),
            Self::Rules(rules) => rules.paste(text),
            Self::Catalogue(catalogue) => catalogue.paste(text),
            Self::Login(login) => login.paste(text),
            Self::Pager(_)
            | Self::Opening(_)
            | Self::Jobs(_)
            | Self::Queue(_)
            | Self::Themes(_)
            | Self::Parts(_)
            | Self::Context(_)
            | Self::Rewind(_) => {}
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, known: &Known<'_>) {
        let theme = known.theme;
        let area = overlay(canvas.buffer.area);
        match self {
            Self::Pager(pager) => pager.draw(canvas, area, theme),
            Self::Picker(picker) => picker.draw(canvas, area, theme),
            Self::Opening(question) => question.draw(canvas, area, theme, known.now),
            Self::Jobs(jobs) => jobs.draw(canvas, area, theme),
            Self::Agents(agents) => agents.draw(canvas, area, theme),
            Self::Queue(queue) => queue.draw(canvas, area, theme),
            Self::History(search) => search.draw(canvas, known.input, theme),
            Self::Rules(rules) => rules.draw(canvas, area, known),
            Self::Servers(servers) => servers.draw(canvas, area, theme),
            Self::Rewind(rewind) => rewind.draw(canvas, area, theme),
            Self::Settings(settings) => settings.draw(canvas, area, theme),
            Self::Sessions(sessions) => sessions.draw(canvas, area, theme),
            Self::Context(context) => context.draw(canvas, area, theme),
            Self::Catalogue(catalogue) => catalogue.draw(canvas, area, theme),
            Self::Login(login) => login.draw(canvas, area, theme),
            Self::Themes(themes) => themes.draw(canvas, area, theme),
            Self::Parts(parts) => parts.draw(canvas, area, theme),
        }
    }
}
