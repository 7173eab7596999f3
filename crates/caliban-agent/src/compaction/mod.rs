//! Makes room in the model's window. Compaction is judged by its outcome: either the next
//! request fits, or the run ends and says so.

mod cut;
mod micro;
mod summary;

use std::sync::Arc;

use caliban_model::{Block, CancellationToken, Error, Message, Role, ToolContent};

use crate::agent::Agent;
use crate::conversation::{Conversation, estimate};
use crate::outcome::Outcome;
use crate::reply::Spent;
use crate::settings::{Settings, Strategy};

pub(crate) use micro::{BoundThinking, supersede};
pub(crate) use summary::summarize;

/// Part of the window that may be in use after compaction.
const TARGET: f64 = 0.5;
/// The most of the window that recent messages may keep.
const TAIL: f64 = 0.25;
/// The most they may keep of what makes compaction necessary: else it would free nothing.
const TAIL_OF_THRESHOLD: f64 = 1.0 / 3.0;
/// The most of the window that what is told again beside a summary may take.
const RETOLD: f64 = 0.125;
/// The most tokens of one result that survives in the kept part when nothing else helps.
const SHORT_RESULT_CHARS: usize = 2_000;

/// How much of a conversation is condensed.
#[derive(Debug)]
pub(crate) enum Extent {
    /// What is older than the recent turns.
    Old,
    /// All of it, with a hint at what matters.
    Everything { hint: Option<String> },
}

/// A part of a conversation, by the number of messages before its other part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What comes after so many messages.
    From(usize),
    /// The first so many messages; what the model is told first stays.
    UpTo(usize),
}

/// What compaction did.
#[derive(Debug)]
pub(crate) struct Compacted {
    pub(crate) messages: Vec<Arc<Message>>,
    /// What asking for a summary cost.
    pub(crate) spent: Vec<Spent>,
    /// Why there is no summary, if one was wanted.
    pub(crate) summary_failed: Option<Error>,
}

/// Why there is no room to be made.
#[derive(Debug)]
pub(crate) enum Stuck {
    /// The messages that must stay are too large by themselves.
    TooLarge {
        tokens: u64,
        window: u64,
    },
    Cancelled,
}

impl From<Stuck> for Outcome {
    fn from(stuck: Stuck) -> Self {
        match stuck {
            Stuck::Cancelled => Self::Cancelled,
            Stuck::TooLarge { tokens, window } => Self::ContextFull {
                message: format!(
                    "the conversation needs about {tokens} tokens even when shortened, of a window of {window}; start a new one or use a model with a larger window"
                ),
            },
        }
    }
}

/// Whether there is anything that [`compact`] could replace or cut.
pub(crate) fn can_help(
    conversation: &Conversation,
    window: u64,
    overhead: u64,
    settings: &Settings,
) -> bool {
    let sizes = conversation.messages().iter().map(|turn| estimate(turn));
    kept_from(conversation, window, overhead, settings) > 0
        || overhead + sizes.sum::<u64>() > share(window, TARGET)
}

/// Which of the turns stay: those from here on.
fn kept_from(
    conversation: &Conversation,
    window: u64,
    overhead: u64,
    settings: &Settings,
) -> usize {
    let turns = &conversation.messages()[conversation.system_len()..];
    let threshold = settings.compaction.threshold.unwrap_or(1.0);
    let tail = share(window, TAIL.min(threshold * TAIL_OF_THRESHOLD));
    cut::tail_start(turns, conversation.in_estimates(tail, overhead))
}

