//! The connection with an editor: what it asks for goes to the sessions, and what sessions are
//! asked for is begun.

use std::collections::HashMap;
use std::time::Duration;

use caliban_harness::{Process, RunOptions, configure, forget_key, provider};
use caliban_model::CancellationToken;
use caliban_protocol::acp::v1::{
    AuthenticateRequest, DeleteSessionRequest, DeleteSessionResponse, Error, LogoutResponse,
    PromptRequest, RequestId, SessionConfigOptionValue, SessionId, SetSessionConfigOptionRequest,
};
use caliban_protocol::acp::{Call, Incoming, Unusable, answered, content, read};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, timeout_at};

use crate::serve::lines::Line as Input;

use super::capabilities::{Client, introduction};
use super::listing;
use super::opening::{self, Begin, Wanted, known, missing};
use super::outbox::Outbox;
use super::requests::Requests;
use super::session::{Line, Live, Wish};

/// Sessions that may be open at the same time.
const MAX_SESSIONS: usize = 64;
/// Wishes that wait for a session; while it begins, more wait in the input.
const WISHES: usize = 64;
/// How long sessions may take to be saved at the end; with what is written afterwards less than
/// two seconds.
const FAREWELL: Duration = Duration::from_millis(1500);

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    InputClosed,
    OutputClosed,
    /// The program was told to end.
    Cancelled,
}

pub(super) struct Connection {
    options: RunOptions,
    process: Process,
    outbox: Outbox,
    requests: Requests,
    /// Nothing until it has introduced itself.
    client: Option<Client>,
    sessions: HashMap<SessionId, Entry>,
    /// Requests for a session that has not begun yet.
    beginning: HashMap<RequestId, CancellationToken>,
    ended: (mpsc::UnboundedSender<Ended>, mpsc::UnboundedReceiver<Ended>),
}

/// A session that is open, or begins.
struct Entry {
    inbox: mpsc::Sender<Wish>,
    task: JoinHandle<()>,
}

/// Something is over. There is one for each session that was asked for.
#[derive(Debug)]
enum Ended {
    /// The request has its answer.
    Beginning(RequestId),
    Session(SessionId),
}

impl Connection {
    pub(super) fn new(options: RunOptions, process: Process, outbox: Outbox) -> Self {
        Self {
            options,
            process,
            outbox,
            requests: Requests::default(),
            client: None,
            sessions: HashMap::new(),
            beginning: HashMap::new(),
            ended: mpsc::unbounded_channel(),
        }
    }

    /// Serves until either side is gone.
    pub(super) async fn serve(
        mut self,
        mut input: mpsc::Receiver<Input>,
        cancel: &CancellationToken,
    ) -> End {
        let end = loop {
            tokio::select! {
                line = next(&mut input, &self.outbox) => match line {
                    Some(line) => self.heed(line).await,
                    None => break End::InputClosed,
                },
                Some(ended) = self.ended.1.recv() => self.forget(&ended),
                () = self.outbox.broken() => break End::OutputClosed,
                () = cancel.cancelled() => break End::Cancelled,
            }
        };
        self.farewell().await;
        end
    }

    /// Ends all sessions, and waits for them as long as may be.
    async fn farewell(self) {
        let until = Instant::now() + FAREWELL;
        for cancel in self.beginning.values() {
            cancel.cancel();
        }
        let (inboxes, tasks): (Vec<_>, Vec<_>) = self
            .sessions
            .into_values()
            .map(|entry| (entry.inbox, entry.task))
            .unzip();
        for inbox in inboxes {
            let close = Wish::Close { request: None };
            let _ = timeout_at(until, inbox.send(close)).await;
        }
        for task in tasks {
            // Who is not ready by then has its journal, which is written as it happens.
            let _ = timeout_at(until, task).await;
        }
    }

    fn forget(&mut self, ended: &Ended) {
        match ended {
            Ended::Beginning(request) => drop(self.beginning.remove(request)),
            Ended::Session(id) => {
                // Another one may have the id by now.
                if self.sessions.get(id).is_some_and(|it| it.inbox.is_closed()) {
                    self.sessions.remove(id);
                }
            }
        }
    }

    fn answer<T: Serialize>(&self, id: &RequestId, answer: Result<T, Error>) {
        self.outbox.send(answered(id, answer));
    }

    async fn heed(&mut self, line: Input) {
        let read = match line {
            Input::Text(text) => read(&text),
            Input::Unusable(reason) => Err(Unusable::unread(reason)),
        };
        match read {
            Ok(None | Some(Incoming::Ignored)) => {}
            Ok(Some(Incoming::Request { id, call })) => {
                if let Err(error) = self.obey(&id, *call).await {
                    self.answer::<Value>(&id, Err(error));
                }
            }
            Ok(Some(Incoming::Cancel(session))) => {
                // Nobody waits for an answer to it.
                let _ = self.pass(&session, Wish::Cancel).await;
            }
            Ok(Some(Incoming::CancelRequest(request))) => self.cancel_request(request).await,
            Ok(Some(Incoming::Response { id, answer })) => {
                if let Some((number, inbox)) = self.requests.end(&id) {
                    let _ = inbox.send(Wish::Answer { number, answer }).await;
                }
            }
            Err(Unusable { id, error }) => self.answer::<Value>(&id, Err(error)),
        }
    }

