//! A tab: one session with its queue, its requests and its stream. One task owns all of it.

mod hearing;
mod parting;
mod settling;
mod wishes;
mod working;

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use caliban_agent::RunTotals;
use caliban_model::Message;
use caliban_session::{Asked, Facts, Prompt};
use futures::future::BoxFuture;
use rust_decimal::prelude::ToPrimitive;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use crate::answer::{Code, Done, Problem, PromptView};
use crate::blobs::{self, Blob};
use crate::content::Content;
use crate::encode::Encoder;
use crate::host::{HostedSession, News, SessionWanted, Wanted};
use crate::ledger::Ledger;
use crate::log::TabLog;
use crate::partial::Partial;
use crate::registry::Shared;
use crate::request::{Answer, Cancel, Open, Purge, Set};
use crate::snapshot::{self, MessagePage};
use crate::view::{Context, Last, QuestionView, TabState, TabView};

use settling::Settings;

/// Wishes that wait for a tab; who sends faster waits itself.
const LETTERS: usize = 64;
/// Questions whose end is remembered, for answers that come too late.
const REMEMBERED: usize = 256;

pub(crate) type Outcome = Result<Done, Problem>;

/// What a tab is asked.
#[derive(Debug)]
pub(crate) enum Letter {
    Send {
        request: Arc<str>,
        content: Content,
        reply: oneshot::Sender<Outcome>,
    },
    /// How a request ended: now, or when it has.
    Result {
        request: String,
        when: When,
        reply: oneshot::Sender<Outcome>,
    },
    Cancel(Cancel, oneshot::Sender<Outcome>),
    Answer(Box<Answer>, oneshot::Sender<Outcome>),
    Set(Set, oneshot::Sender<Outcome>),
    Snapshot(oneshot::Sender<(u64, Value)>),
    Messages {
        from: usize,
        most: usize,
        reply: oneshot::Sender<MessagePage>,
    },
    /// The picture of a digest.
    Blob(String, oneshot::Sender<Option<Blob>>),
    /// What is worked on and what waits.
    Prompts(oneshot::Sender<Vec<PromptView>>),
    Close(Purge, oneshot::Sender<Outcome>),
    /// The server ends.
    Leave(oneshot::Sender<Parting>),
}

/// What becomes of a tab's session when its server ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Parting {
    Closed,
    GoesOn,
}

/// Whether a result is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    Now,
    Ended,
}

/// What became of the beginning of a tab: the frame that says what its session is.
type Beginning = Option<Result<Arc<Value>, Problem>>;

/// A tab, for whoever wants something from it.
#[derive(Debug, Clone)]
pub(crate) struct TabHandle {
    pub(crate) letters: mpsc::Sender<Letter>,
    pub(crate) log: Arc<TabLog>,
    pub(crate) view: watch::Receiver<TabView>,
    begun: watch::Receiver<Beginning>,
    /// What was asked for when it was opened.
    open: Arc<Open>,
}

impl TabHandle {
    /// Waits until the tab has begun.
    pub(crate) async fn begun(&mut self) -> Result<Arc<Value>, Problem> {
        match self.begun.wait_for(Option::is_some).await {
            Ok(begun) => begun.clone().unwrap_or_else(|| Err(gone())),
            Err(_) => Err(gone()),
        }
    }

    /// Whether it has this session, by its id or by the name that it was opened with.
    pub(crate) fn is_of(&self, session: &str) -> bool {
        let names = [&self.open.resume, &self.open.name];
        names.into_iter().flatten().any(|name| name == session)
            || self.view.borrow().session == session
    }

    /// Whether it goes on in a copy of the session that it was opened with.
    pub(crate) fn is_copy(&self) -> bool {
        self.open.fork
    }

    pub(crate) async fn snapshot(&self) -> Option<(u64, Value)> {
        let (reply, answer) = oneshot::channel();
        self.letters.send(Letter::Snapshot(reply)).await.ok()?;
        answer.await.ok()
    }

    /// How the tab is doing.
    pub(crate) fn view(&self) -> TabView {
        let mut view = self.view.borrow().clone();
        view.seq = self.log.last();
        view
    }
}

fn gone() -> Problem {
    Problem::new(Code::Ended, "the tab is closed")
}

