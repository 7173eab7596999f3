//! The operator's handlers as an adviser of the run.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use caliban_agent::{
    Advice, Adviser, Denial, HookEvent, Inheritance, NotificationKind, Observer, PromptStage,
    PromptVerdict, Remarks, SessionSource, StopStage, StopVerdict, ToolCall,
};
use caliban_model::Message;
use caliban_process::{Confiner, Guard};
use caliban_settings::Scope;
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;

use crate::answer::Stance;
use crate::command::Surroundings;
use crate::config::{Handler, HookConfig};
use crate::dispatch::{Consulted, Dispatch};
use crate::event::EventName;
use crate::facts::SessionFacts;
use crate::firing::{Decision, FiringSink};
use crate::occasion::{Occasion, Rerun};
use crate::pool::Pool;
use crate::runner::Runners;
use crate::tally::HandlerReport;

/// What external hooks are made of.
#[derive(Debug)]
pub struct HookParts {
    pub config: HookConfig,
    pub facts: Arc<dyn SessionFacts>,
    /// Where programs run, whatever the session's directory is.
    pub project_dir: PathBuf,
    /// All that programs see of the environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Who makes sure that nothing outlives programs.
    pub guard: Guard,
    /// Who confines the programs that ask for it.
    pub confiner: Option<Arc<dyn Confiner>>,
    pub runners: Runners,
    pub sink: Arc<dyn FiringSink>,
}

/// Fires the configured handlers. Those of one event run one after the other in the order of
/// their scopes: the first refusal ends it, a changed input is what the next one sees, and being
/// asked beats being approved.
#[derive(Debug)]
pub struct ExternalHooks {
    dispatch: RwLock<Arc<Dispatch>>,
    pool: Pool,
    /// Whether the model works because a handler of `Stop` sent it on.
    sent_on: AtomicBool,
    /// What handlers have to say about calls, by the id of the call, until its turn ends.
    remarks: Remarks,
}

impl ExternalHooks {
    pub fn new(parts: HookParts) -> Self {
        Self {
            dispatch: RwLock::new(Arc::new(Dispatch {
                config: parts.config,
                facts: parts.facts,
                surroundings: Surroundings {
                    project_dir: parts.project_dir,
                    environment: parts.environment,
                    guard: parts.guard,
                    confiner: parts.confiner,
                },
                runners: parts.runners,
                sink: parts.sink,
                tally: Arc::default(),
            })),
            pool: Pool::new(),
            sent_on: AtomicBool::new(false),
            remarks: Remarks::default(),
        }
    }

    /// Other handlers count from the next event on.
    pub fn replace(&self, config: HookConfig) {
        let mut dispatch = self
            .dispatch
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let Dispatch {
            facts,
            surroundings,
            runners,
            sink,
            tally,
            ..
        } = &**dispatch;
        *dispatch = Arc::new(Dispatch {
            config,
            facts: Arc::clone(facts),
            surroundings: surroundings.clone(),
            runners: runners.clone(),
            sink: Arc::clone(sink),
            tally: Arc::clone(tally),
        });
    }

    /// The handlers that are configured, with how often each fired and what came of it last.
    pub fn report(&self) -> Vec<HandlerReport> {
        let dispatch = self.dispatch();
        let handlers = dispatch.config.configured();
        handlers
            .map(|handler| dispatch.tally.report(&handler))
            .collect()
    }

    /// The handlers as lists show them, one a line.
    pub fn listed(&self) -> Vec<String> {
        let dispatch = self.dispatch();
        let listed = dispatch.config.configured().map(|handler| {
            let waiting = if handler.is_async {
                ", nobody waits"
            } else {
                ""
            };
            format!(
                "{:<18} {:<8} {:<12} {} {}{waiting}",
                handler.event.as_str(),
                handler.scope.to_string(),
                handler.matcher,
                handler.kind,
                handler.handler,
            )
        });
        listed.collect()
    }

