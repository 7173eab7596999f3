//! All tabs of a server: wishes find the tab they are about.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::sync::{Semaphore, oneshot};
use uuid::Uuid;

use crate::PROTOCOL;
use crate::answer::{Closed, Code, Done, Heard, Hello, Opened, Problem, PromptView, Tabs};
use crate::blobs::{Blob, Uploads};
use crate::encode::Frames;
use crate::host::{Saved, SessionHost, SessionWanted};
use crate::limits::Limits;
use crate::log::TabLog;
use crate::request::{Id, Open, Request, Wish};
use crate::snapshot::MessagePage;
use crate::tab::{self, Letter, Outcome, Parting, TabHandle, When};
use crate::view::TabView;

/// What the tabs of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) host: Arc<dyn SessionHost>,
    pub(crate) limits: Limits,
    pub(crate) frames: Frames,
    /// Where it is written down which requests there were.
    pub(crate) ledgers: PathBuf,
    /// One for each prompt that may be worked on at the same time.
    pub(crate) places: Arc<Semaphore>,
    /// How all tabs are doing.
    pub(crate) states: Arc<TabLog>,
    pub(crate) epoch: String,
    uploads: Uploads,
    tabs: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    tabs: HashMap<Arc<str>, TabHandle>,
    /// Nothing is opened any more.
    is_closing: bool,
}

impl Shared {
    fn tabs(&self) -> MutexGuard<'_, Known> {
        self.tabs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A tab is no more.
    pub(crate) fn forget(&self, tab: &str) {
        self.tabs().tabs.remove(tab);
    }
}

/// The tabs of a server.
#[derive(Debug, Clone)]
pub struct Registry(Arc<Shared>);

/// What became of the tabs of a server that ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShutDown {
    /// The names of those that were closed.
    pub closed: Vec<String>,
    /// The ids of the sessions that go on.
    pub going_on: Vec<String>,
}

/// A wish that was taken: its answer, and what is heard once it is given.
pub struct Pending {
    pub answer: BoxFuture<'static, Result<Done, Problem>>,
    pub(crate) listen: Option<Listen>,
}

impl std::fmt::Debug for Pending {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut pending = formatter.debug_struct("Pending");
        pending
            .field("listen", &self.listen)
            .finish_non_exhaustive()
    }
}

/// Which tab is heard, and from where.
#[derive(Debug, Clone)]
pub(crate) struct Listen {
    pub(crate) tab: TabHandle,
    pub(crate) from: Option<u64>,
}

impl Registry {
    /// `ledgers` is the directory in which it is written down which requests there were.
    pub fn new(
        host: Arc<dyn SessionHost>,
        frames: Frames,
        limits: Limits,
        ledgers: PathBuf,
    ) -> Self {
        Self(Arc::new(Shared {
            host,
            limits,
            frames,
            ledgers,
            places: Arc::new(Semaphore::new(limits.running)),
            states: TabLog::new("*".into(), limits.stream),
            epoch: Uuid::new_v4().simple().to_string()[..12].to_owned(),
            uploads: Uploads::default(),
            tabs: Mutex::default(),
        }))
    }

