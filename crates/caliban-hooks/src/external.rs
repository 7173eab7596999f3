//! The operator's handlers as an adviser of the run.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use caliban_agent::{
    Denial, HookEvent, Hooks, PromptVerdict, Question, Remarks, SessionSource, StopVerdict,
    ToolCall, Verdict,
};
use caliban_model::Message;
use caliban_process::Guard;
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
    pub runners: Runners,
    pub sink: Arc<dyn FiringSink>,
}

/// Fires the configured handlers. Those of one event run one after the other in the order of
/// their scopes: the first refusal ends it, a changed input is what the next one sees, and being
/// asked beats being approved.
#[derive(Debug)]
pub struct ExternalHooks {
    dispatch: Arc<Dispatch>,
    pool: Pool,
    /// Whether the model works because a handler of `Stop` sent it on.
    sent_on: AtomicBool,
    /// What handlers have to say about calls, by the id of the call, until its turn ends.
    remarks: Remarks,
}

impl ExternalHooks {
    pub fn new(parts: HookParts) -> Self {
        Self {
            dispatch: Arc::new(Dispatch {
                config: parts.config,
                facts: parts.facts,
                surroundings: Surroundings {
                    project_dir: parts.project_dir,
                    environment: parts.environment,
                    guard: parts.guard,
                },
                runners: parts.runners,
                sink: parts.sink,
            }),
            pool: Pool::new(),
            sent_on: AtomicBool::new(false),
            remarks: Remarks::default(),
        }
    }

    pub fn config(&self) -> &HookConfig {
        &self.dispatch.config
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
        let mut concerned = self.dispatch.concerned(occasion);
        concerned.retain(|handler| audience == Audience::All || handler.scope == Scope::Managed);
        if concerned.is_empty() {
            let (event, subject) = (occasion.event(), occasion.subject());
            self.dispatch.sink.passed(event, subject);
            return;
        }
        let payload = self.dispatch.payload(occasion);
        for handler in concerned {
            if let Some(mut consulted) = self.consult(handler, occasion.event(), &payload).await {
                let (decision, next) = heed(&mut consulted);
                consulted.came_to(decision);
                match next {
                    Next::Ask => {}
                    Next::Enough => return,
                }
            }
        }
    }

    fn consult<'a>(
        &'a self,
        handler: &'a Arc<Handler>,
        event: EventName,
        payload: &'a Arc<Value>,
    ) -> impl Future<Output = Option<Consulted<'a>>> {
        let pool = &self.pool;
        self.dispatch.consult(handler, event, payload, pool)
    }

    async fn judge(&self, call: &ToolCall) -> Verdict {
        let mut judgement = Judgement::new(call);
        let mut payload = None;
        for handler in self.dispatch.config.handlers(EventName::PreToolUse) {
            let occasion = Occasion::Tool(&judgement.call);
            if !handler.concerns(&occasion) || judgement.has_asked(handler) {
                continue;
            }
            judgement.asked.push(handler);
            let told = Arc::clone(payload.get_or_insert_with(|| self.dispatch.payload(&occasion)));
            let consulted = self.consult(handler, EventName::PreToolUse, &told).await;
            let Some(consulted) = consulted else {
                continue;
            };
            let decision = judgement.hear(&consulted);
            consulted.came_to(decision);
            self.remarks.add(&call.id, consulted.advice.context.clone());
            if decision == Decision::Deny {
                return Verdict::Deny(Denial {
                    remedy: consulted.has_failed().then(|| consulted.remedy()),
                    ..Denial::by_hook(consulted.objection())
                });
            }
            if consulted.advice.input.is_some() {
                payload = None;
            }
        }
        judgement.verdict()
    }

    async fn admit(&self, prompt: &Message) -> PromptVerdict {
        self.sent_on.store(false, Ordering::Relaxed);
        let mut text = prompt.text();
        let concerned = self.dispatch.concerned(&Occasion::Prompt(&text));
        if concerned.is_empty() {
            let sink = &self.dispatch.sink;
            sink.passed(EventName::UserPromptSubmit, None);
        }
        let mut additions = Vec::new();
        let mut replaced = None;
        for handler in concerned {
            let payload = self.dispatch.payload(&Occasion::Prompt(&text));
            let consulted = self.consult(handler, EventName::UserPromptSubmit, &payload);
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

    async fn welcome(&self, source: SessionSource) -> Option<String> {
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
    }
}

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

/// The same handlers where only those of the managed scope look on; whoever decides, decides.
#[derive(Debug)]
pub struct Deciding(pub Arc<ExternalHooks>);

impl Hooks for Deciding {
    fn before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Verdict> {
        self.0.before_tool(call)
    }

    fn additions(&self, calls: &[Arc<str>]) -> Option<String> {
        self.0.additions(calls)
    }

    fn notify<'a>(&'a self, event: &'a HookEvent) -> BoxFuture<'a, ()> {
        self.0.tell(Audience::Managed, event).boxed()
    }
}

/// What has been said about a call so far.
struct Judgement<'a> {
    /// The call as the handlers changed it.
    call: Cow<'a, ToolCall>,
    /// Who has been asked about the call as it is now.
    asked: Vec<&'a Arc<Handler>>,
    objection: Option<Objection>,
    approval: Option<Approval>,
}

struct Objection {
    reason: String,
    remedy: String,
}

struct Approval {
    reason: Option<String>,
}

impl<'a> Judgement<'a> {
    fn new(call: &'a ToolCall) -> Self {
        Self {
            call: Cow::Borrowed(call),
            asked: Vec::new(),
            objection: None,
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
                self.objection.get_or_insert_with(|| Objection {
                    reason: consulted.objection(),
                    remedy: consulted.remedy(),
                });
                Decision::Ask
            }
        }
    }

    fn verdict(self) -> Verdict {
        let input = match self.call {
            Cow::Borrowed(_) => None,
            Cow::Owned(call) => Some(call.input),
        };
        match (self.objection, self.approval, input) {
            (Some(Objection { reason, remedy }), _, input) => Verdict::Ask(Box::new(Question {
                reason,
                rule: None,
                remedy,
                suggestions: Vec::new(),
                target: None,
                input,
            })),
            (None, Some(Approval { reason }), input) => Verdict::Approve { reason, input },
            (None, None, Some(input)) => Verdict::AllowWith(input),
            (None, None, None) => Verdict::Allow,
        }
    }
}

impl Hooks for ExternalHooks {
    fn at_start(&self, source: SessionSource) -> BoxFuture<'_, Option<String>> {
        self.welcome(source).boxed()
    }

    fn before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Verdict> {
        self.judge(call).boxed()
    }

    fn additions(&self, calls: &[Arc<str>]) -> Option<String> {
        self.remarks.take(calls)
    }

    fn before_prompt<'a>(&'a self, prompt: &'a Message) -> BoxFuture<'a, PromptVerdict> {
        self.admit(prompt).boxed()
    }

    fn before_stop<'a>(&'a self, text: &'a str) -> BoxFuture<'a, StopVerdict> {
        self.dismiss(text).boxed()
    }

    fn notify<'a>(&'a self, event: &'a HookEvent) -> BoxFuture<'a, ()> {
        self.tell(Audience::All, event).boxed()
    }
}
