//! From events to frames. A turn is one prompt and everything that follows from it; the encoder
//! lives as long as the session and keeps what frames need to know of each other.

mod calls;
mod ending;

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use caliban_agent::{AnswerStep, CompactionReason, Event, RunTotals, ToolCall};
use caliban_model::{Block, Message, Retry, Usage};
use rust_decimal::Decimal;
use serde_json::Value;

use super::frame::{
    Assistant, AssistantMessage, DeferredCall, DeniedCall, Frame, InitFacts, RateLimit,
    RateLimitInfo, StreamEvent, System, SystemBody, User, UserMessage, stop_reason,
};
use super::input::UserInput;
use super::names::{input_theirs, theirs};
use super::stream::{Head, Stream};
use super::tool_result::{block, prompt};
use crate::{HookEvents, Partial, Replay};

/// The tool that runs sub-agents, by our name.
const SUB_AGENTS: &str = "AgentTool";
/// Calls that are remembered until they end; more than a turn can hold.
const MAX_CALLS: usize = 4096;
/// The status by which a provider limits the rate of requests.
const TOO_MANY_REQUESTS: u16 = 429;
/// The longest summary of a task, in characters.
const SUMMARY: usize = 2_000;

/// Which frames are wanted beside the usual ones.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    pub partial: Partial,
    pub hooks: HookEvents,
    pub replay: Replay,
    pub states: States,
    /// Whether what sub-agents say is shown, not only what they do.
    pub sub_agent_text: bool,
    pub kinds: FrameKinds,
}

/// Which kinds of frames the client knows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FrameKinds {
    #[default]
    All,
    /// Those that were there from the beginning; any other ends the client.
    Oldest,
}

/// Whether it is told when the session works and when it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum States {
    Untold,
    /// For the client library alone.
    ForLibrary,
    Told,
}

/// Who a frame is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    Client,
    /// Part of the conversation: kept, and shown.
    Both,
    /// Part of the conversation that the client knows already.
    Transcript,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Emitted {
    pub frame: Value,
    pub to: Audience,
}

/// What a turn begins with.
#[derive(Debug, Clone)]
pub struct Turn {
    pub init: InitFacts,
    pub prompt: UserInput,
}

/// Where fresh ids come from.
pub type Ids = Box<dyn FnMut() -> String + Send>;

/// Translates the events of a session.
pub struct Encoder {
    options: Options,
    session_id: String,
    ids: Ids,
    earlier_cost: Decimal,
    before: RunTotals,
    turn: Option<Turn>,
    now: Now,
}

/// What is known of the turn that is going on.
#[derive(Default)]
struct Now {
    has_begun: bool,
    calls: HashMap<Arc<str>, (Arc<str>, Value)>,
    denials: Vec<DeniedCall>,
    /// The call that ends the turn, to be decided about later.
    deferred: Option<DeferredCall>,
    user_messages: u32,
    stop_reason: Option<String>,
    answer: ShownAnswer,
    /// Answers of sub-agents, by the call that runs them.
    nested: HashMap<Arc<str>, ShownAnswer>,
    compacting: Option<CompactionReason>,
    summary: Option<String>,
}

/// An answer that is being written.
#[derive(Default)]
struct ShownAnswer {
    id: String,
    model: String,
    usage: Usage,
    stream: Stream,
    /// What was written of the block that has not ended.
    open: String,
    /// It is complete, and its calls run.
    in_tools: bool,
}

impl fmt::Debug for Encoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Encoder")
            .field("options", &self.options)
            .field("session_id", &self.session_id)
            .finish_non_exhaustive()
    }
}

impl Encoder {
    /// `earlier_cost` is what the session cost before this process.
    pub fn new(options: Options, session_id: &str, earlier_cost: Decimal, ids: Ids) -> Self {
        Self {
            options,
            session_id: session_id.to_owned(),
            ids,
            earlier_cost,
            before: RunTotals::default(),
            turn: None,
            now: Now::default(),
        }
    }

    /// A prompt is about to be worked on.
    pub fn begin(&mut self, turn: Turn) -> Vec<Emitted> {
        self.turn = Some(turn);
        self.now = Now::default();
        self.state("running").into_iter().collect()
    }