/// A tab while it lives.
#[derive(Debug)]
pub(crate) struct Tab {
    shared: Arc<Shared>,
    log: Arc<TabLog>,
    told: watch::Sender<TabView>,
    /// What was asked for, with what was changed since.
    open: Open,
    /// Nothing while it is written away.
    hosted: Option<Box<dyn HostedSession>>,
    encoder: Encoder,
    ledger: Ledger,
    facts: Arc<Facts>,
    /// Whether its session is on disk.
    kept: Kept,
    /// Messages of the conversation that were told.
    messages: usize,
    partial: Partial,
    queue: VecDeque<Waiting>,
    running: Option<Running>,
    /// What somebody else has worked on in the session, who is attached to it.
    foreign: Option<Arc<str>>,
    /// Its turn is waited for.
    turn: Option<Turn>,
    questions: Vec<(Box<Asked>, QuestionView)>,
    /// Questions that were answered, and how.
    answered: VecDeque<(Arc<str>, &'static str)>,
    settings: Settings,
    waiters: HashMap<Arc<str>, Vec<oneshot::Sender<Outcome>>>,
    last: Option<Last>,
    prompts: u64,
    totals: RunTotals,
    context: Context,
    /// Why nothing will be worked on any more.
    over: Option<String>,
    idle_since: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kept {
    NotYet,
    OnDisk,
}

#[derive(Debug)]
struct Waiting {
    request: Arc<str>,
    content: Content,
}

#[derive(Debug)]
struct Running {
    request: Arc<str>,
    prompt: Prompt,
    /// One of the places of all tabs; given back when it is dropped. What goes on from before the
    /// server began may have found none.
    _place: Option<OwnedSemaphorePermit>,
}

/// The next free place among all tabs. Those who wait are served in order, so a tab that has had
/// its turn stands behind the others.
struct Turn(BoxFuture<'static, Option<OwnedSemaphorePermit>>);

impl std::fmt::Debug for Turn {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Turn")
    }
}

/// Begins a tab. Its session is being made when this returns.
pub(crate) fn begin(
    shared: Arc<Shared>,
    tab: Arc<str>,
    open: Open,
    session: SessionWanted,
) -> TabHandle {
    let log = TabLog::new(Arc::clone(&tab), shared.limits.stream);
    let (letters, mailbox) = mpsc::channel(LETTERS);
    let (told, view) = watch::channel(TabView {
        tab: tab.to_string(),
        session: String::new(),
        state: TabState::Connecting,
        last: None,
        running: None,
        queue: Vec::new(),
        questions: Vec::new(),
        cwd: String::new(),
        model: String::new(),
        mode: String::new(),
        prompts: 0,
        total_cost_usd: 0.0,
        context: Context::default(),
        seq: 0,
        epoch: shared.epoch.clone(),
        parked: false,
        reason: None,
    });
    let (beginning, begun) = watch::channel(None);
    let handle = TabHandle {
        letters,
        log: Arc::clone(&log),
        view,
        begun,
        open: Arc::new(open.clone()),
    };
    tokio::spawn(async move {
        match Tab::new(&shared, &log, told, open, session).await {
            Ok(mut tab) => {
                if tab.kept == Kept::OnDisk {
                    log.go_on();
                }
                let init = tab.encoder.init(&tab.facts);
                tab.log.push(None, &init);
                tab.recover().await;
                tab.publish();
                beginning.send_replace(Some(Ok(Arc::new(init))));
                tab.live(mailbox).await;
            }
            Err(problem) => {
                beginning.send_replace(Some(Err(problem)));
            }
        }
        log.close();
        shared.forget(&tab);
    });
    handle
}

impl Tab {
    async fn new(
        shared: &Arc<Shared>,
        log: &Arc<TabLog>,
        told: watch::Sender<TabView>,
        open: Open,
        session: SessionWanted,
    ) -> Result<Self, Problem> {
        let is_new = matches!(session, SessionWanted::New(_));
        let wanted = Wanted {
            open: Arc::new(open.clone()),
            session,
            patience: shared.limits.patience,
        };
        let hosted = shared.host.open(wanted).await?;
        let facts = Arc::new(hosted.facts().clone());
        let ledger =
            Ledger::open(&shared.ledgers, &facts.session_id).map_err(|error| not_kept(&error))?;
        // One that lives may have been asked nothing yet.
        let is_blank = hosted.life().is_some() && facts.messages == 0 && ledger.is_empty();
        let kept = if is_new || is_blank {
            Kept::NotYet
        } else {
            Kept::OnDisk
        };
        Ok(Self {
            shared: Arc::clone(shared),
            log: Arc::clone(log),
            told,
            open,
            encoder: Encoder::new(shared.frames, &facts.session_id),
            hosted: Some(hosted),
            ledger,
            kept,
            messages: facts.messages,
            facts,
            partial: Partial::default(),
            queue: VecDeque::new(),
            running: None,
            foreign: None,
            turn: None,
            questions: Vec::new(),
            answered: VecDeque::new(),
            settings: Settings::default(),
            waiters: HashMap::new(),
            last: None,
            prompts: 0,
            totals: RunTotals::default(),
            context: Context::default(),
            over: None,
            idle_since: Instant::now(),
        })
    }

    async fn live(mut self, mut mailbox: mpsc::Receiver<Letter>) {
        loop {
            self.seek().await;
            self.publish();
            let idle = self.idle_deadline();
            tokio::select! {
                biased;
                letter = mailbox.recv() => match letter {
                    Some(Letter::Close(purge, reply)) => {
                        // Nobody can reach it from here on.
                        mailbox.close();
                        let closed = self.close(purge).await;
                        let _ = reply.send(closed);
                        return;
                    }
                    Some(Letter::Leave(reply)) => {
                        mailbox.close();
                        let parting = self.leave().await;
                        let _ = reply.send(parting);
                        return;
                    }
                    Some(letter) => self.obey(letter).await,
                    None => {
                        self.leave().await;
                        return;
                    }
                },
                heard = next(&mut self.hosted) => self.hear(heard).await,
                place = turn(&mut self.turn) => {
                    self.turn = None;
                    if let Some(place) = place {
                        self.start(place).await;
                    }
                }
                () = reached(idle) => self.park().await,
            }
        }
    }

    /// When the session is written away, if nothing happens until then.
    fn idle_deadline(&self) -> Option<Instant> {
        let is_idle = self.hosted.is_some() && !self.is_working() && self.queue.is_empty();
        let idle = self.shared.limits.idle.filter(|_| is_idle)?;
        Some(self.idle_since + idle)
    }

    fn tell(&self, request: Option<&Arc<str>>, event: &Value) {
        self.log.push(request, event);
    }

    /// How the tab is doing.
    fn view(&self) -> TabView {
        let state = if self.over.is_some() {
            TabState::Ended
        } else if !self.questions.is_empty() {
            TabState::Waiting
        } else if self.is_working() {
            TabState::Running
        } else {
            TabState::Idle
        };
        TabView {
            tab: self.log.tab().to_string(),
            session: self.facts.session_id.clone(),
            state,
            last: self.last,
            running: self
                .running
                .as_ref()
                .map(|running| &running.request)
                .or(self.foreign.as_ref())
                .map(ToString::to_string),
            queue: self
                .queue
                .iter()
                .map(|waiting| waiting.request.to_string())
                .collect(),
            questions: self
                .questions
                .iter()
                .map(|(_, view)| view.clone())
                .collect(),
            cwd: self.facts.cwd.clone(),
            model: self
                .open
                .model
                .clone()
                .unwrap_or_else(|| self.facts.model.clone()),
            mode: match self.open.mode {
                Some(mode) => mode.as_str().to_owned(),
                None => self.facts.permission_mode.clone(),
            },
            prompts: self.prompts,
            total_cost_usd: self.totals.cost.to_f64().unwrap_or_default(),
            context: Context {
                window: Some(self.facts.context_window).filter(|window| *window > 0),
                ..self.context
            },
            seq: self.log.last(),
            epoch: self.shared.epoch.clone(),
            parked: self.hosted.is_none() && self.over.is_none(),
            reason: self.over.clone(),
        }
    }

    /// Lets others see how the tab is doing, and tells it where that is another way than before.
    fn publish(&self) {
        let view = self.view();
        let was = self.told.send_replace(view.clone());
        let is_same = was.state == view.state
            && was.running == view.running
            && was.queue == view.queue
            && was.last == view.last;
        if !is_same {
            let mut event = json!({
                "type": "state",
                "state": view.state,
                "running": view.running,
                "queue": view.queue,
                "last": view.last,
            });
            if let Some(reason) = &view.reason {
                event["reason"] = reason.as_str().into();
            }
            self.tell(None, &event);
            event["tab"] = view.tab.into();
            self.shared.states.push(None, &event);
        }
    }

    /// The conversation as far as it was told; what is written and was not comes as events.
    async fn conversation(&mut self) -> Vec<Arc<Message>> {
        let history = self.shared.host.history(&self.facts.session_id).await;
        let mut messages = history.unwrap_or_default();
        messages.truncate(self.messages);
        messages
    }

    async fn message_page(&mut self, from: usize, most: usize) -> MessagePage {
        let messages = self.conversation().await;
        snapshot::page(&messages, from, most, &self.encoder)
    }

    async fn blob(&mut self, digest: &str) -> Option<Blob> {
        blobs::find(&self.conversation().await, digest)
    }

    async fn snapshot(&mut self) -> (u64, Value) {
        let seq = self.log.last();
        let messages = self.conversation().await;
        let mut event = snapshot::event(&self.view(), &messages, &self.encoder);
        if !self.partial.frames().is_empty() {
            event["partial"] = self.partial.frames().into();
        }
        (seq, event)
    }
}

fn not_kept(error: &std::io::Error) -> Problem {
    Problem::new(
        Code::NotKept,
        format!("the requests of the session cannot be written down: {error}"),
    )
}

/// What the session tells, for ever where there is none.
async fn next(hosted: &mut Option<Box<dyn HostedSession>>) -> Option<News> {
    match hosted {
        Some(hosted) => hosted.next().await,
        None => std::future::pending().await,
    }
}

async fn turn(turn: &mut Option<Turn>) -> Option<OwnedSemaphorePermit> {
    match turn {
        Some(turn) => (&mut turn.0).await,
        None => std::future::pending().await,
    }
}

async fn reached(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