    /// How many handlers each event has, of those that have any.
    pub fn counts(&self) -> Vec<(&'static str, usize)> {
        let dispatch = self.dispatch();
        let mut counts: Vec<(&'static str, usize)> = Vec::new();
        for handler in dispatch.config.configured() {
            let event = handler.event.as_str();
            match counts.iter_mut().find(|(known, _)| *known == event) {
                Some((_, count)) => *count += 1,
                None => counts.push((event, 1)),
            }
        }
        counts
    }

    fn dispatch(&self) -> Arc<Dispatch> {
        let dispatch = self.dispatch.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&dispatch)
    }

    /// Waits for the handlers that run beside, at most this long, then stops them. To be called
    /// at the end of a session, after its last event.
    pub async fn drain(&self, patience: Duration) {
        self.pool.drain(patience).await;
    }

    /// Fires the handlers of an event one by one, as long as `heed` wants to hear more.
    async fn fire(
        &self,
        occasion: &Occasion<'_>,
        heed: impl FnMut(&mut Consulted<'_>) -> (Decision, Next),
    ) {
        self.fire_among(Audience::All, occasion, heed).await;
    }

    async fn fire_among(
        &self,
        audience: Audience,
        occasion: &Occasion<'_>,
        mut heed: impl FnMut(&mut Consulted<'_>) -> (Decision, Next),
    ) {
        let dispatch = self.dispatch();
        let mut concerned = dispatch.concerned(occasion);
        concerned.retain(|handler| audience == Audience::All || handler.scope == Scope::Managed);
        if concerned.is_empty() {
            let (event, subject) = (occasion.event(), occasion.subject());
            dispatch.sink.passed(event, subject);
            return;
        }
        let payload = dispatch.payload(occasion);
        for handler in concerned {
            let consulted = dispatch.consult(handler, occasion.event(), &payload, &self.pool);
            if let Some(mut consulted) = consulted.await {
                let (decision, next) = heed(&mut consulted);
                consulted.came_to(decision);
                match next {
                    Next::Ask => {}
                    Next::Enough => return,
                }
            }
        }
    }

    async fn judge(&self, call: &ToolCall) -> Advice {
        let dispatch = self.dispatch();
        let mut judgement = Judgement::new(call);
        let mut payload = None;
        for handler in dispatch.config.handlers(EventName::PreToolUse) {
            let occasion = Occasion::Tool(&judgement.call);
            if !handler.concerns(&occasion) || judgement.has_asked(handler) {
                continue;
            }
            judgement.asked.push(handler);
            let told = Arc::clone(payload.get_or_insert_with(|| dispatch.payload(&occasion)));
            let consulted = dispatch.consult(handler, EventName::PreToolUse, &told, &self.pool);
            let Some(consulted) = consulted.await else {
                continue;
            };
            let decision = judgement.hear(&consulted);
            consulted.came_to(decision);
            self.remarks.add(&call.id, consulted.advice.context.clone());
            if decision == Decision::Deny {
                return Advice::Deny(Denial {
                    remedy: consulted.has_failed().then(|| consulted.remedy()),
                    ..Denial::by_hook(consulted.objection())
                });
            }
            if consulted.advice.input.is_some() {
                payload = None;
            }
        }
        judgement.advice()
    }

    async fn admit(&self, prompt: &Message) -> PromptVerdict {
        self.sent_on.store(false, Ordering::Relaxed);
        let mut text = prompt.text();
        let dispatch = self.dispatch();
        let concerned = dispatch.concerned(&Occasion::Prompt(&text));
        if concerned.is_empty() {
            dispatch.sink.passed(EventName::UserPromptSubmit, None);
        }
        let mut additions = Vec::new();
        let mut replaced = None;
        for handler in concerned {
            let payload = dispatch.payload(&Occasion::Prompt(&text));
            let event = EventName::UserPromptSubmit;
            let consulted = dispatch.consult(handler, event, &payload, &self.pool);
            let Some(mut consulted) = consulted.await else {
                continue;
            };
            let rewritten = consulted.advice.input.as_ref().map(rewritten);
            if let Some(None) = rewritten {
                consulted.misunderstood(NO_PROMPT);
            }
            // There is nobody to ask about a prompt but the one who wrote it.
            if consulted.advice.halt.is_some() || consulted.advice.stance >= Stance::Ask {
                consulted.came_to(Decision::Deny);
                let reason = consulted.objection();
                return PromptVerdict::Deny { reason };
            }
            consulted.came_to(Decision::Allow);
            additions.extend(consulted.advice.context.clone());
            if let Some(rewritten) = rewritten.flatten() {
                text.clone_from(&rewritten);
                replaced = Some(rewritten);
            }
        }
        let addition = (!additions.is_empty()).then(|| additions.join("\n\n"));
        match (replaced, addition) {
            (Some(prompt), addition) => PromptVerdict::Replace { prompt, addition },
            (None, Some(addition)) => PromptVerdict::AcceptWith(addition),
            (None, None) => PromptVerdict::Accept,
        }
    }

    async fn dismiss(&self, text: &str) -> StopVerdict {
        let rerun = if self.sent_on.swap(false, Ordering::Relaxed) {
            Rerun::Yes
        } else {
            Rerun::No
        };
        let mut verdict = StopVerdict::Stop;
        self.fire(&Occasion::Stop { text, rerun }, |consulted| {
            let advice = &consulted.advice;
            match (&advice.halt, advice.stance) {
                (Some(_), _) => (Decision::None, Next::Enough),
                (None, Stance::Deny) => {
                    verdict = StopVerdict::Continue {
                        message: consulted.objection(),
                    };
                    (Decision::Continue, Next::Enough)
                }
                (None, Stance::Silent | Stance::Approve | Stance::Ask) => {
                    (Decision::None, Next::Ask)
                }
            }
        })
        .await;
        if matches!(verdict, StopVerdict::Continue { .. }) {
            self.sent_on.store(true, Ordering::Relaxed);
        }
        verdict
    }

    /// `SessionStart`: before the first prompt. What is returned is for the model to read.
    pub async fn welcome(&self, source: SessionSource) -> Option<String> {
        let mut additions = Vec::new();
        self.fire(&Occasion::Start(source), |consulted| {
            additions.extend(consulted.advice.context.clone());
            if consulted.advice.halt.is_some() || consulted.advice.stance >= Stance::Ask {
                consulted.cannot("the start of a session cannot be refused");
            }
            (Decision::None, Next::Ask)
        })
        .await;
        (!additions.is_empty()).then(|| additions.join("\n\n"))
    }

    async fn tell(&self, audience: Audience, event: &HookEvent) {
        // `Stop` was fired when the model finished, and may have sent it on. Only where it was
        // sent on so often that nobody is asked any more is this end news.
        if let HookEvent::Stopped { .. } = event
            && !self.sent_on.swap(false, Ordering::Relaxed)
        {
            return;
        }
        let occasion = Occasion::Told(event);
        self.fire_among(audience, &occasion, |consulted| {
            if let Some(call) = occasion.call() {
                self.remarks.add(&call.id, consulted.advice.context.clone());
                // The call has run, so an objection is only something to read.
                if consulted.advice.stance == Stance::Deny && !consulted.has_failed() {
                    self.remarks.add(&call.id, Some(consulted.objection()));
                }
            }
            (Decision::None, Next::Ask)
        })
        .await;
        if let HookEvent::Notification {
            kind: NotificationKind::Ended,
            ..
        } = event
        {
            // It is the last event of a run: what handlers come to is told before its result.
            self.pool.settle(LATECOMERS).await;
        }
    }
}

/// How long the result of a run is held back for handlers that nobody else waits for.
const LATECOMERS: Duration = Duration::from_secs(1);

enum Next {
    Ask,
    Enough,
}

const NO_PROMPT: &str = "its `updatedInput` has neither a `prompt` nor a `command`";

/// The prompt that a handler wants in the place of the one it was told of, in the words it was
/// told in.
fn rewritten(input: &Value) -> Option<String> {
    let word = |key: &str| input.get(key).and_then(Value::as_str);
    if let Some(prompt) = word("prompt") {
        return Some(prompt.to_owned());
    }
    let command = word("command")?.trim_start_matches('/');
    let args = word("args").unwrap_or_default();
    Some(format!("/{command} {args}").trim_end().to_owned())
}

/// Which handlers are told of what cannot be refused any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audience {
    All,
    Managed,
}

/// The same handlers where only those of the managed scope look on.
#[derive(Debug)]
struct Managed(Arc<ExternalHooks>);

impl Observer for Managed {
    fn notify<'a>(&'a self, event: &'a HookEvent) -> BoxFuture<'a, ()> {
        self.0.tell(Audience::Managed, event).boxed()
    }

