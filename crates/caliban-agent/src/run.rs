//! The state of one run and the phases of a turn.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use caliban_model::{
    Block, CancellationToken, Error, ErrorKind, Message, Metadata, Origin, OutputFormat, Price,
    Purpose, Request, Role, Usage,
};
use rust_decimal::Decimal;
use serde_json::Value;

use crate::agent::Agent;
use crate::conversation::Conversation;
use crate::dispatch::{Dispatch, Finished};
use crate::event::{Denial, Event, ModelTotals, RunTotals};
use crate::listener::Listener;
use crate::outcome::Outcome;
use crate::repetition::Repetition;
use crate::reply::{self, Reply};
use crate::tool::{Details, Ending};
use crate::window::Room;

/// So often in a row the same turn is worth a word.
const TOLD_REPETITIONS: u32 = 8;

pub(crate) struct Run<'a> {
    /// As the operator has tuned it by now.
    pub(crate) agent: Cow<'a, Agent>,
    pub(crate) tuned: u64,
    pub(crate) conversation: &'a mut Conversation,
    pub(crate) listener: &'a dyn Listener,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) continuations: u32,
    pub(crate) corrections: u32,
    pub(crate) structured: Option<Value>,
    pub(crate) turns: u32,
    tool_calls: u32,
    denials: Vec<(Arc<str>, Arc<str>, Denial)>,
    last_message: Option<Arc<Message>>,
    last_text: Option<String>,
    repetition: Repetition,
    pub(crate) room: Room,
    /// What had been said of an answer when it was cut off.
    pub(crate) cut: Option<String>,
    /// Whether there is anything to note about an interrupt.
    pub(crate) has_begun: bool,
    started: Instant,
    model_time: Duration,
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        agent: &'a Agent,
        conversation: &'a mut Conversation,
        listener: &'a dyn Listener,
        cancel: &'a CancellationToken,
    ) -> Self {
        Self {
            tuned: agent.dial.as_ref().map_or(0, |dial| dial.read().turned),
            agent: Cow::Borrowed(agent),
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
            room: Room::default(),
            cut: None,
            has_begun: false,
            started: Instant::now(),
            model_time: Duration::ZERO,
        }
    }

    /// Asks for the next answer. Nothing means that the prompt was too long, and now is shorter.
    pub(crate) async fn ask_model(&mut self) -> Result<Option<Reply>, Outcome> {
        let turn = self.turns + 1;
        self.listener.hear(Event::TurnStarted { turn }).await;
        let request = self.request()?;
        let purpose = self.agent.settings.purpose;
        let asked = Instant::now();
        let call = reply::ask(&*self.agent.provider, request, self.cancel, self.listener).await;
        self.model_time += asked.elapsed();
        for (origin, usage) in call.wasted {
            self.enter(purpose, &origin, usage).await;
        }
        match call.result {
            Ok(reply) => {
                self.turns = turn;
                Ok(Some(reply))
            }
            Err(broken) => {
                if broken.error.kind == ErrorKind::Cancelled {
                    self.cut = Some(broken.text.clone());
                }
                self.note_text(broken.text);
                if let Some((origin, usage)) = broken.spent {
                    self.enter(purpose, &origin, usage).await;
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
        self.room.learn(limit);
        self.shorten(error.to_string()).await
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
        request.answer_limit = settings.answer_limit;
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
        let purpose = self.agent.settings.purpose;
        self.enter(purpose, &reply.origin, reply.usage).await
    }

    /// Remembers what the model said last, also where it does not become part of the conversation.
    pub(crate) fn note_text(&mut self, text: String) {
        if !text.trim().is_empty() {
            self.last_text = Some(text);
        }
    }

    /// Makes an answer part of the conversation.
    pub(crate) async fn accept(&mut self, reply: &Reply, cost: Option<Decimal>) {
        self.room.fits();
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
    pub(crate) fn origin(&self) -> Origin {
        let agent = &self.agent;
        Origin::new(agent.provider.id(), Arc::clone(&agent.settings.model))
    }

    /// Enters a call into the books and says so once if its price is not known.
    pub(crate) async fn enter(
        &self,
        purpose: Purpose,
        origin: &Origin,
        usage: Usage,
    ) -> Option<Decimal> {
        let Origin { provider, model } = origin;
        let price = self.agent.ledger().record(purpose, provider, model, usage);
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
                        subtype: "unknown_price".into(),
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
        let agent = &self.agent;
        let finished = Dispatch {
            tools: &agent.tools,
            company: &agent.company,
            agent: agent.works_for.as_ref(),
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
        results.extend(self.agent.company.remarks(&calls).map(Block::text));
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
            Some(first) => self.check_repetition(&first.call.name, times).await,
            None => Ok(()),
        }
    }

    /// What is made of a turn that has now happened so often in a row.
    async fn check_repetition(&mut self, tool: &str, times: u32) -> Result<(), Outcome> {
        let most = self.agent.settings.limits.max_repetitions;
        if most.is_some_and(|most| times >= most) {
            self.end_turn().await;
            return Err(Outcome::Looping {
                tool: tool.to_owned(),
                times,
            });
        }
        if times == TOLD_REPETITIONS {
            let message = format!(
                "the model made the same call to {tool} {times} times in a row, with the same result"
            );
            let subtype = "repetition".into();
            self.listener.hear(Event::Notice { subtype, message }).await;
        }
        Ok(())
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
