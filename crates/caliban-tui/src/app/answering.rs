//! The answers of the operator.

use std::sync::Arc;

use caliban_agent::{Answer, Interrupt, Remember, ToolStatus};
use caliban_session::{Command, RuleChange};
use caliban_settings::{PermissionMode, RuleAction};
use caliban_terminal::Key;

use crate::app::effect::{Effect, Verdict};
use crate::app::state::App;
use crate::asking;
use crate::host::{FileChanged, RuleDraft, RuleScope};
use crate::layers::{Chosen, Layer, Pager, PartsPanel, PlanVerdict};
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
        let agent = open.agent.as_deref().map(|call| self.feed.agent_of(call));
        match &mut open.form {
            Form::Elicitation(form) => {
                if let Some(reply) = form.press(key) {
                    self.effect(Effect::Send(Command::AnswerElicitation { question, reply }));
                }
            }
            Form::Plan(form) => match form.press(key) {
                PlanVerdict::NotYet => {}
                PlanVerdict::Later => self.questions.release(),
                PlanVerdict::CarryOut => self.answer(question, allow(None)),
                PlanVerdict::CarryOutAcceptingEdits => {
                    let call = Arc::clone(&form.inquiry.call.id);
                    self.after_plan = Some(call);
                    self.answer(question, allow(None));
                }
                PlanVerdict::KeepPlanning(message) => self.answer(question, deny(message)),
                PlanVerdict::Details => {
                    let text = asking::everything(&form.inquiry, agent.as_deref());
                    self.layers.push(Layer::Pager(Pager::new("The plan", text)));
                }
            },
            Form::Permission(form) => match form.press(key) {
                Chosen::Nothing => {}
                Chosen::Later => self.questions.release(),
                Chosen::AllowOnce => self.answer(question, allow(None)),
                Chosen::DenyOnce => self.answer(question, deny(None)),
                Chosen::Details => {
                    let text = asking::everything(&form.inquiry, agent.as_deref());
                    self.layers.push(Layer::Pager(Pager::new("The call", text)));
                }
                Chosen::Parts(partial) => {
                    let panel = PartsPanel::new(question, *partial);
                    self.layers.push(Layer::Parts(Box::new(panel)));
                }
                Chosen::EditInput(text) => self.effect(Effect::EditInput { question, text }),
                Chosen::Rules(rules) => {
                    let action = rules.first().map(|rule| rule.action);
                    let answer = match action {
                        Some(RuleAction::Allow) => allow(None),
                        Some(RuleAction::Deny | RuleAction::Ask) | None => deny(None),
                    };
                    self.keep_rules(rules, Verdict { question, answer });
                }
            },
        }
    }

    /// Rules hold in the session at once, wherever else they are written. What they answer goes on
    /// when they are, so that no call looks at files that are being written.
    fn keep_rules(&mut self, rules: Vec<RuleDraft>, verdict: Verdict) {
        for rule in &rules {
            let (pattern, action) = (rule.pattern.clone(), rule.action);
            let change = RuleChange::Add { pattern, action };
            self.effect(Effect::Send(Command::Rule(change)));
        }
        let is_written = rules.iter().any(|rule| rule.scope != RuleScope::Session);
        match self.desk.clone().filter(|_| is_written) {
            Some(desk) => self.effect(Effect::SaveRules(desk, rules, verdict)),
            None => self.answer(verdict.question, verdict.answer),
        }
    }

    /// Rules were written, or not; the session has them either way.
    pub(crate) fn rules_saved(
        &mut self,
        verdict: Verdict,
        saved: Result<(RuleDraft, FileChanged), String>,
    ) {
        self.answer(verdict.question, verdict.answer);
        match saved {
            Ok((rule, changed)) => {
                self.say(format!("`{}` is written to {changed}", rule.pattern));
            }
            Err(error) => self.say(error),
        }
    }

    /// Edits are accepted from the moment on in which plan mode has ended.
    pub(crate) fn settle_plan(&mut self) {
        let Some(call) = &self.after_plan else {
            return;
        };
        match self.feed.ended(call) {
            None if self.run.is_some() => {}
            Some(ToolStatus::Ok) => {
                self.after_plan = None;
                let mode = PermissionMode::AcceptEdits;
                self.effect(Effect::Send(Command::SetMode { mode }));
            }
            None | Some(_) => self.after_plan = None,
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

fn deny(reason: Option<String>) -> Answer {
    Answer::Deny {
        reason,
        remember: Remember::Once,
        interrupt: Interrupt::No,
    }
}
