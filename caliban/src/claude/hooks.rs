//! Hooks that the client registered: it is asked and told over the control protocol.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use caliban_agent::{
    Advice, Adviser, CompactionReason, Denial, HookEvent, Inheritance, NotificationKind, Observer,
    PromptStage, PromptVerdict, Remarks, StopStage, StopVerdict, ToolCall,
};
use caliban_hooks::EventWording;
use caliban_model::Message;
use caliban_protocol::claude::{
    HookAnswer, Initialize, Matcher, Stance, input_ours, input_theirs, theirs, tool_response,
};
use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::host::Host;

/// How long a client may take over a hook that names no time of its own.
const PATIENCE: Duration = Duration::from_mins(1);
/// The longest time that a client may take for itself.
const LONGEST: Duration = Duration::from_hours(1);

#[derive(Debug)]
pub(crate) struct HostHooks {
    host: Arc<Host>,
    registered: Mutex<HashMap<String, Vec<Arc<Registered>>>>,
    /// What the model should read beside the result of a call.
    remarks: Remarks,
    /// Whether the model was sent on and has not stopped since.
    sent_on: AtomicBool,
}

#[derive(Debug)]
struct Registered {
    matcher: Matcher,
    callbacks: Vec<String>,
    patience: Duration,
}

/// What all callbacks of one event came to.
#[derive(Debug, Default)]
struct CombinedAnswer {
    stance: Stance,
    reason: Option<String>,
    input: Option<Value>,
    contexts: Vec<String>,
    halt: bool,
}

impl HostHooks {
    pub(crate) fn new(host: Arc<Host>) -> Self {
        Self {
            host,
            registered: Mutex::default(),
            remarks: Remarks::default(),
            sent_on: AtomicBool::new(false),
        }
    }

    /// Takes over what the client registers; what it registered before is gone.
    pub(crate) fn register(&self, wishes: &Initialize) {
        let entries = wishes.hooks.iter().flatten().map(|(event, matchers)| {
            let registered = matchers
                .iter()
                .map(|entry| {
                    let seconds = entry.timeout.filter(|seconds| seconds.is_finite());
                    let patience = seconds.map_or(PATIENCE, |seconds| {
                        Duration::from_secs_f64(seconds.clamp(0.0, LONGEST.as_secs_f64()))
                    });
                    Arc::new(Registered {
                        matcher: Matcher::new(entry.matcher.as_deref()),
                        callbacks: entry.hook_callback_ids.clone(),
                        patience,
                    })
                })
                .collect();
            (event.clone(), registered)
        });
        *lock(&self.registered) = entries.collect();
    }

    /// Asks every callback of an event that is about `subject`.
    async fn fire(
        &self,
        event: &str,
        subject: Option<&str>,
        details: Value,
        call: Option<&ToolCall>,
    ) -> Result<CombinedAnswer, String> {
        let registered = lock(&self.registered)
            .get(event)
            .cloned()
            .unwrap_or_default();
        let applies =
            |entry: &&Arc<Registered>| subject.is_none_or(|name| entry.matcher.matches(name));
        let mut heard = CombinedAnswer::default();
        for entry in registered.iter().filter(applies) {
            for callback in &entry.callbacks {
                let mut request = json!({
                    "subtype": "hook_callback",
                    "callback_id": callback,
                    "input": self.input(event, &details),
                });
                if let Some(call) = call {
                    request["tool_use_id"] = call.id.to_string().into();
                }
                let asked = timeout(entry.patience, self.host.channel.ask(&request));
                let answer = match asked.await {
                    Err(_) => Err("it did not answer in time".to_owned()),
                    Ok(Err(unanswered)) => Err(unanswered.to_string()),
                    Ok(Ok(answer)) => HookAnswer::read(&answer),
                };
                heard.hear(answer.map_err(|problem| format!("{event} hook: {problem}"))?);
            }
        }
        if heard.halt {
            self.host.interrupt().await;
        }
        Ok(heard)
    }

