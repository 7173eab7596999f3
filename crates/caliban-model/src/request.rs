//! What is asked of a model.

use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Block, Message, Messages, Role};

/// A call to a model. Its conversation is known to be well formed: system messages lead and hold
/// text only, and at least one other message follows.
#[derive(Debug, Clone)]
pub struct Request {
    pub model: Arc<str>,
    messages: Messages,
    pub tools: Arc<[ToolSpec]>,
    pub tool_choice: ToolChoice,
    pub parallel_calls: ParallelCalls,
    pub max_tokens: u32,
    pub answer_limit: AnswerLimit,
    pub temperature: Option<f64>,
    pub stop_sequences: Vec<String>,
    pub reasoning: Reasoning,
    pub output: OutputFormat,
    pub cache: CachePolicy,
    /// User turns of fewer tokens, by estimate, get no cache mark of their own.
    pub min_cached_turn: u64,
    pub metadata: Metadata,
}

/// Why a list of messages is not a conversation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRequest {
    #[error("message {index}: system messages must come first, before any other message")]
    MisplacedSystem { index: usize },
    #[error("message {index}: a system message may hold text only")]
    SystemNotText { index: usize },
    #[error("the conversation has no user message")]
    Empty,
}

/// A tool as the model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    pub name: String,
    pub description: String,
    /// JSON Schema of the input; always describes an object.
    pub input_schema: Value,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolChoice {
    #[default]
    Auto,
    /// Some tool must be called.
    Required,
    /// This tool must be called.
    Named(String),
    /// No tool may be called.
    None,
}

/// Whether `max_tokens` is what somebody asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AnswerLimit {
    /// It is never exceeded.
    #[default]
    Fixed,
    /// Nobody said anything: a budget of thinking comes on top of it.
    Open,
}

/// Whether the model may make several tool calls in one turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ParallelCalls {
    #[default]
    Allowed,
    OneAtATime,
}

/// How hard the model should think.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reasoning {
    /// Whatever the model does when nothing is said.
    #[default]
    Auto,
    Off,
    Effort(Effort),
    /// Thinking tokens, for models that take a number.
    Budget(u32),
}

/// Effort levels, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown effort `{0}`; use low, medium, high, xhigh or max")]
pub struct UnknownEffort(pub String);

/// The form of the final answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum OutputFormat {
    #[default]
    Text,
    JsonSchema {
        name: String,
        schema: Arc<Value>,
    },
}

/// Whether and for how long the provider should keep the prompt's prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CachePolicy {
    Off,
    Ephemeral(CacheTtl),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheTtl {
    FiveMinutes,
    OneHour,
}

/// What a request is for, and whose it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metadata {
    pub purpose: Purpose,
    /// Opaque and stable per session; keys the prompt caches of providers that ask for one.
    pub session: Option<String>,
}

/// Why the harness makes a call; routes are chosen by it.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    #[default]
    MainLoop,
    Summarization,
    FastClassifier,
    SubAgent,
    Embedding,
    Other,
}

impl Request {
    /// The per-turn output limit where the user names none.
    pub const DEFAULT_MAX_TOKENS: u32 = 8192;

    /// Checks the conversation; everything else starts at its default and may be set freely.
    pub fn new(model: impl Into<Arc<str>>, messages: Messages) -> Result<Self, InvalidRequest> {
        messages.check()?;
        Ok(Self {
            model: model.into(),
            messages,
            tools: Arc::from([]),
            tool_choice: ToolChoice::Auto,
            parallel_calls: ParallelCalls::Allowed,
            max_tokens: Self::DEFAULT_MAX_TOKENS,
            answer_limit: AnswerLimit::Fixed,
            temperature: None,
            stop_sequences: Vec::new(),
            reasoning: Reasoning::Auto,
            output: OutputFormat::Text,
            cache: CachePolicy::Ephemeral(CacheTtl::FiveMinutes),
            min_cached_turn: 0,
            metadata: Metadata::default(),
        })
    }

    /// Gives messages another content; those that `change` says nothing about stay. System messages
    /// are not asked about, so that it is still a conversation.
    pub fn rewrite(&mut self, change: impl Fn(&Message) -> Option<Vec<Block>>) {
        let mut messages = Messages::default();
        for message in self.messages.iter() {
            let other = match message.role {
                Role::System => None,
                Role::User | Role::Assistant => change(message),
            };
            messages.push(match other {
                None => Arc::clone(message),
                Some(content) => Arc::new(Message {
                    content,
                    ..Message::clone(message)
                }),
            });
        }
        self.messages = messages;
    }

    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// The leading system messages.
    pub fn system(&self) -> &[Arc<Message>] {
        &self.messages[..self.messages.system_len()]
    }

