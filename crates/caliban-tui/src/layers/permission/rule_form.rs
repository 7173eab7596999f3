//! The rule that "always" and "never" write: shown as it will stand, with its scope, its file and
//! what it would have decided, before anything is written.

use caliban_agent::Inquiry;
use caliban_compose::{Editor, KeySet};
use caliban_settings::RuleAction;
use caliban_terminal::{Key, KeyCode};
use caliban_text::{Strength, sanitise, wrap};
use ratatui_core::layout::{Position, Rect};
use ratatui_core::text::Span;

use crate::asking;
use crate::canvas::Canvas;
use crate::host::{RuleDraft, RuleScope};
use crate::layers::permission::Around;

/// What comes of a key.
#[derive(Debug, PartialEq)]
pub(super) enum Written {
    NotYet,
    /// Back to the question.
    Left,
    Rules(Vec<RuleDraft>),
}

/// What "always" will write.
#[derive(Debug)]
pub(super) struct RuleForm {
    action: RuleAction,
    /// One rule a line: a command may need several.
    patterns: Editor,
    comment: Editor,
    scope: usize,
    field: Field,
    /// Why nothing is suggested, where nothing is.
    note: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Pattern,
    Scope,
    Comment,
}

/// Columns of the sign and the label before what a line says.
const LABEL: u16 = 12;

impl RuleForm {
    /// What would answer this question from now on. Nothing is suggested that lets more in than
    /// the call at hand calls for.
    pub(super) fn about(inquiry: &Inquiry, action: RuleAction) -> Self {
        let suggestions = inquiry.question.suggestions.join("\n");
        let tool = &inquiry.call.name;
        let (patterns, note) = match action {
            _ if !suggestions.is_empty() => (suggestions, None),
            RuleAction::Allow if asking::is_command(inquiry) => {
                let note =
                    format!("No narrower rule can allow this; `{tool}` would allow every command.");
                (String::new(), Some(note))
            }
            RuleAction::Deny | RuleAction::Ask if asking::is_command(inquiry) => {
                let note = format!(
                    "No narrower rule is sure to match this; `{tool}` would match every command."
                );
                (String::new(), Some(note))
            }
            RuleAction::Allow => {
                let note = "No rule here can allow this; the one that asks would have to change.";
                (String::new(), Some(note.to_owned()))
            }
            RuleAction::Deny | RuleAction::Ask => (tool.to_string(), None),
        };
        let mut form = Self {
            action,
            patterns: Editor::new(KeySet::Emacs),
            comment: Editor::new(KeySet::Emacs),
            scope: 0,
            field: Field::Pattern,
            note,
        };
        form.patterns.set_text(&patterns);
        form
    }

    pub(super) fn press(&mut self, key: Key) -> Written {
        match (key.code, self.field) {
            (KeyCode::Esc, _) => return Written::Left,
            (KeyCode::Enter, _) => {
                let drafts = self.drafts();
                if !drafts.is_empty() {
                    return Written::Rules(drafts);
                }
            }
            (KeyCode::Tab, field) => {
                self.field = match field {
                    Field::Pattern => Field::Scope,
                    Field::Scope => Field::Comment,
                    Field::Comment => Field::Pattern,
                };
            }
            (KeyCode::BackTab, field) => {
                self.field = match field {
                    Field::Pattern => Field::Comment,
                    Field::Scope => Field::Pattern,
                    Field::Comment => Field::Scope,
                };
            }
            (KeyCode::Left | KeyCode::Up, Field::Scope) => {
                let last = RuleScope::ALL.len() - 1;
                self.scope = self.scope.checked_sub(1).unwrap_or(last);
            }
            (KeyCode::Right | KeyCode::Down | KeyCode::Char(' '), Field::Scope) => {
                self.scope = (self.scope + 1) % RuleScope::ALL.len();
            }
            (_, Field::Pattern) => {
                self.patterns.press(key);
            }
            (_, Field::Comment) => {
                self.comment.press(key);
            }
            (_, Field::Scope) => {}
        }
        Written::NotYet
    }