    /// Takes a wish. Those that are submitted one after the other reach a tab in this order.
    pub async fn submit(&self, request: Request) -> Pending {
        let Request { id, wish } = request;
        match wish {
            Wish::Hello(_) => now(Ok(Done::Hello(self.hello()))),
            Wish::Open(open) => self.open(*open),
            Wish::Tabs(_) => now(Ok(Done::Tabs(Tabs { tabs: self.views() }))),
            Wish::Events(events) => self.hear(&events.tab, events.since.map(|since| since + 1)),
            Wish::Send(send) => {
                let request = Arc::from(send.request.unwrap_or_else(|| id.to_string()));
                let content = match self.0.uploads.resolve(send.content) {
                    Ok(content) => content,
                    Err(digest) => {
                        let missing = format!("the picture `{digest}` is not there; upload it");
                        return now(Err(Problem::new(Code::BadRequest, missing)));
                    }
                };
                let letter = |reply| Letter::Send {
                    request,
                    content,
                    reply,
                };
                self.post(&send.tab, letter).await
            }
            Wish::Cancel(cancel) => {
                let tab = cancel.tab.clone();
                self.post(&tab, |reply| Letter::Cancel(cancel, reply)).await
            }
            Wish::Answer(answer) => {
                let tab = answer.tab.clone();
                self.post(&tab, |reply| Letter::Answer(Box::new(answer), reply))
                    .await
            }
            Wish::Set(set) => {
                let tab = set.tab.clone();
                self.post(&tab, |reply| Letter::Set(set, reply)).await
            }
            Wish::Close(close) => {
                let purge = close.session;
                self.post(&close.tab, |reply| Letter::Close(purge, reply))
                    .await
            }
            Wish::Shutdown(_) => {
                let registry = self.clone();
                Pending {
                    answer: async move {
                        let ShutDown { closed, .. } = registry.shut_down().await;
                        Ok(Done::Closed(Closed { closed }))
                    }
                    .boxed(),
                    listen: None,
                }
            }
        }
    }

    /// Does something and waits for its answer.
    pub async fn ask(&self, wish: Wish) -> Result<Done, Problem> {
        let id = Id::Text(Uuid::new_v4().to_string());
        self.submit(Request { id, wish }).await.answer.await
    }

    /// Where a request stands.
    pub async fn standing(&self, tab: &str, request: &str) -> Result<Done, Problem> {
        self.result(tab, request, When::Now).await
    }

    /// How a request ended, as soon as it has.
    pub async fn result_of(&self, tab: &str, request: &str) -> Result<Done, Problem> {
        self.result(tab, request, When::Ended).await
    }

    async fn result(&self, tab: &str, request: &str, when: When) -> Result<Done, Problem> {
        let request = request.to_owned();
        let letter = |reply| Letter::Result {
            request,
            when,
            reply,
        };
        self.post(tab, letter).await.answer.await
    }

    /// How all tabs are doing.
    pub fn views(&self) -> Vec<TabView> {
        let handles: Vec<_> = self.0.tabs().tabs.values().cloned().collect();
        let mut views: Vec<_> = handles.iter().map(TabHandle::view).collect();
        views.sort_by(|one, other| one.tab.cmp(&other.tab));
        views
    }

    pub fn view(&self, tab: &str) -> Result<TabView, Problem> {
        self.find(tab).map(|tab| tab.view())
    }

    /// The state of a tab by messages, not by events: where it stands, and what was said.
    pub async fn snapshot(&self, tab: &str) -> Result<(u64, serde_json::Value), Problem> {
        let handle = self.find(tab)?;
        handle
            .snapshot()
            .await
            .ok_or_else(|| Problem::no_such_tab(tab))
    }

    /// Keeps a picture for prompts to come and returns its digest.
    pub fn upload(&self, blob: Blob) -> String {
        self.0.uploads.keep(blob)
    }

    /// A picture: one that was uploaded, or one of the conversation.
    pub async fn blob(&self, tab: &str, digest: &str) -> Result<Option<Blob>, Problem> {
        if let Some(blob) = self.0.uploads.find(digest) {
            return Ok(Some(blob));
        }
        let handle = self.find(tab)?;
        let (reply, answer) = oneshot::channel();
        let letter = Letter::Blob(digest.to_owned(), reply);
        let _ = handle.letters.send(letter).await;
        answer.await.map_err(|_| Problem::no_such_tab(tab))
    }

    /// What was said in a tab, from a message on.
    pub async fn messages(
        &self,
        tab: &str,
        from: usize,
        most: usize,
    ) -> Result<MessagePage, Problem> {
        let handle = self.find(tab)?;
        let (reply, answer) = oneshot::channel();
        let _ = handle
            .letters
            .send(Letter::Messages { from, most, reply })
            .await;
        answer.await.map_err(|_| Problem::no_such_tab(tab))
    }