/// Shortens history to about half of `window`. The beginning is replaced by a summary, or
/// dropped; recent messages stay, a call never without its result; results that are still too
/// large are cut. What the model was told for good is told again beside the summary.
pub(crate) async fn compact(
    conversation: &Conversation,
    window: u64,
    overhead: u64,
    agent: &Agent,
    extent: &Extent,
    cancel: &CancellationToken,
) -> Result<Compacted, Stuck> {
    let settings = &agent.settings;
    let system_len = conversation.system_len();
    let (system, turns) = conversation.messages().split_at(system_len);
    let (kept, hint) = match extent {
        Extent::Old => (kept_from(conversation, window, overhead, settings), None),
        Extent::Everything { hint } => (turns.len(), hint.as_deref()),
    };
    let (old, recent) = turns.split_at(kept);
    let mut spent = Vec::new();
    let mut summary_failed = None;
    let note = if old.is_empty() {
        None
    } else {
        match settings.compaction.strategy {
            Strategy::DropOldest => Some(cut::dropped_note(old)),
            Strategy::Summarize => {
                let asked =
                    summary::summarize(old, hint, window, settings, &*agent.provider, cancel).await;
                spent.extend(asked.spent);
                match asked.text {
                    Ok(text) => Some(summary::note(&text)),
                    Err(_) if cancel.is_cancelled() => return Err(Stuck::Cancelled),
                    Err(error) => {
                        summary_failed = Some(error);
                        Some(cut::dropped_note(old))
                    }
                }
            }
        }
    };
    let mut messages: Vec<Arc<Message>> = system.to_vec();
    messages.extend(note.map(|text| with_retold(text, agent, recent, window)));
    messages.extend(recent.iter().map(without_thinking));
    let target = share(window, TARGET);
    let size = |messages: &[Arc<Message>]| {
        overhead
            + messages
                .iter()
                .map(|message| estimate(message))
                .sum::<u64>()
    };
    if size(&messages) > target {
        for message in &mut messages[system_len..] {
            shorten_results(message);
        }
    }
    let tokens = size(&messages);
    if tokens > target {
        return Err(Stuck::TooLarge { tokens, window });
    }
    Ok(Compacted {
        messages,
        spent,
        summary_failed,
    })
}

/// The message that stands in for what a summary tells, beside what is kept.
pub(crate) fn stand_in(
    summary: &str,
    agent: &Agent,
    kept: &[Arc<Message>],
    window: u64,
) -> Arc<Message> {
    with_retold(summary::note(summary), agent, kept, window)
}

fn with_retold(text: String, agent: &Agent, kept: &[Arc<Message>], window: u64) -> Arc<Message> {
    let retold = agent.company.retell(kept);
    let retold = within(share(window, RETOLD), retold).map(Block::text);
    let content = [Block::text(text)].into_iter().chain(retold).collect();
    Arc::new(Message::new(Role::User, content))
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a window is far below 2^52 and the part is between 0 and 1"
)]
pub(crate) fn share(window: u64, part: f64) -> u64 {
    (window as f64 * part) as u64
}

/// The texts as far as they fit into so many tokens, at four bytes a token; the last that does
/// not is cut, and says so.
fn within(tokens: u64, texts: impl Iterator<Item = String>) -> impl Iterator<Item = String> {
    let mut room = usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX);
    texts.map(move |mut text| {
        let missing = text.len().saturating_sub(room);
        if missing > 0 {
            text.truncate(text.floor_char_boundary(room));
            text.push_str("\n[cut to make room; read the rest again where you need it]");
        }
        room = room.saturating_sub(text.len());
        text
    })
}

/// Thinking is bound to the conversation it was thought in, which has just changed.
pub(crate) fn without_thinking(message: &Arc<Message>) -> Arc<Message> {
    let thinks = |block: &Block| {
        matches!(
            block,
            Block::Thinking { .. } | Block::RedactedThinking { .. }
        )
    };
    if message.role != Role::Assistant || !message.content.iter().any(thinks) {
        return Arc::clone(message);
    }
    let mut message = Message::clone(message);
    message.content.retain(|block| !thinks(block));
    // What is left may carry data that refers to the thinking: it is now nobody's.
    message.origin = None;
    Arc::new(message)
}

fn shorten_results(message: &mut Arc<Message>) {
    let is_long = |part: &ToolContent| match part {
        ToolContent::Text { text } => text.chars().count() > SHORT_RESULT_CHARS,
        ToolContent::Image(_) => true,
    };
    let needs_work = message.content.iter().any(|block| match block {
        Block::ToolResult { content, .. } => content.iter().any(is_long),
        _ => false,
    });
    if !needs_work {
        return;
    }
    let mut shortened = Message::clone(message);
    for block in &mut shortened.content {
        if let Block::ToolResult { content, .. } = block {
            for part in content.iter_mut().filter(|part| is_long(part)) {
                let text = match part {
                    ToolContent::Text { text } => {
                        let head: String = text.chars().take(SHORT_RESULT_CHARS).collect();
                        format!("{head}\n[… cut to make room; run the call again if you need it]")
                    }
                    ToolContent::Image(_) => "[image removed to make room]".to_owned(),
                };
                *part = ToolContent::Text { text };
            }
        }
    }
    *message = Arc::new(shortened);
}
