//! A question about a call: what is about to run, why it is asked, and the four answers.

mod drawing;
mod rule_form;

use caliban_agent::Inquiry;
use caliban_settings::RuleAction;
use caliban_terminal::{Key, KeyCode, Modifiers};

use crate::asking;
use crate::host::RuleDraft;
use crate::layers::legend::{self, Labelled, Way};
use crate::layers::permission::rule_form::{RuleForm, Written};
use crate::partial::Partial;
use crate::preferences::Diffs;
use crate::questions::Attention;
use crate::theme::Theme;

/// The four answers, in the order they are listed.
const ANSWERS: [Labelled; 4] = [
    ('y', "Allow once"),
    ('Y', "Always allow"),
    ('n', "Deny once"),
    ('N', "Always deny"),
];

/// What the operator decided.
#[derive(Debug)]
pub(crate) enum Chosen {
    Nothing,
    AllowOnce,
    DenyOnce,
    /// Write rules, and answer as they say.
    Rules(Vec<RuleDraft>),
    /// Change the input in an editor and run it so.
    EditInput(String),
    /// Choose among the changes.
    Parts(Box<Partial>),
    /// Look at all of it.
    Details,
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
    /// Whether it is about several changes.
    has_parts: bool,
    /// Its rules are being written, and answer it then.
    is_written: bool,
    top: usize,
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
            has_parts: Partial::of(inquiry).is_some(),
            is_written: false,
            top: 0,
        }
    }

    /// The rules that are being written, for their preview.
    pub(crate) fn drafts(&self) -> Vec<RuleDraft> {
        self.rule.as_ref().map_or_else(Vec::new, RuleForm::drafts)
    }

    pub(crate) fn press(&mut self, key: Key) -> Chosen {
        if let Some(form) = &mut self.rule {
            return match form.press(key) {
                Written::NotYet => Chosen::Nothing,
                Written::Left => {
                    self.rule = None;
                    Chosen::Nothing
                }
                Written::Rules(drafts) => {
                    self.rule = None;
                    self.is_written = true;
                    Chosen::Rules(drafts)
                }
            };
        }
        if self.is_written {
            return Chosen::Nothing;
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
                let input = asking::input(&self.inquiry);
                Chosen::EditInput(format!("{input:#}"))
            }
            KeyCode::Char('h') => match Partial::of(&self.inquiry) {
                Some(partial) => Chosen::Parts(Box::new(partial)),
                None => Chosen::Nothing,
            },
            KeyCode::Char('d') => Chosen::Details,
            KeyCode::Char('?') => {
                self.shows_why = !self.shows_why;
                Chosen::Nothing
            }
            KeyCode::Tab => Chosen::Later,
            KeyCode::Right | KeyCode::Down => {
                self.selected = Some(legend::step(&ANSWERS, self.selected, Way::On));
                Chosen::Nothing
            }
            KeyCode::Left | KeyCode::Up => {
                self.selected = Some(legend::step(&ANSWERS, self.selected, Way::Back));
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
        // Where no rule asks, none can answer.
        if question.rule.is_some() || !question.suggestions.is_empty() {
            self.rule = Some(RuleForm::about(&self.inquiry, action));
        }
        Chosen::Nothing
    }
}
