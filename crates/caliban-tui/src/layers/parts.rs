//! Which parts of a change are permitted.

use std::sync::Arc;

use caliban_terminal::{Key, KeyCode};
use caliban_text::Strength;
use caliban_text::sanitise;
use ratatui_core::layout::Rect;

use crate::canvas::Canvas;
use crate::layers::list::{Heard, Line, List, closes, panel, tell_keys};
use crate::layers::{Reaction, Wish};
use crate::partial::{Partial, Wanted};
use crate::theme::Theme;

const KEYS: &str = "Enter allows what is marked  Space marks or unmarks  / search  q closes";

/// The overlay.
#[derive(Debug)]
pub(crate) struct PartsPanel {
    question: Arc<str>,
    partial: Partial,
    wanted: Vec<Wanted>,
    list: List,
    said: &'static str,
}

impl PartsPanel {
    pub(crate) fn new(question: Arc<str>, partial: Partial) -> Self {
        Self {
            wanted: vec![Wanted::Yes; partial.count()],
            question,
            partial,
            list: List::default(),
            said: "",
        }
    }

    fn shown(&self) -> Vec<usize> {
        let labels: Vec<String> = (0..self.partial.count())
            .map(|place| self.partial.label(place))
            .collect();
        self.list.shown(labels.iter().map(String::as_str))
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        let shown = self.shown();
        if self.list.press(key, shown.len()) == Heard::Taken {
            return Reaction::Stay;
        }
        match key.code {
            KeyCode::Char(' ' | 'x') => {
                let chosen = shown.get(self.list.chosen());
                if let Some(wanted) = chosen.and_then(|place| self.wanted.get_mut(*place)) {
                    *wanted = match wanted {
                        Wanted::Yes => Wanted::No,
                        Wanted::No => Wanted::Yes,
                    };
                }
                Reaction::Stay
            }
            KeyCode::Enter => {
                if let Some(input) = self.partial.input(&self.wanted) {
                    return Reaction::CloseAnd(Wish::AllowParts {
                        question: Arc::clone(&self.question),
                        input,
                    });
                }
                self.said = "nothing is marked; close this and deny the call instead";
                Reaction::Stay
            }
            _ if closes(key) => Reaction::Close,
            _ => Reaction::Stay,
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let hint = self.list.hint(KEYS);
        let Some(places) = panel(canvas, area, "Which changes may be made?", &hint, theme) else {
            return;
        };
        let palette = &theme.palette;
        let body = places.body;
        let shown = self.shown();
        let lines: Vec<Line> = shown
            .iter()
            .map(|place| {
                let mark = match self.wanted.get(*place) {
                    Some(Wanted::Yes) => "[x]",
                    Some(Wanted::No) | None => "[ ]",
                };
                Line {
                    label: format!("{mark} {}", self.partial.label(*place)),
                    about: String::new(),
                    style: palette.text,
                }
            })
            .collect();
        // The change that is chosen is read below the list.
        let rows = u16::try_from(lines.len()).unwrap_or(u16::MAX);
        let list = Rect {
            height: rows.min(body.height.div_ceil(2)),
            ..body
        };
        self.list.draw(canvas, list, theme, &lines);
        let below = Rect {
            y: list.bottom() + 1,
            height: body.bottom().saturating_sub(list.bottom() + 1),
            ..body
        };
        if let Some(place) = shown.get(self.list.chosen()) {
            canvas.rows(below, &self.partial.rows(*place, below.width, palette));
        }
        let row = places.said;
        let said = sanitise(self.said, Strength::Name);
        canvas.text(row.x, row.y, row.right(), &said, palette.warning);
        tell_keys(canvas, &places, &hint, theme);
    }
}
