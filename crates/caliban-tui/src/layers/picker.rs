//! A list to choose from, narrowed by typing.

use caliban_terminal::{Key, KeyCode, Modifiers};
use caliban_text::{Strength, sanitise};
use ratatui_core::layout::{Position, Rect};

use crate::canvas::Canvas;
use crate::completion::ranked_texts;
use crate::layers::{Reaction, Wish};
use crate::theme::Theme;

/// One thing to choose.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) label: String,
    pub(crate) about: String,
    pub(crate) value: String,
}

/// A list in an overlay.
#[derive(Debug)]
pub(crate) struct Picker {
    title: String,
    choices: Vec<Choice>,
    query: String,
    shown: Vec<usize>,
    chosen: usize,
    wish: fn(String) -> Wish,
}

impl Picker {
    pub(crate) fn new(
        title: impl Into<String>,
        choices: Vec<Choice>,
        query: &str,
        wish: fn(String) -> Wish,
    ) -> Self {
        let mut picker = Self {
            title: title.into(),
            choices,
            query: query.to_owned(),
            shown: Vec::new(),
            chosen: 0,
            wish,
        };
        picker.narrow();
        picker
    }

    fn narrow(&mut self) {
        self.chosen = 0;
        if self.query.is_empty() {
            self.shown = (0..self.choices.len()).collect();
            return;
        }
        let texts: Vec<String> = self
            .choices
            .iter()
            .enumerate()
            .map(|(place, choice)| format!("{} {}\0{place}", choice.label, choice.about))
            .collect();
        let places = ranked_texts(&self.query, &texts);
        let place = |text: String| {
            text.rsplit('\0')
                .next()
                .and_then(|place| place.parse().ok())
        };
        self.shown = places.into_iter().filter_map(place).collect();
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.query.push_str(text.lines().next().unwrap_or_default());
        self.narrow();
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        let last = self.shown.len().saturating_sub(1);
        let is_ctrl = key.modifiers.contains(Modifiers::CTRL);
        match key.code {
            KeyCode::Esc => return Reaction::Close,
            KeyCode::Char('c') if is_ctrl => return Reaction::Close,
            KeyCode::Char('q') if self.query.is_empty() => return Reaction::Close,
            KeyCode::Up => self.chosen = self.chosen.checked_sub(1).unwrap_or(last),
            KeyCode::Down => {
                self.chosen = if self.chosen >= last {
                    0
                } else {
                    self.chosen + 1
                }
            }
            KeyCode::PageUp => self.chosen = self.chosen.saturating_sub(10),
            KeyCode::PageDown => self.chosen = (self.chosen + 10).min(last),
            KeyCode::Home => self.chosen = 0,
            KeyCode::End => self.chosen = last,
            KeyCode::Backspace => {
                self.query.pop();
                self.narrow();
            }
            KeyCode::Char(char) if !is_ctrl && !key.modifiers.contains(Modifiers::ALT) => {
                self.query.push(char);
                self.narrow();
            }
            KeyCode::Enter => {
                let chosen = self.shown.get(self.chosen);
                if let Some(choice) = chosen.and_then(|place| self.choices.get(*place)) {
                    return Reaction::CloseAnd((self.wish)(choice.value.clone()));
                }
            }
            _ => {}
        }
        Reaction::Stay
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let inside = canvas.frame(area, &self.title, theme);
        if inside.height < 3 {
            return;
        }
        let palette = &theme.palette;
        let prompt = format!("{} {}", theme.signs.prompt, self.query);
        let end = canvas.text(inside.x, inside.y, inside.right(), &prompt, palette.text);
        canvas.cursor = Some(Position::new(end.min(inside.right() - 1), inside.y));
        let height = usize::from(inside.height - 2);
        let first = self.chosen.saturating_sub(height.saturating_sub(1));
        let label_width = usize::from(inside.width) / 2;
        for (y, place) in (inside.y + 1..inside.bottom() - 1).zip(first..self.shown.len()) {
            let Some(choice) = self.shown.get(place).and_then(|at| self.choices.get(*at)) else {
                continue;
            };
            let (sign, style) = if place == self.chosen {
                (theme.signs.selected, palette.accent)
            } else {
                (" ", palette.text)
            };
            let label = sanitise(&choice.label, Strength::Name);
            let label = theme.cut(&label, label_width);
            let x = canvas.text(
                inside.x,
                y,
                inside.right(),
                &format!("{sign} {label}"),
                style,
            );
            let about = sanitise(&choice.about, Strength::Name);
            canvas.text(x + 2, y, inside.right(), &about, palette.dim);
        }
        let hint = if self.shown.is_empty() {
            "nothing fits".to_owned()
        } else {
            format!(
                "{}/{}  Enter chooses  Esc closes",
                self.chosen + 1,
                self.shown.len()
            )
        };
        canvas.text(
            inside.x,
            inside.bottom() - 1,
            inside.right(),
            &hint,
            palette.dim,
        );
    }
}