    /// How many rows it wants.
    pub(super) fn height(&self) -> u16 {
        /// What the form of one rule has, with its frame.
        const ONE: u16 = 10;
        /// Rows of a note, on a narrow screen.
        const NOTE: u16 = 3;
        let rules = u16::try_from(self.patterns.line_count()).unwrap_or(u16::MAX);
        let note = if self.note.is_some() { NOTE } else { 0 };
        rules.saturating_add(ONE + note)
    }

    pub(super) fn drafts(&self) -> Vec<RuleDraft> {
        let comment = self.comment.text().trim().to_owned();
        let text = self.patterns.text();
        let patterns = text.lines().map(str::trim).filter(|line| !line.is_empty());
        patterns
            .map(|pattern| RuleDraft {
                pattern: pattern.to_owned(),
                action: self.action,
                scope: RuleScope::ALL[self.scope],
                comment: (!comment.is_empty()).then(|| comment.clone()),
            })
            .collect()
    }

    pub(super) fn draw(&self, canvas: &mut Canvas, inside: Rect, around: &Around<'_>) {
        let palette = &around.theme.palette;
        let word = match self.action {
            RuleAction::Allow => "Always allow",
            RuleAction::Deny => "Always deny",
            RuleAction::Ask => "Always ask",
        };
        let mut y = inside.y;
        let mut line = |canvas: &mut Canvas, label: &str, text: &str, is_here: bool| {
            if y >= inside.bottom() {
                return;
            }
            let sign = if is_here {
                around.theme.signs.selected
            } else {
                " "
            };
            let label = format!("{sign} {label:<9}");
            let x = canvas.text(inside.x, y, inside.right(), &label, palette.dim);
            let style = if is_here {
                palette.strong
            } else {
                palette.text
            };
            let end = canvas.text(x, y, inside.right(), text, style);
            if is_here {
                canvas.cursor = Some(Position::new(end.min(inside.right() - 1), y));
            }
            y += 1;
        };
        line(canvas, word, "", false);
        let note = self.note.iter().flat_map(|note| {
            let width = inside.width.saturating_sub(LABEL);
            wrap(vec![Span::raw(note.clone())], width, &[])
        });
        for (place, row) in note.enumerate() {
            let label = if place == 0 { "!" } else { "" };
            line(canvas, label, &row.text(), false);
        }
        let is_at = |field| self.field == field;
        let patterns = self.patterns.text();
        let rules = patterns.lines().chain(patterns.is_empty().then_some(""));
        for (place, pattern) in rules.enumerate() {
            let label = if place == 0 { "rule" } else { "" };
            let pattern = sanitise(pattern, Strength::Name);
            line(canvas, label, &pattern, is_at(Field::Pattern));
        }
        let scopes: Vec<String> = RuleScope::ALL
            .iter()
            .enumerate()
            .map(|(place, scope)| {
                if place == self.scope {
                    format!("[{}]", scope.as_str())
                } else {
                    scope.as_str().to_owned()
                }
            })
            .collect();
        line(canvas, "scope", &scopes.join(" "), is_at(Field::Scope));
        line(
            canvas,
            "comment",
            &self.comment.text(),
            is_at(Field::Comment),
        );
        if let Some(preview) = around.preview {
            if let Some(file) = &preview.file {
                line(canvas, "file", file, false);
            }
            if preview.this_call == Some(false) {
                line(canvas, "!", "this call would still be asked about", false);
            }
            let earlier = match preview.matched.len() {
                0 if preview.others == 0 => "no earlier calls to compare with".to_owned(),
                0 if preview.others == 1 => "not the one earlier call".to_owned(),
                0 => format!("none of {} earlier calls", preview.others),
                count => format!(
                    "{count} of {} earlier calls: {}",
                    count + preview.others,
                    preview.matched.join(", ")
                ),
            };
            line(canvas, "matches", &earlier, false);
        }
        let hint = "Tab next field  Enter writes it and answers  Esc back";
        canvas.text(
            inside.x,
            inside.bottom() - 1,
            inside.right(),
            hint,
            palette.dim,
        );
    }
}
