//! Mode and rules: which count, whose they are, and how a call would be judged by them.

use std::sync::Arc;

use caliban_compose::{Editor, KeySet};
use caliban_settings::RuleAction;
use caliban_terminal::{Key, KeyCode, Modifiers};
use caliban_text::{Strength, sanitise};
use ratatui_core::layout::{Position, Rect};

use crate::canvas::Canvas;
use crate::host::{Desk, RuleHome, RuleRow};
use crate::layers::{Reaction, Wish};
use crate::theme::Theme;

/// The overlay.
#[derive(Debug)]
pub(crate) struct RulesPanel {
    desk: Arc<dyn Desk>,
    rules: Vec<RuleRow>,
    chosen: usize,
    said: String,
    /// A call that is being tried, while it is written.
    trial: Option<Box<Editor>>,
}

impl RulesPanel {
    pub(crate) fn new(desk: Arc<dyn Desk>) -> Self {
        let rules = desk.rules();
        Self {
            desk,
            rules,
            chosen: 0,
            said: String::new(),
            trial: None,
        }
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        if self.trial.is_some() {
            return self.press_in_trial(key);
        }
        let last = self.rules.len().saturating_sub(1);
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') => return Reaction::Close,
            KeyCode::Char('c') if key.modifiers.contains(Modifiers::CTRL) => {
                return Reaction::Close;
            }
            KeyCode::Up | KeyCode::Char('k') => self.chosen = self.chosen.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => self.chosen = (self.chosen + 1).min(last),
            KeyCode::PageUp => self.chosen = self.chosen.saturating_sub(10),
            KeyCode::PageDown => self.chosen = (self.chosen + 10).min(last),
            KeyCode::Tab | KeyCode::BackTab => return Reaction::Do(Wish::CycleMode),
            KeyCode::Char('t') => self.trial = Some(Box::new(Editor::new(KeySet::Emacs))),
            KeyCode::Char('d') => return self.delete(),
            _ => {}
        }
        Reaction::Stay
    }

    fn delete(&mut self) -> Reaction {
        let Some(rule) = self.rules.get(self.chosen).cloned() else {
            return Reaction::Stay;
        };
        match rule.home {
            RuleHome::Session => {
                self.rules.remove(self.chosen);
                self.said = format!("`{}` does not count any more", rule.pattern);
                Reaction::Do(Wish::ForgetRule {
                    pattern: rule.pattern,
                    action: rule.action,
                })
            }
            RuleHome::File(scope) => {
                match self.desk.remove_rule(scope, &rule.pattern) {
                    Ok(path) => {
                        self.rules.remove(self.chosen);
                        self.said = format!(
                            "`{}` is gone from {}; this session keeps it",
                            rule.pattern,
                            path.display()
                        );
                    }
                    Err(error) => self.said = error,
                }
                Reaction::Stay
            }
            RuleHome::Fixed => {
                self.said = format!("a rule that is {} cannot be removed here", rule.origin);
                Reaction::Stay
            }
        }
    }

    fn press_in_trial(&mut self, key: Key) -> Reaction {
        match key.code {
            KeyCode::Esc => self.trial = None,
            KeyCode::Enter => {
                let text = self.trial.take().map(|editor| editor.text());
                self.said = self.desk.judged(&text.unwrap_or_default());
            }
            _ => {
                if let Some(editor) = &mut self.trial {
                    editor.press(key);
                }
            }
        }
        Reaction::Stay
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme, mode: &str) {
        let inside = canvas.frame(area, &format!("Permissions: mode {mode}"), theme);
        let palette = &theme.palette;
        if inside.height < 4 {
            return;
        }
        let height = usize::from(inside.height - 2);
        let first = self.chosen.saturating_sub(height.saturating_sub(1));
        let rows = self.rules.iter().enumerate().skip(first);
        for (y, (place, rule)) in (inside.y..inside.bottom() - 2).zip(rows) {
            let (sign, style) = if place == self.chosen {
                (theme.signs.selected, palette.accent)
            } else {
                (" ", palette.text)
            };
            let action = match rule.action {
                RuleAction::Allow => "allow",
                RuleAction::Ask => "ask",
                RuleAction::Deny => "deny",
            };
            let pattern = sanitise(&rule.pattern, Strength::Name);
            let pattern = theme.cut(&pattern, usize::from(inside.width) / 2);
            let text = format!("{sign} {action:<6}{pattern}");
            let x = canvas.text(inside.x, y, inside.right(), &text, style);
            let comment = rule.comment.as_deref().unwrap_or_default();
            let about = format!("{}  {comment}", rule.origin);
            let about = sanitise(&about, Strength::Name);
            canvas.text(x + 2, y, inside.right(), &about, palette.dim);
        }
        let y = inside.bottom() - 2;
        if let Some(editor) = &self.trial {
            let text = format!("try: {}", editor.text());
            let end = canvas.text(inside.x, y, inside.right(), &text, palette.strong);
            canvas.cursor = Some(Position::new(end.min(inside.right() - 1), y));
        } else {
            let said = sanitise(&self.said, Strength::Name);
            canvas.text(inside.x, y, inside.right(), &said, palette.warning);
        }
        let hint = "Tab mode  d delete  t try a call, as `Bash: git push`  q closes";
        canvas.text(
            inside.x,
            inside.bottom() - 1,
            inside.right(),
            hint,
            palette.dim,
        );
    }
}
