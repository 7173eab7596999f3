//! What happens in a session, as the frames that an application chose.

use caliban_agent::{Event, Outcome, RunTotals};
use caliban_model::{Message, Role};
use caliban_protocol::claude::{self, Audience, Emitted, InitFacts, McpServer, States, Turn};
use caliban_protocol::{
    Encoder as Native, HookEvents, Init, Partial, Replay, failure, question, result,
};
use caliban_session::{Asked, Facts, QuestionKind};
use rust_decimal::Decimal;
use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;

/// Which dialect the frames of sessions are in.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Frames {
    #[default]
    Caliban,
    Claude,
}

impl Frames {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caliban => "caliban",
            Self::Claude => "claude",
        }
    }
}

/// Pieces of answers as they come, and every message when it is complete.
const NATIVE: Native = Native {
    partial: Partial::Included,
    hooks: HookEvents::Left,
    replay: Replay::Prompts,
};
const WHOLE: Native = Native {
    partial: Partial::Left,
    hooks: HookEvents::Left,
    replay: Replay::Prompts,
};

/// Translates the events of one session.
#[derive(Debug)]
pub(crate) struct Encoder {
    session: String,
    dialect: Dialect,
}

#[derive(Debug)]
enum Dialect {
    Caliban,
    Claude(Box<claude::Encoder>),
}

impl Encoder {
    pub(crate) fn new(frames: Frames, session: &str) -> Self {
        let options = claude::Options {
            partial: Partial::Included,
            hooks: HookEvents::Left,
            replay: Replay::Nothing,
            states: States::Untold,
            sub_agent_text: false,
            kinds: claude::FrameKinds::All,
        };
        let ids = Box::new(|| Uuid::new_v4().to_string());
        Self {
            session: session.to_owned(),
            dialect: match frames {
                Frames::Caliban => Dialect::Caliban,
                Frames::Claude => Dialect::Claude(Box::new(claude::Encoder::new(
                    options,
                    session,
                    Decimal::ZERO,
                    ids,
                ))),
            },
        }
    }

    /// What the session is.
    pub(crate) fn init(&self, facts: &Facts) -> Value {
        match &self.dialect {
            Dialect::Caliban => Init::from(facts).frame(),
            Dialect::Claude(_) => {
                let mut frame = json!({"type": "system", "subtype": "init"});
                // Only a map with keys that are no texts could fail, and there is none.
                let facts = serde_json::to_value(init(facts)).unwrap_or_default();
                if let (Some(frame), Value::Object(facts)) = (frame.as_object_mut(), facts) {
                    frame.extend(facts);
                    frame.insert("session_id".to_owned(), self.session.clone().into());
                    frame.insert("uuid".to_owned(), Uuid::new_v4().to_string().into());
                }
                frame
            }
        }
    }

    /// A prompt is worked on from here.
    pub(crate) fn begin(&mut self, facts: &Facts, prompt: &Message, request: &str) -> Vec<Value> {
        match &mut self.dialect {
            Dialect::Caliban => Vec::new(),
            Dialect::Claude(encoder) => shown(encoder.begin(Turn {
                init: init(facts),
                prompt: claude::UserInput {
                    unfit: None,
                    message: prompt.clone(),
                    uuid: Some(request.to_owned()),
                    wording: claude::Wording::Typed,
                },
            })),
        }
    }

    /// A step of the work.
    pub(crate) fn step(&mut self, event: &Event) -> Vec<Value> {
        match &mut self.dialect {
            Dialect::Caliban => {
                let mut frames = NATIVE.frames(event);
                if let Event::TurnEnded { .. } = event {
                    frames.extend(WHOLE.frames(event));
                }
                frames
            }
            Dialect::Claude(encoder) => shown(encoder.frames(event)),
        }
    }

    /// The end of a prompt; the result is the last.
    pub(crate) fn end(&mut self, outcome: &Outcome, totals: &RunTotals) -> Vec<Value> {
        match &mut self.dialect {
            Dialect::Caliban => vec![result(outcome, totals, &self.session)],
            Dialect::Claude(encoder) => shown(encoder.frames(&Event::Finished {
                outcome: outcome.clone(),
                totals: Box::new(totals.clone()),
            })),
        }
    }

