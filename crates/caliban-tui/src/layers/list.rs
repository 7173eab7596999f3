//! A list to walk through, narrowed by what is typed after `/`.

use caliban_terminal::{Key, KeyCode, Modifiers};
use caliban_text::{Strength, sanitise};
use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::Style;

use crate::canvas::Canvas;
use crate::theme::Theme;

/// How far a page goes.
const PAGE: usize = 10;
/// The most that is searched for.
const LONGEST: usize = 200;

/// Which row is chosen, and what the rows are narrowed to.
#[derive(Debug, Default)]
pub(crate) struct List {
    chosen: usize,
    search: String,
    is_writing: bool,
}

/// Whether a key was for the list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Heard {
    Taken,
    /// Somebody else's.
    Left,
}

/// A row as it is drawn.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) label: String,
    pub(crate) about: String,
    pub(crate) style: Style,
}

impl List {
    /// A list that is narrowed already.
    pub(crate) fn narrowed_to(search: &str) -> Self {
        Self {
            search: search.to_owned(),
            ..Self::default()
        }
    }

    pub(crate) fn chosen(&self) -> usize {
        self.chosen
    }

    pub(crate) fn choose(&mut self, place: usize) {
        self.chosen = place;
    }

    /// The rows that have every word that is searched for, in their order.
    pub(crate) fn shown<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> Vec<usize> {
        let search = self.search.to_lowercase();
        let fits = |text: &str| {
            let text = text.to_lowercase();
            search.split_whitespace().all(|word| text.contains(word))
        };
        let texts = texts.into_iter().enumerate();
        texts
            .filter(|(_, text)| fits(text))
            .map(|(place, _)| place)
            .collect()
    }

    /// Hears a key, with so many rows shown.
    pub(crate) fn press(&mut self, key: Key, length: usize) -> Heard {
        let last = length.saturating_sub(1);
        self.chosen = self.chosen.min(last);
        let is_plain = key.modifiers == Modifiers::none() || key.modifiers == Modifiers::SHIFT;
        match key.code {
            KeyCode::Up => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Down => self.chosen = (self.chosen + 1).min(last),
            KeyCode::PageUp => self.chosen = self.chosen.saturating_sub(PAGE),
            KeyCode::PageDown => self.chosen = (self.chosen + PAGE).min(last),
            KeyCode::Home => self.chosen = 0,
            KeyCode::End => self.chosen = last,
            KeyCode::Enter if self.is_writing => self.is_writing = false,
            KeyCode::Esc if self.is_writing => {
                self.is_writing = false;
                self.search.clear();
            }
            KeyCode::Backspace if self.is_writing => {
                self.search.pop();
                self.chosen = 0;
            }
            KeyCode::Char(char) if self.is_writing && is_plain => {
                if self.search.len() < LONGEST {
                    self.search.push(char);
                }
                self.chosen = 0;
            }
            _ if self.is_writing => {}
            KeyCode::Char('k') if is_plain => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Char('j') if is_plain => self.chosen = (self.chosen + 1).min(last),
            KeyCode::Char('/') => self.is_writing = true,
            _ => return Heard::Left,
        }
        Heard::Taken
    }

    pub(crate) fn paste(&mut self, text: &str) {
        if self.is_writing {
            let line = text.lines().next().unwrap_or_default();
            self.search.extend(line.chars().take(LONGEST));
            self.chosen = 0;
        }
    }

    /// What is said below the list: what is searched for, else the keys there are.
    pub(crate) fn hint(&self, keys: &str) -> String {
        if self.is_writing {
            return format!("/{}", self.search);
        }
        if self.search.is_empty() {
            return keys.to_owned();
        }
        format!("/{}  {keys}", self.search)
    }