    /// What is worked on in a tab and what waits there.
    pub async fn prompts(&self, tab: &str) -> Result<Vec<PromptView>, Problem> {
        let handle = self.find(tab)?;
        let (reply, answer) = oneshot::channel();
        // A tab that is gone drops the letter, and with it the answer.
        let _ = handle.letters.send(Letter::Prompts(reply)).await;
        answer.await.map_err(|_| Problem::no_such_tab(tab))
    }

    /// The sessions that can be gone on with, the newest first.
    pub async fn saved(&self) -> Result<Vec<Saved>, Problem> {
        self.0.host.saved().await.map_err(unavailable)
    }

    /// The models that can be chosen from.
    pub async fn models(&self) -> Result<Vec<String>, Problem> {
        self.0.host.models().await.map_err(unavailable)
    }

    pub fn hello(&self) -> Hello {
        Hello {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            frames: self.0.frames.as_str(),
            max_running: self.0.limits.running,
            max_queue: self.0.limits.queue,
        }
    }

    pub fn epoch(&self) -> &str {
        &self.0.epoch
    }

    /// A reader of one tab, from an event on.
    pub fn reader(&self, tab: &str, from: Option<u64>) -> Result<crate::Reader, Problem> {
        let handle = self.find(tab)?;
        let mut reader = crate::Reader::default();
        reader.listen(&handle, from);
        Ok(reader)
    }

    /// A reader of how all tabs are doing, from now on.
    pub fn states(&self) -> crate::Reader {
        let mut reader = crate::Reader::default();
        reader.follow(&self.0.states, None, None);
        reader
    }

    /// Ends all tabs, and opens none any more. What is worked on is cancelled with its session,
    /// unless that outlives the server.
    pub async fn shut_down(&self) -> ShutDown {
        let tabs: Vec<_> = {
            let mut known = self.0.tabs();
            known.is_closing = true;
            known
                .tabs
                .iter()
                .map(|(name, tab)| (Arc::clone(name), tab.clone()))
                .collect()
        };
        let closing = tabs.into_iter().map(|(name, tab)| async move {
            let (reply, parting) = oneshot::channel();
            // One that closes by itself is closed as well.
            let parting = match tab.letters.send(Letter::Leave(reply)).await {
                Ok(()) => parting.await.unwrap_or(Parting::Closed),
                Err(_) => Parting::Closed,
            };
            match parting {
                Parting::Closed => Ok(name.to_string()),
                Parting::GoesOn => Err(tab.view().session),
            }
        });
        let mut ended = ShutDown::default();
        for parting in futures::future::join_all(closing).await {
            match parting {
                Ok(tab) => ended.closed.push(tab),
                Err(session) => ended.going_on.push(session),
            }
        }
        ended.closed.sort();
        ended.going_on.sort();
        ended
    }

    fn open(&self, open: Open) -> Pending {
        let mut known = self.0.tabs();
        if known.is_closing {
            return now(Err(shutting_down()));
        }
        match joined(&known.tabs, &open) {
            Ok(Some(tab)) => return opened(tab.clone(), None, true),
            Ok(None) => {}
            Err(problem) => return now(Err(problem)),
        }
        if known.tabs.len() >= self.0.limits.tabs {
            let most = self.0.limits.tabs;
            let message = format!("{most} tabs are open already; close one of them");
            return now(Err(Problem::new(Code::TooManyTabs, message)));
        }
        let id = Uuid::new_v4();
        let session = match &open.resume {
            Some(session) => SessionWanted::Earlier {
                session: session.clone(),
                copy: open.fork.then_some(id),
            },
            None => SessionWanted::New(id),
        };
        let name: Arc<str> = match (&open.tab, &open.resume) {
            (Some(tab), _) => tab.as_str().into(),
            (None, Some(session)) if !open.fork => session.as_str().into(),
            (None, _) => id.to_string().into(),
        };
        let tab = tab::begin(Arc::clone(&self.0), Arc::clone(&name), open, session);
        known.tabs.insert(name, tab.clone());
        opened(tab, Some(1), false)
    }

