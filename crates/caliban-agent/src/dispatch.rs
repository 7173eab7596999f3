//! Runs the tool calls of one turn: gated one by one in the order of the model, then run side by
//! side, calls on the same target one after the other. Every call ends with a result.

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use caliban_model::{Block, CancellationToken, Effect, Message};
use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use serde_json::Value;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::time::timeout;

use crate::call::{Opinion, ToolCall};
use crate::capping::cap;
use crate::company::Company;
use crate::event::{Denial, Event};
use crate::hook_event::{HookEvent, NotificationKind};
use crate::listener::Listener;
use crate::operator::{Answer, Inquiry, Interrupt, Operator};
use crate::registry::Entry;
use crate::roles::Verdict;
use crate::settings::Capping;
use crate::tool::{
    Details, Progress, ProgressKind, ProgressReport, Tool, ToolContext, ToolOutput, ToolStatus,
};
use crate::toolbox::Toolbox;
use crate::workspace::Workspace;

/// How long a cancelled call may take to stop by itself and say what it had done.
const GRACE: Duration = Duration::from_secs(4);
/// How long it may take to say what a call would change.
const PREVIEW: Duration = Duration::from_millis(500);
/// Reports of running calls that wait to be told; a call that reports faster loses reports.
const PROGRESS_QUEUE: usize = 256;

/// What calls are run with.
pub(crate) struct Dispatch<'a> {
    pub(crate) tools: &'a Toolbox,
    pub(crate) company: &'a Company,
    /// The agent whose calls these are, where it works for another.
    pub(crate) agent: Option<&'a Arc<str>>,
    pub(crate) operator: &'a dyn Operator,
    pub(crate) turn: u32,
    pub(crate) workspace: &'a Arc<Workspace>,
    pub(crate) session_id: &'a Arc<str>,
    pub(crate) parallel: NonZeroUsize,
    pub(crate) capping: &'a Capping,
    pub(crate) listener: &'a dyn Listener,
    pub(crate) cancel: &'a CancellationToken,
}

/// A call and its end.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) call: ToolCall,
    pub(crate) output: ToolOutput,
    pub(crate) denial: Option<Denial>,
    duration: Duration,
}

/// A call after the gate.
enum Gated {
    Allowed(Arc<dyn Tool>, Box<ToolCall>),
    Refused(Box<Finished>),
}