    /// The frames of an event.
    pub fn frames(&mut self, event: &Event) -> Vec<Emitted> {
        match event {
            Event::PromptAccepted { .. } => self.opened(),
            Event::TurnStarted { .. } => match self.options.partial {
                Partial::Included => vec![self.system(status(Some("requesting")))],
                Partial::Left => Vec::new(),
            },
            Event::TextDelta { text } => {
                self.now.answer.open.push_str(text);
                self.streamed(|stream, head| stream.text(text, head))
            }
            Event::ThinkingDelta { text } => {
                self.streamed(|stream, head| stream.thinking(text, head))
            }
            Event::Answer(step) => self.step(step),
            Event::ToolReady {
                id, name, input, ..
            } => {
                self.remember(id, name, input);
                Vec::new()
            }
            Event::ToolStarted { id, .. } => self.task_started(id).into_iter().collect(),
            Event::ToolFinished {
                id,
                name,
                output,
                denial,
                ..
            } => {
                self.now.user_messages += 1;
                self.finished(id, name, output, denial.as_ref(), None)
            }
            Event::AssistantMessage { .. } => {
                let answer = &mut self.now.answer;
                answer.in_tools = true;
                answer.open.clear();
                Vec::new()
            }
            Event::SentOn { message } => {
                self.now.user_messages += 1;
                vec![self.user(prompt(message), Synthetic::Yes, Audience::Both)]
            }
            Event::Retrying(retry) => self.retried(retry),
            Event::Warning(warning) => self.remark(&warning.message),
            Event::Notice { message, .. } => self.remark(message),
            Event::HookFired { event, output } => match self.options.hooks {
                HookEvents::Included => self.hook(event, output),
                HookEvents::Left => Vec::new(),
            },
            Event::CompactionStarted { reason } => {
                self.now.compacting = Some(*reason);
                let mut frames = self.opened();
                frames.push(self.system(status(Some("compacting"))));
                frames
            }
            Event::HistoryReplaced { messages } => {
                if self.now.compacting.is_some() {
                    self.now.summary = summary(messages);
                }
                Vec::new()
            }
            Event::CompactionFinished {
                before_tokens,
                after_tokens,
            } => self.compacted(*before_tokens, *after_tokens),
            Event::Nested { parent, event } => self.nested(parent, event),
            Event::Finished { outcome, totals } => self.end(outcome, totals),
            Event::Interrupted { said, note } => self.cut_off(said.as_deref(), note),
            Event::Steered { message, .. } => {
                self.now.user_messages += 1;
                vec![self.user(prompt(message), Synthetic::No, Audience::Transcript)]
            }
            // A session tells its questions itself.
            Event::PermissionAsked { .. }
            | Event::PermissionAnswered { .. }
            | Event::ToolProgress { .. }
            | Event::ToolResults { .. }
            | Event::TurnEnded { .. }
            | Event::HookPassed { .. } => Vec::new(),
        }
    }

    fn retried(&mut self, retry: &Retry) -> Vec<Emitted> {
        let mut frames = vec![self.system(retrying(retry))];
        if retry.status == Some(TOO_MANY_REQUESTS) && self.options.kinds == FrameKinds::All {
            let frame = Frame::RateLimitEvent(RateLimit {
                info: RateLimitInfo { status: "rejected" },
                session_id: self.session_id.clone(),
                uuid: self.id(),
            });
            frames.push(Emitted {
                frame: frame.value(),
                to: Audience::Client,
            });
        }
        frames
    }

    /// The permission mode is another one.
    pub fn mode_changed(&mut self, mode: &str) -> Emitted {
        self.system(SystemBody::Status {
            status: None,
            permission_mode: Some(mode.to_owned()),
        })
    }

    /// Something the client did in the place of its user, shown like an echo.
    pub fn local_command(&mut self, text: &str) -> Emitted {
        let content = format!("<local-command-stdout>{text}</local-command-stdout>");
        let mut emitted = self.user(content.into(), Synthetic::No, Audience::Client);
        emitted.frame["isReplay"] = true.into();
        emitted
    }

