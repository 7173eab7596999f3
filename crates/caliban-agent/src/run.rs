//! The state of one run and the phases of a turn.

use std::sync::Arc;
use std::time::{Duration, Instant};

use caliban_model::{
    Block, CachePolicy, CancellationToken, Error, ErrorKind, Message, Metadata, Origin,
    OutputFormat, Price, Request, Role, Usage, traits,
};
use rust_decimal::Decimal;
use serde_json::Value;

use crate::agent::Agent;
use crate::compaction::{self, BoundThinking, share};
use crate::conversation::Conversation;
use crate::dispatch::{Dispatch, Finished, tell};
use crate::event::{CompactionReason, Denial, Event, ModelTotals, RunTotals};
use crate::hooks::HookEvent;
use crate::listener::Listener;
use crate::outcome::Outcome;
use crate::repetition::Repetition;
use crate::reply::{self, Reply};
use crate::settings::{DEFAULT_THRESHOLD, Micro};
use crate::tool::{Details, Ending};

/// Part of the compaction threshold at which outdated results are replaced.
const MICRO_PART: f64 = 0.6;
/// Part of the window, or of the threshold, by which history must grow before it is changed again.
const STEP: f64 = 0.1;
/// How often in a row the provider may find a freshly compacted conversation too long.
const MAX_TOO_LONG: u32 = 2;

pub(crate) struct Run<'a> {
    pub(crate) agent: &'a Agent,
    pub(crate) conversation: &'a mut Conversation,
    pub(crate) listener: &'a dyn Listener,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) continuations: u32,
    pub(crate) corrections: u32,
    pub(crate) structured: Option<Value>,
    turns: u32,
    tool_calls: u32,
    denials: Vec<(Arc<str>, Arc<str>, Denial)>,
    last_message: Option<Arc<Message>>,
    last_text: Option<String>,
    repetition: Repetition,
    /// The window the provider named when it refused a prompt.
    learned_window: Option<u64>,
    too_long: u32,
    /// Size of history when outdated results were last replaced.
    micro_at: u64,
    floor: Floor,
    started: Instant,
    model_time: Duration,
}

