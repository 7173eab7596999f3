//! One line to write in, within a panel.

use caliban_compose::{Editor, KeySet};
use caliban_terminal::{Key, KeyCode, Modifiers};
use caliban_text::{Strength, sanitise};
use ratatui_core::layout::{Position, Rect};

use crate::canvas::Canvas;
use crate::theme::Theme;

/// The line.
#[derive(Debug)]
pub(crate) struct Field {
    label: String,
    editor: Box<Editor>,
    shows: Shows,
}

/// What is seen of what one writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    Text,
    /// Its length alone.
    Length,
}

/// What came of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Written {
    Going,
    /// What was written.
    Given(String),
    Dropped,
}

impl Field {
    pub(crate) fn new(label: impl Into<String>, text: &str, shows: Shows) -> Self {
        let mut editor = Box::new(Editor::new(KeySet::Emacs));
        editor.set_text(text);
        Self {
            label: label.into(),
            editor,
            shows,
        }
    }

    pub(crate) fn press(&mut self, key: Key) -> Written {
        match key.code {
            KeyCode::Esc => return Written::Dropped,
            KeyCode::Char('c') if key.modifiers.contains(Modifiers::CTRL) => {
                return Written::Dropped;
            }
            KeyCode::Enter => return Written::Given(self.editor.text()),
            _ => {}
        }
        self.editor.press(key);
        Written::Going
    }

    /// The first line of what is pasted: a field has no more.
    pub(crate) fn paste(&mut self, text: &str) {
        self.editor
            .insert(text.trim().lines().next().unwrap_or_default());
    }

    /// Draws it in a row, with the caret in sight.
    pub(crate) fn draw(&self, canvas: &mut Canvas, row: Rect, theme: &Theme) {
        let palette = &theme.palette;
        let label = format!("{}: ", self.label);
        let x = canvas.text(row.x, row.y, row.right(), &label, palette.strong);
        let seen = |text: String| match self.shows {
            Shows::Text => sanitise(&text, Strength::Name).into_owned(),
            Shows::Length => "*".repeat(text.chars().count()),
        };
        let (before, text) = (seen(self.editor.before_caret()), seen(self.editor.text()));
        let room = usize::from(row.right().saturating_sub(x + 1));
        let hidden = caliban_text::width(&before).saturating_sub(room);
        let mut skipped = 0;
        let rest: String = text
            .chars()
            .skip_while(|char| {
                let is_hidden = skipped < hidden;
                skipped += caliban_text::width(char.encode_utf8(&mut [0; 4]));
                is_hidden
            })
            .collect();
        canvas.text(x, row.y, row.right(), &rest, palette.text);
        let caret = caliban_text::width(&before).saturating_sub(hidden);
        let caret = u16::try_from(caret).unwrap_or(u16::MAX);
        let last = row.right().saturating_sub(1);
        canvas.cursor = Some(Position::new(x.saturating_add(caret).min(last), row.y));
    }
}
