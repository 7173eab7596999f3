//! Earlier prompts, searched from the end; wider with Ctrl+S.

use caliban_compose::{History, Hit};
use caliban_terminal::{Key, KeyCode, Modifiers};
use caliban_text::{Strength, sanitise};
use ratatui_core::layout::{Position, Rect};

use crate::canvas::Canvas;
use crate::layers::{Reaction, Wish};
use crate::theme::Theme;

/// How far one looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Session,
    Project,
    AllProjects,
}

/// A search that is going on.
#[derive(Debug)]
pub(crate) struct HistorySearch {
    pub(crate) scope: Scope,
    session: Vec<String>,
    project: Vec<String>,
    /// Nothing until they are there.
    all: Option<Vec<String>>,
    query: String,
    /// What fits, the newest first.
    hits: Vec<Hit>,
    /// How many of them are newer than the one shown.
    back: usize,
}

impl HistorySearch {
    /// Oldest first.
    pub(crate) fn new(session: Vec<String>, project: Vec<String>) -> Self {
        let mut search = Self {
            scope: Scope::Session,
            session,
            project,
            all: None,
            query: String::new(),
            hits: Vec::new(),
            back: 0,
        };
        search.look();
        search
    }

    /// The entries of all projects are there.
    pub(crate) fn loaded(&mut self, all: Vec<String>) {
        self.all = Some(all);
        self.look();
    }

    fn entries(&self) -> &[String] {
        match self.scope {
            Scope::Session => &self.session,
            Scope::Project => &self.project,
            Scope::AllProjects => self.all.as_deref().unwrap_or_default(),
        }
    }

    /// Looks anew, from the newest.
    fn look(&mut self) {
        self.hits = History::search(self.entries(), &self.query);
        self.back = 0;
    }

    fn found(&self) -> Option<&String> {
        let hit = self.hits.get(self.back)?;
        self.entries().get(hit.index)
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.query.push_str(text.lines().next().unwrap_or_default());
        self.look();
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        let is_ctrl = key.modifiers.contains(Modifiers::CTRL);
        match key.code {
            KeyCode::Esc => return Reaction::Close,
            KeyCode::Char('c' | 'g') if is_ctrl => return Reaction::Close,
            KeyCode::Char('r') if is_ctrl => self.older(),
            KeyCode::Up => self.older(),
            KeyCode::Down => self.back = self.back.saturating_sub(1),
            KeyCode::Char('s') if is_ctrl => {
                self.scope = match self.scope {
                    Scope::Session => Scope::Project,
                    Scope::Project => Scope::AllProjects,
                    Scope::AllProjects => Scope::Session,
                };
                self.look();
                if self.scope == Scope::AllProjects && self.all.is_none() {
                    return Reaction::Do(Wish::LoadHistories);
                }
            }
            KeyCode::Backspace => {
                self.query.pop();
                self.look();
            }
            KeyCode::Char(char) if !is_ctrl && !key.modifiers.contains(Modifiers::ALT) => {
                self.query.push(char);
                self.look();
            }
            KeyCode::Enter | KeyCode::Tab | KeyCode::Right => {
                return match self.found() {
                    Some(entry) => Reaction::CloseAnd(Wish::Draft(entry.clone())),
                    None => Reaction::Stay,
                };
            }
            _ => {}
        }
        Reaction::Stay
    }

    fn older(&mut self) {
        if self.back + 1 < self.hits.len() {
            self.back += 1;
        }
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas, input: Rect, theme: &Theme) {
        let palette = &theme.palette;
        canvas.clear(input);
        let scope = match self.scope {
            Scope::Session => "this session",
            Scope::Project => "this project",
            Scope::AllProjects if self.all.is_none() => "all projects, loading",
            Scope::AllProjects => "all projects",
        };
        let label = format!("search {scope}: {}", self.query);
        let end = canvas.text(input.x, input.y, input.right(), &label, palette.accent);
        canvas.cursor = Some(Position::new(
            end.min(input.right().saturating_sub(1)),
            input.y,
        ));
        let place = match self.hits.len() {
            0 => String::new(),
            count => format!("{} of {count}  ", self.back + 1),
        };
        let hint = format!("{place}Enter takes it  Ctrl+R older  Ctrl+S wider  Esc leaves");
        let room = usize::from(input.right().saturating_sub(end + 2));
        canvas.text(
            end + 2,
            input.y,
            input.right(),
            &theme.cut(&hint, room),
            palette.dim,
        );
        let found = self.found();
        let (text, style) = match found {
            Some(entry) => (sanitise(entry, Strength::Name).into_owned(), palette.text),
            None => ("nothing".to_owned(), palette.dim),
        };
        if input.height > 1 {
            canvas.text(input.x, input.y + 1, input.right(), &text, style);
        }
    }
}
