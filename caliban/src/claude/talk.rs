//! A session and its client: lines become commands, events become frames.

use caliban_agent::Event;
use caliban_model::CancellationToken;
use caliban_protocol::claude::{
    Failed, InitFacts, Input, Turn, UserInput, VERSION, Wording, failure, plugin_rows, theirs,
};
use caliban_session::{
    Attach, Command, Delivery, EventBatch, Events, Facts, Place, Prompt, PromptId, Refused,
    SessionHandle, Shutdown, What,
};
use uuid::Uuid;

use super::consents::Consents;
use super::inbox::{Inbox, Line, tell_unasked};
use super::requests::{Next, RequestHandler, TakenBack};
use super::sent_prompts::SentPrompts;
use crate::console::note;
use crate::exit::Failure;
use crate::face::warn;
use crate::print::Attends;

/// What is told between two turns and waits for the next; more is not told.
const LATER: usize = 256;

/// Everything between the client and the session.
pub(super) struct Talk<'a> {
    pub(super) requests: &'a RequestHandler,
    pub(super) handle: SessionHandle,
    pub(super) events: Events,
    pub(super) consents: Consents,
    pub(super) inbox: &'a mut Inbox,
    /// Where a tool of a server is asked, nobody else is.
    pub(super) attends: Attends,
    pub(super) api_key_source: &'static str,
    pub(super) cancel: &'a CancellationToken,
    pub(super) prompts: SentPrompts,
    /// Whether a turn is going on, and what was told between two.
    pub(super) is_working: bool,
    pub(super) later: Vec<Event>,
    pub(super) last: Failed,
    pub(super) failure: Option<Failure>,
}

/// Whether the session was told to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Leaving {
    No,
    /// When everything is done.
    WhenIdle,
    Now,
}

