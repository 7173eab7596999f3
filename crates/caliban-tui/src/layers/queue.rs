//! Prompts that wait, to be changed, dropped and put in another order.

use caliban_session::PromptId;
use caliban_terminal::{Key, KeyCode, Modifiers};
use caliban_text::{Strength, sanitise};
use ratatui_core::layout::{Position, Rect};

use crate::app::Towards;
use crate::canvas::Canvas;
use crate::layers::{Reaction, Wish};
use crate::theme::Theme;

/// A prompt in the list.
#[derive(Debug)]
pub(crate) struct QueuedRow {
    pub(crate) id: PromptId,
    pub(crate) text: String,
    /// Whether it joins the work that goes on.
    pub(crate) steers: bool,
}

/// The panel.
#[derive(Debug, Default)]
pub(crate) struct QueuePanel {
    rows: Vec<QueuedRow>,
    chosen: usize,
}

impl QueuePanel {
    /// What waits by now.
    pub(crate) fn tell(&mut self, rows: Vec<QueuedRow>) {
        self.rows = rows;
        self.chosen = self.chosen.min(self.rows.len().saturating_sub(1));
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        let last = self.rows.len().saturating_sub(1);
        let is_shift = key.modifiers.contains(Modifiers::SHIFT);
        let Some(id) = self.rows.get(self.chosen).map(|row| row.id.clone()) else {
            return Reaction::Close;
        };
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return Reaction::Close,
            KeyCode::Char('c') if key.modifiers.contains(Modifiers::CTRL) => {
                return Reaction::Close;
            }
            KeyCode::Char('K') if self.chosen > 0 => return self.moved(id, Towards::Front),
            KeyCode::Char('J') if self.chosen < last => return self.moved(id, Towards::Back),
            KeyCode::Up if is_shift && self.chosen > 0 => return self.moved(id, Towards::Front),
            KeyCode::Down if is_shift && self.chosen < last => {
                return self.moved(id, Towards::Back);
            }
            KeyCode::Up | KeyCode::Char('k') => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.chosen = (self.chosen + 1).min(last),
            KeyCode::Char('x') | KeyCode::Delete => return Reaction::Do(Wish::DropQueued(id)),
            KeyCode::Enter | KeyCode::Char('e') => {
                return Reaction::CloseAnd(Wish::EditQueued(id));
            }
            _ => {}
        }
        Reaction::Stay
    }

    fn moved(&mut self, prompt: PromptId, towards: Towards) -> Reaction {
        self.chosen = match towards {
            Towards::Front => self.chosen.saturating_sub(1),
            Towards::Back => self.chosen + 1,
        };
        Reaction::Do(Wish::MoveQueued { prompt, towards })
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let inside = canvas.frame(area, "Prompts that wait", theme);
        let palette = &theme.palette;
        if inside.height < 2 {
            return;
        }
        if self.rows.is_empty() {
            canvas.text(inside.x, inside.y, inside.right(), "none", palette.dim);
        }
        let height = usize::from(inside.height - 1);
        let first = self.chosen.saturating_sub(height.saturating_sub(1));
        let rows = self.rows.iter().enumerate().skip(first);
        for (y, (place, row)) in (inside.y..inside.bottom() - 1).zip(rows) {
            let (sign, style) = if place == self.chosen {
                canvas.cursor = Some(Position::new(inside.x, y));
                (theme.signs.selected, palette.accent)
            } else {
                (" ", palette.text)
            };
            let when = if row.steers { "joins" } else { "waits" };
            let text = sanitise(&row.text, Strength::Name);
            let text = format!("{sign} {} {when}: {text}", place + 1);
            let text = theme.cut(&text, usize::from(inside.width));
            canvas.text(inside.x, y, inside.right(), &text, style);
        }
        let hint = "Enter edits  x drops  K J move  q closes";
        let y = inside.bottom() - 1;
        canvas.text(inside.x, y, inside.right(), hint, palette.dim);
    }
}