    /// Does what a request asks for. Who is asked answers it, unless this fails.
    async fn obey(&mut self, id: &RequestId, call: Call) -> Result<(), Error> {
        if self.client.is_none() && !matches!(call, Call::Initialize(_)) {
            return Err(Error::new(-32600, "`initialize` must come first"));
        }
        match call {
            Call::Initialize(request) => {
                let client = Client::new(&request);
                let answer = introduction(client, &self.options, &self.process);
                self.client = Some(client);
                self.answer(id, Ok(answer));
                Ok(())
            }
            Call::Authenticate(AuthenticateRequest { method_id, .. }) => {
                let reason = format!(
                    "there is nothing to be done about `{}` here: run `caliban serve acp --login` \
                     in a terminal, or set the provider's variable",
                    method_id.0
                );
                Err(Error::new(-32602, reason))
            }
            Call::Logout => {
                self.log_out()?;
                self.answer(id, Ok(LogoutResponse::new()));
                Ok(())
            }
            Call::New(request) => self.begin(id, request.into()).await,
            Call::Load(request) => self.begin(id, request.try_into()?).await,
            Call::Resume(request) => self.begin(id, request.try_into()?).await,
            Call::List(request) => {
                let (options, process) = (self.options.clone(), self.process.clone());
                self.look_up(id, move || listing::list(&request, &options, process));
                Ok(())
            }
            Call::Delete(request) => self.delete(id, &request).await,
            Call::Close(request) => {
                let wish = Wish::Close {
                    request: Some(id.clone()),
                };
                self.pass(&request.session_id, wish).await
            }
            Call::SetMode(request) => {
                let wish = Wish::SetMode {
                    request: id.clone(),
                    mode: request.mode_id.0.to_string(),
                };
                self.pass(&request.session_id, wish).await
            }
            Call::SetOption(request) => self.set_option(id, request).await,
            Call::Prompt(PromptRequest {
                session_id, prompt, ..
            }) => {
                if !self.sessions.contains_key(&session_id) {
                    return Err(not_open(&session_id));
                }
                let wish = Wish::Prompt {
                    request: id.clone(),
                    content: content(&prompt)?,
                };
                self.pass(&session_id, wish).await
            }
        }
    }

    /// Passes a wish on to the session that it is about.
    async fn pass(&self, session: &SessionId, wish: Wish) -> Result<(), Error> {
        let entry = self
            .sessions
            .get(session)
            .ok_or_else(|| not_open(session))?;
        let passed = entry.inbox.send(wish).await;
        // It ended by itself a moment ago.
        passed.map_err(|_| not_open(session))
    }

    async fn set_option(
        &self,
        id: &RequestId,
        request: SetSessionConfigOptionRequest,
    ) -> Result<(), Error> {
        let value = match request.value {
            SessionConfigOptionValue::ValueId { value } => value.0.to_string(),
            _ => {
                return Err(Error::new(
                    -32602,
                    "the value of an option is one of its choices",
                ));
            }
        };
        let wish = Wish::SetOption {
            request: id.clone(),
            option: request.config_id.0.to_string(),
            value,
        };
        self.pass(&request.session_id, wish).await
    }

    async fn cancel_request(&self, request: RequestId) {
        if let Some(cancel) = self.beginning.get(&request) {
            return cancel.cancel();
        }
        for entry in self.sessions.values() {
            // Whose request it is not does nothing.
            let _ = entry.inbox.send(Wish::CancelPrompt(request.clone())).await;
        }
    }

    /// Forgets the key of the provider that sessions begin with.
    fn log_out(&self) -> Result<(), Error> {
        let failed = |reason: String| Error::new(-32603, reason);
        let configuration = configure(&self.options, self.process.clone());
        let configuration = configuration.map_err(|error| failed(error.to_string()))?;
        let model = &self.options.model;
        let kind = provider::kind(model.provider, model.model.as_deref(), &configuration);
        let kind = kind.map_err(|error| failed(error.to_string()))?;
        forget_key(kind, &configuration).map(drop).map_err(failed)
    }