    /// Everything after the system messages; never empty.
    pub fn turns(&self) -> &[Arc<Message>] {
        &self.messages[self.messages.system_len()..]
    }

    /// Text, tool inputs and results in bytes: the basis of token estimates.
    pub fn text_bytes(&self) -> usize {
        let messages: usize = self
            .messages
            .iter()
            .map(|message| message_bytes(message))
            .sum();
        let tools: usize = self
            .tools
            .iter()
            .map(|tool| tool.name.len() + tool.description.len() + value_bytes(&tool.input_schema))
            .sum();
        messages + tools
    }

    /// The user turns at whose end a prompt cache is marked, the last one first, where that is
    /// asked for: the last two that are worth one. A turn is, when `min_cached_turn` tokens have
    /// come together since the turn before it that was. So a long prompt has its mark at once, and
    /// a loop of short calls has marks as well, at places that stay where they are while the
    /// conversation grows: what one call has written there, the next one reads.
    pub fn marked_turns(&self) -> Vec<MarkedTurn> {
        if self.cache == CachePolicy::Off {
            return Vec::new();
        }
        let enough = self.min_cached_turn.saturating_mul(BYTES_PER_TOKEN);
        let turns = self.turns();
        let (mut worthy, mut count, mut since) = (Vec::new(), 0, 0_u64);
        let mut begin = None;
        for (place, message) in turns.iter().enumerate() {
            // Without a minimum there is nothing to estimate.
            if enough > 0 {
                since = since.saturating_add(message_bytes(message) as u64);
            }
            if message.role != Role::User {
                continue;
            }
            let first = *begin.get_or_insert(place);
            let goes_on = turns
                .get(place + 1)
                .is_some_and(|next| next.role == Role::User);
            if goes_on {
                continue;
            }
            begin = None;
            count += 1;
            if since >= enough {
                worthy.push((count, first));
                since = 0;
            }
        }
        let last = worthy.into_iter().rev().take(MARKED_TURNS);
        let marked = last.map(|(number, message)| MarkedTurn {
            later: count - number,
            message,
        });
        marked.collect()
    }

    /// The marks for a prompt cache that this asks for, where they are set by us: at the end of
    /// the tools, of the system prompt and of user turns.
    pub fn cache_marks(&self, most: usize) -> usize {
        if self.cache == CachePolicy::Off {
            return 0;
        }
        let lists = usize::from(!self.tools.is_empty()) + usize::from(!self.system().is_empty());
        (self.marked_turns().len() + lists).min(most)
    }
}

/// The user turns that get a mark: the last, and the one before it, which is where the previous
/// call wrote. With the last tool and the last block of the system prompt that makes the four
/// marks that a request may have.
const MARKED_TURNS: usize = 2;

/// What makes one token, roughly.
const BYTES_PER_TOKEN: u64 = 4;

/// A user turn at whose end a prompt cache is marked. Messages of a user that follow each other
/// are one turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MarkedTurn {
    /// How many user turns come after it.
    pub later: usize,
    /// The place of its first message among the turns of the request.
    pub message: usize,
}

fn message_bytes(message: &Message) -> usize {
    message
        .content
        .iter()
        .map(|block| match block {
            Block::Text { text, .. } | Block::Thinking { text, .. } => text.len(),
            Block::RedactedThinking { data } => data.len(),
            Block::ToolUse { name, input, .. } => name.len() + value_bytes(input),
            Block::ToolResult { content, .. } => content
                .iter()
                .map(|part| match part {
                    crate::ToolContent::Text { text } => text.len(),
                    crate::ToolContent::Image(_) => IMAGE_BYTES,
                })
                .sum(),
            Block::Image(_) => IMAGE_BYTES,
            Block::Opaque { value } => value_bytes(value),
        })
        .sum()
}

/// An image costs about 1,500 tokens whatever its encoded size.
const IMAGE_BYTES: usize = 6_000;

fn value_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 4,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| value_bytes(item) + 1).sum(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| key.len() + 4 + value_bytes(value))
            .sum(),
    }
}

impl Effort {
    pub const ALL: [Self; 5] = [Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }

    /// The nearest level to a number of thinking tokens, for models that take levels only.
    pub fn from_budget(tokens: u32) -> Self {
        match tokens {
            0..=2_048 => Self::Low,
            2_049..=12_288 => Self::Medium,
            12_289..=40_960 => Self::High,
            _ => Self::Max,
        }
    }
}

