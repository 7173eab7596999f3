//! A text to read: scrolled, searched, copied.

use std::sync::Arc;

use caliban_terminal::{Key, KeyCode, Modifiers};
use caliban_text::{Row, Strength, ansi_words, sanitise};
use ratatui_core::layout::Rect;

use crate::canvas::Canvas;
use crate::layers::{Reaction, Wish};
use crate::theme::Theme;

/// A text in an overlay.
#[derive(Debug)]
pub(crate) struct Pager {
    title: String,
    text: Arc<str>,
    keys: Keys,
    top: usize,
    /// Rows for a width and a theme.
    laid: Option<(u16, u32, Vec<Row>)>,
    height: usize,
    search: Search,
    shows_help: bool,
}

/// Which keys there are beside those that scroll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keys {
    Reading,
    /// The viewer's: to the scrollback, to the editor.
    Viewing,
}

#[derive(Debug, Default)]
struct Search {
    /// Being written.
    draft: Option<String>,
    text: String,
}

impl Pager {
    pub(crate) fn new(title: impl Into<String>, text: impl Into<Arc<str>>) -> Self {
        Self {
            title: title.into(),
            text: text.into(),
            keys: Keys::Reading,
            top: 0,
            laid: None,
            height: 1,
            search: Search::default(),
            shows_help: false,
        }
    }

    /// The transcript viewer: begins at the end.
    pub(crate) fn viewer(text: impl Into<Arc<str>>) -> Self {
        Self {
            keys: Keys::Viewing,
            top: usize::MAX,
            ..Self::new("Transcript", text)
        }
    }

    fn last_top(&self) -> usize {
        let rows = self.laid.as_ref().map_or(0, |(_, _, rows)| rows.len());
        rows.saturating_sub(self.height)
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        if self.search.draft.is_some() {
            return self.press_in_search(key);
        }
        if self.shows_help {
            self.shows_help = false;
            return Reaction::Stay;
        }
        let page = self.height.saturating_sub(1).max(1);
        let top = self.top.min(self.last_top());
        let is_ctrl = key.modifiers.contains(Modifiers::CTRL);
        self.top = match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return Reaction::Close,
            KeyCode::Char('o' | 'c') if is_ctrl => return Reaction::Close,
            KeyCode::Up | KeyCode::Char('k') => top.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') | KeyCode::Enter => top + 1,
            KeyCode::PageUp | KeyCode::Char('b') => top.saturating_sub(page),
            KeyCode::Char('u') if is_ctrl => top.saturating_sub(page / 2),
            KeyCode::Char('d') if is_ctrl => top + page / 2,
            KeyCode::PageDown | KeyCode::Char(' ' | 'f') => top + page,
            KeyCode::Home | KeyCode::Char('g') => 0,
            KeyCode::End | KeyCode::Char('G') => usize::MAX,
            KeyCode::Char('/') => {
                self.search.draft = Some(String::new());
                top
            }
            KeyCode::Char('n') => self.found(top, Way::Down),
            KeyCode::Char('N') => self.found(top, Way::Up),
            KeyCode::Char('?') => {
                self.shows_help = true;
                top
            }
            KeyCode::Char('y') => return Reaction::Do(Wish::Copy(self.text.to_string())),
            KeyCode::Char('[') if self.keys == Keys::Viewing => {
                return Reaction::Do(Wish::Dump(self.on_screen()));
            }
            KeyCode::Char('v') if self.keys == Keys::Viewing => {
                return Reaction::Do(Wish::ShowOutside(self.text.to_string()));
            }
            _ => top,
        };
        self.top = self.top.min(self.last_top());
        Reaction::Stay
    }

    fn press_in_search(&mut self, key: Key) -> Reaction {
        let Some(draft) = &mut self.search.draft else {
            return Reaction::Stay;
        };
        match key.code {
            KeyCode::Esc => self.search.draft = None,
            KeyCode::Char('c') if key.modifiers.contains(Modifiers::CTRL) => {
                self.search.draft = None;
            }
            KeyCode::Backspace => {
                draft.pop();
            }
            KeyCode::Char(char) if key.modifiers == Modifiers::none() => draft.push(char),
            KeyCode::Enter => {
                self.search.text = self.search.draft.take().unwrap_or_default();
                let from = self.top.min(self.last_top());
                self.top = self.found(from.wrapping_sub(1), Way::Down);
            }
            _ => {}
        }
        Reaction::Stay
    }

    /// The row of the next match, or where one is.
    fn found(&self, from: usize, way: Way) -> usize {
        let here = from.min(self.last_top());
        let Some((_, _, rows)) = &self.laid else {
            return here;
        };
        let wanted = self.search.text.to_lowercase();
        if wanted.is_empty() {
            return here;
        }
        let fits = |place: &usize| {
            rows.get(*place)
                .is_some_and(|row| row.text().to_lowercase().contains(&wanted))
        };
        let found = match way {
            Way::Down => (from.wrapping_add(1)..rows.len()).find(fits),
            Way::Up => (0..here).rev().find(fits),
        };
        found.unwrap_or(here)
    }

    fn on_screen(&self) -> Vec<String> {
        let Some((_, _, rows)) = &self.laid else {
            return Vec::new();
        };
        let shown = rows.iter().skip(self.top).take(self.height);
        shown.map(|row| row.text().trim_end().to_owned()).collect()
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let inside = canvas.frame(area, &sanitise(&self.title, Strength::Name), theme);
        if inside.height < 2 {
            return;
        }
        let body = Rect {
            height: inside.height - 1,
            ..inside
        };
        self.height = usize::from(body.height);
        let fits = matches!(&self.laid, Some((width, version, _))
            if (*width, *version) == (body.width, theme.version));
        if !fits {
            let rows = ansi_words(&self.text, body.width, theme.palette.text);
            self.laid = Some((body.width, theme.version, rows));
        }
        self.top = self.top.min(self.last_top());
        let rows = self.laid.as_ref().map_or(&[][..], |(_, _, rows)| rows);
        let wanted = self.search.text.to_lowercase();
        for (y, row) in (body.y..body.bottom()).zip(rows.iter().skip(self.top)) {
            canvas.row(body, y, row);
            if !wanted.is_empty() && row.text().to_lowercase().contains(&wanted) {
                canvas.text(
                    area.x,
                    y,
                    area.right(),
                    theme.signs.selected,
                    theme.palette.accent,
                );
            }
        }
        let hint = self.hint(rows.len());
        canvas.text(
            inside.x,
            inside.bottom() - 1,
            inside.right(),
            &hint,
            theme.palette.dim,
        );
    }

    fn hint(&self, rows: usize) -> String {
        if let Some(draft) = &self.search.draft {
            return format!("/{draft}");
        }
        if self.shows_help {
            let more = match self.keys {
                Keys::Reading => "",
                Keys::Viewing => "  [ to scrollback  v in $VISUAL",
            };
            return format!("arrows, pages, g G  / search, n N{more}  y copy  q closes");
        }
        let last = (self.top + self.height).min(rows);
        format!("{last}/{rows}  ? keys  q closes")
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}