    /// The turn is about to end with this call, which is to be decided about later.
    pub fn defer(&mut self, call: &ToolCall) {
        self.now.deferred = Some(DeferredCall {
            id: call.id.to_string(),
            name: theirs(&call.name).to_owned(),
            input: input_theirs(&call.name, &call.input),
        });
    }

    /// The client is asked something.
    pub fn asked(&mut self) -> Vec<Emitted> {
        self.state("requires_action").into_iter().collect()
    }

    /// It has answered, or need not any more.
    pub fn answered(&mut self) -> Vec<Emitted> {
        self.state("running").into_iter().collect()
    }

    fn id(&mut self) -> String {
        (self.ids)()
    }

    fn system(&mut self, body: SystemBody) -> Emitted {
        let frame = Frame::System(Box::new(System {
            body,
            session_id: self.session_id.clone(),
            uuid: self.id(),
        }));
        Emitted {
            frame: frame.value(),
            to: Audience::Client,
        }
    }

    fn informational(&mut self, text: &str) -> Emitted {
        self.system(SystemBody::Informational {
            content: text.to_owned(),
            level: "warning",
        })
    }

    fn state(&mut self, state: &'static str) -> Option<Emitted> {
        let sdk_host_only = match self.options.states {
            States::Untold => return None,
            States::ForLibrary => Some(true),
            States::Told => None,
        };
        Some(self.system(SystemBody::SessionStateChanged {
            state,
            sdk_host_only,
        }))
    }

    /// The opening, unless the turn has begun.
    fn opened(&mut self) -> Vec<Emitted> {
        if self.now.has_begun {
            Vec::new()
        } else {
            self.opening()
        }
    }

    /// Something on the side; nothing of a turn comes before its opening.
    fn remark(&mut self, text: &str) -> Vec<Emitted> {
        let mut frames = self.opened();
        frames.push(self.informational(text));
        frames
    }

    /// What the turn works with, then its prompt.
    fn opening(&mut self) -> Vec<Emitted> {
        let Some(turn) = self.turn.clone() else {
            return Vec::new();
        };
        self.now.has_begun = true;
        let init = self.system(SystemBody::Init(Box::new(turn.init)));
        let to = match self.options.replay {
            Replay::Prompts => Audience::Both,
            Replay::Nothing => Audience::Transcript,
        };
        let content = prompt(&turn.prompt.message);
        let mut echo = self.user(content, Synthetic::No, to);
        echo.frame["isReplay"] = true.into();
        if let Some(uuid) = turn.prompt.uuid {
            echo.frame["uuid"] = uuid.into();
        }
        vec![init, echo]
    }

    fn user(&mut self, content: Value, synthetic: Synthetic, to: Audience) -> Emitted {
        let frame = Frame::User(Box::new(User {
            message: UserMessage {
                role: "user",
                content,
            },
            parent_tool_use_id: None,
            session_id: self.session_id.clone(),
            uuid: self.id(),
            tool_use_result: None,
            is_replay: None,
            is_synthetic: (synthetic == Synthetic::Yes).then_some(true),
        }));
        Emitted {
            frame: frame.value(),
            to,
        }
    }

