//! The key of a provider: asked for, never shown, kept.

use caliban_terminal::{Key, KeyCode};
use caliban_text::{Row, Strength, sanitise, wrap};
use ratatui_core::layout::Rect;
use ratatui_core::text::Span;

use crate::canvas::Canvas;
use crate::layers::field::{Field, Shows, Written};
use crate::layers::list::{panel, tell_keys};
use crate::layers::{Reaction, Wish};
use crate::theme::Theme;

const KEYS: &str = "Enter keeps it  Tab another provider  Esc closes";

/// The overlay.
#[derive(Debug)]
pub(crate) struct LoginPanel {
    providers: Vec<String>,
    chosen: usize,
    field: Field,
    said: String,
    begins: Begins,
}

/// What a key is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Begins {
    /// A session cannot begin without it.
    Session,
    /// It counts from the next start on.
    Nothing,
}

impl LoginPanel {
    pub(crate) fn new(providers: Vec<String>, said: String, begins: Begins) -> Self {
        let mut panel = Self {
            providers,
            chosen: 0,
            field: Field::new("key", "", Shows::Length),
            said,
            begins,
        };
        panel.ask();
        panel
    }

    fn provider(&self) -> String {
        self.providers.get(self.chosen).cloned().unwrap_or_default()
    }

    fn ask(&mut self) {
        let label = format!("key of {}", self.provider());
        self.field = Field::new(label, "", Shows::Length);
    }

    pub(crate) fn tell(&mut self, text: String) {
        self.said = text;
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.field.paste(text);
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        if key.code == KeyCode::Tab && self.providers.len() > 1 {
            self.chosen = (self.chosen + 1) % self.providers.len();
            self.ask();
            return Reaction::Stay;
        }
        match self.field.press(key) {
            Written::Going => Reaction::Stay,
            Written::Dropped => match self.begins {
                Begins::Session => Reaction::CloseAnd(Wish::GiveUp),
                Begins::Nothing => Reaction::Close,
            },
            Written::Given(text) if text.trim().is_empty() => {
                "paste or type the key first".clone_into(&mut self.said);
                self.ask();
                Reaction::Stay
            }
            Written::Given(text) => {
                let provider = self.provider();
                let key = text.trim().to_owned();
                self.ask();
                Reaction::Do(Wish::SaveKey {
                    provider,
                    key,
                    begins: self.begins,
                })
            }
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let Some(places) = panel(canvas, area, "Log in", KEYS, theme) else {
            return;
        };
        let palette = &theme.palette;
        let body = places.body;
        let words = [
            "Paste the key that your provider made for you; it is not shown.",
            "It is kept in the desktop's secret store, or in a file that only you can read.",
            "Variables and `api_key_helper` go before it.",
        ];
        let said = sanitise(&self.said, Strength::Name).into_owned();
        let laid = |text: String, style| wrap(vec![Span::styled(text, style)], body.width, &[]);
        let mut rows: Vec<Row> = words
            .into_iter()
            .flat_map(|text| laid(text.to_owned(), palette.text))
            .collect();
        if !said.is_empty() {
            rows.push(Row::default());
            rows.extend(laid(said, palette.warning));
        }
        canvas.rows(body, &rows);
        // What is asked for is in sight on every screen.
        let below = u16::try_from(rows.len() + 1).unwrap_or(u16::MAX);
        let row = Rect {
            y: body.y.saturating_add(below).min(places.said.y),
            height: 1,
            ..body
        };
        self.field.draw(canvas, row, theme);
        tell_keys(canvas, &places, KEYS, theme);
    }
}
