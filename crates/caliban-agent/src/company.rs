//! Everybody who has a part in an agent's work, and how their words are put together.

use std::borrow::Cow;
use std::sync::Arc;

use caliban_model::{Block, Message};
use serde_json::Value;

use crate::call::{Opinion, ToolCall};
use crate::event::Denial;
use crate::hook_event::HookEvent;
use crate::operator::{Answer, Inquiry, Operator};
use crate::roles::{
    Advice, Adviser, Gate, Hearing, Inheritance, Intake, Observer, PromptStage, PromptVerdict,
    StopStage, StopVerdict, Tracer, Verdict, Witness,
};
use crate::tool::ToolOutput;

/// Those around an agent, by their roles, each list in the order in which it is heard.
#[derive(Debug, Clone)]
pub struct Company {
    pub gate: Arc<dyn Gate>,
    pub advisers: Vec<Arc<dyn Adviser>>,
    pub prompt_stages: Vec<Arc<dyn PromptStage>>,
    pub stop_stages: Vec<Arc<dyn StopStage>>,
    pub witnesses: Vec<Arc<dyn Witness>>,
    pub observers: Vec<Arc<dyn Observer>>,
    /// Without one everything is taken in as it is.
    pub intake: Option<Arc<dyn Intake>>,
    /// Without one calls have no place in a trace.
    pub tracer: Option<Arc<dyn Tracer>>,
}

impl Company {
    /// A gate and nobody else.
    pub fn new(gate: Arc<dyn Gate>) -> Self {
        Self {
            gate,
            advisers: Vec::new(),
            prompt_stages: Vec::new(),
            stop_stages: Vec::new(),
            witnesses: Vec::new(),
            observers: Vec::new(),
            intake: None,
            tracer: None,
        }
    }

    /// The company of an agent that works for this one. Every call is judged and witnessed like
    /// its parent's; its prompts are not the user's, and its end is not the session's.
    #[must_use]
    pub fn for_sub_agent(&self, inheritance: Inheritance) -> Self {
        let Self {
            gate,
            advisers,
            prompt_stages: _,
            stop_stages: _,
            witnesses,
            observers,
            intake,
            tracer,
        } = self;
        Self {
            gate: Arc::clone(gate),
            advisers: advisers.clone(),
            prompt_stages: Vec::new(),
            stop_stages: Vec::new(),
            witnesses: witnesses.clone(),
            observers: observers
                .iter()
                .filter_map(|observer| Arc::clone(observer).for_sub_agent(inheritance))
                .collect(),
            intake: intake.clone(),
            tracer: tracer.clone(),
        }
    }

    /// The same for an agent that works in a directory of its own.
    #[must_use]
    pub fn elsewhere(mut self) -> Self {
        let witnesses = std::mem::take(&mut self.witnesses);
        self.witnesses = witnesses
            .into_iter()
            .filter_map(Witness::for_elsewhere)
            .collect();
        self
    }

    /// The company of an agent that works for one of these: its calls are judged and witnessed,
    /// and nobody is asked or told who would call on it again.
    #[must_use]
    pub fn for_adviser(&self) -> Self {
        Self {
            witnesses: self.witnesses.clone(),
            intake: self.intake.clone(),
            ..Self::new(Arc::clone(&self.gate))
        }
    }

    /// Whether a call may run, and the input it is to run with where that was changed.
    ///
    /// 1. Advisers are asked in order.
    /// 2. The first refusal ends it; nobody else is asked.
    /// 3. A changed input is what the next one sees.
    /// 4. Of their opinions the strictest counts: to ask, to approve, none.
    /// 5. The gate is told that opinion and decides.
    pub(crate) async fn judge(&self, call: &ToolCall) -> (Verdict, Option<Value>) {
        let mut call = Cow::Borrowed(call);
        let mut changed = None;
        for adviser in &self.advisers {
            let (input, opinion) = match adviser.advise(&call).await {
                Advice::Allow => continue,
                Advice::AllowWith(input) => (Some(input), Opinion::None),
                Advice::Approve { reason, input } => (input, Opinion::Approved { reason }),
                Advice::Ask {
                    reason,
                    remedy,
                    input,
                } => (input, Opinion::Ask { reason, remedy }),
                Advice::Deny(denial) => {
                    self.gate.refused(&call, &denial);
                    return (Verdict::Deny(denial), None);
                }
            };
            let call = call.to_mut();
            if let Some(input) = input {
                call.input = input.clone();
                // It was an argument of the other input.
                call.first_arg = None;
                changed = Some(input);
            }
            call.opinion = std::mem::take(&mut call.opinion).and(opinion);
        }
        let mut verdict = self.gate.judge(&call).await;
        if let (Verdict::Ask(question), Some(input)) = (&mut verdict, &changed) {
            question.input.get_or_insert_with(|| input.clone());
        }
        (verdict, changed)
    }

