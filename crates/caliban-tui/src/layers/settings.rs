//! Settings: what counts, whose it is, and single keys written to the file of a scope.

mod tabs;

use std::sync::Arc;

use caliban_settings::Scope;
use caliban_settings::write::SettingEdit;
use caliban_terminal::{Key, KeyCode};
use caliban_text::{Strength, sanitise};
use ratatui_core::layout::Rect;

use crate::canvas::Canvas;
use crate::host::Desk;
use crate::layers::field::{Field, Shows, Written};
use crate::layers::list::{Heard, Line, List, closes, column, panel, tell_keys};
use crate::layers::{Reaction, Wish};
use crate::settings_desk::{SettingChange, SettingRow};
use crate::theme::Theme;
use tabs::Tab;

/// The scopes that can be written to, the usual one first.
const WRITABLE: [Scope; 3] = [Scope::Project, Scope::Local, Scope::User];
/// Rows below the list that tell about the chosen key.
const DETAILS: u16 = 3;
const KEYS: &str =
    "←→ tab  / search  s scope  Enter edit  d unset  n another key  w write  q closes";

/// The overlay.
#[derive(Debug)]
pub(crate) struct SettingsPanel {
    desk: Arc<dyn Desk>,
    rows: Vec<SettingRow>,
    tab: Tab,
    list: List,
    scope: usize,
    /// What is to be written and is not yet.
    pending: Vec<SettingChange>,
    field: Option<Writing>,
    said: String,
    /// Closing was tried with something unwritten.
    is_warned: bool,
}

/// What is being written.
#[derive(Debug)]
enum Writing {
    /// The value of this key.
    Value(String, Field),
    /// `key = value`.
    Pair(Field),
}

impl SettingsPanel {
    pub(crate) fn new(desk: Arc<dyn Desk>, search: &str) -> Self {
        let mut panel = Self {
            desk,
            rows: Vec::new(),
            tab: if search.is_empty() {
                Tab::Model
            } else {
                Tab::All
            },
            list: List::narrowed_to(search),
            scope: 0,
            pending: Vec::new(),
            field: None,
            said: String::new(),
            is_warned: false,
        };
        panel.load();
        panel
    }

    /// With a value for a key, ready to be confirmed.
    pub(crate) fn proposing(desk: Arc<dyn Desk>, key: &str, value: &str) -> Self {
        let mut panel = Self::new(desk, key);
        let field = Field::new(key, value, Shows::Text);
        panel.field = Some(Writing::Value(key.to_owned(), field));
        panel
    }

    fn load(&mut self) {
        match self.desk.settings() {
            Ok(rows) => self.rows = rows,
            Err(error) => self.said = error,
        }
    }

    fn scope(&self) -> Scope {
        WRITABLE.get(self.scope).copied().unwrap_or(Scope::User)
    }

    /// The rows of the tab that have what is searched for.
    fn shown(&self) -> Vec<&SettingRow> {
        let rows = self.rows.iter().filter(|row| self.tab.holds(row));
        let rows: Vec<&SettingRow> = rows.collect();
        let texts: Vec<String> = rows
            .iter()
            .map(|row| format!("{} {}", row.key, row.about))
            .collect();
        let places = self.list.shown(texts.iter().map(String::as_str));
        places
            .iter()
            .filter_map(|place| rows.get(*place).copied())
            .collect()
    }

