//! Earlier sessions: found by name or by what was said, looked into, renamed, copied, deleted.

use caliban_terminal::{Key, KeyCode, Modifiers};
use caliban_text::{Strength, ansi_words, sanitise};
use jiff::Timestamp;
use ratatui_core::layout::{Position, Rect};

use crate::canvas::Canvas;
use crate::completion::ranked_texts;
use crate::layers::field::{Field, Shows, Written};
use crate::layers::list::{Heard, Line, List, column, panel, tell_keys};
use crate::layers::{Reaction, Wish};
use crate::sessions_desk::{SessionChange, SessionRow};
use crate::theme::Theme;

const KEYS: &str =
    "Enter open  Tab preview  ^S search what was said  ^R rename  ^F fork  ^D delete";
/// The most that is looked for.
const LONGEST: usize = 200;

/// The overlay.
#[derive(Debug)]
pub(crate) struct SessionsPanel {
    rows: Vec<SessionRow>,
    /// The session that is open.
    own: Option<String>,
    query: String,
    /// What was said where, once it was looked for.
    found: Option<Vec<(String, String)>>,
    list: List,
    preview: Preview,
    asks: Asks,
    said: String,
}

/// What is seen of the chosen session.
#[derive(Debug)]
enum Preview {
    Hidden,
    /// Of this one, as soon as it was read.
    Of(String, Option<String>),
}

/// What is being asked.
#[derive(Debug)]
enum Asks {
    Nothing,
    /// Whether this session is to be deleted.
    Deletion(String),
    NewName(String, Field),
    NameOfCopy(String, Field),
}

impl SessionsPanel {
    pub(crate) fn new(rows: Vec<SessionRow>, own: Option<String>, query: &str) -> Self {
        Self {
            rows,
            own,
            query: query.to_owned(),
            found: None,
            list: List::default(),
            preview: Preview::Hidden,
            asks: Asks::Nothing,
            said: String::new(),
        }
    }

    /// The sessions are others now, because of this.
    pub(crate) fn changed(&mut self, rows: Vec<SessionRow>) {
        self.rows = rows;
        self.found = None;
        self.preview = Preview::Hidden;
    }

    pub(crate) fn tell(&mut self, text: String) {
        self.said = text;
    }

    pub(crate) fn previewed(&mut self, name: &str, text: String) {
        if let Preview::Of(wanted, seen) = &mut self.preview
            && wanted == name
        {
            *seen = Some(text);
        }
    }

    /// What was looked for was said in these.
    pub(crate) fn found(&mut self, text: &str, hits: Vec<(String, String)>) {
        if text != self.query {
            return;
        }
        self.said = match hits.len() {
            0 => format!("nobody said `{text}`"),
            count => format!("`{text}` was said in {count}"),
        };
        self.list.choose(0);
        self.found = Some(hits);
        self.preview = Preview::Hidden;
    }

    /// The rows that are shown, with what stands beside them.
    fn shown(&self) -> Vec<(&SessionRow, String)> {
        if let Some(found) = &self.found {
            let row = |(name, excerpt): &(String, String)| {
                let row = self.rows.iter().find(|row| row.name == *name)?;
                Some((row, excerpt.clone()))
            };
            return found.iter().filter_map(row).collect();
        }
        let now = Timestamp::now();
        let about = |row: &SessionRow| about(row, now);
        if self.query.is_empty() {
            return self.rows.iter().map(|row| (row, about(row))).collect();
        }
        let texts: Vec<String> = self
            .rows
            .iter()
            .enumerate()
            .map(|(place, row)| format!("{} {}\0{place}", label(row), about(row)))
            .collect();
        ranked_texts(&self.query, &texts)
            .into_iter()
            .filter_map(|text| text.rsplit('\0').next()?.parse::<usize>().ok())
            .filter_map(|place| self.rows.get(place))
            .map(|row| (row, about(row)))
            .collect()
    }

