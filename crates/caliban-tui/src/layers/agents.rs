//! Agents in the background, as they change, and what can be done about each.

use std::sync::Arc;

use caliban_model::CancellationToken;
use caliban_terminal::{Key, KeyCode, Modifiers};
use caliban_text::{Strength, sanitise};
use jiff::Timestamp;
use ratatui_core::layout::Rect;

use crate::agents_desk::{AgentAnswer, AgentChange, AgentLife, AgentRow};
use crate::canvas::Canvas;
use crate::host::Desk;
use crate::layers::list::{Heard, Line, List, closes, panel, tell_keys};
use crate::layers::{Reaction, Wish};
use crate::theme::Theme;

const KEYS: &str =
    "Enter reads  o attaches  a allow  s session  d deny  x stops  Tab jobs  q closes";

/// The overlay.
#[derive(Debug)]
pub(crate) struct AgentsPanel {
    desk: Arc<dyn Desk>,
    /// Nothing before the first word of them.
    rows: Option<Vec<AgentRow>>,
    list: List,
    said: String,
    /// Whoever tells of them ends with the panel.
    watch: CancellationToken,
}

impl AgentsPanel {
    /// The panel, and what ends when it is closed.
    pub(crate) fn new(desk: Arc<dyn Desk>) -> (Self, CancellationToken) {
        let watch = CancellationToken::new();
        let panel = Self {
            desk,
            rows: None,
            list: List::default(),
            said: String::new(),
            watch: watch.clone(),
        };
        (panel, watch)
    }

    pub(crate) fn tell(&mut self, text: String) {
        self.said = text;
    }

    /// What is chosen stays chosen, wherever it is now.
    pub(crate) fn changed(&mut self, rows: Vec<AgentRow>) {
        let chosen = self
            .shown()
            .get(self.list.chosen())
            .map(|row| row.id.clone());
        self.rows = Some(rows);
        let place = self
            .shown()
            .iter()
            .position(|row| Some(&row.id) == chosen.as_ref());
        if let Some(place) = place {
            self.list.choose(place);
        }
    }

    fn shown(&self) -> Vec<&AgentRow> {
        let rows = self.rows.as_deref().unwrap_or_default();
        let texts: Vec<String> = rows
            .iter()
            .map(|row| format!("{} {} {}", row.id, row.state, row.task))
            .collect();
        let places = self.list.shown(texts.iter().map(String::as_str));
        places
            .into_iter()
            .filter_map(|place| rows.get(place))
            .collect()
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.list.paste(text);
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        let length = self.shown().len();
        if self.list.press(key, length) == Heard::Taken {
            return Reaction::Stay;
        }
        let is_jobs_key = key.code == KeyCode::Char('b') && key.modifiers.contains(Modifiers::CTRL);
        if closes(key) || is_jobs_key {
            return Reaction::Close;
        }
        if key.code == KeyCode::Tab {
            return Reaction::CloseAnd(Wish::ShowJobs);
        }
        let shown = self.shown();
        let Some(chosen) = shown.get(self.list.chosen()).copied().cloned() else {
            return Reaction::Stay;
        };
        let answer = match key.code {
            KeyCode::Enter => {
                return match self.desk.agent_log(&chosen.id) {
                    Ok(text) => Reaction::Do(Wish::Read(format!("Agent {}", chosen.id), text)),
                    Err(error) => self.told(error),
                };
            }
            KeyCode::Char('o') => return Reaction::Do(Wish::AttachAgent(chosen.id)),
            KeyCode::Char('x') => {
                self.said = format!("{} is told to end", chosen.id);
                return Reaction::Do(Wish::ChangeAgent(AgentChange::Stop { id: chosen.id }));
            }
            KeyCode::Char('a') => AgentAnswer::Allow,
            KeyCode::Char('s') => AgentAnswer::AllowSession,
            KeyCode::Char('d') => AgentAnswer::Deny,
            _ => return Reaction::Stay,
        };
        match chosen.question {
            Some(question) => Reaction::Do(Wish::ChangeAgent(AgentChange::Answer {
                id: chosen.id,
                question: question.id,
                answer,
            })),
            None => self.told(format!("{} asks nothing", chosen.id)),
        }
    }

    fn told(&mut self, text: String) -> Reaction {
        self.said = text;
        Reaction::Stay
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let hint = self.list.hint(KEYS);
        let Some(places) = panel(canvas, area, "Background agents", &hint, theme) else {
            return;
        };
        let palette = &theme.palette;
        let now = Timestamp::now();
        let lines: Vec<Line> = self
            .shown()
            .into_iter()
            .map(|row| Line {
                label: row.line(now),
                about: match (&row.question, &row.reason) {
                    (Some(question), _) => format!("asks: {}", AgentRow::cut(&question.summary)),
                    (None, Some(reason)) => AgentRow::cut(reason),
                    (None, None) => String::new(),
                },
                style: match (&row.question, row.life) {
                    (Some(_), _) => palette.warning,
                    (None, AgentLife::Alive) => palette.success,
                    (None, AgentLife::Failed) => palette.error,
                    (None, AgentLife::Ended) => palette.dim,
                },
            })
            .collect();
        let mut body = places.body;
        let empty = match &self.rows {
            None => Some("looking"),
            Some(rows) if rows.is_empty() => Some("none; `caliban --bg TASK` begins one"),
            Some(_) => None,
        };
        let head = empty.unwrap_or(AgentRow::HEAD);
        let indent = if empty.is_some() { 0 } else { 2 };
        canvas.text(body.x + indent, body.y, body.right(), head, palette.dim);
        body.y += 1;
        body.height = body.height.saturating_sub(1);
        self.list.draw(canvas, body, theme, &lines);
        let row = places.said;
        let said = sanitise(&self.said, Strength::Name);
        canvas.text(row.x, row.y, row.right(), &said, palette.warning);
        tell_keys(canvas, &places, &hint, theme);
    }
}

impl Drop for AgentsPanel {
    fn drop(&mut self) {
        self.watch.cancel();
    }
}
