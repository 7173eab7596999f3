//! The room that a conversation has in the model's window, and what is done when it gets narrow.

use std::sync::Arc;

use caliban_model::{CachePolicy, Message, Purpose, traits};

use crate::compaction::{self, BoundThinking, Extent, Part, share};
use crate::dispatch::tell;
use crate::event::{CompactionReason, Event};
use crate::hook_event::HookEvent;
use crate::outcome::Outcome;
use crate::reply::Spent;
use crate::run::Run;
use crate::settings::{DEFAULT_THRESHOLD, Micro};

/// Part of the compaction threshold at which outdated results are replaced.
const MICRO_PART: f64 = 0.6;
/// Part of the window, or of the threshold, by which history must grow before it is changed again.
const STEP: f64 = 0.1;
/// How often in a row the provider may find a freshly compacted conversation too long.
const MAX_TOO_LONG: u32 = 2;

/// What a run has found out about the room there is.
#[derive(Debug, Default)]
pub(crate) struct Room {
    /// The window the provider named when it refused a prompt.
    learned_window: Option<u64>,
    /// How often in a row the provider found the conversation too long.
    too_long: u32,
    /// Size of history when outdated results were last replaced.
    micro_at: u64,
    floor: Floor,
    /// What matters to the operator who asked for less.
    hint: Option<String>,
}

/// What is left of the conversation when it has been compacted.
#[derive(Debug, Clone, Copy, Default)]
enum Floor {
    /// It has not been.
    #[default]
    None,
    /// No answer has told yet.
    Unmeasured,
    At(u64),
}

impl Room {
    /// The provider refused a prompt, and perhaps named its window.
    pub(crate) fn learn(&mut self, window: Option<u64>) {
        self.learned_window = window.or(self.learned_window);
    }

    /// The provider took the conversation.
    pub(crate) fn fits(&mut self) {
        self.too_long = 0;
    }
}

