//! A question about a call: what is about to run, why it is asked, and the four answers.

use std::fmt::Write as _;

use caliban_agent::{Details, Inquiry, PartVerdict};
use caliban_compose::{Editor, KeySet};
use caliban_settings::RuleAction;
use caliban_terminal::{Key, KeyCode, Modifiers};
use caliban_text::{Markdown, Row, Strength, sanitise, wrap};
use ratatui_core::layout::{Position, Rect};
use ratatui_core::text::Span;
use serde_json::Value;

use crate::canvas::Canvas;
use crate::host::{RuleDraft, RuleScope};
use crate::preferences::Diffs;
use crate::questions::Attention;
use crate::theme::Theme;
use crate::transcript::change_rows;

/// The four answers, in the order they are listed.
const ANSWERS: [(char, &str); 4] = [
    ('y', "Allow once"),
    ('Y', "Always allow"),
    ('n', "Deny once"),
    ('N', "Always deny"),
];

/// What the operator decided.
#[derive(Debug, PartialEq)]
pub(crate) enum Chosen {
    Nothing,
    AllowOnce,
    DenyOnce,
    /// Write rules, and answer as they say.
    Rules(Vec<RuleDraft>),
    /// Change the input in an editor and run it so.
    EditInput(String),
    /// Look at all of it.
    Details(String),
    /// Back to the draft; the question waits.
    Later,
}

/// The form.
#[derive(Debug)]
pub(crate) struct PermissionForm {
    pub(crate) inquiry: Inquiry,
    /// Nothing is chosen at first, so that Enter alone permits nothing.
    selected: Option<usize>,
    shows_why: bool,
    rule: Option<RuleForm>,
    top: usize,
}

/// What "always" will write.
#[derive(Debug)]
struct RuleForm {
    action: RuleAction,
    /// One rule a line: a command may need several.
    patterns: Editor,
    comment: Editor,
    scope: usize,
    field: Field,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Pattern,
    Scope,
    Comment,
}

/// What is known around the question while it is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Around<'a> {
    pub(crate) theme: &'a Theme,
    pub(crate) diffs: Diffs,
    pub(crate) attention: Attention,
    pub(crate) waiting: usize,
    pub(crate) agent: Option<&'a str>,
    /// The file that the rule would be written to, and which earlier calls it would have decided.
    pub(crate) preview: Option<&'a RulePreview>,
}

/// What a rule would do.
#[derive(Debug, Clone, Default)]
pub(crate) struct RulePreview {
    pub(crate) file: Option<String>,
    pub(crate) this_call: Option<bool>,
    pub(crate) matched: Vec<String>,
    pub(crate) others: usize,
}

impl PermissionForm {
    pub(crate) fn new(inquiry: &Inquiry) -> Self {
        Self {
            inquiry: inquiry.clone(),
            selected: None,
            shows_why: false,
            rule: None,
            top: 0,
        }
    }

    /// The rules that are being written, for their preview.
    pub(crate) fn drafts(&self) -> Vec<RuleDraft> {
        self.rule.as_ref().map_or_else(Vec::new, RuleForm::drafts)
    }

    pub(crate) fn press(&mut self, key: Key) -> Chosen {
        if self.rule.is_some() {
            return self.press_in_rule(key);
        }
        if key.modifiers.contains(Modifiers::CTRL) || key.modifiers.contains(Modifiers::ALT) {
            return Chosen::Nothing;
        }
        match key.code {
            KeyCode::Char('y') => Chosen::AllowOnce,
            KeyCode::Char('Y') => self.write(RuleAction::Allow),
            KeyCode::Char('n') | KeyCode::Esc => Chosen::DenyOnce,
            KeyCode::Char('N') => self.write(RuleAction::Deny),
            KeyCode::Char('e') => {
                let input = self.input();
                Chosen::EditInput(format!("{input:#}"))
            }
            KeyCode::Char('d') => Chosen::Details(self.details()),
            KeyCode::Char('?') => {
                self.shows_why = !self.shows_why;
                Chosen::Nothing
            }
            KeyCode::Tab => Chosen::Later,
            KeyCode::Right | KeyCode::Down => {
                self.selected = Some(self.selected.map_or(0, |at| (at + 1) % ANSWERS.len()));
                Chosen::Nothing
            }
            KeyCode::Left | KeyCode::Up => {
                let last = ANSWERS.len() - 1;
                self.selected = Some(match self.selected {
                    None | Some(0) => last,
                    Some(at) => at - 1,
                });
                Chosen::Nothing
            }
            KeyCode::PageUp => {
                self.top = self.top.saturating_sub(5);
                Chosen::Nothing
            }
            KeyCode::PageDown => {
                self.top += 5;
                Chosen::Nothing
            }
            KeyCode::Enter => match self.selected {
                None => Chosen::Nothing,
                Some(0) => Chosen::AllowOnce,
                Some(1) => self.write(RuleAction::Allow),
                Some(2) => Chosen::DenyOnce,
                Some(_) => self.write(RuleAction::Deny),
            },
            _ => Chosen::Nothing,
        }
    }