    /// Draws the rows that fit, and puts the cursor at the chosen one.
    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme, lines: &[Line]) {
        self.chosen = self.chosen.min(lines.len().saturating_sub(1));
        let first = (self.chosen + 1).saturating_sub(usize::from(area.height));
        let lines = lines.iter().enumerate().skip(first);
        for (y, (place, line)) in (area.y..area.bottom()).zip(lines) {
            let (sign, style) = if place == self.chosen {
                canvas.cursor = Some(Position::new(area.x, y));
                (theme.signs.selected, theme.palette.accent)
            } else {
                (" ", line.style)
            };
            let label = sanitise(&line.label, Strength::Name);
            let text = format!("{sign} {label}");
            let x = canvas.text(area.x, y, area.right(), &text, style);
            let about = sanitise(&line.about, Strength::Name);
            canvas.text(x + 2, y, area.right(), &about, theme.palette.dim);
        }
    }
}

/// Where the parts of a panel are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    pub(crate) body: Rect,
    /// The row where is said what came of a key.
    pub(crate) said: Rect,
    /// The rows of keys.
    hint: Rect,
}

/// A frame with room for a list, a remark and these keys; nothing where there is no room.
pub(crate) fn panel(
    canvas: &mut Canvas,
    area: Rect,
    title: &str,
    keys: &str,
    theme: &Theme,
) -> Option<Places> {
    /// A row of the list, and one for the remark.
    const LEAST: u16 = 3;
    let title = sanitise(title, Strength::Name);
    let inside = canvas.frame(area, &title, theme);
    if inside.height <= LEAST {
        return None;
    }
    let rows = u16::try_from(key_rows(keys, inside.width).len()).unwrap_or(u16::MAX);
    let rows = rows.clamp(1, inside.height - LEAST);
    let rect = |y: u16, height: u16| Rect {
        y,
        height,
        ..inside
    };
    Some(Places {
        body: rect(inside.y, inside.height - 1 - rows),
        said: rect(inside.bottom() - 1 - rows, 1),
        hint: rect(inside.bottom() - rows, rows),
    })
}

/// Says below a list what keys do.
pub(crate) fn tell_keys(canvas: &mut Canvas, places: &Places, hint: &str, theme: &Theme) {
    let area = places.hint;
    let rows = key_rows(hint, area.width);
    for (y, row) in (area.y..area.bottom()).zip(rows) {
        canvas.text(area.x, y, area.right(), &row, theme.palette.dim);
    }
}

/// Keys with what they do, two blanks between them, as many on a row as fit.
fn key_rows(keys: &str, columns: u16) -> Vec<String> {
    let columns = usize::from(columns);
    let mut rows: Vec<String> = Vec::new();
    for key in keys.split("  ").filter(|key| !key.is_empty()) {
        match rows.last_mut() {
            Some(row) if caliban_text::width(row) + 2 + caliban_text::width(key) <= columns => {
                row.push_str("  ");
                row.push_str(key);
            }
            Some(_) | None => rows.push(key.to_owned()),
        }
    }
    rows
}

/// Whether a key closes a panel that has nothing else to do with it.
pub(crate) fn closes(key: Key) -> bool {
    match key.code {
        KeyCode::Esc | KeyCode::Char('q') => true,
        KeyCode::Char('c') => key.modifiers.contains(Modifiers::CTRL),
        _ => false,
    }
}

/// A text that fills up a column.
pub(crate) fn column(text: &str, width: usize, theme: &Theme) -> String {
    let cut = theme.cut(text, width);
    let fill = width.saturating_sub(caliban_text::width(&cut));
    format!("{cut}{}", " ".repeat(fill))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(40, &["Enter opens  d deletes  q closes"])]
    #[case(24, &["Enter opens  d deletes", "q closes"])]
    #[case(12, &["Enter opens", "d deletes", "q closes"])]
    #[case(3, &["Enter opens", "d deletes", "q closes"])]
    fn no_key_goes_untold(#[case] columns: u16, #[case] rows: &[&str]) {
        assert_eq!(key_rows("Enter opens  d deletes  q closes", columns), rows);
    }
}
