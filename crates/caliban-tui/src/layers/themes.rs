//! Colours to choose from: what is looked at is shown at once, everywhere.

use caliban_terminal::{Key, KeyCode};
use ratatui_core::layout::Rect;

use crate::canvas::Canvas;
use crate::custom_theme::CustomTheme;
use crate::layers::list::{Heard, Line, List, closes, panel, tell_keys};
use crate::layers::{Reaction, Wish};
use crate::preferences::ThemeChoice;
use crate::theme::Theme;

/// The overlay.
#[derive(Debug)]
pub(crate) struct ThemesPanel {
    /// What there was before, which comes back if nothing is chosen.
    before: (ThemeChoice, Option<CustomTheme>),
    list: List,
}

impl ThemesPanel {
    pub(crate) fn new(before: ThemeChoice, custom: Option<CustomTheme>) -> Self {
        let mut list = List::default();
        let place = ThemeChoice::ALL.iter().position(|(_, it, _)| *it == before);
        list.choose(place.filter(|_| custom.is_none()).unwrap_or_default());
        Self {
            before: (before, custom),
            list,
        }
    }

    fn shown(&self) -> Vec<(&'static str, ThemeChoice, &'static str)> {
        let texts = ThemeChoice::ALL.iter().map(|(name, ..)| *name);
        let places = self.list.shown(texts).into_iter();
        places
            .filter_map(|place| ThemeChoice::ALL.get(place).copied())
            .collect()
    }

    fn chosen(&self) -> Option<ThemeChoice> {
        let shown = self.shown();
        let place = self.list.chosen().min(shown.len().saturating_sub(1));
        shown.get(place).map(|(_, choice, _)| *choice)
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        let length = self.shown().len();
        if self.list.press(key, length) == Heard::Taken {
            return match self.chosen() {
                Some(choice) => Reaction::Do(Wish::TryTheme(choice, None)),
                None => Reaction::Stay,
            };
        }
        match (key.code, self.chosen()) {
            (KeyCode::Enter, Some(choice)) => Reaction::CloseAnd(Wish::TryTheme(choice, None)),
            _ if closes(key) => {
                let (choice, custom) = self.before.clone();
                Reaction::CloseAnd(Wish::TryTheme(choice, custom))
            }
            _ => Reaction::Stay,
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let hint = self.list.hint("Enter chooses  / search  Esc as it was");
        let Some(places) = panel(canvas, area, "Themes", &hint, theme) else {
            return;
        };
        let palette = &theme.palette;
        let lines: Vec<Line> = self
            .shown()
            .into_iter()
            .map(|(name, choice, about)| {
                let is_current = self.before.1.is_none() && choice == self.before.0;
                let mark = if is_current { "current  " } else { "" };
                Line {
                    label: name.to_owned(),
                    about: format!("{mark}{about}"),
                    style: palette.text,
                }
            })
            .collect();
        self.list.draw(canvas, places.body, theme, &lines);
        let row = places.said;
        let said = "`tui.theme` in the settings keeps it; `/theme NAME` takes one of your own";
        canvas.text(row.x, row.y, row.right(), said, palette.dim);
        tell_keys(canvas, &places, &hint, theme);
    }
}