    fn write(&mut self, action: RuleAction) -> Chosen {
        let question = &self.inquiry.question;
        let mut patterns = question.suggestions.join("\n");
        if patterns.is_empty() && question.rule.is_none() {
            // No rule asks, so none can answer.
            return Chosen::Nothing;
        }
        if patterns.is_empty() {
            patterns = self.inquiry.call.name.to_string();
        }
        let mut form = RuleForm {
            action,
            patterns: Editor::new(KeySet::Emacs),
            comment: Editor::new(KeySet::Emacs),
            scope: 0,
            field: Field::Pattern,
        };
        form.patterns.set_text(&patterns);
        self.rule = Some(form);
        Chosen::Nothing
    }

    fn press_in_rule(&mut self, key: Key) -> Chosen {
        let Some(form) = &mut self.rule else {
            return Chosen::Nothing;
        };
        match (key.code, form.field) {
            (KeyCode::Esc, _) => self.rule = None,
            (KeyCode::Enter, _) => {
                let drafts = form.drafts();
                if !drafts.is_empty() {
                    return Chosen::Rules(drafts);
                }
            }
            (KeyCode::Tab, field) => {
                form.field = match field {
                    Field::Pattern => Field::Scope,
                    Field::Scope => Field::Comment,
                    Field::Comment => Field::Pattern,
                };
            }
            (KeyCode::BackTab, field) => {
                form.field = match field {
                    Field::Pattern => Field::Comment,
                    Field::Scope => Field::Pattern,
                    Field::Comment => Field::Scope,
                };
            }
            (KeyCode::Left | KeyCode::Up, Field::Scope) => {
                let last = RuleScope::ALL.len() - 1;
                form.scope = form.scope.checked_sub(1).unwrap_or(last);
            }
            (KeyCode::Right | KeyCode::Down | KeyCode::Char(' '), Field::Scope) => {
                form.scope = (form.scope + 1) % RuleScope::ALL.len();
            }
            (_, Field::Pattern) => {
                form.patterns.press(key);
            }
            (_, Field::Comment) => {
                form.comment.press(key);
            }
            (_, Field::Scope) => {}
        }
        Chosen::Nothing
    }

    /// The input that will run.
    fn input(&self) -> &Value {
        let question = &self.inquiry.question;
        question.input.as_ref().unwrap_or(&self.inquiry.call.input)
    }

    /// Everything about the call, as text.
    fn details(&self) -> String {
        let input = self.input();
        let mut text = format!("{}\n", self.inquiry.call.name);
        if let Some(command) = input.get("command").and_then(Value::as_str) {
            let _ = writeln!(text, "\n{command}");
        }
        let _ = writeln!(text, "\n{input:#}\n\n{}", self.inquiry.question.reason);
        text
    }

    /// How many rows it wants at a width.
    pub(crate) fn height(&self, width: u16, around: &Around<'_>) -> u16 {
        /// What the form of one rule has, with its frame.
        const RULE_FORM: u16 = 10;
        /// The frame, and a row between the call and the answers.
        const AROUND: u16 = 3;
        if let Some(form) = &self.rule {
            let rules = u16::try_from(form.patterns.line_count()).unwrap_or(u16::MAX);
            return rules.saturating_add(RULE_FORM);
        }
        let inside = width.saturating_sub(4);
        let rows = self.rows(inside, around).len();
        let rows = u16::try_from(rows).unwrap_or(u16::MAX);
        rows.saturating_add(AROUND + foot(inside))
    }