    /// The same for a call that no turn makes: where the operator must say, that is asked aside.
    /// Returns the input that it is to run with.
    pub async fn permit_aside(
        &self,
        call: &ToolCall,
        operator: &dyn Operator,
    ) -> Result<Value, Denial> {
        let question = match self.judge(call).await {
            (Verdict::Allow, changed) => return Ok(changed.unwrap_or_else(|| call.input.clone())),
            (Verdict::Deny(denial), _) => return Err(denial),
            (Verdict::Ask(question), _) => question,
        };
        let inquiry = Inquiry::new(call.clone(), *question);
        let answer = operator.decide_aside(&inquiry).await;
        self.gate.answered(call, &answer);
        let question = inquiry.question;
        match answer {
            Answer::Allow { input, .. } => {
                let input = input.or(question.input);
                Ok(input.unwrap_or_else(|| call.input.clone()))
            }
            Answer::Deny { reason, .. } => Err(question.denial(call, reason)),
            Answer::Nobody => Err(question.unattended()),
            Answer::TimedOut => Err(question.timed_out()),
        }
    }

    /// Whether a prompt becomes part of the conversation: every stage in order, the first refusal
    /// ends it. What one puts in its place is the prompt that the next one is asked about.
    pub(crate) async fn before_prompt(&self, prompt: &Message) -> PromptVerdict {
        let mut additions = Vec::new();
        let mut prompt = Cow::Borrowed(prompt);
        let mut replaced = None;
        for stage in &self.prompt_stages {
            match stage.before_prompt(&prompt).await {
                PromptVerdict::Accept => {}
                PromptVerdict::AcceptWith(text) => additions.push(text),
                PromptVerdict::Replace {
                    prompt: text,
                    addition,
                } => {
                    retype(prompt.to_mut(), &text);
                    additions.extend(addition);
                    replaced = Some(text);
                }
                PromptVerdict::Deny { reason } => return PromptVerdict::Deny { reason },
            }
        }
        match (replaced, joined(&additions)) {
            (Some(prompt), addition) => PromptVerdict::Replace { prompt, addition },
            (None, Some(addition)) => PromptVerdict::AcceptWith(addition),
            (None, None) => PromptVerdict::Accept,
        }
    }

    /// A prompt with what goes along with it, fit for a provider.
    pub(crate) async fn take_in_prompt(&self, prompt: Message) -> Result<Message, String> {
        match &self.intake {
            Some(intake) => intake.prompt(prompt).await,
            None => Ok(prompt),
        }
    }

    /// A result that is fit for a provider.
    pub(crate) async fn take_in_result(&self, output: ToolOutput) -> ToolOutput {
        match &self.intake {
            Some(intake) => intake.result(output).await,
            None => output,
        }
    }

    /// Whether the model is done; the first stage that sends it on ends the asking.
    pub(crate) async fn before_stop(&self, text: &str) -> StopVerdict {
        if self.stop_stages.is_empty() {
            return StopVerdict::Stop;
        }
        self.at_stop(Hearing::Begins).await;
        let verdict = self.asked_to_stop(text).await;
        self.at_stop(Hearing::Over).await;
        verdict
    }

    async fn at_stop(&self, hearing: Hearing) {
        for witness in &self.witnesses {
            witness.at_stop(hearing).await;
        }
    }

    async fn asked_to_stop(&self, text: &str) -> StopVerdict {
        for stage in &self.stop_stages {
            match stage.before_stop(text).await {
                StopVerdict::Stop => {}
                StopVerdict::Continue { message } => return StopVerdict::Continue { message },
            }
        }
        StopVerdict::Stop
    }

    /// A permitted call is about to run; the error is why it must not.
    pub(crate) async fn before_run(&self, call: &ToolCall) -> Result<(), String> {
        for witness in &self.witnesses {
            witness.before_run(call).await?;
        }
        Ok(())
    }

    pub(crate) async fn after_end(&self, call: &ToolCall, output: &ToolOutput) {
        for witness in &self.witnesses {
            witness.after_end(call, output).await;
        }
    }

    /// Everybody has been told of the end of a call.
    pub(crate) async fn over(&self, call: &ToolCall) {
        for witness in &self.witnesses {
            witness.over(call).await;
        }
    }

    /// Tells everybody who looks on.
    pub async fn notify(&self, event: &HookEvent) {
        for observer in &self.observers {
            observer.notify(event).await;
        }
    }

    /// What the model should read beside the results of these calls, a text from each who has
    /// something to say.
    pub(crate) fn remarks(&self, calls: &[Arc<str>]) -> impl Iterator<Item = String> {
        let observers = self.observers.iter();
        observers.filter_map(|observer| observer.remarks(calls))
    }

    /// What the model should read again beside a summary of everything but `kept`.
    pub(crate) fn retell(&self, kept: &[Arc<Message>]) -> impl Iterator<Item = String> {
        let observers = self.observers.iter();
        observers.filter_map(|observer| observer.retell(kept))
    }
}

fn joined(texts: &[String]) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Puts another text in the place of what was typed; what goes along with it are other blocks.
pub(crate) fn retype(prompt: &mut Message, text: &str) {
    match prompt.content.first_mut() {
        Some(first) => *first = Block::text(text),
        None => prompt.content.push(Block::text(text)),
    }
}