impl Talk<'_> {
    /// Works on everything the client wants; tells whether the last turn failed.
    pub(super) async fn run(mut self) -> Result<Failed, Failure> {
        if self.attends == Attends::Yes {
            self.events.attend();
        }
        for prompt in self.inbox.early() {
            self.queue(prompt).await;
        }
        let mut leaving = Leaving::No;
        loop {
            if !self.inbox.has_more() && leaving == Leaving::No {
                leaving = Leaving::WhenIdle;
                self.leave(Shutdown::WhenIdle).await;
            }
            let wanted = tokio::select! {
                heard = self.events.next() => match heard {
                    None => break,
                    Some(heard) => {
                        self.hear(heard).await;
                        Leaving::No
                    }
                },
                line = self.inbox.line(), if leaving == Leaving::No => self.take(line).await,
                () = self.cancel.cancelled(), if leaving != Leaving::Now => Leaving::Now,
            };
            match wanted {
                Leaving::No => {}
                Leaving::WhenIdle => {
                    leaving = Leaving::WhenIdle;
                    self.leave(Shutdown::WhenIdle).await;
                }
                Leaving::Now => {
                    leaving = Leaving::Now;
                    self.leave(Shutdown::Now).await;
                }
            }
        }
        self.requests.close();
        self.requests.set_servers.shutdown().await;
        match self.failure {
            Some(failure) => Err(failure),
            // The user stopped the program; what it did until then is what was wanted.
            None if self.cancel.is_cancelled() => Ok(Failed::No),
            None => Ok(self.last),
        }
    }

    async fn leave(&self, when: Shutdown) {
        // It may have ended by itself.
        let _ = self.handle.send(Command::Shutdown { when }).await;
    }

    /// A line of the client's, or the end of them.
    async fn take(&mut self, line: Option<Line>) -> Leaving {
        match line {
            None => {
                self.requests.host.channel.close();
                self.consents.desert().await;
                Leaving::WhenIdle
            }
            Some(Err(failure)) => {
                self.failure = Some(failure);
                Leaving::Now
            }
            Some(Ok(Input::User(prompt))) => {
                self.queue(*prompt).await;
                Leaving::No
            }
            Some(Ok(Input::Control { id, request })) => {
                match self
                    .requests
                    .grant(&id, *request, self.prompts.queued())
                    .await
                {
                    Next::GoOn | Next::Introduce => Leaving::No,
                    Next::End => Leaving::Now,
                }
            }
            Some(Ok(Input::Answer { id, result, frame })) => {
                self.inbox.echo(frame, self.requests);
                if !self.consents.answer(&id, &result).await {
                    self.requests.host.channel.answer(&id, result);
                }
                Leaving::No
            }
            Some(Ok(Input::Choice { question, choice })) => {
                if !self.consents.choose(&question, choice).await {
                    tell_unasked(&question);
                }
                Leaving::No
            }
            Some(Ok(Input::Odd { reason })) => {
                note(&format!("warning: {reason}"));
                Leaving::No
            }
            // Requests of the client are answered at once, so there is nothing to take back.
            Some(Ok(Input::Cancelled { .. })) => Leaving::No,
        }
    }

    async fn queue(&mut self, mut input: UserInput) {
        let new = || Uuid::new_v4().to_string();
        // The client hears it with the prompt, and may go back to it.
        let id = PromptId::from(input.uuid.get_or_insert_with(new).as_str());
        if let Some(reason) = &input.unfit {
            let reason = reason.clone();
            return self.refuse(&id, &reason);
        }
        let prompt = Prompt {
            id: id.clone(),
            message: input.message.clone(),
            attach: match input.wording {
                Wording::Composed => Attach::Nothing,
                Wording::Typed => Attach::Named,
            },
        };
        self.prompts.add(id, input);
        let delivery = Delivery::Queue;
        let command = Command::Prompt { prompt, delivery };
        self.requests.host.send(command).await;
    }

    async fn hear(&mut self, heard: EventBatch) {
        let events = match heard {
            EventBatch::Events(events) => events,
            // The first hearer misses nothing.
            EventBatch::Missed(_) => return,
        };
        for event in events {
            self.show(&event.what).await;
            self.requests.host.channel.order().shown(event.seq);
        }
    }

    async fn show(&mut self, what: &What) {
        let host = &self.requests.host;
        match what {
            What::Began { prompt, .. } if self.requests.files.is_ours(prompt) => {}
            What::Ended {
                prompt, outcome, ..
            } if self.requests.files.is_ours(prompt) => {
                let answer = self.requests.files.ended(prompt, outcome);
                if let Some(frame) = answer {
                    host.wire.frame(frame);
                }
            }
            What::Began { prompt, facts } => {
                let init = self.init(facts);
                if let Some(input) = self.prompts.begin(prompt) {
                    let prompt = input.clone();
                    host.begin(Turn { init, prompt });
                }
                self.is_working = true;
                self.later.drain(..).for_each(|event| host.show(&event));
            }
            What::Run(event) if self.is_working => host.show(event),
            // It belongs to no turn, so it waits for the next.
            What::Run(event) => {
                if self.later.len() < LATER {
                    self.later.push(event.clone());
                }
            }
            What::Asked(asked) if self.attends == Attends::Yes => self.consents.ask(asked).await,
            What::Answered(answered) => self.consents.close(&answered.question),
            What::Ended {
                prompt,
                outcome,
                totals,
            } => {
                if self.prompts.queued().contains(prompt) {
                    // It never began, and says so by itself.
                    self.refuse(prompt, &outcome.message().unwrap_or_default());
                    return;
                }
                self.is_working = false;
                if let Some(result) = host.finish(outcome.clone(), totals.clone()) {
                    self.last = Failed::of(&result);
                    self.prompts.keep(prompt, result);
                }
                self.prompts.forget(prompt);
            }
            What::Interrupted { waiting } => self.requests.interrupted(waiting),
            What::TakenBack { prompt } => {
                self.requests.taken_back(prompt, TakenBack::Yes);
                self.prompts.forget(prompt);
            }
            What::Refused(Refused {
                what: Place::TakeBack(prompt),
                ..
            }) => self.requests.taken_back(prompt, TakenBack::No),
            What::Repeated { prompt, .. } => {
                self.prompts.forget(prompt);
                if let Some(result) = self.prompts.result(prompt) {
                    host.wire.frame(result.clone());
                }
            }
            What::Refused(Refused {
                what: Place::Prompt(prompt),
                reason,
            }) => self.refuse(prompt, reason),
            What::Refused(Refused {
                what: Place::Rule | Place::Mode | Place::Model,
                reason,
            }) => note(&format!("warning: {reason}")),
            What::Closing => self.later.drain(..).for_each(|event| warn(&event)),
            What::Closed {
                trouble: Some(trouble),
                ..
            } => note(&format!("warning: the session was not saved: {trouble}")),
            What::Opened(_)
            | What::Asked(_)
            | What::Queued { .. }
            | What::Refused(_)
            | What::ModeChanged { .. }
            | What::ModelChanged { .. }
            | What::ReasoningChanged { .. }
            | What::RuleChanged(_)
            | What::Idle
            | What::Closed { trouble: None, .. } => {}
        }
    }

    /// The result of a prompt that was not begun.
    fn refuse(&mut self, prompt: &PromptId, message: &str) {
        let host = &self.requests.host;
        let frame = failure(message, &host.facts.session_id, &Uuid::new_v4().to_string());
        host.wire.frame(frame);
        self.last = Failed::Yes;
        self.prompts.forget(prompt);
    }

    fn init(&self, facts: &Facts) -> InitFacts {
        let known = self.requests.known().clone();
        let tools = facts.tools.iter();
        InitFacts {
            cwd: facts.cwd.clone(),
            tools: tools.map(|name| theirs(name).to_owned()).collect(),
            mcp_servers: self.requests.server_states(),
            model: facts.model.clone(),
            permission_mode: self.requests.host.mode().as_str().to_owned(),
            slash_commands: known.commands.into_iter().map(|(name, _)| name).collect(),
            api_key_source: self.api_key_source.to_owned(),
            claude_code_version: VERSION,
            output_style: known.output_style,
            agents: known.agents.into_keys().collect(),
            skills: facts.skills.clone(),
            plugins: plugin_rows(facts),
            memory_paths: serde_json::Map::new(),
            fast_mode_state: "off",
        }
    }
}