impl Dispatch<'_> {
    /// Runs all calls of a message and returns their ends in the order of the calls.
    pub(crate) async fn run(&self, message: &Message) -> Vec<Finished> {
        let mut gated = Vec::new();
        for (id, name, input) in message.tool_uses() {
            gated.push(self.gate(id, name, input).await);
        }
        let mut finished: Vec<Option<Finished>> = Vec::new();
        let mut allowed = Vec::new();
        for (position, gated) in gated.into_iter().enumerate() {
            finished.push(match gated {
                Gated::Allowed(tool, call) => {
                    allowed.push((position, tool, *call));
                    None
                }
                Gated::Refused(end) => {
                    self.tell_end(&end).await;
                    Some(*end)
                }
            });
        }
        self.run_allowed(allowed, &mut finished).await;
        finished.into_iter().flatten().collect()
    }

    /// Announces a call and finds out whether it may run.
    async fn gate(&self, id: &str, name: &str, input: &Value) -> Gated {
        let started = Instant::now();
        let found = self.cancel.run_until_cancelled(self.tools.find(name));
        let entry = found.await.flatten();
        let tool = entry.as_ref().map(Entry::tool);
        let mut call = ToolCall {
            id: Arc::from(id),
            agent: self.agent.cloned(),
            name: Arc::from(name),
            input: input.clone(),
            effect: tool.map_or(Effect::ReadOnly, |tool| tool.effect()),
            first_arg: tool.and_then(|tool| tool.first_arg(input)),
            turn: self.turn,
            opinion: Opinion::None,
        };
        self.listener
            .hear(Event::ToolReady {
                id: Arc::clone(&call.id),
                name: Arc::clone(&call.name),
                input: input.clone(),
                first_arg: call.first_arg.clone(),
            })
            .await;
        let refuse = |call, output, denial| {
            Gated::Refused(Box::new(Finished {
                call,
                output,
                denial,
                duration: started.elapsed(),
            }))
        };
        let Some(entry) = &entry else {
            let output = ToolOutput::invalid(self.tools.current().unknown(name));
            return refuse(call, output, None);
        };
        if let Err(problem) = entry.validate(input) {
            return refuse(call, ToolOutput::invalid(problem), None);
        }
        let permission = self.permission(&call, entry.tool());
        let Some(permission) = self.cancel.run_until_cancelled(permission).await else {
            return refuse(call, cancelled(), None);
        };
        match permission {
            Ok(None) => {}
            Ok(Some(input)) => {
                if let Err(problem) = entry.validate(&input) {
                    let problem = problem.trim_end_matches('.');
                    let denial = Denial::by_hook(format!("a hook changed the input: {problem}"));
                    self.company.gate.refused(&call, &denial);
                    return refuse(call, denied(&denial), Some(denial));
                }
                call.first_arg = entry.tool().first_arg(&input);
                call.input = input;
            }
            Err(denial) => {
                let event = HookEvent::PermissionDenied {
                    call: call.clone(),
                    denial: denial.clone(),
                };
                tell(self.company, &event, self.cancel).await;
                return refuse(call, denied(&denial), Some(denial));
            }
        }
        Gated::Allowed(Arc::clone(entry.tool()), Box::new(call))
    }

    /// Asks the company, and the operator where it says so. Returns the changed input, if it was
    /// changed.
    async fn permission(
        &self,
        call: &ToolCall,
        tool: &Arc<dyn Tool>,
    ) -> Result<Option<Value>, Denial> {
        match self.company.judge(call).await {
            (Verdict::Allow, changed) => Ok(changed),
            (Verdict::Deny(denial), _) => Err(denial),
            (Verdict::Ask(question), _) => {
                let mut inquiry = Inquiry::new(call.clone(), *question);
                inquiry.preview = self.preview(&inquiry, tool).await;
                self.ask_operator(&inquiry).await
            }
        }
    }

    /// What a call would change. One that takes long is asked about without.
    async fn preview(&self, inquiry: &Inquiry, tool: &Arc<dyn Tool>) -> Option<Details> {
        let Inquiry { call, question, .. } = inquiry;
        let input = question.input.as_ref().unwrap_or(&call.input);
        let context = self.context(call, Progress::silent());
        let preview = tool.preview(input.clone(), context);
        timeout(PREVIEW, preview).await.ok().flatten()
    }

    fn context(&self, call: &ToolCall, progress: Progress) -> ToolContext {
        ToolContext {
            call_id: Arc::clone(&call.id),
            session_id: Arc::clone(self.session_id),
            workspace: Arc::clone(self.workspace),
            reading: self.company.gate.reading(call),
            cancel: self.cancel.clone(),
            progress,
            trace: self
                .company
                .tracer
                .as_ref()
                .and_then(|tracer| tracer.of_call(&call.id)),
        }
    }

    async fn ask_operator(&self, inquiry: &Inquiry) -> Result<Option<Value>, Denial> {
        let Inquiry {
            id, call, question, ..
        } = inquiry;
        self.listener
            .hear(Event::PermissionAsked {
                inquiry: Box::new(inquiry.clone()),
            })
            .await;
        let event = HookEvent::PermissionRequest { call: call.clone() };
        tell(self.company, &event, self.cancel).await;
        let event = HookEvent::Notification {
            kind: NotificationKind::Question,
            message: question.reason.clone(),
        };
        tell(self.company, &event, self.cancel).await;
        let answer = self.operator.decide(inquiry).await;
        self.company.gate.answered(call, &answer);
        self.listener
            .hear(Event::PermissionAnswered {
                inquiry: Arc::clone(id),
                id: Arc::clone(&call.id),
                answer: answer.clone(),
            })
            .await;
        match answer {
            Answer::Allow { input, .. } => Ok(input.or_else(|| question.input.clone())),
            Answer::Deny {
                reason, interrupt, ..
            } => {
                if interrupt == Interrupt::Yes {
                    self.cancel.cancel();
                }
                Err(question.denial(call, reason))
            }
            Answer::Nobody => Err(question.unattended()),
            Answer::TimedOut => Err(question.timed_out()),
        }
    }

    /// Runs what was allowed; results are told in the order in which calls end.
    async fn run_allowed(
        &self,
        allowed: Vec<(usize, Arc<dyn Tool>, ToolCall)>,
        finished: &mut [Option<Finished>],
    ) {
        let permits = Semaphore::new(self.parallel.get());
        let (reports, mut progress) = mpsc::channel(PROGRESS_QUEUE);
        let mut last_of_key: HashMap<String, oneshot::Receiver<()>> = HashMap::new();
        let mut running = FuturesUnordered::new();
        for (position, tool, call) in allowed {
            // The one before on the same target holds the sender until it is done.
            let (done, wait_for_me) = oneshot::channel();
            let predecessor = tool
                .conflict_key(&call.input, self.workspace)
                .and_then(|key| last_of_key.insert(key, wait_for_me));
            let progress = Progress::new(reports.clone(), Arc::clone(&call.id));
            running.push(
                self.run_one(tool, call, progress, predecessor, &permits)
                    .map(move |end| (position, end, done)),
            );
        }
        drop(reports);
        loop {
            tokio::select! {
                biased;
                Some(report) = progress.recv() => self.tell_progress(report).await,
                ended = running.next() => match ended {
                    None => break,
                    Some((position, end, done)) => {
                        drop(done);
                        while let Ok(report) = progress.try_recv() {
                            self.tell_progress(report).await;
                        }
                        self.tell_end(&end).await;
                        finished[position] = Some(end);
                    }
                },
            }
        }
    }

    async fn run_one(
        &self,
        tool: Arc<dyn Tool>,
        call: ToolCall,
        progress: Progress,
        predecessor: Option<oneshot::Receiver<()>>,
        permits: &Semaphore,
    ) -> Finished {
        let waiting = async {
            if let Some(predecessor) = predecessor {
                // An error means the sender is gone, which is what is waited for.
                let _ = predecessor.await;
            }
            permits.acquire().await
        };
        let permit = self.cancel.run_until_cancelled(waiting).await;
        // Waiting may end because the one before was cancelled.
        if permit.is_none() || self.cancel.is_cancelled() {
            return Finished::of(call, cancelled(), Instant::now());
        }
        let started = Instant::now();
        if let Err(reason) = self.company.before_run(&call).await {
            let output = ToolOutput::new(ToolStatus::CouldNotRun, reason);
            return Finished::of(call, output, started);
        }
        self.listener
            .hear(Event::ToolStarted {
                id: Arc::clone(&call.id),
                name: Arc::clone(&call.name),
                first_arg: call.first_arg.clone(),
            })
            .await;
        let context = self.context(&call, progress);
        let running = async {
            let output = tool.run(call.input.clone(), context).await;
            self.company.take_in_result(output).await
        };
        let running = AssertUnwindSafe(running).catch_unwind();
        let output = match until_cancelled(running, self.cancel).await {
            Some(Ok(output)) => cap(output, self.capping, &call.id),
            Some(Err(panic)) => ToolOutput::new(
                ToolStatus::CouldNotRun,
                format!("{} crashed: {}.", call.name, panic_text(&*panic)),
            ),
            None => cancelled(),
        };
        drop(permit);
        Finished::of(call, output, started)
    }

    async fn tell_progress(&self, report: ProgressReport) {
        let event = match report.kind {
            ProgressKind::Output(text) => Event::ToolProgress {
                id: report.call_id,
                text,
            },
            ProgressKind::Nested(event) => Event::Nested {
                parent: report.call_id,
                event,
            },
        };
        self.listener.hear(event).await;
    }

    async fn tell_end(&self, end: &Finished) {
        self.company.after_end(&end.call, &end.output).await;
        self.listener
            .hear(Event::ToolFinished {
                id: Arc::clone(&end.call.id),
                name: Arc::clone(&end.call.name),
                output: end.output.clone(),
                duration: end.duration,
                denial: end.denial.clone(),
            })
            .await;
        if end.denial.is_none() {
            let (call, output) = (end.call.clone(), end.output.clone());
            let event = if end.output.is_error() {
                HookEvent::PostToolUseFailure { call, output }
            } else {
                HookEvent::PostToolUse { call, output }
            };
            tell(self.company, &event, self.cancel).await;
        }
        self.company.over(&end.call).await;
    }
}