    fn chosen(&self) -> Option<String> {
        let shown = self.shown();
        shown
            .get(self.list.chosen())
            .map(|(row, _)| row.name.clone())
    }

    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.asks {
            Asks::NewName(_, field) | Asks::NameOfCopy(_, field) => field.paste(text),
            Asks::Deletion(_) => {}
            Asks::Nothing => {
                let line = text.lines().next().unwrap_or_default();
                self.query.extend(line.chars().take(LONGEST));
                // What is seen below is that of one that may not be chosen any more.
                self.preview = Preview::Hidden;
                let _ = self.narrowed();
            }
        }
    }

    /// Other sessions are shown: the first of them is looked into, where one was.
    fn narrowed(&mut self) -> Reaction {
        self.found = None;
        self.list.choose(0);
        self.look_on()
    }

    /// Looks into the one that is chosen now, where another was looked into.
    fn look_on(&mut self) -> Reaction {
        match std::mem::replace(&mut self.preview, Preview::Hidden) {
            Preview::Hidden => Reaction::Stay,
            Preview::Of(..) => self.look(),
        }
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        match std::mem::replace(&mut self.asks, Asks::Nothing) {
            Asks::Nothing => self.press_in_list(key),
            Asks::Deletion(name) if key.code == KeyCode::Char('y') => {
                change(SessionChange::Delete { name })
            }
            Asks::Deletion(name) => {
                self.said = format!("`{name}` stays");
                Reaction::Stay
            }
            Asks::NewName(name, mut field) => match field.press(key) {
                Written::Going => {
                    self.asks = Asks::NewName(name, field);
                    Reaction::Stay
                }
                Written::Dropped => Reaction::Stay,
                // Who writes the session that is open must do it.
                Written::Given(to) if self.own.as_ref() == Some(&name) => {
                    Reaction::CloseAnd(Wish::SendLine(format!("/rename {to}")))
                }
                Written::Given(to) => change(SessionChange::Rename { name, to }),
            },
            Asks::NameOfCopy(name, mut field) => match field.press(key) {
                Written::Going => {
                    self.asks = Asks::NameOfCopy(name, field);
                    Reaction::Stay
                }
                Written::Dropped => Reaction::Stay,
                Written::Given(to) => {
                    let to = (!to.trim().is_empty()).then(|| to.trim().to_owned());
                    change(SessionChange::Fork { name, to })
                }
            },
        }
    }

    fn press_in_list(&mut self, key: Key) -> Reaction {
        let is_ctrl = key.modifiers.contains(Modifiers::CTRL);
        let is_plain = !is_ctrl && !key.modifiers.contains(Modifiers::ALT);
        match key.code {
            KeyCode::Esc => return Reaction::Close,
            KeyCode::Char('c') if is_ctrl => return Reaction::Close,
            KeyCode::Char('q') if self.query.is_empty() && is_plain => return Reaction::Close,
            KeyCode::Enter => {
                if let Some(name) = self.chosen() {
                    return Reaction::CloseAnd(Wish::OpenSession(name));
                }
            }
            KeyCode::Tab => return self.look(),
            KeyCode::Char('s') if is_ctrl && !self.query.is_empty() => {
                self.said = format!("looking for `{}`", self.query);
                return Reaction::Do(Wish::SearchSessions(self.query.clone()));
            }
            KeyCode::Char('s') if is_ctrl => {
                "type what to look for first".clone_into(&mut self.said);
            }
            KeyCode::Char('r') if is_ctrl => {
                if let Some(name) = self.chosen() {
                    let field = Field::new("new name", &name, Shows::Text);
                    self.asks = Asks::NewName(name, field);
                }
            }
            KeyCode::Char('f') if is_ctrl => {
                if let Some(name) = self.chosen() {
                    let field = Field::new("name of the copy, or none", "", Shows::Text);
                    self.asks = Asks::NameOfCopy(name, field);
                }
            }
            KeyCode::Char('d') if is_ctrl => self.ask_to_delete(),
            KeyCode::Backspace => {
                self.query.pop();
                return self.narrowed();
            }
            KeyCode::Char(char) if is_plain => {
                if self.query.len() < LONGEST {
                    self.query.push(char);
                }
                return self.narrowed();
            }
            _ => {
                let length = self.shown().len();
                if self.list.press(key, length) == Heard::Taken {
                    return self.look_on();
                }
            }
        }
        Reaction::Stay
    }

    fn ask_to_delete(&mut self) {
        let Some(name) = self.chosen() else {
            return;
        };
        if self.own.as_ref() == Some(&name) {
            "the session that is open cannot be deleted".clone_into(&mut self.said);
            return;
        }
        self.asks = Asks::Deletion(name);
    }

    /// Shows or hides what was said in the chosen one.
    fn look(&mut self) -> Reaction {
        match (&self.preview, self.chosen()) {
            (Preview::Hidden, Some(name)) => {
                self.preview = Preview::Of(name.clone(), None);
                Reaction::Do(Wish::PreviewSession(name))
            }
            (Preview::Of(..), _) | (Preview::Hidden, None) => {
                self.preview = Preview::Hidden;
                Reaction::Stay
            }
        }
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let Some(places) = panel(canvas, area, "Sessions", KEYS, theme) else {
            return;
        };
        let palette = &theme.palette;
        let body = places.body;
        let prompt = format!("{} {}", theme.signs.prompt, self.query);
        let prompt = sanitise(&prompt, Strength::Name);
        let end = canvas.text(body.x, body.y, body.right(), &prompt, palette.text);
        let listed = match self.preview {
            Preview::Hidden => body.height.saturating_sub(1),
            Preview::Of(..) => (body.height / 2).saturating_sub(1),
        };
        let rows = Rect {
            y: body.y + 1,
            height: listed,
            ..body
        };
        // The sign before a row, and the gap before what stands at its right.
        let width = usize::from(body.width).saturating_sub(4);
        let shown = self.shown();
        let widest = shown.iter().map(|(_, about)| caliban_text::width(about));
        let right = widest.max().unwrap_or_default().min(width / 2);
        let lines: Vec<Line> = shown
            .into_iter()
            .map(|(row, about)| Line {
                label: column(&label(row), width - right, theme),
                about: theme.cut(&about, right),
                style: palette.text,
            })
            .collect();
        self.list.draw(canvas, rows, theme, &lines);
        canvas.cursor = Some(Position::new(end.min(body.right() - 1), body.y));
        if let Preview::Of(_, text) = &self.preview {
            let below = Rect {
                y: rows.bottom() + 1,
                height: body.bottom().saturating_sub(rows.bottom() + 1),
                ..body
            };
            let text = text.as_deref().unwrap_or("reading");
            let rows = ansi_words(text, below.width, palette.dim);
            let skipped = rows.len().saturating_sub(usize::from(below.height));
            canvas.rows(below, rows.iter().skip(skipped));
        }
        let row = places.said;
        match &self.asks {
            Asks::NewName(_, field) | Asks::NameOfCopy(_, field) => field.draw(canvas, row, theme),
            Asks::Deletion(name) => {
                let text = format!("Delete `{name}` with its checkpoints? y deletes, others keep");
                canvas.text(row.x, row.y, row.right(), &text, palette.error);
            }
            Asks::Nothing => {
                let said = sanitise(&self.said, Strength::Name);
                canvas.text(row.x, row.y, row.right(), &said, palette.warning);
            }
        }
        let count = format!("{}/{}", self.list.chosen() + 1, lines.len());
        let hint = if lines.is_empty() {
            "nothing fits; ^S searches what was said".to_owned()
        } else {
            format!("{count}  {KEYS}")
        };
        tell_keys(canvas, &places, &hint, theme);
    }
}