impl FromStr for Effort {
    type Err = UnknownEffort;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|effort| effort.as_str() == text)
            .ok_or_else(|| UnknownEffort(text.to_owned()))
    }
}

impl Purpose {
    pub const ALL: [Self; 6] = [
        Self::MainLoop,
        Self::Summarization,
        Self::FastClassifier,
        Self::SubAgent,
        Self::Embedding,
        Self::Other,
    ];

    pub fn slug(self) -> &'static str {
        match self {
            Self::MainLoop => "main_loop",
            Self::Summarization => "summarization",
            Self::FastClassifier => "fast_classifier",
            Self::SubAgent => "sub_agent",
            Self::Embedding => "embedding",
            Self::Other => "other",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(messages: Vec<Message>) -> Result<Request, InvalidRequest> {
        Request::new("m", messages.into_iter().map(Arc::new).collect())
    }

    /// How many user turns come after those that are marked.
    fn marked(minimum: u64, messages: Vec<Message>) -> Vec<usize> {
        let mut request = conversation(messages).unwrap();
        request.cache = CachePolicy::Ephemeral(CacheTtl::FiveMinutes);
        request.min_cached_turn = minimum;
        let turns = request.marked_turns();
        turns.iter().map(|turn| turn.later).collect()
    }

    #[test]
    fn the_last_two_user_turns_are_marked() {
        let said = |text: &str| Message::user(text.to_owned());
        assert_eq!(marked(0, vec![said("a")]), [0]);
        let talk = vec![
            Message::system("s"),
            said("a"),
            Message::assistant("b"),
            said("c"),
            said("one turn with the one before"),
            Message::assistant("d"),
            said("e"),
        ];
        assert_eq!(marked(0, talk.clone()), [0, 1]);
        let mut request = conversation(talk).unwrap();
        request.cache = CachePolicy::Off;
        assert_eq!(request.marked_turns(), []);
        request.cache = CachePolicy::Ephemeral(CacheTtl::FiveMinutes);
        let places: Vec<usize> = request.marked_turns().iter().map(|it| it.message).collect();
        assert_eq!(places, [5, 2]);
    }

    #[test]
    fn a_turn_that_is_short_by_itself_is_marked_where_it_makes_enough_with_others() {
        let long = "x".repeat(700);
        let mut turns = Vec::new();
        let mut before: Vec<usize> = Vec::new();
        for number in 0..12_usize {
            turns.push(Message::user(long.clone()));
            // From the beginning, so that places can be compared.
            let mut places: Vec<usize> = marked(1_000, turns.clone())
                .into_iter()
                .map(|later| number - later)
                .collect();
            places.reverse();
            if number < 3 {
                assert_eq!(places, Vec::<usize>::new(), "{number}");
            }
            // What was written last is where the next call looks.
            assert!(
                before.last().is_none_or(|last| places.contains(last)),
                "{before:?} {places:?}"
            );
            before = places;
            turns.push(Message::assistant(long.clone()));
        }
        assert_eq!(before.len(), 2, "{before:?}");
        assert_eq!(marked(1_000, vec![Message::user("x".repeat(4_000))]), [0]);
        assert_eq!(
            marked(u64::MAX, vec![Message::user(long)]),
            Vec::<usize>::new()
        );
    }

    #[test]
    fn leading_system_messages_are_split_off() {
        let request = conversation(vec![
            Message::system("a"),
            Message::system("b"),
            Message::user("hi"),
        ])
        .unwrap();
        assert_eq!(request.system().len(), 2);
        assert_eq!(request.turns().len(), 1);
    }

    #[test]
    fn a_late_system_message_is_refused_with_its_position() {
        let late = conversation(vec![Message::user("hi"), Message::system("late")]);
        assert_eq!(
            late.unwrap_err(),
            InvalidRequest::MisplacedSystem { index: 1 }
        );
    }

    #[test]
    fn a_system_message_holds_text_only() {
        let mut system = Message::system("x");
        system
            .content
            .push(Block::RedactedThinking { data: "d".into() });
        assert_eq!(
            conversation(vec![system, Message::user("hi")]).unwrap_err(),
            InvalidRequest::SystemNotText { index: 0 }
        );
    }

    #[test]
    fn system_alone_is_not_a_conversation() {
        assert_eq!(
            conversation(vec![Message::system("x")]).unwrap_err(),
            InvalidRequest::Empty
        );
    }
}