impl Run<'_> {
    /// Makes the conversation shorter because the provider could not take it; if that cannot be
    /// done, `complaint` is the end of the run.
    pub(crate) async fn shorten(&mut self, complaint: String) -> Result<(), Outcome> {
        self.room.too_long += 1;
        let full = Outcome::ContextFull { message: complaint };
        let settings = &self.agent.settings.compaction;
        if settings.threshold.is_none() || self.room.too_long > MAX_TOO_LONG {
            return Err(full);
        }
        let before = self.conversation.messages().to_vec();
        self.make_room(CompactionReason::TooLong).await?;
        // Sending the same again would fail the same way.
        if self.conversation.messages() == before {
            return Err(full);
        }
        Ok(())
    }

    /// Shortens history because the operator wants it, and says what came of it.
    pub(crate) async fn condense(&mut self, hint: Option<&str>) -> Result<String, Outcome> {
        let before = self.tokens();
        if self.conversation.messages().len() == self.conversation.system_len() {
            return Ok("There is nothing to condense.".to_owned());
        }
        let messages = self.said();
        self.room.hint = hint.map(str::to_owned);
        self.make_room(CompactionReason::Asked).await?;
        Ok(self.condensed_from(before, messages))
    }

    /// How many messages there are beside what the model is told beforehand.
    fn said(&self) -> usize {
        let all = self.conversation.messages().len();
        all.saturating_sub(self.conversation.system_len())
    }

    fn condensed_from(&self, tokens: u64, messages: usize) -> String {
        let left = match self.said() {
            1 => "1 message is".to_owned(),
            count => format!("{count} are"),
        };
        format!(
            "The conversation was condensed from about {tokens} to {} tokens: of {messages} messages {left} left.",
            self.tokens()
        )
    }

    /// Puts a summary in the place of a part of the conversation, because the operator wants it.
    /// Without a summary everything stays.
    pub(crate) async fn condense_part(&mut self, part: Part) -> Result<String, Outcome> {
        let before = self.tokens();
        let system = self.conversation.system_len();
        let messages = self.conversation.messages().to_vec();
        let (Part::From(at) | Part::UpTo(at)) = part;
        let (head, tail) = messages.split_at(at.clamp(system, messages.len()));
        let (condensed, kept) = match part {
            Part::From(_) => (tail, head),
            Part::UpTo(_) => (head.get(system..).unwrap_or_default(), tail),
        };
        if condensed.is_empty() {
            return Ok("There is nothing to condense.".to_owned());
        }
        let reason = CompactionReason::Asked;
        self.listener
            .hear(Event::CompactionStarted { reason })
            .await;
        let event = HookEvent::PreCompact { reason };
        tell(&self.agent.company, &event, self.cancel).await;
        let (settings, provider) = (&self.agent.settings, &*self.agent.provider);
        let window = self.window();
        let asked =
            compaction::summarize(condensed, None, window, settings, provider, self.cancel).await;
        self.charge_summary(asked.spent).await;
        let text = match asked.text {
            Ok(text) => text,
            Err(error) => {
                self.tell_compacted(before).await;
                return Err(Outcome::from(error));
            }
        };
        let note = compaction::stand_in(&text, &self.agent, kept, window);
        let messages = match part {
            Part::From(_) => head.iter().cloned().chain([note]).collect(),
            Part::UpTo(_) => {
                let recent = tail.iter().map(compaction::without_thinking);
                let system = head.iter().take(system).cloned();
                system.chain([note]).chain(recent).collect()
            }
        };
        let earlier = self.said();
        self.replace_history(messages).await;
        self.tell_compacted(before).await;
        Ok(self.condensed_from(before, earlier))
    }

    /// A summary of everything so far, which stays as it is.
    pub(crate) async fn recap(&mut self) -> Result<String, Outcome> {
        let turns = &self.conversation.messages()[self.conversation.system_len()..];
        if turns.is_empty() {
            return Ok("There is nothing to summarize.".to_owned());
        }
        let settings = &self.agent.settings;
        let provider = &*self.agent.provider;
        let asked =
            compaction::summarize(turns, None, self.window(), settings, provider, self.cancel)
                .await;
        self.charge_summary(asked.spent).await;
        asked.text.map_err(Outcome::from)
    }

    async fn charge_summary(&mut self, spent: Vec<Spent>) {
        for (origin, usage) in spent {
            self.enter(Purpose::Summarization, &origin, usage).await;
        }
    }

    /// Shortens history where its size, or the provider, asks for it.
    pub(crate) async fn make_room(&mut self, reason: CompactionReason) -> Result<(), Outcome> {
        let window = self.window();
        let before = self.tokens();
        if reason == CompactionReason::Threshold {
            if self.is_micro_due(before, window) {
                self.replace_outdated().await;
            }
            if !self.is_compaction_due(window) {
                return Ok(());
            }
        }
        self.listener
            .hear(Event::CompactionStarted { reason })
            .await;
        let event = HookEvent::PreCompact { reason };
        tell(&self.agent.company, &event, self.cancel).await;
        let extent = match reason {
            CompactionReason::Threshold | CompactionReason::TooLong => Extent::Old,
            CompactionReason::Asked => Extent::Everything {
                hint: self.room.hint.take(),
            },
        };
        let compacted = compaction::compact(
            self.conversation,
            window,
            self.overhead(),
            &self.agent,
            &extent,
            self.cancel,
        )
        .await;
        let compacted = match compacted {
            Ok(compacted) => compacted,
            Err(stuck) => {
                self.tell_compacted(before).await;
                return Err(stuck.into());
            }
        };
        self.charge_summary(compacted.spent).await;
        if let Some(error) = compacted.summary_failed {
            // Who asks for a summary wants one: without it everything stays.
            if reason == CompactionReason::Asked {
                self.tell_compacted(before).await;
                return Err(Outcome::from(error));
            }
            self.listener
                .hear(Event::Notice {
                    subtype: "summary_failed".into(),
                    message: format!("older messages were dropped without a summary: {error}"),
                })
                .await;
        }
        self.replace_history(compacted.messages).await;
        self.room.micro_at = self.tokens();
        self.room.floor = Floor::Unmeasured;
        self.tell_compacted(before).await;
        Ok(())
    }

    /// Whether outdated results are worth replacing now: the cache is lost by it, so seldom, and
    /// at every turn where there is none to lose.
    fn is_micro_due(&self, tokens: u64, window: u64) -> bool {
        let settings = &self.agent.settings;
        let compaction = &settings.compaction;
        let threshold = compaction.threshold.unwrap_or(DEFAULT_THRESHOLD);
        let is_large = tokens > share(window, threshold * MICRO_PART)
            && tokens > self.room.micro_at + share(window, STEP);
        compaction.micro == Micro::On && (is_large || settings.cache == CachePolicy::Off)
    }

    /// Whether the conversation fills the part of the window that it may, and something can be
    /// done about it. What compaction could not free the last time it cannot free now, so it
    /// waits until there is more.
    fn is_compaction_due(&mut self, window: u64) -> bool {
        let settings = &self.agent.settings;
        let Some(threshold) = settings.compaction.threshold else {
            return false;
        };
        let tokens = self.tokens();
        if let Floor::Unmeasured = self.room.floor {
            self.room.floor = Floor::At(tokens);
        }
        let least = match self.room.floor {
            Floor::None | Floor::Unmeasured => 0,
            Floor::At(floor) => floor + share(window, threshold * STEP),
        };
        tokens >= share(window, threshold).max(least)
            && compaction::can_help(self.conversation, window, self.overhead(), settings)
    }

    async fn tell_compacted(&self, before_tokens: u64) {
        let after_tokens = self.tokens();
        self.listener
            .hear(Event::CompactionFinished {
                before_tokens,
                after_tokens,
            })
            .await;
        let event = HookEvent::PostCompact {
            before_tokens,
            after_tokens,
        };
        tell(&self.agent.company, &event, self.cancel).await;
    }

    async fn replace_history(&mut self, messages: Vec<Arc<Message>>) {
        self.conversation.replace(messages.clone());
        self.listener
            .hear(Event::HistoryReplaced { messages })
            .await;
    }

    async fn replace_outdated(&mut self) {
        let model = traits(self.agent.provider.id(), &self.agent.settings.model);
        let thinking = if model.bound_thinking {
            BoundThinking::Strip
        } else {
            BoundThinking::Keep
        };
        let messages = self.conversation.messages();
        if let Some(replaced) =
            compaction::supersede(messages, &self.agent.tools.current(), thinking)
        {
            self.replace_history(replaced).await;
            self.room.micro_at = self.tokens();
        }
    }

    /// How much the model can take.
    fn window(&self) -> u64 {
        let settings = &self.agent.settings;
        self.room
            .learned_window
            .or_else(|| {
                self.agent
                    .provider
                    .capabilities(&settings.model)
                    .context_window
            })
            .unwrap_or(settings.compaction.assumed_window)
    }

    /// What the next request holds, as far as is known.
    pub(crate) fn tokens(&self) -> u64 {
        self.conversation.tokens(self.overhead())
    }

    /// What goes along with every request beside the messages.
    fn overhead(&self) -> u64 {
        self.agent.tool_tokens()
    }
}