impl Finished {
    /// The result as the model reads it.
    pub(crate) fn result(&self) -> Block {
        Block::ToolResult {
            tool_use_id: self.call.id.to_string(),
            content: self.output.content.clone(),
            is_error: self.output.is_error(),
        }
    }

    fn of(call: ToolCall, output: ToolOutput, started: Instant) -> Self {
        Self {
            call,
            output,
            denial: None,
            duration: started.elapsed(),
        }
    }
}

/// Tells those who look on. Once the run is cancelled they are not waited for any longer than
/// calls are.
pub(crate) async fn tell(company: &Company, event: &HookEvent, cancel: &CancellationToken) {
    // Nothing depends on whether they were done.
    let _ = until_cancelled(company.notify(event), cancel).await;
}

/// Waits for something; once the run is cancelled, only for a short while longer. Then it is
/// dropped, which kills what it started.
async fn until_cancelled<T>(
    running: impl Future<Output = T>,
    cancel: &CancellationToken,
) -> Option<T> {
    tokio::pin!(running);
    if let Some(output) = cancel.run_until_cancelled(&mut running).await {
        return Some(output);
    }
    timeout(GRACE, running).await.ok()
}

fn cancelled() -> ToolOutput {
    ToolOutput::new(ToolStatus::Cancelled, "The call was cancelled.")
}

/// How the result of a refused call begins.
const REFUSED: &str = "The call was not permitted: ";

/// Why a call of an earlier run was refused, by the text that is kept of its result; nothing where
/// it was not refused.
pub fn tells_of_denial(text: &str) -> Option<&str> {
    text.strip_prefix(REFUSED)
}

fn denied(denial: &Denial) -> ToolOutput {
    let remedy = denial
        .remedy
        .as_ref()
        .map_or_else(String::new, |remedy| format!(" {remedy}"));
    ToolOutput::new(
        ToolStatus::Denied,
        format!("{REFUSED}{}.{remedy}", denial.reason),
    )
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given")
}
