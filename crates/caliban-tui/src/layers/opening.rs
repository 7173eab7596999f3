//! What is asked before a session begins: whether the workspace is trusted, and whether its
//! instructions may import files from elsewhere.

use std::time::Instant;

use caliban_terminal::{Key, KeyCode, Modifiers};
use caliban_text::{Strength, sanitise, wrap};
use ratatui_core::layout::Rect;
use ratatui_core::text::Span;

use crate::canvas::Canvas;
use crate::host::ImportVerdict;
use crate::layers::{Reaction, Wish};
use crate::questions::{DEAF, QUIET};
use crate::theme::Theme;

/// What a question is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpeningSubject {
    Trust,
    Imports,
}

impl OpeningSubject {
    fn title(self) -> &'static str {
        match self {
            Self::Trust => "Trust this workspace?",
            Self::Imports => "Import files from outside?",
        }
    }

    fn told(self) -> &'static str {
        match self {
            Self::Trust => {
                "It has settings of its own. Without trust, this of them does not count:"
            }
            Self::Imports => {
                "Its instructions import files from outside of it, which the model would be told:"
            }
        }
    }

    fn keys(self) -> &'static str {
        match self {
            Self::Trust => "[y] trust it with its files as they are   [n] go on without",
            Self::Imports => "[y] import them as they are   [n] go on without",
        }
    }

    fn yes(self) -> Wish {
        match self {
            Self::Trust => Wish::Trust,
            Self::Imports => Wish::JudgeImports(ImportVerdict::Approve),
        }
    }

    fn no(self) -> Wish {
        match self {
            Self::Trust => Wish::GoOnUntrusted,
            Self::Imports => Wish::JudgeImports(ImportVerdict::Refuse),
        }
    }
}

/// A question about a workspace.
#[derive(Debug)]
pub(crate) struct OpeningQuestion {
    subject: OpeningSubject,
    workspace: String,
    /// What it asks for and does not get without a yes.
    listed: Vec<String>,
    top: usize,
    /// Until then nothing can be chosen: what is typed was not meant for it.
    listens_from: Instant,
}

impl OpeningQuestion {
    /// It appears now, and somebody may be typing.
    pub(crate) fn new(
        subject: OpeningSubject,
        workspace: String,
        listed: Vec<String>,
        now: Instant,
        last_typed: Option<Instant>,
    ) -> Self {
        let quiet = last_typed.map(|typed| typed + QUIET);
        Self {
            subject,
            workspace,
            listed,
            top: 0,
            listens_from: quiet.into_iter().fold(now + DEAF, Instant::max),
        }
    }

    /// Whether a key is meant for it. Whoever goes on typing has not seen it yet; leaving always
    /// works.
    pub(crate) fn hears(&mut self, key: Key, now: Instant) -> bool {
        if leaves(key) || self.listens_from <= now {
            return true;
        }
        self.listens_from = now + QUIET;
        false
    }

    /// When it begins to listen; nothing once it does.
    pub(crate) fn deadline(&self, now: Instant) -> Option<Instant> {
        (self.listens_from > now).then_some(self.listens_from)
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        match key.code {
            _ if leaves(key) => Reaction::Do(Wish::Leave),
            KeyCode::Char('y' | 'Y') => Reaction::CloseAnd(self.subject.yes()),
            KeyCode::Char('n' | 'N') | KeyCode::Esc => Reaction::CloseAnd(self.subject.no()),
            KeyCode::Up => {
                self.top = self.top.saturating_sub(1);
                Reaction::Stay
            }
            KeyCode::Down => {
                self.top = (self.top + 1).min(self.listed.len().saturating_sub(1));
                Reaction::Stay
            }
            _ => Reaction::Stay,
        }
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas, area: Rect, theme: &Theme, now: Instant) {
        let inside = canvas.frame(area, self.subject.title(), theme);
        let palette = &theme.palette;
        let mut rows = Vec::new();
        let mut say = |text: String, style| {
            rows.extend(wrap(vec![Span::styled(text, style)], inside.width, &[]));
        };
        say(
            sanitise(&self.workspace, Strength::Name).into_owned(),
            palette.strong,
        );
        say(self.subject.told().to_owned(), palette.text);
        for listed in self.listed.iter().skip(self.top) {
            let listed = sanitise(listed, Strength::Name);
            say(format!("  - {listed}"), palette.warning);
        }
        let keys = vec![Span::styled(self.subject.keys(), palette.strong)];
        let keys = wrap(keys, inside.width, &[]);
        let foot = u16::try_from(keys.len()).unwrap_or(u16::MAX);
        let foot = foot.min(inside.height);
        let room = usize::from(inside.height.saturating_sub(foot + 1));
        rows.truncate(room);
        canvas.rows(inside, &rows);
        if self.deadline(now).is_none() {
            let below = Rect {
                y: inside.bottom() - foot,
                height: foot,
                ..inside
            };
            canvas.rows(below, &keys);
        }
    }
}

fn leaves(key: Key) -> bool {
    matches!(key.code, KeyCode::Char('c' | 'd')) && key.modifiers.contains(Modifiers::CTRL)
}