    /// The result of what was not worked on, or not to its end.
    pub(crate) fn failure(&self, message: &str) -> Value {
        match &self.dialect {
            Dialect::Caliban => failure(message, &self.session),
            Dialect::Claude(_) => self.claude_failure(message),
        }
    }

    /// The result of what is not wanted any more and was not begun.
    pub(crate) fn cancelled(&self) -> Value {
        match &self.dialect {
            Dialect::Caliban => result(&Outcome::Cancelled, &RunTotals::default(), &self.session),
            Dialect::Claude(_) => self.claude_failure("it was cancelled before it began"),
        }
    }

    fn claude_failure(&self, message: &str) -> Value {
        claude::failure(message, &self.session, &Uuid::new_v4().to_string())
    }

    pub(crate) fn question(&self, asked: &Asked) -> Value {
        match (&self.dialect, &asked.kind) {
            (Dialect::Claude(_), QuestionKind::Permission(inquiry)) => {
                let (call, changed) = (&inquiry.call, &inquiry.question.input);
                let input =
                    claude::input_theirs(&call.name, changed.as_ref().unwrap_or(&call.input));
                let name = claude::theirs(&call.name);
                let mut frame = claude::permission_request(&asked.question, name, &input, &call.id);
                frame["session_id"] = self.session.clone().into();
                frame["uuid"] = Uuid::new_v4().to_string().into();
                frame
            }
            (Dialect::Caliban, _) | (Dialect::Claude(_), QuestionKind::Elicitation(_)) => {
                question(asked)
            }
        }
    }

    /// A message of the conversation, as it would have been told; nothing for what is only told to
    /// the model.
    pub(crate) fn message(&self, message: &Arc<Message>) -> Option<Value> {
        match (&self.dialect, message.role) {
            (_, Role::System) => None,
            (Dialect::Claude(_), role) => {
                let kind = if role == Role::Assistant {
                    "assistant"
                } else {
                    "user"
                };
                Some(
                    json!({"type": kind, "message": claude::message_theirs(message),
                            "session_id": self.session}),
                )
            }
            (Dialect::Caliban, Role::User) => {
                let prompt = Arc::clone(message);
                WHOLE.frames(&Event::PromptAccepted { prompt }).pop()
            }
            (Dialect::Caliban, Role::Assistant) => {
                let message = Arc::clone(message);
                WHOLE.frames(&Event::TurnEnded { message }).pop()
            }
        }
    }
}

/// The frames that a client sees.
fn shown(emitted: Vec<Emitted>) -> Vec<Value> {
    let shown = emitted.into_iter().filter(|it| match it.to {
        Audience::Client | Audience::Both => true,
        Audience::Transcript => false,
    });
    shown.map(|it| it.frame).collect()
}

fn init(facts: &Facts) -> InitFacts {
    let tools = facts
        .tools
        .iter()
        .map(|name| claude::theirs(name).to_owned());
    let servers = facts.servers.iter().map(|server| McpServer {
        name: server.name.clone(),
        status: match &*server.status {
            "connected" => "connected",
            "connecting" | "pending" => "pending",
            "disabled" => "disabled",
            "needs-auth" | "needs_auth" => "needs-auth",
            _ => "failed",
        },
    });
    InitFacts {
        cwd: facts.cwd.clone(),
        tools: tools.collect(),
        mcp_servers: servers.collect(),
        model: facts.model.clone(),
        permission_mode: facts.permission_mode.clone(),
        slash_commands: facts
            .commands
            .iter()
            .map(|(name, _)| name.clone())
            .collect(),
        api_key_source: "none".to_owned(),
        claude_code_version: claude::VERSION,
        output_style: "default".to_owned(),
        agents: Vec::new(),
        skills: facts.skills.clone(),
        plugins: claude::plugin_rows(facts),
        memory_paths: serde_json::Map::new(),
        fast_mode_state: "off",
    }
}