fn change(change: SessionChange) -> Reaction {
    Reaction::Do(Wish::ChangeSession(change))
}

/// What a session is known by: the beginning of a made-up name says enough, one that somebody gave
/// is said whole.
fn label(row: &SessionRow) -> String {
    let name = crate::status::short(&row.name);
    if row.title.is_empty() || row.title == row.name {
        name.to_owned()
    } else {
        format!("{name}  {}", row.title)
    }
}

/// How large it is and when it was worked in, in few columns.
fn about(row: &SessionRow, now: Timestamp) -> String {
    let minutes = now.duration_since(row.updated).as_secs() / 60;
    let ago = match minutes {
        ..=0 => "now".to_owned(),
        1..60 => format!("{minutes} min"),
        60..1_440 => format!("{} h", minutes / 60),
        1_440..14_400 => format!("{} d", minutes / 1_440),
        _ => row.updated.strftime("%Y-%m-%d").to_string(),
    };
    let tokens = match row.tokens {
        few @ 0..1_000 => few.to_string(),
        some @ 1_000..1_000_000 => format!("{}k", some / 1_000),
        many => format!("{}M", many / 1_000_000),
    };
    let turns = if row.turns == 1 { "turn" } else { "turns" };
    format!("{} {turns}  {tokens} tok  {ago}", row.turns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str) -> SessionRow {
        SessionRow {
            name: name.to_owned(),
            title: name.to_owned(),
            turns: 1,
            tokens: 1,
            updated: jiff::Timestamp::UNIX_EPOCH,
        }
    }

    fn looked_into(panel: &mut SessionsPanel, code: KeyCode) -> Option<String> {
        match panel.press(Key::plain(code)) {
            Reaction::Do(Wish::PreviewSession(name)) => Some(name),
            _ => None,
        }
    }

    #[test]
    fn what_is_looked_into_is_what_is_chosen() {
        let mut panel = SessionsPanel::new(vec![row("alpha"), row("beta")], None, "");
        assert_eq!(looked_into(&mut panel, KeyCode::Char('b')), None);
        assert_eq!(looked_into(&mut panel, KeyCode::Backspace), None);
        let tabbed = looked_into(&mut panel, KeyCode::Tab);
        assert_eq!(tabbed.as_deref(), Some("alpha"));
        let typed = looked_into(&mut panel, KeyCode::Char('b'));
        assert_eq!(typed.as_deref(), Some("beta"));
        panel.paste("zz");
        assert!(matches!(panel.preview, Preview::Hidden));
    }
}