    fn input(&self, event: &str, details: &Value) -> Value {
        let facts = &self.host.facts;
        let mut input = json!({
            "session_id": facts.session_id,
            "transcript_path": facts.transcript_path.clone().unwrap_or_default(),
            "cwd": facts.cwd,
            "permission_mode": self.host.mode().as_str(),
            "hook_event_name": event,
        });
        if let (Value::Object(input), Value::Object(details)) = (&mut input, details) {
            input.extend(details.clone());
        }
        input
    }

    async fn judge(&self, call: &ToolCall) -> Advice {
        let name = theirs(&call.name);
        let details = about(call);
        let heard = match self
            .fire("PreToolUse", Some(name), details, Some(call))
            .await
        {
            Ok(heard) => heard,
            // Who cannot say yes has not said it.
            Err(problem) => return Advice::Deny(Denial::by_hook(problem)),
        };
        self.remarks.add(&call.id, heard.contexts);
        let input = heard.input.map(|input| input_ours(&call.name, &input));
        match heard.stance {
            Stance::Deny => {
                let reason = heard
                    .reason
                    .unwrap_or_else(|| "a hook refused the call".to_owned());
                Advice::Deny(Denial::by_hook(reason))
            }
            Stance::Defer => {
                self.host.defer(call);
                self.host.interrupt().await;
                Advice::Deny(Denial::by_hook("it is decided about later".to_owned()))
            }
            Stance::Ask => Advice::Ask {
                reason: heard
                    .reason
                    .unwrap_or_else(|| "a hook wants it asked".to_owned()),
                remedy: None,
                input,
            },
            Stance::Approve => Advice::Approve {
                reason: heard.reason,
                input,
            },
            Stance::Silent => input.map_or(Advice::Allow, Advice::AllowWith),
        }
    }

    async fn admit(&self, prompt: &Message) -> PromptVerdict {
        let details = json!({"prompt": prompt.text()});
        match self.fire("UserPromptSubmit", None, details, None).await {
            Err(reason) => PromptVerdict::Deny { reason },
            Ok(heard) if heard.stance == Stance::Deny || heard.halt => PromptVerdict::Deny {
                reason: heard
                    .reason
                    .unwrap_or_else(|| "a hook refused the prompt".to_owned()),
            },
            Ok(heard) if heard.contexts.is_empty() => PromptVerdict::Accept,
            Ok(heard) => PromptVerdict::AcceptWith(heard.contexts.join("\n\n")),
        }
    }

    async fn dismiss(&self, text: &str) -> StopVerdict {
        let details = json!({
            "stop_hook_active": self.sent_on.swap(false, Ordering::Relaxed),
            "last_assistant_message": text,
        });
        match self.fire("Stop", None, details, None).await {
            Ok(heard) if heard.stance == Stance::Deny && !heard.halt => {
                self.sent_on.store(true, Ordering::Relaxed);
                StopVerdict::Continue {
                    message: heard.reason.unwrap_or_else(|| "Go on.".to_owned()),
                }
            }
            // Nothing is lost by stopping.
            Ok(_) | Err(_) => StopVerdict::Stop,
        }
    }