    fn chosen(&self) -> Option<SettingRow> {
        self.shown()
            .get(self.list.chosen())
            .map(|row| (*row).clone())
    }

    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.field {
            Some(Writing::Value(_, field) | Writing::Pair(field)) => field.paste(text),
            None => self.list.paste(text),
        }
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        if self.field.is_some() {
            self.press_in_field(key);
            return Reaction::Stay;
        }
        if self.list.press(key, self.shown().len()) == Heard::Taken {
            return Reaction::Stay;
        }
        if closes(key) {
            return self.close();
        }
        self.is_warned = false;
        match key.code {
            KeyCode::Right | KeyCode::Tab => self.turn_to(self.tab.next()),
            KeyCode::Left | KeyCode::BackTab => self.turn_to(self.tab.previous()),
            KeyCode::Char('s') => self.scope = (self.scope + 1) % WRITABLE.len(),
            KeyCode::Enter | KeyCode::Char('e') => self.edit(),
            KeyCode::Char('d') | KeyCode::Delete => self.unset(),
            KeyCode::Char('n') => {
                let field = Field::new("key = value", "", Shows::Text);
                self.field = Some(Writing::Pair(field));
            }
            KeyCode::Char('w') => return self.write(),
            _ => {}
        }
        Reaction::Stay
    }

    fn turn_to(&mut self, tab: Tab) {
        self.tab = tab;
        self.list.choose(0);
    }

    fn close(&mut self) -> Reaction {
        if self.pending.is_empty() || self.is_warned {
            return Reaction::Close;
        }
        self.is_warned = true;
        self.said = format!(
            "{} not written: w writes, once more closes without",
            self.pending.len()
        );
        Reaction::Stay
    }

    fn edit(&mut self) {
        let Some(row) = self.chosen() else {
            return;
        };
        if self.tab == Tab::Effective {
            "this tab shows what counts; the others change it".clone_into(&mut self.said);
            return;
        }
        if let Some(why) = &row.locked {
            self.said.clone_from(why);
            return;
        }
        let scope = self.scope();
        let pending = self.pending_of(&row.key);
        let text = match pending.map(|change| &change.edit) {
            Some(SettingEdit::Put(text)) => text.clone(),
            Some(SettingEdit::Remove) => String::new(),
            // What is masked must not be written back so.
            None => row
                .written_in(scope)
                .filter(|text| !text.contains("****"))
                .unwrap_or_default()
                .to_owned(),
        };
        let label = format!("{} ({scope})", row.key);
        let field = Field::new(label, &text, Shows::Text);
        self.field = Some(Writing::Value(row.key, field));
    }

    fn unset(&mut self) {
        let (Some(row), scope) = (self.chosen(), self.scope()) else {
            return;
        };
        if row.written_in(scope).is_none() {
            self.said = format!("the {scope} scope does not set `{}`", row.key);
            return;
        }
        self.stage(row.key, SettingEdit::Remove);
    }

    fn press_in_field(&mut self, key: Key) {
        let Some(writing) = &mut self.field else {
            return;
        };
        let (Writing::Value(_, field) | Writing::Pair(field)) = writing;
        match field.press(key) {
            Written::Going => {}
            Written::Dropped => self.field = None,
            Written::Given(text) => match self.field.take() {
                Some(Writing::Value(key, _)) => self.stage(key, SettingEdit::Put(text)),
                Some(Writing::Pair(_)) => match text.split_once('=') {
                    Some((key, value)) => {
                        let edit = SettingEdit::Put(value.trim().to_owned());
                        self.stage(key.trim().to_owned(), edit);
                    }
                    None => "write `key = value`".clone_into(&mut self.said),
                },
                None => {}
            },
        }
    }

    fn pending_of(&self, key: &str) -> Option<&SettingChange> {
        let scope = self.scope();
        let mut pending = self.pending.iter();
        pending.find(|change| change.key == key && change.scope == scope)
    }

    fn stage(&mut self, key: String, edit: SettingEdit) {
        let scope = self.scope();
        self.pending
            .retain(|change| change.key != key || change.scope != scope);
        self.said = format!("`{key}` goes to the {scope} scope when you press w");
        self.pending.push(SettingChange { key, scope, edit });
    }

    /// Writes what waits, one after the other; what is refused waits on.
    fn write(&mut self) -> Reaction {
        if self.pending.is_empty() {
            "nothing waits to be written".clone_into(&mut self.said);
            return Reaction::Stay;
        }
        let mut said = Vec::new();
        let pending = std::mem::take(&mut self.pending);
        for change in pending {
            match self.desk.change_setting(&change) {
                Ok(changed) => said.push(format!("`{}` is in {changed}", change.key)),
                Err(error) => {
                    said.push(error);
                    self.pending.push(change);
                }
            }
        }
        self.said = said.join("; ");
        self.load();
        Reaction::Do(Wish::SettingsWritten)
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let scope = self.scope();
        let title = format!("Settings: {}, writing to {scope}", self.tab.title());
        let hint = self.list.hint(KEYS);
        let Some(places) = panel(canvas, area, &title, &hint, theme) else {
            return;
        };
        let palette = &theme.palette;
        self.tab.draw(canvas, places.body, theme);
        let details = DETAILS.min(places.body.height.saturating_sub(2));
        let body = Rect {
            y: places.body.y + 1,
            height: places.body.height.saturating_sub(details + 1),
            ..places.body
        };
        let shown: Vec<SettingRow> = self.shown().into_iter().cloned().collect();
        let width = usize::from(body.width) / 3;
        let lines: Vec<Line> = shown
            .iter()
            .map(|row| Line {
                label: column(&row.key, width, theme),
                about: self.about(row),
                style: palette.text,
            })
            .collect();
        self.list.draw(canvas, body, theme, &lines);
        if let Some(row) = shown.get(self.list.chosen()) {
            let rows = body.bottom()..body.bottom() + details;
            for (y, text) in rows.zip(described(row)) {
                let text = sanitise(&text, Strength::Name);
                canvas.text(body.x, y, body.right(), &text, palette.dim);
            }
        }
        match &self.field {
            Some(Writing::Value(_, field) | Writing::Pair(field)) => {
                field.draw(canvas, places.said, theme);
            }
            None => {
                let said = sanitise(&self.said, Strength::Name);
                let (row, style) = (places.said, palette.warning);
                canvas.text(row.x, row.y, row.right(), &said, style);
            }
        }
        tell_keys(canvas, &places, &hint, theme);
    }

    /// Chip, value and badges of a row.
    fn about(&self, row: &SettingRow) -> String {
        let mut about = match &row.effective {
            Some((value, scope)) => format!("[{scope}] {value}"),
            None => "default".to_owned(),
        };
        if row.locked.is_some() {
            about.push_str("  locked");
        }
        if row.needs_restart() {
            about.push_str("  restart required");
        }
        for change in self.pending.iter().filter(|change| change.key == row.key) {
            let to = match &change.edit {
                SettingEdit::Put(text) => text.as_str(),
                SettingEdit::Remove => "unset",
            };
            about = format!("→ {to} [{}]  {about}", change.scope);
        }
        about
    }
}

/// What it is, what it may be, and who says what.
fn described(row: &SettingRow) -> [String; 3] {
    let written: Vec<String> = row
        .written
        .iter()
        .map(|(scope, value)| format!("{scope}: {value}"))
        .collect();
    let written = if written.is_empty() {
        "no scope sets it".to_owned()
    } else {
        written.join("  ")
    };
    [row.about.clone(), row.kind.clone(), written]
}
