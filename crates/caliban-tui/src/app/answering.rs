//! The answers of the operator.

use caliban_agent::{Answer, Interrupt, Remember};
use caliban_session::{Command, RuleChange};
use caliban_settings::RuleAction;
use caliban_terminal::Key;

use crate::app::effect::Effect;
use crate::app::state::App;
use crate::host::{RuleDraft, RuleScope};
use crate::layers::{Chosen, Layer, Pager};
use crate::questions::Form;

impl App {
    pub(crate) fn press_in_question(&mut self, key: Key) {
        if key == Key::ctrl('c') {
            return self.stop();
        }
        let Some(open) = self.questions.first_mut() else {
            return;
        };
        let question = std::sync::Arc::clone(&open.id);
        match &mut open.form {
            Form::Elicitation(form) => {
                if let Some(reply) = form.press(key) {
                    self.effect(Effect::Send(Command::AnswerElicitation { question, reply }));
                }
            }
            Form::Permission(form) => match form.press(key) {
                Chosen::Nothing => {}
                Chosen::Later => self.questions.release(),
                Chosen::AllowOnce => self.answer(question, allow(None)),
                Chosen::DenyOnce => self.answer(question, deny()),
                Chosen::Details(text) => {
                    self.layers.push(Layer::Pager(Pager::new("The call", text)));
                }
                Chosen::EditInput(text) => self.effect(Effect::EditInput { question, text }),
                Chosen::Rules(rules) => {
                    let action = rules.first().map(|rule| rule.action);
                    for rule in rules {
                        self.keep_rule(rule);
                    }
                    self.answer(
                        question,
                        match action {
                            Some(RuleAction::Allow) => allow(None),
                            Some(RuleAction::Deny | RuleAction::Ask) | None => deny(),
                        },
                    );
                }
            },
        }
    }

    /// A rule holds in the session at once, wherever else it is written.
    fn keep_rule(&mut self, rule: RuleDraft) {
        let (pattern, action) = (rule.pattern.clone(), rule.action);
        let change = RuleChange::Add { pattern, action };
        self.effect(Effect::Send(Command::Rule(change)));
        if rule.scope != RuleScope::Session
            && let Some(desk) = self.desk.clone()
        {
            self.effect(Effect::SaveRule(desk, rule));
        }
    }

    pub(crate) fn answer(&mut self, question: std::sync::Arc<str>, answer: Answer) {
        self.effect(Effect::Send(Command::Answer { question, answer }));
    }
}

pub(crate) fn allow(input: Option<serde_json::Value>) -> Answer {
    Answer::Allow {
        input,
        remember: Remember::Once,
    }
}

fn deny() -> Answer {
    Answer::Deny {
        reason: None,
        remember: Remember::Once,
        interrupt: Interrupt::No,
    }
}