    fn hear(&self, tab: &str, from: Option<u64>) -> Pending {
        match self.find(tab) {
            Err(problem) => now(Err(problem)),
            Ok(handle) => {
                let after = handle.log.last() + 1;
                // What was said before the first event is told by a snapshot.
                let first = u64::from(!handle.log.goes_on());
                let from = from.map_or(after, |from| match from {
                    0 | 1 => first,
                    from => from.min(after),
                });
                let (tab, next) = (tab.to_owned(), from.max(1));
                Pending {
                    answer: async move { Ok(Done::Heard(Heard { tab, next })) }.boxed(),
                    listen: Some(Listen {
                        tab: handle,
                        from: Some(from),
                    }),
                }
            }
        }
    }

    async fn post(
        &self,
        tab: &str,
        letter: impl FnOnce(oneshot::Sender<Outcome>) -> Letter,
    ) -> Pending {
        let handle = match self.find(tab) {
            Ok(handle) => handle,
            Err(problem) => return now(Err(problem)),
        };
        let (reply, answer) = oneshot::channel();
        // A tab that is gone drops the letter, and with it the answer.
        let _ = handle.letters.send(letter(reply)).await;
        let tab = tab.to_owned();
        Pending {
            answer: async move {
                answer
                    .await
                    .unwrap_or_else(|_| Err(Problem::no_such_tab(&tab)))
            }
            .boxed(),
            listen: None,
        }
    }

    fn find(&self, tab: &str) -> Result<TabHandle, Problem> {
        let known = self.0.tabs();
        let named = known.tabs.get(tab);
        // Whoever knows the session need not know what its tab is called.
        let of_session = || {
            known
                .tabs
                .values()
                .find(|it| !it.is_copy() && it.is_of(tab))
        };
        let found = named.or_else(of_session);
        found.cloned().ok_or_else(|| Problem::no_such_tab(tab))
    }
}

/// The tab that is meant, where it is open already: by its name, or by its session. A name means one
/// session, so who asks for another one by it is told.
fn joined<'a>(
    tabs: &'a HashMap<Arc<str>, TabHandle>,
    open: &Open,
) -> Result<Option<&'a TabHandle>, Problem> {
    let wanted = open.resume.as_deref().or(open.name.as_deref());
    if let Some(tab) = &open.tab
        && let Some(found) = tabs.get(&**tab)
    {
        return match wanted.filter(|wanted| !found.is_of(wanted)) {
            None => Ok(Some(found)),
            Some(wanted) => Err(Problem::new(
                Code::Conflict,
                format!(
                    "the tab `{tab}` is open with another session than `{wanted}`; close it, or \
                     use another name"
                ),
            )),
        };
    }
    let session = wanted.filter(|_| !open.fork);
    Ok(session.and_then(|session| {
        tabs.values()
            .find(|tab| !tab.is_copy() && tab.is_of(session))
    }))
}

/// The answer to an opening, as soon as the tab has begun.
fn opened(tab: TabHandle, from: Option<u64>, existing: bool) -> Pending {
    let mut opened = tab.clone();
    Pending {
        answer: async move {
            let init = opened.begun().await?;
            Ok(Done::Opened(Box::new(Opened {
                view: opened.view(),
                init: (*init).clone(),
                existing,
            })))
        }
        .boxed(),
        listen: Some(Listen { tab, from }),
    }
}

fn now(answer: Result<Done, Problem>) -> Pending {
    Pending {
        answer: async move { answer }.boxed(),
        listen: None,
    }
}

fn unavailable(reason: String) -> Problem {
    Problem::new(Code::Unavailable, reason)
}

fn shutting_down() -> Problem {
    Problem::new(Code::ShuttingDown, "everything is being ended")
}