    /// Answers with what takes its time to be looked up.
    fn look_up<T: Serialize + Send + 'static>(
        &self,
        id: &RequestId,
        look: impl FnOnce() -> Result<T, Error> + Send + 'static,
    ) {
        let (id, outbox) = (id.clone(), self.outbox.clone());
        tokio::spawn(async move {
            let found = spawn_blocking(look).await;
            let found = found.unwrap_or_else(|error| Err(Error::new(-32603, error.to_string())));
            outbox.send(answered(&id, found));
        });
    }

    async fn delete(
        &mut self,
        id: &RequestId,
        request: &DeleteSessionRequest,
    ) -> Result<(), Error> {
        // What is none cannot be kept.
        let Ok(session) = known(&request.session_id) else {
            self.answer(id, Ok(DeleteSessionResponse::new()));
            return Ok(());
        };
        let before = self.close(&request.session_id).await;
        let (options, process) = (self.options.clone(), self.process.clone());
        let (id, outbox) = (id.clone(), self.outbox.clone());
        tokio::spawn(async move {
            wait_for(before).await;
            let forget = move || listing::forget(session, &options, process);
            let forgotten = spawn_blocking(forget).await;
            let forgotten =
                forgotten.unwrap_or_else(|error| Err(Error::new(-32603, error.to_string())));
            let response = forgotten.map(|()| DeleteSessionResponse::new());
            outbox.send(answered(&id, response));
        });
        Ok(())
    }

    /// Ends a session that is open; what to wait for, where there is one.
    async fn close(&mut self, session: &SessionId) -> Option<JoinHandle<()>> {
        let entry = self.sessions.remove(session)?;
        let _ = entry.inbox.send(Wish::Close { request: None }).await;
        Some(entry.task)
    }

    /// Begins a session beside the others. One that is open already begins anew, as it is kept.
    async fn begin(&mut self, id: &RequestId, wanted: Wanted) -> Result<(), Error> {
        let Some(client) = self.client else {
            return Ok(());
        };
        let session = SessionId::new(wanted.begin.id().to_string());
        let before = self.close(&session).await;
        if self.sessions.len() >= MAX_SESSIONS {
            let reason =
                format!("{MAX_SESSIONS} sessions are open; close one with `session/close`");
            return Err(Error::new(-32603, reason));
        }
        let (inbox, wishes) = mpsc::channel(WISHES);
        let line = Line {
            outbox: self.outbox.clone(),
            requests: self.requests.clone(),
            client,
            inbox: inbox.clone(),
        };
        let cancel = CancellationToken::new();
        self.beginning.insert(id.clone(), cancel.clone());
        let beginning = Beginning {
            request: id.clone(),
            wanted,
            options: self.options.clone(),
            process: self.process.clone(),
            before,
            cancel,
            line,
            ended: self.ended.0.clone(),
        };
        let task = tokio::spawn(Box::pin(beginning.live(wishes)));
        self.sessions.insert(session, Entry { inbox, task });
        Ok(())
    }
}

/// A session from the request for it to its end.
struct Beginning {
    request: RequestId,
    wanted: Wanted,
    options: RunOptions,
    process: Process,
    /// The same session as it was open before.
    before: Option<JoinHandle<()>>,
    cancel: CancellationToken,
    line: Line,
    ended: mpsc::UnboundedSender<Ended>,
}

impl Beginning {
    async fn live(self, wishes: mpsc::Receiver<Wish>) {
        let begin = self.wanted.begin;
        let latch = self.options.permissions.latch;
        let opening = async {
            wait_for(self.before).await;
            opening::open(&self.options, self.wanted, self.process).await
        };
        let opened = tokio::select! {
            opened = opening => opened,
            () = self.cancel.cancelled() => Err(Error::request_cancelled()),
        };
        match opened {
            Ok(launched) => {
                let live = Live::begin(launched, begin, &self.request, latch, self.line).await;
                let _ = self.ended.send(Ended::Beginning(self.request));
                live.run(wishes).await;
            }
            Err(error) => {
                self.line
                    .outbox
                    .send(answered::<Value>(&self.request, Err(error)));
                let _ = self.ended.send(Ended::Beginning(self.request));
                refuse(wishes, &self.line.outbox, begin);
            }
        }
        let id = SessionId::new(begin.id().to_string());
        let _ = self.ended.send(Ended::Session(id));
    }
}

/// Who asked something of a session before it could begin is told that there is none.
fn refuse(mut wishes: mpsc::Receiver<Wish>, outbox: &Outbox, begin: Begin) {
    wishes.close();
    while let Ok(wish) = wishes.try_recv() {
        let request = match wish {
            Wish::Prompt { request, .. }
            | Wish::SetMode { request, .. }
            | Wish::SetOption { request, .. }
            | Wish::Close {
                request: Some(request),
            } => request,
            Wish::Cancel
            | Wish::CancelPrompt(_)
            | Wish::Answer { .. }
            | Wish::Close { request: None } => continue,
        };
        let error = missing(&begin.id().to_string());
        outbox.send(answered::<Value>(&request, Err(error)));
    }
}

async fn wait_for(before: Option<JoinHandle<()>>) {
    if let Some(before) = before {
        // However it ended.
        let _ = before.await;
    }
}

fn not_open(session: &SessionId) -> Error {
    let reason =
        format!("the session `{session}` is not open; `session/load` opens one that is kept");
    Error::new(-32002, reason).data(serde_json::json!({"sessionId": session}))
}

/// The next line, once there is room for an answer to it.
async fn next(input: &mut mpsc::Receiver<Input>, outbox: &Outbox) -> Option<Input> {
    outbox.room_for_answers().await;
    input.recv().await
}
