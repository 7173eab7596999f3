//! Mode and rules: which count, whose they are, and how a call would be judged by them.

use std::sync::Arc;

use caliban_settings::RuleAction;
use caliban_terminal::{Key, KeyCode};
use caliban_text::{Strength, sanitise};
use ratatui_core::layout::Rect;

use crate::canvas::Canvas;
use crate::host::{BypassLatch, Desk, RuleHome, RuleRow};
use crate::layers::field::{Field, Shows, Written};
use crate::layers::list::{Heard, Line, List, closes, panel, tell_keys};
use crate::layers::{Known, Reaction, Wish};

const KEYS: &str = "Tab mode  d delete  t try a call, as `Bash: git push`  / search  q closes";

/// The overlay.
#[derive(Debug)]
pub(crate) struct RulesPanel {
    desk: Arc<dyn Desk>,
    rules: Vec<RuleRow>,
    list: List,
    said: String,
    /// A call that is being tried, while it is written.
    trial: Option<Field>,
}

impl RulesPanel {
    pub(crate) fn new(desk: Arc<dyn Desk>) -> Self {
        let rules = desk.rules();
        Self {
            desk,
            rules,
            list: List::default(),
            said: String::new(),
            trial: None,
        }
    }

    /// The places of the rules that have what is searched for.
    fn shown(&self) -> Vec<usize> {
        let texts: Vec<String> = self
            .rules
            .iter()
            .map(|rule| format!("{} {} {}", word(rule.action), rule.pattern, rule.origin))
            .collect();
        self.list.shown(texts.iter().map(String::as_str))
    }

    pub(crate) fn paste(&mut self, text: &str) {
        match &mut self.trial {
            Some(field) => field.paste(text),
            None => self.list.paste(text),
        }
    }

    pub(crate) fn press(&mut self, key: Key) -> Reaction {
        if self.trial.is_some() {
            return self.press_in_trial(key);
        }
        if self.list.press(key, self.shown().len()) == Heard::Taken {
            return Reaction::Stay;
        }
        if closes(key) {
            return Reaction::Close;
        }
        match key.code {
            KeyCode::Tab | KeyCode::BackTab => return Reaction::Do(Wish::CycleMode),
            KeyCode::Char('t') => self.trial = Some(Field::new("try", "", Shows::Text)),
            KeyCode::Char('d') => return self.delete(),
            _ => {}
        }
        Reaction::Stay
    }

    fn delete(&mut self) -> Reaction {
        let place = self.shown().get(self.list.chosen()).copied();
        let Some((place, rule)) = place.and_then(|at| Some((at, self.rules.get(at)?.clone())))
        else {
            return Reaction::Stay;
        };
        match rule.home {
            RuleHome::Session => {
                self.rules.remove(place);
                self.said = format!("`{}` does not count any more", rule.pattern);
                Reaction::Do(Wish::ForgetRule {
                    pattern: rule.pattern,
                    action: rule.action,
                })
            }
            RuleHome::File(scope) => {
                match self.desk.remove_rule(scope, &rule.pattern) {
                    Ok(changed) => {
                        // What was written counts at once, and another file may hold it, too.
                        self.rules = self.desk.rules();
                        let is_still = self
                            .rules
                            .iter()
                            .any(|left| left.pattern == rule.pattern && left.action == rule.action);
                        // What counts comes first: the row may be too short for the rest.
                        let pattern = &rule.pattern;
                        self.said = if is_still {
                            format!("a rule like `{pattern}` still counts; gone from {changed}")
                        } else {
                            format!("`{pattern}` does not count any more; gone from {changed}")
                        };
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
        let written = self.trial.as_mut().map(|field| field.press(key));
        match written {
            None | Some(Written::Going) => {}
            Some(Written::Dropped) => self.trial = None,
            Some(Written::Given(text)) => {
                self.trial = None;
                self.said = self.desk.judged(&text);
            }
        }
        Reaction::Stay
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, known: &Known<'_>) {
        let (theme, mode) = (known.theme, known.mode);
        let latch = match known.latch {
            BypassLatch::On => "on",
            BypassLatch::Off => "off",
        };
        let title = format!("Permissions: mode {mode}, bypass latch {latch}");
        let hint = self.list.hint(KEYS);
        let Some(places) = panel(canvas, area, &title, &hint, theme) else {
            return;
        };
        let palette = &theme.palette;
        let width = usize::from(places.body.width) / 2;
        let lines: Vec<Line> = self
            .shown()
            .into_iter()
            .filter_map(|place| self.rules.get(place))
            .map(|rule| {
                let comment = rule.comment.as_deref().unwrap_or_default();
                Line {
                    label: format!(
                        "{:<6}{}",
                        word(rule.action),
                        theme.cut(&rule.pattern, width)
                    ),
                    about: format!("{}  {comment}", rule.origin),
                    style: palette.text,
                }
            })
            .collect();
        self.list.draw(canvas, places.body, theme, &lines);
        let row = places.said;
        if let Some(field) = &self.trial {
            field.draw(canvas, row, theme);
        } else {
            let said = sanitise(&self.said, Strength::Name);
            canvas.text(row.x, row.y, row.right(), &said, palette.warning);
        }
        tell_keys(canvas, &places, &hint, theme);
    }
}

fn word(action: RuleAction) -> &'static str {
    match action {
        RuleAction::Allow => "allow",
        RuleAction::Ask => "ask",
        RuleAction::Deny => "deny",
    }
}