    fn rows(&self, width: u16, around: &Around<'_>) -> Vec<Row> {
        let palette = &around.theme.palette;
        let question = &self.inquiry.question;
        let mut rows = Vec::new();
        let mut say = |text: &str, style| {
            let harmless = sanitise(text, Strength::Name);
            rows.extend(wrap(
                vec![Span::styled(harmless.into_owned(), style)],
                width,
                &[Span::raw("  ")],
            ));
        };
        if let Some(agent) = around.agent {
            say(&format!("asked by the agent of call {agent}"), palette.dim);
        }
        let input = self.input();
        let name = &self.inquiry.call.name;
        let text_of = |key: &str| input.get(key).and_then(Value::as_str);
        let path = text_of("path").or(text_of("file_path"));
        let plan = text_of("plan");
        match (text_of("command"), path) {
            _ if plan.is_some() => say(
                "The plan is ready. Shall it be carried out?",
                palette.strong,
            ),
            (Some(command), _) => {
                for (place, line) in command.lines().enumerate() {
                    let head = if place == 0 {
                        format!("{name}: ")
                    } else {
                        "  ".to_owned()
                    };
                    say(&format!("{head}{line}"), palette.strong);
                }
            }
            (None, Some(path)) => say(&format!("{name}: {path}"), palette.strong),
            (None, None) => say(&format!("{name}: {input}"), palette.strong),
        }
        for part in &question.parts {
            let (verdict, style) = match part.verdict {
                PartVerdict::Allow => ("allowed", palette.success),
                PartVerdict::Ask => ("asks", palette.warning),
                PartVerdict::Deny => ("denied", palette.error),
            };
            let text = format!(
                "  {verdict:<8}{}  ({}, {})",
                part.item, part.rule, part.origin
            );
            say(&text, style);
        }
        if let Some(target) = &question.target {
            say(&format!("really about: {target}"), palette.warning);
        }
        say(&question.reason, palette.text);
        if let Some(rule) = &question.rule {
            say(&format!("rule that asks: {rule}"), palette.dim);
        }
        if self.shows_why {
            say(
                &format!("without being asked: {}", question.remedy),
                palette.dim,
            );
        }
        if let Some(plan) = plan {
            let laid = Markdown::whole(plan).rows(width, palette);
            rows.extend(laid.iter().cloned());
        }
        if let Some(Details::Edited { path, texts }) = &self.inquiry.preview {
            match texts {
                Some((old, new)) => {
                    let diffs = around.diffs;
                    rows.extend(change_rows(old, new, path, width, palette, diffs));
                }
                None => rows.push(Row::plain("the change is too large to show", palette.dim)),
            }
        }
        rows
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, around: &Around<'_>) {
        let palette = &around.theme.palette;
        let title = match around.waiting {
            0 | 1 => "Permission required".to_owned(),
            several => format!("Permission required (1 of {several})"),
        };
        let inside = canvas.frame(area, &title, around.theme);
        if inside.height < 3 {
            return;
        }
        let body = Rect {
            height: inside.height.saturating_sub(foot(inside.width)),
            ..inside
        };
        if let Some(form) = &self.rule {
            return form.draw(canvas, inside, around);
        }
        let rows = self.rows(body.width, around);
        let height = usize::from(body.height);
        self.top = self.top.min(rows.len().saturating_sub(height));
        canvas.rows(body, &rows[self.top..]);
        if rows.len() > self.top + height {
            let hidden = rows.len() - self.top - height;
            let text = format!(" {hidden} more rows: PageDown, or d for all ");
            let y = body.bottom().saturating_sub(1);
            let x = body
                .right()
                .saturating_sub(u16::try_from(text.len()).unwrap_or(0));
            canvas.text(x.max(body.x), y, body.right(), &text, palette.dim);
        }
        match around.attention {
            Attention::None | Attention::Deaf => {}
            Attention::Waits => {
                let text = format!("question waiting{}Tab", around.theme.signs.separator);
                canvas.text(
                    inside.x,
                    inside.bottom() - 1,
                    inside.right(),
                    &text,
                    palette.warning,
                );
            }
            Attention::Listens => self.legend(canvas, inside, around.theme),
        }
    }

    fn legend(&self, canvas: &mut Canvas, inside: Rect, theme: &Theme) {
        let mut y = inside
            .bottom()
            .saturating_sub(foot(inside.width))
            .max(inside.y);
        for row in legend_rows(inside.width) {
            let mut x = inside.x;
            for place in row {
                let Some((letter, label)) = ANSWERS.get(place) else {
                    continue;
                };
                let style = if self.selected == Some(place) {
                    canvas.cursor = Some(Position::new(x, y));
                    theme.chosen()
                } else {
                    theme.palette.text
                };
                let text = format!("[{letter}] {label}");
                x = canvas.text(x, y, inside.right(), &text, style) + GAP;
            }
            y += 1;
        }
        let hint = "e edit  d all of it  ? why  Esc denies  Tab later";
        if y < inside.bottom() {
            canvas.text(inside.x, y, inside.right(), hint, theme.palette.dim);
        }
    }
}

/// Columns between two answers.
const GAP: u16 = 2;

/// Which answers stand on which row of the legend.
fn legend_rows(width: u16) -> Vec<std::ops::Range<usize>> {
    let mut rows = Vec::new();
    let (mut first, mut taken) = (0, 0);
    for (place, (_, label)) in ANSWERS.iter().enumerate() {
        let columns = u16::try_from("[y] ".len() + label.len()).unwrap_or(u16::MAX);
        if place > first && taken + columns > width {
            rows.push(first..place);
            (first, taken) = (place, 0);
        }
        taken += columns + GAP;
    }
    rows.push(first..ANSWERS.len());
    rows
}

/// Rows of the answers and of the hint below them.
fn foot(width: u16) -> u16 {
    u16::try_from(legend_rows(width).len()).unwrap_or(u16::MAX) + 1
}

impl RuleForm {
    fn drafts(&self) -> Vec<RuleDraft> {
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

    fn draw(&self, canvas: &mut Canvas, inside: Rect, around: &Around<'_>) {
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
        let is_at = |field| self.field == field;
        for (place, pattern) in self.patterns.text().lines().enumerate() {
            let label = if place == 0 { "rule" } else { "" };
            line(canvas, label, pattern, is_at(Field::Pattern));
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