    async fn tell(&self, event: &HookEvent) {
        let (subject, details, call) = match event {
            HookEvent::PostToolUse { call, output } => {
                let mut details = about(call);
                details["tool_response"] = tool_response(&call.input, output);
                (Some(theirs(&call.name)), details, Some(call))
            }
            HookEvent::PostToolUseFailure { call, output } => {
                let mut details = about(call);
                details["error"] = output.text().into();
                (Some(theirs(&call.name)), details, Some(call))
            }
            HookEvent::PermissionRequest { call } | HookEvent::PermissionDenied { call, .. } => {
                (Some(theirs(&call.name)), about(call), Some(call))
            }
            HookEvent::PreCompact { reason } => {
                let trigger = match reason {
                    CompactionReason::Asked => "manual",
                    CompactionReason::Threshold | CompactionReason::TooLong => "auto",
                };
                let details = json!({"trigger": trigger, "custom_instructions": null});
                (None, details, None)
            }
            HookEvent::SubagentStart { call_id, .. } => (
                None,
                json!({"agent_id": call_id, "agent_type": "general-purpose"}),
                None,
            ),
            HookEvent::SubagentStop { call_id, .. } => (
                None,
                json!({
                    "agent_id": call_id,
                    "agent_type": "general-purpose",
                    "agent_transcript_path": "",
                    "stop_hook_active": false,
                }),
                None,
            ),
            HookEvent::SessionEnd { reason } => (None, json!({"reason": reason}), None),
            HookEvent::Notification {
                kind: kind @ (NotificationKind::Question | NotificationKind::Elicitation),
                message,
            } => (
                None,
                json!({"message": message, "notification_type": kind.as_str()}),
                None,
            ),
            HookEvent::PostCompact { .. } => (None, json!({"trigger": "auto"}), None),
            // The client is asked before the model stops, and these are not known to it.
            HookEvent::Notification {
                kind: NotificationKind::Ended,
                ..
            }
            | HookEvent::Stopped { .. }
            | HookEvent::StopFailure { .. }
            | HookEvent::ConfigChange { .. }
            | HookEvent::CwdChanged { .. }
            | HookEvent::FileChanged { .. }
            | HookEvent::WorktreeCreate { .. }
            | HookEvent::WorktreeRemove { .. }
            | HookEvent::TaskCreated { .. }
            | HookEvent::TaskCompleted { .. } => return,
        };
        let heard = self.fire(event.name(), subject, details, call).await;
        if let (Ok(heard), Some(call)) = (heard, call) {
            let mut remarks = heard.contexts;
            // The call has run, so an objection is only something to read.
            if heard.stance == Stance::Deny {
                remarks.extend(heard.reason);
            }
            self.remarks.add(&call.id, remarks);
        }
    }
}

impl CombinedAnswer {
    fn hear(&mut self, answer: HookAnswer) {
        if answer.stance > self.stance {
            self.reason = answer.reason;
            self.stance = answer.stance;
        } else if self.reason.is_none() {
            self.reason = answer.reason;
        }
        self.input = answer.input.or(self.input.take());
        self.contexts.extend(answer.context);
        self.halt |= answer.halt;
    }
}

/// Events for the hooks of settings files, with the names of this dialect.
#[derive(Debug)]
pub(crate) struct TheirEvents(pub(crate) Arc<Host>);

impl EventWording for TheirEvents {
    fn worded(&self, mut event: Value) -> Value {
        let host = &self.0;
        event["permission_mode"] = host.mode().as_str().into();
        if let Some(path) = &host.facts.transcript_path {
            event["transcript_path"] = path.display().to_string().into();
        }
        if let Some(name) = event.get("tool_name").and_then(Value::as_str) {
            let name = name.to_owned();
            event["tool_input"] = input_theirs(&name, &event["tool_input"]);
            event["tool_name"] = theirs(&name).into();
        }
        event
    }
}

fn about(call: &ToolCall) -> Value {
    let mut about = json!({
        "tool_name": theirs(&call.name),
        "tool_input": input_theirs(&call.name, &call.input),
        "tool_use_id": call.id,
    });
    if let Some(agent) = &call.agent {
        about["agent_id"] = (&**agent).into();
    }
    about
}

impl Adviser for HostHooks {
    fn advise<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Advice> {
        self.judge(call).boxed()
    }
}

impl PromptStage for HostHooks {
    fn before_prompt<'a>(&'a self, prompt: &'a Message) -> BoxFuture<'a, PromptVerdict> {
        self.admit(prompt).boxed()
    }
}

impl StopStage for HostHooks {
    fn before_stop<'a>(&'a self, text: &'a str) -> BoxFuture<'a, StopVerdict> {
        self.dismiss(text).boxed()
    }
}

impl Observer for HostHooks {
    fn notify<'a>(&'a self, event: &'a HookEvent) -> BoxFuture<'a, ()> {
        self.tell(event).boxed()
    }

    fn remarks(&self, calls: &[Arc<str>]) -> Option<String> {
        self.remarks.take(calls)
    }

    fn retell(&self, _: &[Arc<Message>]) -> Option<String> {
        None
    }

    /// The client runs the session, so nothing of it is kept from the client.
    fn for_sub_agent(self: Arc<Self>, _: Inheritance) -> Option<Arc<dyn Observer>> {
        Some(self)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