/// What is left of the conversation when it has been compacted.
#[derive(Debug, Clone, Copy)]
enum Floor {
    /// It has not been.
    None,
    /// No answer has told yet.
    Unmeasured,
    At(u64),
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        agent: &'a Agent,
        conversation: &'a mut Conversation,
        listener: &'a dyn Listener,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self {
            agent,
            conversation,
            listener,
            cancel,
            continuations: 0,
            corrections: 0,
            structured: None,
            turns: 0,
            tool_calls: 0,
            denials: Vec::new(),
            last_message: None,
            last_text: None,
            repetition: Repetition::default(),
            learned_window: None,
            too_long: 0,
            micro_at: 0,
            floor: Floor::None,
            started: Instant::now(),
            model_time: Duration::ZERO,
        }
    }

    /// What must hold before another turn begins.
    pub(crate) fn check_limits(&self) -> Result<(), Outcome> {
        if self.cancel.is_cancelled() {
            return Err(Outcome::Cancelled);
        }
        if !self.has_turns() {
            let limit = self.agent.settings.limits.max_turns;
            return Err(Outcome::MaxTurns { limit });
        }
        self.check_budget()?;
        self.check_next_cost()
    }

    /// Whether the model may be asked again.
    pub(crate) fn has_turns(&self) -> bool {
        self.turns < self.agent.settings.limits.max_turns
    }

    pub(crate) fn check_budget(&self) -> Result<(), Outcome> {
        let Some(budget) = self.agent.settings.limits.budget else {
            return Ok(());
        };
        let spent = self.agent.ledger().total();
        if spent > budget {
            return Err(Outcome::BudgetExceeded {
                message: format!(
                    "spent ${spent} of a budget of ${budget}; raise `--max-budget-usd` to go on"
                ),
            });
        }
        Ok(())
    }

    /// A turn whose input alone would overspend is not sent.
    fn check_next_cost(&self) -> Result<(), Outcome> {
        let settings = &self.agent.settings;
        let Some(budget) = settings.limits.budget else {
            return Ok(());
        };
        let ledger = self.agent.ledger();
        let Some(rate) = ledger
            .card()
            .lookup(self.agent.provider.id(), &settings.model)
        else {
            return Ok(());
        };
        // What the provider has seen before is likely cached; it is never dearer than that.
        let cached = self.conversation.seen_tokens();
        let next = rate.cost(&Usage {
            input: self.tokens().saturating_sub(cached),
            cache_read: cached,
            ..Usage::default()
        });
        let spent = ledger.total();
        if spent + next > budget {
            return Err(Outcome::BudgetExceeded {
                message: format!(
                    "spent ${spent} of a budget of ${budget}; the next turn's input alone would cost about ${}; raise `--max-budget-usd` to go on",
                    next.round_dp(6)
                ),
            });
        }
        Ok(())
    }

    /// Asks for the next answer. Nothing means that the prompt was too long, and now is shorter.
    pub(crate) async fn ask_model(&mut self) -> Result<Option<Reply>, Outcome> {
        let turn = self.turns + 1;
        self.listener.hear(Event::TurnStarted { turn }).await;
        let request = self.request()?;
        let asked = Instant::now();
        let call = reply::ask(&*self.agent.provider, request, self.cancel, self.listener).await;
        self.model_time += asked.elapsed();
        for usage in call.wasted {
            self.enter(&self.origin(), usage).await;
        }
        match call.result {
            Ok(reply) => {
                self.turns = turn;
                Ok(Some(reply))
            }
            Err(broken) => {
                self.note_text(broken.text);
                for usage in broken.spent {
                    self.enter(&self.origin(), usage).await;
                }
                self.recover(broken.error).await.map(|()| None)
            }
        }
    }

    /// A prompt that is too long is shortened; any other failure ends the run.
    async fn recover(&mut self, error: Error) -> Result<(), Outcome> {
        let ErrorKind::TooLong { limit } = error.kind else {
            return Err(error.into());
        };
        self.learned_window = limit.or(self.learned_window);
        self.shorten(error.to_string()).await
    }

    /// Makes the conversation shorter because the provider could not take it; if that cannot be
    /// done, `complaint` is the end of the run.
    pub(crate) async fn shorten(&mut self, complaint: String) -> Result<(), Outcome> {
        self.too_long += 1;
        let full = Outcome::ContextFull { message: complaint };
        let settings = &self.agent.settings.compaction;
        if settings.threshold.is_none() || self.too_long > MAX_TOO_LONG {
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

    fn request(&self) -> Result<Request, Outcome> {
        let settings = &self.agent.settings;
        let messages = self.conversation.shared();
        let mut request = Request::new(Arc::clone(&settings.model), messages).map_err(|error| {
            Outcome::Internal {
                message: format!("the conversation cannot be sent: {error}"),
            }
        })?;
        request.tools = self.agent.tools.current().specs();
        request.max_tokens = settings.max_tokens;
        request.temperature = settings.temperature;
        request.reasoning = settings.reasoning;
        request.cache = settings.cache;
        request.min_cached_turn = settings.min_cached_turn;
        if let Some(answer) = &settings.answer {
            request.output = OutputFormat::JsonSchema {
                name: "answer".to_owned(),
                schema: Arc::clone(&answer.schema),
            };
        }
        request.metadata = Metadata {
            purpose: settings.purpose,
            session: Some(self.agent.session_id.to_string()),
        };
        Ok(request)
    }

    /// Enters an answer into the books, whatever becomes of it.
    pub(crate) async fn charge(&self, reply: &Reply) -> Option<Decimal> {
        let origin = reply.message.origin.as_ref()?;
        self.enter(origin, reply.usage).await
    }

    /// Remembers what the model said last, also where it does not become part of the conversation.
    pub(crate) fn note_text(&mut self, text: String) {
        if !text.trim().is_empty() {
            self.last_text = Some(text);
        }
    }

    /// Makes an answer part of the conversation.
    pub(crate) async fn accept(&mut self, reply: &Reply, cost: Option<Decimal>) {
        self.too_long = 0;
        if !reply.message.content.is_empty() {
            self.conversation.push(Arc::clone(&reply.message));
            self.conversation.measured(&reply.usage);
        }
        self.last_message = Some(Arc::clone(&reply.message));
        self.listener
            .hear(Event::AssistantMessage {
                message: Arc::clone(&reply.message),
                usage: reply.usage,
                cost,
            })
            .await;
    }

    /// Who is asked unless something stands in for it.
    fn origin(&self) -> Origin {
        let agent = self.agent;
        Origin::new(agent.provider.id(), Arc::clone(&agent.settings.model))
    }

    /// Enters a call into the books and says so once if its price is not known.
    async fn enter(&self, origin: &Origin, usage: Usage) -> Option<Decimal> {
        let Origin { provider, model } = origin;
        let price = self.agent.ledger().record(provider, model, usage);
        match price {
            Price::Known(cost) => Some(cost),
            Price::UnknownAgain => None,
            Price::UnknownFirst => {
                let budget = match self.agent.settings.limits.budget {
                    Some(_) => "; the budget cannot be kept",
                    None => "",
                };
                self.listener
                    .hear(Event::Notice {
                        subtype: "unknown_price",
                        message: format!(
                            "the price of {provider}/{model} is not known: its calls count as $0{budget}"
                        ),
                    })
                    .await;
                None
            }
        }
    }

    /// Runs the calls of the last message and gives the model their results.
    pub(crate) async fn run_tools(&mut self) -> Result<(), Outcome> {
        let Some(message) = self.last_message.clone() else {
            return Ok(());
        };
        let agent = self.agent;
        let finished = Dispatch {
            tools: &agent.tools,
            hooks: &*agent.hooks,
            operator: &*agent.operator,
            turn: self.turns,
            workspace: &agent.workspace,
            session_id: &agent.session_id,
            parallel: agent.settings.parallel_tools,
            capping: &agent.settings.capping,
            listener: self.listener,
            cancel: self.cancel,
        }
        .run(&message)
        .await;
        self.note_calls(&finished);
        let mut results: Vec<Block> = finished.iter().map(Finished::result).collect();
        let calls: Vec<Arc<str>> = finished
            .iter()
            .map(|end| Arc::clone(&end.call.id))
            .collect();
        results.extend(agent.hooks.additions(&calls).map(Block::text));
        let results = Arc::new(Message::new(Role::User, results));
        self.conversation.push(Arc::clone(&results));
        self.listener
            .hear(Event::ToolResults { message: results })
            .await;
        if self.cancel.is_cancelled() {
            self.end_turn().await;
            return Err(Outcome::Cancelled);
        }
        if let Some(ending) = finished.iter().find_map(|end| end.output.ending.clone()) {
            self.end_turn().await;
            return Err(self.ended_by(ending));
        }
        let times = self.repetition.note(
            finished
                .iter()
                .map(|end| (&*end.call.name, &end.call.input, &end.output)),
        );
        match finished.first() {
            Some(first) if times >= agent.settings.limits.max_repetitions => {
                self.end_turn().await;
                Err(Outcome::Looping {
                    tool: first.call.name.to_string(),
                    times,
                })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// What a call that ends the run makes of it.
    fn ended_by(&mut self, ending: Ending) -> Outcome {
        match ending {
            Ending::Answer(value) => {
                let text = value.to_string();
                self.structured = Some(value);
                Outcome::Success { text }
            }
            Ending::GiveUp(message) => Outcome::SchemaMismatch { message },
        }
    }

    fn note_calls(&mut self, finished: &[Finished]) {
        for end in finished {
            self.tool_calls += 1;
            if let Some(denial) = &end.denial {
                let (id, name) = (Arc::clone(&end.call.id), Arc::clone(&end.call.name));
                self.denials.push((id, name, denial.clone()));
            }
            if let Some(Details::Delegated { denials }) = &end.output.details {
                self.denials.extend(denials.iter().cloned());
            }
        }
    }

    /// Tells of the whole turn once everything in it is done.
    pub(crate) async fn end_turn(&mut self) {
        if let Some(message) = self.last_message.take() {
            self.listener.hear(Event::TurnEnded { message }).await;
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
        tell(&*self.agent.hooks, &event, self.cancel).await;
        let compacted = compaction::compact(
            self.conversation,
            window,
            self.overhead(),
            &self.agent.settings,
            &*self.agent.provider,
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
        let summarizer = Origin::new(
            self.agent.provider.id(),
            Arc::clone(self.agent.settings.summary_model()),
        );
        for usage in compacted.spent {
            self.enter(&summarizer, usage).await;
        }
        if let Some(error) = compacted.summary_failed {
            self.listener
                .hear(Event::Notice {
                    subtype: "summary_failed",
                    message: format!("older messages were dropped without a summary: {error}"),
                })
                .await;
        }
        self.replace_history(compacted.messages).await;
        self.micro_at = self.tokens();
        self.floor = Floor::Unmeasured;
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
            && tokens > self.micro_at + share(window, STEP);
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
        if let Floor::Unmeasured = self.floor {
            self.floor = Floor::At(tokens);
        }
        let least = match self.floor {
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
        tell(&*self.agent.hooks, &event, self.cancel).await;
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
            self.micro_at = self.tokens();
        }
    }

    fn window(&self) -> u64 {
        let settings = &self.agent.settings;
        self.learned_window
            .or_else(|| {
                self.agent
                    .provider
                    .capabilities(&settings.model)
                    .context_window
            })
            .unwrap_or(settings.compaction.assumed_window)
    }

    fn tokens(&self) -> u64 {
        self.conversation.tokens(self.overhead())
    }

    /// What goes along with every request beside the messages.
    fn overhead(&self) -> u64 {
        self.agent.tools.current().spec_bytes().div_ceil(4)
    }

    pub(crate) fn totals(&self) -> RunTotals {
        let ledger = self.agent.ledger();
        RunTotals {
            turns: self.turns,
            usage: ledger.usage(),
            cost: ledger.total(),
            tool_calls: self.tool_calls,
            denials: self.denials.clone(),
            last_text: self.last_text.clone(),
            structured: self.structured.clone(),
            duration: self.started.elapsed(),
            model_time: self.model_time,
            models: ledger
                .entries()
                .map(|(provider, model, entry)| ModelTotals {
                    provider: provider.to_owned(),
                    model: model.to_owned(),
                    usage: entry.usage,
                    cost: entry.cost,
                })
                .collect(),
        }
    }
}
