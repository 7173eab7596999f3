//! Firing handlers: run and waited for, or started beside, and told of either way.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use crate::action::{Failure, Reply};
use crate::answer::{self, Advice, Stance};
use crate::command::Surroundings;
use crate::config::{Handler, HookConfig, Waiting};
use crate::event::EventName;
use crate::facts::SessionFacts;
use crate::firing::{Decision, Firing, FiringSink, Phase};
use crate::occasion::Occasion;
use crate::pool::{Full, Pool};
use crate::runner::Runners;
use crate::tally::Tally;

/// What is needed to fire handlers.
#[derive(Debug)]
pub(crate) struct Dispatch {
    pub(crate) config: HookConfig,
    pub(crate) facts: Arc<dyn SessionFacts>,
    pub(crate) surroundings: Surroundings,
    pub(crate) runners: Runners,
    pub(crate) sink: Arc<dyn FiringSink>,
    pub(crate) tally: Arc<Tally>,
}

/// A handler that was waited for, and what it said.
#[derive(Debug)]
pub(crate) struct Consulted<'a> {
    dispatch: &'a Dispatch,
    handler: &'a Handler,
    event: EventName,
    duration: Duration,
    pub(crate) advice: Advice,
}

impl Dispatch {
    /// The handlers an occasion concerns, each once. Allocates nothing where there are none.
    pub(crate) fn concerned(&self, occasion: &Occasion<'_>) -> Vec<&Arc<Handler>> {
        let mut concerned: Vec<&Arc<Handler>> = Vec::new();
        for handler in self.config.handlers(occasion.event()) {
            if handler.concerns(occasion) && !concerned.iter().any(|seen| seen.is_same_as(handler))
            {
                concerned.push(handler);
            }
        }
        concerned
    }

    pub(crate) fn payload(&self, occasion: &Occasion<'_>) -> Arc<Value> {
        Arc::new(self.facts.worded(occasion.payload(&*self.facts)))
    }

    /// Runs a handler to its end, unless nobody waits for it: then it is only started.
    pub(crate) async fn consult<'a>(
        self: &'a Arc<Self>,
        handler: &'a Arc<Handler>,
        event: EventName,
        payload: &Arc<Value>,
        pool: &Pool,
    ) -> Option<Consulted<'a>> {
        match handler.waiting {
            Waiting::Sync => {
                let began = Instant::now();
                let advice = self.advice(handler, event, payload).await;
                Some(Consulted {
                    dispatch: self,
                    handler,
                    event,
                    duration: began.elapsed(),
                    advice,
                })
            }
            Waiting::Async => {
                self.start(handler, event, payload, pool);
                None
            }
        }
    }

    fn start(
        self: &Arc<Self>,
        handler: &Arc<Handler>,
        event: EventName,
        payload: &Arc<Value>,
        pool: &Pool,
    ) {
        let (own, own_handler) = (Arc::clone(self), Arc::clone(handler));
        let payload = Arc::clone(payload);
        let started = pool.start(|stop| async move {
            own.tell(&own_handler, event, Phase::Started, Told::default());
            let began = Instant::now();
            let advice = own.remark(&own_handler, &payload);
            let advice = stop.run_until_cancelled(advice).await;
            let advice = advice.unwrap_or_else(|| Advice {
                warning: Some("it was stopped because the session ended".to_owned()),
                ..Advice::default()
            });
            let told = Told::new(Decision::None, advice, began.elapsed());
            own.tell(&own_handler, event, Phase::Finished, told);
        });
        if let Err(Full) = started {
            let warning = "it was not run: too many hooks are under way".to_owned();
            let told = Told {
                warning: Some(warning),
                ..Told::default()
            };
            self.tell(handler, event, Phase::Dropped, told);
        }
    }

    async fn advice(&self, handler: &Handler, event: EventName, payload: &Value) -> Advice {
        let reply = self.reply(handler, payload).await;
        let advice = answer::read(reply, event, handler.on_error);
        match (&handler.plugin, advice.stance) {
            // A plugin may forbid and ask; what it would permit, the rules decide as if it had said
            // nothing.
            (Some(_), Stance::Approve) => Advice {
                stance: Stance::Silent,
                ..advice
            },
            (_, _) => advice,
        }
    }

    /// What is left of the advice of a handler that nobody waits for.
    async fn remark(&self, handler: &Handler, payload: &Value) -> Advice {
        answer::overhear(self.reply(handler, payload).await)
    }

    async fn reply(&self, handler: &Handler, payload: &Value) -> Result<Reply, Failure> {
        let (surroundings, runners) = (&self.surroundings, &self.runners);
        let action = &handler.action;
        let payload = match handler.plugin {
            Some(_) => with_other_names(payload),
            None => Cow::Borrowed(payload),
        };
        action
            .run(&payload, handler.timeout, surroundings, runners)
            .await
    }

    fn tell(&self, handler: &Handler, event: EventName, phase: Phase, told: Told) {
        let firing = Firing {
            event,
            matcher: Arc::clone(&handler.filter.text),
            scope: handler.scope,
            kind: handler.action.kind(),
            handler: Arc::clone(&handler.label),
            phase,
            decision: told.decision,
            reason: told.reason,
            warning: told.warning,
            message: told.message,
            duration: told.duration,
        };
        self.tally.count(&firing);
        self.sink.fired(firing);
    }
}