    fn remarks(&self, calls: &[Arc<str>]) -> Option<String> {
        self.0.remarks.take(calls)
    }

    fn retell(&self, _: &[Arc<Message>]) -> Option<String> {
        None
    }

    fn for_sub_agent(self: Arc<Self>, _: Inheritance) -> Option<Arc<dyn Observer>> {
        Some(self)
    }
}

/// What has been said about a call so far.
struct Judgement<'a> {
    /// The call as the handlers changed it.
    call: Cow<'a, ToolCall>,
    /// Who has been asked about the call as it is now.
    asked: Vec<&'a Arc<Handler>>,
    /// Why it is to be asked about, and what the operator can do about that.
    question: Option<(String, String)>,
    approval: Option<Approval>,
}

struct Approval {
    reason: Option<String>,
}

impl<'a> Judgement<'a> {
    fn new(call: &'a ToolCall) -> Self {
        Self {
            call: Cow::Borrowed(call),
            asked: Vec::new(),
            question: None,
            approval: None,
        }
    }

    fn has_asked(&self, handler: &Handler) -> bool {
        self.asked.iter().any(|asked| asked.is_same_as(handler))
    }

    fn hear(&mut self, consulted: &Consulted<'_>) -> Decision {
        let advice = &consulted.advice;
        if advice.halt.is_some() || advice.stance == Stance::Deny {
            return Decision::Deny;
        }
        if let Some(input) = &advice.input {
            let call = self.call.to_mut();
            call.input = input.clone();
            call.first_arg = None;
            // What was said before was said about something else.
            self.asked.clear();
            self.approval = None;
        }
        match advice.stance {
            Stance::Silent | Stance::Deny => Decision::Allow,
            Stance::Approve => {
                self.approval.get_or_insert_with(|| Approval {
                    reason: advice.reason.clone(),
                });
                Decision::Approve
            }
            Stance::Ask => {
                self.question
                    .get_or_insert_with(|| (consulted.objection(), consulted.remedy()));
                Decision::Ask
            }
        }
    }

