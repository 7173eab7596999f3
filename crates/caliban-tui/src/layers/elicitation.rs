//! What a server wants to know, as a form.

use caliban_agent::{Elicitation, Reply};
use caliban_compose::{Editor, KeySet};
use caliban_terminal::{Key, KeyCode};
use caliban_text::{Row, Strength, sanitise, wrap};
use ratatui_core::layout::{Position, Rect};
use ratatui_core::text::Span;
use serde_json::{Map, Value};

use crate::canvas::Canvas;
use crate::questions::Attention;
use crate::theme::Theme;

/// The form.
#[derive(Debug)]
pub(crate) struct ElicitationForm {
    server: String,
    message: String,
    fields: Vec<Field>,
    at: usize,
    fault: Option<String>,
}

#[derive(Debug)]
struct Field {
    name: String,
    title: String,
    is_required: bool,
    kind: FieldKind,
}

#[derive(Debug)]
enum FieldKind {
    Text {
        editor: Box<Editor>,
        form: TextForm,
    },
    Choice {
        values: Vec<String>,
        chosen: Option<usize>,
    },
    Switch(Option<bool>),
}

/// What a text must be, and whether it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextForm {
    Plain,
    /// Never shown and never kept.
    Secret,
    Number,
    Integer,
}

impl ElicitationForm {
    pub(crate) fn new(elicitation: &Elicitation) -> Self {
        let schema = &elicitation.schema;
        let required: Vec<&str> = schema["required"]
            .as_array()
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let properties = schema["properties"].as_object();
        let fields = properties.into_iter().flatten().map(|(name, about)| Field {
            title: about["title"]
                .as_str()
                .or(about["description"].as_str())
                .unwrap_or(name)
                .to_owned(),
            is_required: required.contains(&name.as_str()),
            kind: kind(about),
            name: name.clone(),
        });
        Self {
            server: elicitation.server.clone(),
            message: elicitation.message.clone(),
            fields: fields.collect(),
            at: 0,
            fault: None,
        }
    }

    /// What the operator says; nothing while he fills it in.
    pub(crate) fn press(&mut self, key: Key) -> Option<Reply> {
        self.fault = None;
        let last = self.fields.len();
        match key.code {
            KeyCode::Esc => return Some(Reply::Cancel),
            KeyCode::Up | KeyCode::BackTab => self.at = self.at.saturating_sub(1),
            KeyCode::Down | KeyCode::Tab => self.at = (self.at + 1).min(last),
            KeyCode::Enter if self.at < last => self.at += 1,
            KeyCode::Enter => match self.content() {
                Ok(content) => return Some(Reply::Accept(content)),
                Err(fault) => self.fault = Some(fault),
            },
            KeyCode::Char('x') if self.at == last => return Some(Reply::Decline),
            _ => {
                if let Some(field) = self.fields.get_mut(self.at) {
                    field.press(key);
                }
            }
        }
        None
    }

    fn content(&self) -> Result<Value, String> {
        let mut content = Map::new();
        for field in &self.fields {
            match field.value()? {
                Some(value) => {
                    content.insert(field.name.clone(), value);
                }
                None if field.is_required => return Err(format!("`{}` is missing", field.title)),
                None => {}
            }
        }
        Ok(Value::Object(content))
    }

    pub(crate) fn height(&self, width: u16, theme: &Theme) -> u16 {
        let message = self.message_rows(width.saturating_sub(4), theme).len();
        u16::try_from(message + self.fields.len())
            .unwrap_or(u16::MAX)
            .saturating_add(4)
    }

    fn message_rows(&self, width: u16, theme: &Theme) -> Vec<Row> {
        let text = sanitise(&self.message, Strength::Prose);
        let lines = text.lines().map(ToOwned::to_owned);
        lines
            .flat_map(|line| wrap(vec![Span::styled(line, theme.palette.text)], width, &[]))
            .collect()
    }

