//! A session in a process of its own, as the server has it in hand.

use std::collections::VecDeque;
use std::sync::Arc;

use caliban_fleet::{
    AgentDirectory, AgentId, Client, From, Joint, KillHow, Phase, Places, RmWhich, Served, Told,
};
use caliban_serve::{HostedSession, News, Unopened};
use caliban_session::{Closed, Command, Facts, Settled, Standing, What};
use futures::FutureExt;
use futures::future::BoxFuture;
use tokio::time::{Instant, sleep};

use super::{LOOK, PATIENCE};

/// How often a connection is made anew to a process that lives.
const ATTEMPTS: u32 = 3;

/// A session that has a process, or had one.
#[derive(Debug, Clone)]
pub(super) struct Seat {
    pub(super) id: AgentId,
    pub(super) directory: AgentDirectory,
    pub(super) places: Places,
    pub(super) served: Served,
}

/// What an exit code of a process that did not begin says.
fn reason(code: u8, reason: String) -> Unopened {
    match code {
        64 | 66 => Unopened::Misused(reason),
        75 => crate::serve::ground::busy(&reason),
        _ => Unopened::Failed(reason),
    }
}

impl Seat {
    /// Waits a moment for the process to be gone.
    pub(super) async fn is_gone(&self) -> bool {
        let deadline = Instant::now() + PATIENCE;
        while self.directory.is_held() {
            if Instant::now() > deadline {
                return false;
            }
            sleep(LOOK).await;
        }
        true
    }

    /// Ends a process that nobody can have.
    pub(super) async fn end(&self) {
        if let Ok(Some(mut client)) = Client::find(&self.places).await {
            let id = self.id.as_str();
            let _ = client.kill(id, KillHow::Politely, PATIENCE).await;
        }
    }

    pub(super) fn unreachable(&self, error: &std::io::Error) -> Unopened {
        Unopened::Failed(format!(
            "the process of the session ({}) cannot be reached: {error}; `caliban agents kill {0}` \
             ends it",
            self.id
        ))
    }

    /// Why the session did not begin. Whoever asked is told, so nobody else needs to know.
    pub(super) async fn never_began(&self) -> Unopened {
        match self.directory.end() {
            Ok(Some(end)) => {
                self.forget().await;
                reason(end.exit_code, end.reason.unwrap_or_default())
            }
            Ok(None) | Err(_) => Unopened::Failed(format!(
                "the process of the session ended without a word; `caliban logs {} --worker` may \
                 say why",
                self.id
            )),
        }
    }

    /// The same for one that has done what it had to: one that was killed or crashed is something to
    /// look into.
    pub(super) async fn forget_done(&self) {
        if let Ok(Some(end)) = self.directory.end()
            && end.state == Phase::Done
        {
            self.forget().await;
        }
    }

    /// Takes it out of the list: the session itself stays.
    async fn forget(&self) {
        // Where that fails it is listed as one that has ended, and `prune` removes it.
        if let Ok(Some(mut client)) = Client::find(&self.places).await {
            let _ = client.rm(self.id.as_str(), RmWhich::Ended).await;
        }
    }
}

/// A session in a process of its own.
#[derive(Debug)]
pub(super) struct Worker {
    facts: Facts,
    pub(super) joint: Joint,
    pub(super) living: Seat,
    pub(super) waiting: VecDeque<News>,
    /// How prompts ended in processes before this one.
    pub(super) settled: Vec<Settled>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// Its last event was heard.
    Over,
}

impl Worker {
    pub(super) fn new(joint: Joint, living: Seat) -> Self {
        Self {
            facts: (*joint.standing.facts).clone(),
            joint,
            living,
            waiting: VecDeque::new(),
            settled: Vec::new(),
            state: State::Open,
        }
    }

    fn take_in(&mut self, told: Vec<Told>) {
        for told in told {
            match told {
                Told::Standing(standing) => self.waiting.push_back(News::Standing(standing)),
                Told::Event(event) => {
                    if let What::Closed { .. } = event.what {
                        self.state = State::Over;
                    }
                    match self.waiting.back_mut() {
                        Some(News::Events(events)) => events.push(event),
                        Some(News::Standing(_)) | None => {
                            self.waiting.push_back(News::Events(vec![event]));
                        }
                    }
                }
            }
        }
    }

    /// The connection broke: where the process lives, it is made anew.
    async fn rejoin(&mut self) -> Option<Standing> {
        let socket = self.living.places.worker_socket(&self.living.id);
        for _ in 0..ATTEMPTS {
            if !self.living.directory.is_held() {
                return None;
            }
            match Joint::open(&socket, From::Now).await {
                Ok(joint) => {
                    self.joint = joint;
                    return Some(self.joint.standing.clone());
                }
                Err(_) => sleep(LOOK).await,
            }
        }
        None
    }
}

impl HostedSession for Worker {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn life(&self) -> Option<Arc<str>> {
        Some(Arc::clone(&self.joint.life))
    }

    fn settled(&self) -> &[Settled] {
        &self.settled
    }

    fn send(&self, command: Command) -> BoxFuture<'_, Result<(), Closed>> {
        async move { self.joint.send(command).await.map_err(|_| Closed) }.boxed()
    }

    fn next(&mut self) -> BoxFuture<'_, Option<News>> {
        async move {
            loop {
                if let Some(news) = self.waiting.pop_front() {
                    return Some(news);
                }
                match self.joint.next().await {
                    Some(told) => self.take_in(told),
                    None if self.state == State::Over => return None,
                    None => {
                        let standing = self.rejoin().await?;
                        self.waiting.push_back(News::Standing(Box::new(standing)));
                    }
                }
            }
        }
        .boxed()
    }

    fn gone(&mut self) -> BoxFuture<'_, ()> {
        async move {
            if self.living.is_gone().await {
                self.living.forget_done().await;
            }
        }
        .boxed()
    }
}