    fn advice(self) -> Advice {
        let input = match self.call {
            Cow::Borrowed(_) => None,
            Cow::Owned(call) => Some(call.input),
        };
        match (self.question, self.approval, input) {
            (Some((reason, remedy)), _, input) => Advice::Ask {
                reason,
                remedy: Some(remedy),
                input,
            },
            (None, Some(Approval { reason }), input) => Advice::Approve { reason, input },
            (None, None, Some(input)) => Advice::AllowWith(input),
            (None, None, None) => Advice::Allow,
        }
    }
}

impl Adviser for ExternalHooks {
    fn advise<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Advice> {
        self.judge(call).boxed()
    }
}

impl PromptStage for ExternalHooks {
    fn before_prompt<'a>(&'a self, prompt: &'a Message) -> BoxFuture<'a, PromptVerdict> {
        self.admit(prompt).boxed()
    }
}

impl StopStage for ExternalHooks {
    fn before_stop<'a>(&'a self, text: &'a str) -> BoxFuture<'a, StopVerdict> {
        self.dismiss(text).boxed()
    }
}

impl Observer for ExternalHooks {
    fn notify<'a>(&'a self, event: &'a HookEvent) -> BoxFuture<'a, ()> {
        self.tell(Audience::All, event).boxed()
    }

    fn remarks(&self, calls: &[Arc<str>]) -> Option<String> {
        self.remarks.take(calls)
    }

    fn retell(&self, _: &[Arc<Message>]) -> Option<String> {
        None
    }

    fn for_sub_agent(self: Arc<Self>, inheritance: Inheritance) -> Option<Arc<dyn Observer>> {
        match inheritance {
            Inheritance::All => Some(self),
            Inheritance::Managed => Some(Arc::new(Managed(self))),
        }
    }
}
