//! Looking for words in the conversation, where it stands on the screen.

use caliban_terminal::{Key, KeyCode, Modifiers};

use crate::app::state::App;
use crate::preferences::Screen;

/// The longest text that is looked for, in characters.
const LONGEST: usize = 200;

/// What is looked for.
#[derive(Debug, Default)]
pub(crate) struct Finding {
    pub(crate) query: String,
    /// The cell and the row where it was found last.
    pub(crate) at: Option<(usize, usize)>,
    pub(crate) found: Found,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Found {
    /// Nothing was looked for yet.
    #[default]
    Unknown,
    Here,
    /// There is no more of it that way.
    NoMore,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Older,
    Newer,
}

impl App {
    pub(crate) fn begin_finding(&mut self) {
        match self.screen {
            Screen::Fullscreen => self.finding = Some(Finding::default()),
            Screen::Inline => self.say("What was said is the terminal's: its own search finds it"),
        }
    }

    pub(crate) fn press_in_finding(&mut self, key: Key) {
        let Some(finding) = &mut self.finding else {
            return;
        };
        let is_ctrl = key.modifiers.contains(Modifiers::CTRL);
        let is_shift = key.modifiers.contains(Modifiers::SHIFT);
        match key.code {
            KeyCode::Esc => self.finding = None,
            KeyCode::Char('c' | 'g') if is_ctrl => self.finding = None,
            KeyCode::Enter if is_shift => self.find(Way::Newer),
            KeyCode::Enter | KeyCode::Up => self.find(Way::Older),
            KeyCode::Char('r' | 'f' | 'p') if is_ctrl => self.find(Way::Older),
            KeyCode::Down => self.find(Way::Newer),
            KeyCode::Char('s' | 'n') if is_ctrl => self.find(Way::Newer),
            KeyCode::Backspace => {
                finding.query.pop();
                self.find_anew();
            }
            KeyCode::Char('u') if is_ctrl => {
                finding.query.clear();
                self.find_anew();
            }
            KeyCode::Char(char) if !is_ctrl && !key.modifiers.contains(Modifiers::ALT) => {
                let mut text = [0; 4];
                let text = char.encode_utf8(&mut text).to_owned();
                self.write_in_finding(&text);
            }
            _ => {}
        }
    }

    pub(crate) fn write_in_finding(&mut self, text: &str) {
        if let Some(finding) = &mut self.finding {
            let line = text.lines().next().unwrap_or_default();
            let room = LONGEST.saturating_sub(finding.query.chars().count());
            finding.query.extend(line.chars().take(room));
            self.find_anew();
        }
    }

    /// The text is another: what is on the screen or before it is looked at first.
    fn find_anew(&mut self) {
        if let Some(finding) = &mut self.finding {
            finding.at = None;
            finding.found = Found::Unknown;
        }
        self.find(Way::Older);
    }

    fn find(&mut self, way: Way) {
        let Some(finding) = &self.finding else {
            return;
        };
        if finding.query.is_empty() {
            return;
        }
        let needle = finding.query.to_lowercase();
        let cells = &self.feed.cells;
        let lay = self.lay();
        let (from, row) = finding.at.unwrap_or((cells.len(), 0));
        // Within the cell one is at only what lies that way, of others the nearest end first.
        let at = |place: usize| {
            let cell = cells.get(place)?;
            if !cell.mentions(&needle) {
                return None;
            }
            let rows = cell.rows(&lay);
            let fits = |at: &usize| {
                let is_beyond = match way {
                    Way::Older => place < from || *at < row,
                    Way::Newer => place > from || *at > row,
                };
                let text = rows.get(*at).map(caliban_text::Row::text);
                is_beyond && text.is_some_and(|text| text.to_lowercase().contains(&needle))
            };
            let found = match way {
                Way::Older => (0..rows.len()).rev().find(fits),
                Way::Newer => (0..rows.len()).find(fits),
            };
            // It is folded away, or broken over two rows: the cell is as near as one gets.
            let found = found.or_else(|| (place != from).then_some(0));
            if found.is_none() {
                cell.forget_rows();
            }
            found.map(|row| (place, row))
        };
        let found = match way {
            Way::Older => (0..=from.min(cells.len())).rev().find_map(at),
            Way::Newer => (from..cells.len()).find_map(at),
        };
        if let Some((cell, row)) = found {
            let mut scroll = std::mem::take(&mut self.scroll);
            let lay = self.lay();
            scroll.go_to(cell, row, &self.feed.cells, self.page, &lay);
            // What comes before it is seen too.
            scroll.up(self.page / 3, &self.feed.cells, self.page, &lay);
            self.scroll = scroll;
        }
        if let Some(finding) = &mut self.finding {
            finding.at = found.or(finding.at);
            finding.found = match found {
                Some(_) => Found::Here,
                None => Found::NoMore,
            };
        }
    }
}