    pub(crate) fn draw(
        &self,
        canvas: &mut Canvas,
        area: Rect,
        theme: &Theme,
        attention: Attention,
    ) {
        let server = sanitise(&self.server, Strength::Name);
        let inside = canvas.frame(area, &format!("The server {server} asks"), theme);
        let palette = &theme.palette;
        if inside.height < 3 {
            return;
        }
        let rows = self.message_rows(inside.width, theme);
        let shown = usize::from(inside.height)
            .saturating_sub(self.fields.len() + 1)
            .min(rows.len());
        canvas.rows(inside, &rows[..shown]);
        let top = inside.y + u16::try_from(shown).unwrap_or(0);
        let fields = self.fields.iter().enumerate();
        for (y, (place, field)) in (top..inside.bottom() - 1).zip(fields) {
            let is_here = place == self.at;
            let sign = if is_here { theme.signs.selected } else { " " };
            let star = if field.is_required { "*" } else { "" };
            let title = sanitise(&field.title, Strength::Name);
            let label = format!("{sign} {title}{star}: ");
            let x = canvas.text(inside.x, y, inside.right(), &label, palette.dim);
            let end = canvas.text(x, y, inside.right(), &field.shown(), palette.text);
            if is_here && attention == Attention::Listens {
                canvas.cursor = Some(Position::new(end.min(inside.right() - 1), y));
            }
        }
        let text = match (attention, &self.fault) {
            (Attention::Waits, _) => format!("question waiting{}Tab", theme.signs.separator),
            (Attention::None | Attention::Deaf, _) => String::new(),
            (Attention::Listens, Some(fault)) => fault.clone(),
            (Attention::Listens, None) if self.at == self.fields.len() => {
                "[Enter] send  [x] decline  [Esc] cancel".to_owned()
            }
            (Attention::Listens, None) => "Tab next  Enter goes on  Esc cancels".to_owned(),
        };
        canvas.text(
            inside.x,
            inside.bottom() - 1,
            inside.right(),
            &text,
            palette.strong,
        );
    }
}

impl Field {
    fn press(&mut self, key: Key) {
        match &mut self.kind {
            FieldKind::Text { editor, .. } => {
                editor.press(key);
            }
            FieldKind::Choice { values, chosen } => match key.code {
                KeyCode::Right | KeyCode::Char(' ') => {
                    *chosen = Some(chosen.map_or(0, |at| (at + 1) % values.len().max(1)));
                }
                KeyCode::Left => {
                    let last = values.len().saturating_sub(1);
                    *chosen = Some(chosen.and_then(|at| at.checked_sub(1)).unwrap_or(last));
                }
                _ => {}
            },
            FieldKind::Switch(switch) => match key.code {
                KeyCode::Char('y') => *switch = Some(true),
                KeyCode::Char('n') => *switch = Some(false),
                KeyCode::Char(' ') | KeyCode::Left | KeyCode::Right => {
                    *switch = Some(!switch.unwrap_or(false));
                }
                _ => {}
            },
        }
    }

    fn value(&self) -> Result<Option<Value>, String> {
        Ok(match &self.kind {
            FieldKind::Text { editor, form } => {
                let text = editor.text();
                let number = |what: &str| format!("`{}` must be {what}", self.title);
                match form {
                    _ if text.is_empty() => None,
                    TextForm::Plain | TextForm::Secret => Some(Value::from(text)),
                    TextForm::Number => {
                        let parsed: f64 = text.trim().parse().map_err(|_| number("a number"))?;
                        Some(Value::from(parsed))
                    }
                    TextForm::Integer => {
                        let parsed: i64 =
                            text.trim().parse().map_err(|_| number("a whole number"))?;
                        Some(Value::from(parsed))
                    }
                }
            }
            FieldKind::Choice { values, chosen } => {
                let value = chosen.and_then(|at| values.get(at));
                value.map(|value| Value::from(value.as_str()))
            }
            FieldKind::Switch(switch) => switch.map(Value::from),
        })
    }

    fn shown(&self) -> String {
        match &self.kind {
            FieldKind::Text { editor, form } => match form {
                TextForm::Secret => "*".repeat(editor.text().chars().count()),
                TextForm::Plain | TextForm::Number | TextForm::Integer => editor.text(),
            },
            FieldKind::Choice { values, chosen } => {
                let marked = values.iter().enumerate().map(|(place, value)| {
                    let value = sanitise(value, Strength::Name);
                    if *chosen == Some(place) {
                        format!("[{value}]")
                    } else {
                        value.into_owned()
                    }
                });
                marked.collect::<Vec<_>>().join(" ")
            }
            FieldKind::Switch(None) => "yes no".to_owned(),
            FieldKind::Switch(Some(true)) => "[yes] no".to_owned(),
            FieldKind::Switch(Some(false)) => "yes [no]".to_owned(),
        }
    }
}

fn kind(about: &Value) -> FieldKind {
    if let Some(values) = about["enum"].as_array() {
        return FieldKind::Choice {
            values: values
                .iter()
                .filter_map(Value::as_str)
                .map(ToOwned::to_owned)
                .collect(),
            chosen: None,
        };
    }
    let form = match about["type"].as_str() {
        Some("boolean") => return FieldKind::Switch(about["default"].as_bool()),
        Some("number") => TextForm::Number,
        Some("integer") => TextForm::Integer,
        _ if about["format"] == "password" || about["writeOnly"] == true => TextForm::Secret,
        _ => TextForm::Plain,
    };
    let mut editor = Editor::new(KeySet::Emacs);
    if let Some(default) = about["default"].as_str() {
        editor.set_text(default);
    }
    FieldKind::Text {
        editor: Box::new(editor),
        form,
    }
}