    fn streamed(
        &mut self,
        events: impl FnOnce(&mut Stream, Head<'_>) -> Vec<Value>,
    ) -> Vec<Emitted> {
        if self.options.partial == Partial::Left {
            return Vec::new();
        }
        let ShownAnswer {
            id,
            model,
            usage,
            stream,
            ..
        } = &mut self.now.answer;
        let head = Head {
            id,
            model,
            usage: *usage,
        };
        let events = events(stream, head);
        events
            .into_iter()
            .map(|event| self.stream_event(event))
            .collect()
    }

    fn stream_event(&mut self, event: Value) -> Emitted {
        let frame = Frame::StreamEvent(Box::new(StreamEvent {
            event,
            parent_tool_use_id: None,
            session_id: self.session_id.clone(),
            uuid: self.id(),
        }));
        Emitted {
            frame: frame.value(),
            to: Audience::Client,
        }
    }

    fn step(&mut self, step: &AnswerStep) -> Vec<Emitted> {
        match step {
            AnswerStep::Started { model } => {
                self.now.answer = ShownAnswer {
                    id: format!("msg_{}", self.id().replace('-', "")),
                    model: model.to_string(),
                    ..ShownAnswer::default()
                };
            }
            AnswerStep::Measured { usage } => self.now.answer.usage = *usage,
            AnswerStep::Stopped { reason } => {
                self.now.stop_reason = Some(stop_reason(reason));
            }
            AnswerStep::BlockEnded { .. } => {
                self.now.answer.open.clear();
            }
            AnswerStep::ToolBegun { .. } | AnswerStep::ToolInput { .. } => {}
        }
        let mut frames = self.streamed(|stream, head| stream.before(step, head));
        if let AnswerStep::BlockEnded { block } = step {
            let ShownAnswer {
                id, model, usage, ..
            } = &self.now.answer;
            let (id, model, usage) = (id.clone(), model.clone(), *usage);
            frames.extend(self.assistant(block, id, model, usage, None));
        }
        let usage = self.now.answer.usage;
        frames.extend(self.streamed(|stream, head| stream.after(step, usage, head)));
        frames
    }

    fn assistant(
        &mut self,
        whole: &Block,
        id: String,
        model: String,
        usage: Usage,
        parent: Option<&str>,
    ) -> Option<Emitted> {
        let content = block(whole)?;
        Some(self.said(content, id, model, usage, parent, Remark::None))
    }

    fn said(
        &mut self,
        content: Value,
        id: String,
        model: String,
        usage: Usage,
        parent: Option<&str>,
        remark: Remark,
    ) -> Emitted {
        let frame = Frame::Assistant(Box::new(Assistant {
            message: AssistantMessage {
                id,
                kind: "message",
                role: "assistant",
                model,
                content: vec![content],
                stop_reason: None,
                stop_sequence: None,
                usage: usage.into(),
            },
            parent_tool_use_id: parent.map(str::to_owned),
            session_id: self.session_id.clone(),
            uuid: self.id(),
            error: match remark {
                Remark::Trouble(kind) => Some(kind),
                Remark::None | Remark::Aborted => None,
            },
            aborted: (remark == Remark::Aborted).then_some(true),
        }));
        Emitted {
            frame: frame.value(),
            to: match (parent, remark) {
                (None, Remark::None | Remark::Aborted) => Audience::Both,
                (Some(_), _) | (None, Remark::Trouble(_)) => Audience::Client,
            },
        }
    }

    fn hook(&mut self, event: &str, output: &Value) -> Vec<Emitted> {
        let hook_id = self.id();
        let text = output.to_string();
        let started = self.system(SystemBody::HookStarted {
            hook_id: hook_id.clone(),
            hook_name: event.to_owned(),
            hook_event: event.to_owned(),
        });
        let response = self.system(SystemBody::HookResponse {
            hook_id,
            hook_name: event.to_owned(),
            hook_event: event.to_owned(),
            output: text.clone(),
            stdout: text,
            stderr: "",
            outcome: "success",
        });
        vec![started, response]
    }
}

/// Whether nobody wrote it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Synthetic {
    Yes,
    No,
}

/// What is remarkable about an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Remark {
    None,
    Aborted,
    Trouble(&'static str),
}

fn status(status: Option<&'static str>) -> SystemBody {
    SystemBody::Status {
        status,
        permission_mode: None,
    }
}

fn retrying(retry: &Retry) -> SystemBody {
    SystemBody::ApiRetry {
        attempt: retry.attempt,
        max_retries: retry.max_retries,
        retry_delay_ms: u64::try_from(retry.delay.as_millis()).unwrap_or(u64::MAX),
        error_status: retry.status,
        error: retry.category.as_str(),
    }
}

/// The summary that a compacted conversation begins with.
fn summary(messages: &[Arc<Message>]) -> Option<String> {
    let first = messages
        .iter()
        .find(|message| message.role == caliban_model::Role::User)?;
    Some(first.text()).filter(|text| !text.is_empty())
}

fn cut(text: &str) -> String {
    text.chars().take(SUMMARY).collect()
}