/// An event in which a file has the name too that plugins for other programs look for.
fn with_other_names(event: &Value) -> Cow<'_, Value> {
    let input = &event["tool_input"];
    match (input.get("path"), input.get("file_path")) {
        (Some(path), None) => {
            let path = path.clone();
            let mut event = event.clone();
            event["tool_input"]["file_path"] = path;
            Cow::Owned(event)
        }
        _ => Cow::Borrowed(event),
    }
}

impl Consulted<'_> {
    /// Tells what came of it.
    pub(crate) fn came_to(&self, decision: Decision) {
        let told = Told::new(decision, self.advice.clone(), self.duration);
        self.dispatch
            .tell(self.handler, self.event, Phase::Whole, told);
    }

    /// Warns that a part of the answer cannot be heeded.
    pub(crate) fn cannot(&mut self, what: &str) {
        self.advice.warning.get_or_insert_with(|| what.to_owned());
    }

    /// Makes of it a handler that could not decide, and that nobody allows anything.
    pub(crate) fn misunderstood(&mut self, why: &str) {
        self.advice.stance = Stance::Deny;
        self.advice.reason = Some(format!("it could not decide: {why}"));
        self.advice.warning = Some(why.to_owned());
    }

    /// Why it objects, in words for whoever made the call or the prompt. A handler's own words
    /// are passed on as they are.
    pub(crate) fn objection(&self) -> String {
        let (label, place) = (&self.handler.label, self.handler.place());
        let halt = self
            .advice
            .halt
            .as_ref()
            .and_then(|halt| halt.reason.as_ref());
        match (&self.advice.warning, halt.or(self.advice.reason.as_ref())) {
            (None, Some(reason)) => reason.clone(),
            (Some(_), Some(reason)) => {
                format!("the hook `{label}` {place}: {reason}")
            }
            (_, None) => {
                let does = match self.advice.stance {
                    Stance::Ask => "asks",
                    Stance::Silent | Stance::Approve | Stance::Deny => "objects",
                };
                format!("the hook `{label}` {place} {does}")
            }
        }
    }

    /// Whether it objects only because something went wrong.
    pub(crate) fn has_failed(&self) -> bool {
        self.advice.warning.is_some()
    }

    /// What the operator can do about it.
    pub(crate) fn remedy(&self) -> String {
        let (label, place) = (&self.handler.label, self.handler.place());
        match (&self.handler.plugin, self.has_failed()) {
            (Some(plugin), _) => {
                format!("The user can disable the plugin: `caliban plugin disable {plugin}`.")
            }
            (None, true) => format!("The user can repair the hook `{label}` {place}."),
            (None, false) => {
                format!("The user can permit it when asked, or change the hook `{label}` {place}.")
            }
        }
    }
}

/// The parts of a firing that are known only at its end.
#[derive(Debug)]
struct Told {
    decision: Decision,
    reason: Option<String>,
    warning: Option<String>,
    message: Option<String>,
    duration: Duration,
}

impl Told {
    fn new(decision: Decision, advice: Advice, duration: Duration) -> Self {
        Self {
            decision,
            reason: advice.reason,
            warning: advice.warning,
            message: advice.message,
            duration,
        }
    }
}

impl Default for Told {
    fn default() -> Self {
        Self::new(Decision::None, Advice::default(), Duration::ZERO)
    }
}
