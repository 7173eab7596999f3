//! Earlier prompts, searched from the end; wider with Ctrl+S.

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
    pub(crate) all: Option<Vec<String>>,
    query: String,
    /// How many matches from the end.
    back: usize,
}

impl HistorySearch {
    /// Oldest first.
    pub(crate) fn new(session: Vec<String>, project: Vec<String>) -> Self {
        Self {
            scope: Scope::Session,
            session,
            project,
            all: None,
            query: String::new(),
            back: 0,
        }
    }

    fn entries(&self) -> &[String] {
        match self.scope {
            Scope::Session => &self.session,
            Scope::Project => &self.project,
            Scope::AllProjects => self.all.as_deref().unwrap_or_default(),
        }
    }

    fn found(&self, back: usize) -> Option<&String> {
        let wanted = self.query.to_lowercase();
        let mut seen: Vec<&String> = Vec::new();
        let fits = self.entries().iter().rev().filter(|entry| {
            let is_new = !seen.contains(entry) && entry.to_lowercase().contains(&wanted);
            if is_new {
                seen.push(entry);
            }
            is_new
        });
        fits.into_iter().nth(back)
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.query.push_str(text.lines().next().unwrap_or_default());
        self.back = 0;
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
                self.back = 0;
                self.scope = match self.scope {
                    Scope::Session => Scope::Project,
                    Scope::Project => Scope::AllProjects,
                    Scope::AllProjects => Scope::Session,
                };
                if self.scope == Scope::AllProjects && self.all.is_none() {
                    return Reaction::Do(Wish::LoadHistories);
                }
            }
            KeyCode::Backspace => {
                self.query.pop();
                self.back = 0;
            }
            KeyCode::Char(char) if !is_ctrl && !key.modifiers.contains(Modifiers::ALT) => {
                self.query.push(char);
                self.back = 0;
            }
            KeyCode::Enter | KeyCode::Tab | KeyCode::Right => {
                return match self.found(self.back) {
                    Some(entry) => Reaction::CloseAnd(Wish::Draft(entry.clone())),
                    None => Reaction::Stay,
                };
            }
            _ => {}
        }
        Reaction::Stay
    }

    fn older(&mut self) {
        if self.found(self.back + 1).is_some() {
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
        let found = self.found(self.back);
        let (text, style) = match found {
            Some(entry) => (sanitise(entry, Strength::Name).into_owned(), palette.text),
            None => ("nothing".to_owned(), palette.dim),
        };
        if input.height > 1 {
            canvas.text(input.x, input.y + 1, input.right(), &text, style);
        }
    }
}
