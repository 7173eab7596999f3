//! Whether the workspace is trusted: asked before anything in it counts.

use caliban_terminal::{Key, KeyCode, Modifiers};
use caliban_text::{Row, Strength, sanitise, wrap};
use ratatui_core::layout::Rect;
use ratatui_core::text::Span;

use crate::canvas::Canvas;
use crate::layers::{Reaction, Wish};
use crate::theme::Theme;

/// The question about a workspace.
#[derive(Debug)]
pub(crate) struct TrustQuestion {
    workspace: String,
    /// What it asks for and does not get without trust.
    ignored: Vec<String>,
    top: usize,
}

impl TrustQuestion {
    pub(crate) fn new(workspace: String, ignored: Vec<String>) -> Self {
        Self {
            workspace,
            ignored,
            top: 0,
        }
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        match key.code {
            KeyCode::Char('y' | 'Y') => Reaction::CloseAnd(Wish::Trust),
            KeyCode::Char('c' | 'd') if key.modifiers.contains(Modifiers::CTRL) => {
                Reaction::Do(Wish::Leave)
            }
            KeyCode::Char('n' | 'N') | KeyCode::Esc => Reaction::CloseAnd(Wish::GoOnUntrusted),
            KeyCode::Up => {
                self.top = self.top.saturating_sub(1);
                Reaction::Stay
            }
            KeyCode::Down => {
                self.top = (self.top + 1).min(self.ignored.len().saturating_sub(1));
                Reaction::Stay
            }
            _ => Reaction::Stay,
        }
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let inside = canvas.frame(area, "Trust this workspace?", theme);
        let palette = &theme.palette;
        let mut rows = Vec::new();
        let mut say = |text: String, style| {
            rows.extend(wrap(vec![Span::styled(text, style)], inside.width, &[]));
        };
        say(
            sanitise(&self.workspace, Strength::Name).into_owned(),
            palette.strong,
        );
        say(
            "It has settings of its own. Without trust, this of them does not count:".to_owned(),
            palette.text,
        );
        for ignored in self.ignored.iter().skip(self.top) {
            let ignored = sanitise(ignored, Strength::Name);
            say(format!("  - {ignored}"), palette.warning);
        }
        let keys = Row::plain(
            "[y] trust it with its files as they are   [n] go on without",
            palette.strong,
        );
        let room = usize::from(inside.height.saturating_sub(2));
        rows.truncate(room);
        canvas.rows(inside, &rows);
        canvas.row(inside, inside.bottom().saturating_sub(1), &keys);
    }
}
