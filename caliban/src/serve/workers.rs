//! Sessions as workers of the fleet: each has a process of its own, which goes on when the server
//! ends or is killed, is listed by `caliban agents list`, and is found again by the next server.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use caliban_fleet::{
    AgentDirectory, AgentId, Client, From, Joint, KillHow, NotJoined, Phase, Places, Registry,
    RmWhich, Served, Told,
};
use caliban_harness::{Configuration, RunOptions, configure, locations};
use caliban_model::{Message, Reasoning};
use caliban_serve::{
    HostedSession, News, Open, Saved, SessionHost, SessionWanted, Unopened, Wanted,
};
use caliban_session::{Closed, Command, Facts, ModelChange, Settled, Shutdown, Standing, What};
use futures::FutureExt;
use futures::future::BoxFuture;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use super::ground::{Ground, blocking, unopened};
use crate::exit::Failure;
use crate::fleet;

/// Between two looks at a process that is about to come or to go.
const LOOK: Duration = Duration::from_millis(10);
/// How long a process may take to be reached or to be gone.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a connection is made anew to a process that lives.
const ATTEMPTS: u32 = 3;

/// Makes sessions in processes of their own.
#[derive(Debug)]
pub(super) struct Workers {
    ground: Ground,
    /// How long a session stays with nothing to do when its server is gone.
    idle: Option<Duration>,
    /// What stands for the operator's options: a server goes on with sessions that were begun with
    /// the same.
    operator: String,
}

/// A session that has a process, or had one.
#[derive(Debug, Clone)]
struct Seat {
    id: AgentId,
    directory: AgentDirectory,
    places: Places,
    served: Served,
}

impl SessionHost for Workers {
    fn open(&self, wanted: Wanted) -> BoxFuture<'_, Result<Box<dyn HostedSession>, Unopened>> {
        async move {
            let options = self.ground.options(&wanted)?;
            let configuration = configure(&options, self.ground.process.clone());
            let configuration = configuration.map_err(|error| unopened(&error))?;
            let known = match &wanted.session {
                SessionWanted::Earlier {
                    session,
                    copy: None,
                } => self.processes(session).await?,
                SessionWanted::Earlier { .. } | SessionWanted::New(_) => Vec::new(),
            };
            let living = known.iter().find(|it| it.directory.is_held());
            if let Some(living) = living
                && let Some(worker) = self.go_on(living.clone(), &wanted).await?
            {
                return Ok(Box::new(worker) as Box<dyn HostedSession>);
            }
            let mut worker = self.begin(&options, &configuration, &wanted).await?;
            for before in &known {
                worker.settled.extend(before.directory.settled());
                before.forget_done().await;
            }
            Ok(Box::new(worker) as Box<dyn HostedSession>)
        }
        .boxed()
    }

    fn history(&self, session: &str) -> BoxFuture<'_, Result<Vec<Arc<Message>>, String>> {
        self.ground.history(session)
    }

    fn saved(&self) -> BoxFuture<'_, Result<Vec<Saved>, String>> {
        self.ground.saved()
    }

    fn models(&self) -> BoxFuture<'_, Result<Vec<String>, String>> {
        self.ground.models()
    }

    fn remove(&self, session: &str) -> BoxFuture<'_, Result<(), String>> {
        self.ground.remove(session)
    }
}

impl Workers {
    pub(super) fn new(ground: Ground, idle: Option<Duration>) -> Self {
        // Options are plain data: they can be written.
        let said = serde_json::to_vec(&ground.options).unwrap_or_default();
        Self {
            idle,
            operator: digest(&said),
            ground,
        }
    }

    /// Whether a session works where an application wants it, if that says so.
    fn is_there(&self, open: &Open, place: &str) -> bool {
        open.cwd.as_ref().is_none_or(|cwd| {
            let cwd = self.ground.process.current_directory.join(cwd);
            cwd.canonicalize().ok() == Path::new(place).canonicalize().ok()
        })
    }

    /// The processes that have or had a session, by the session's name or id.
    async fn processes(&self, session: &str) -> Result<Vec<Seat>, Unopened> {
        let agents = locations(&self.ground.process).data_dir().join("agents");
        let runtime = locations(&self.ground.process).runtime_dir().to_owned();
        let (store, session) = (self.ground.store(), session.to_owned());
        let found = blocking(move || {
            let registry = Registry::everywhere(&agents);
            let ids = registry.ids();
            let ids = ids.map_err(|error| format!("`{}`: {error}", agents.display()))?;
            let mut all = Vec::new();
            for id in ids {
                let directory = registry.directory(&id);
                let known = directory.report().ok().and_then(|it| it.session_id);
                if let (Ok(spec), Some(known)) = (directory.spec(), known)
                    && let Some(served) = spec.task.served
                {
                    let places = Places {
                        root: spec.root,
                        agents: agents.clone(),
                        runtime: runtime.clone(),
                    };
                    let living = Seat {
                        id,
                        directory,
                        places,
                        served,
                    };
                    all.push((known, living));
                }
            }
            if all.is_empty() {
                return Ok(Vec::new());
            }
            // What is not kept yet has no name but its id.
            let kept = store.find(&session).ok().and_then(|name| {
                let listed = store.list().ok()?.summaries;
                let summary = listed.into_iter().find(|summary| summary.name == name)?;
                Some(summary.session_id.to_string())
            });
            let wanted = kept.unwrap_or(session);
            let found = all.into_iter().filter(|(known, _)| *known == wanted);
            Ok(found.map(|(_, living)| living).collect())
        });
        found.await.map_err(Unopened::Failed)
    }

    /// Goes on with a session that lives; nothing where it ended, so that it can be begun again.
    async fn go_on(&self, living: Seat, wanted: &Wanted) -> Result<Option<Worker>, Unopened> {
        let socket = living.places.worker_socket(&living.id);
        let joint = match Joint::open(&socket, From::Now).await {
            Ok(joint) => joint,
            Err(NotJoined::Busy(message)) => return Err(Unopened::Busy(message)),
            Err(NotJoined::Forbidden(message)) => return Err(Unopened::Failed(message)),
            Err(NotJoined::Gone(error)) => {
                if living.is_gone().await {
                    return Ok(None);
                }
                return Err(living.unreachable(&error));
            }
        };
        self.ground
            .roots
            .check(Path::new(&joint.standing.facts.cwd))?;
        let is_idle = joint.standing.working.is_none() && joint.standing.questions.is_empty();
        let is_as_wanted = living.served.operator == self.operator
            && said(&wanted.open).is_none_or(|said| Some(said) == living.served.application)
            && self.is_there(&wanted.open, &joint.standing.facts.cwd);
        let mut worker = Worker::new(joint, living);
        if !is_as_wanted {
            if !is_idle {
                return Err(Unopened::Busy(format!(
                    "the session is at work, and was begun with other options, by its application \
                     or by its server's operator; wait for it, or end it: `caliban agents kill {}`",
                    worker.living.id
                )));
            }
            // Nothing is lost by that, and what is said now counts.
            let when = Shutdown::WhenIdle;
            let _ = worker.send(Command::Shutdown { when }).await;
            while worker.next().await.is_some() {}
            worker.living.is_gone().await;
            return Ok(None);
        }
        for command in changes(&wanted.open) {
            let _ = worker.send(command).await;
        }
        worker
            .waiting
            .push_back(News::Standing(Box::new(worker.joint.standing.clone())));
        Ok(Some(worker))
    }

    /// Begins a process for a session, and waits until it is known how that went.
    async fn begin(
        &self,
        options: &RunOptions,
        configuration: &Configuration,
        wanted: &Wanted,
    ) -> Result<Worker, Unopened> {
        let served = Served {
            operator: self.operator.clone(),
            application: said(&wanted.open),
            patience_ms: millis(wanted.patience),
            idle_ms: self.idle.map(millis),
        };
        let begun = fleet::host(options, configuration, label(wanted), served.clone()).await;
        let (places, view) = begun.map_err(|failure| no_worker(&failure))?;
        let living = Seat {
            directory: AgentDirectory::at(places.agent(&view.id)),
            id: view.id,
            places,
            served,
        };
        let socket = living.places.worker_socket(&living.id);
        let deadline = Instant::now() + PATIENCE;
        loop {
            match Joint::open(&socket, From::Beginning).await {
                Ok(joint) => return Ok(Worker::new(joint, living)),
                Err(NotJoined::Busy(message) | NotJoined::Forbidden(message)) => {
                    living.end().await;
                    return Err(Unopened::Failed(message));
                }
                Err(NotJoined::Gone(_)) if !living.directory.is_held() => {
                    return Err(living.never_began().await);
                }
                Err(NotJoined::Gone(error)) if Instant::now() > deadline => {
                    living.end().await;
                    return Err(living.unreachable(&error));
                }
                Err(NotJoined::Gone(_)) => sleep(LOOK).await,
            }
        }
    }
}

/// What stands for what an application said that counts for the whole life of a session; nothing
/// where it said nothing of that kind.
fn said(open: &Open) -> Option<String> {
    let kept = Open {
        tab: None,
        cwd: None,
        resume: None,
        fork: false,
        name: None,
        model: None,
        mode: None,
        effort: None,
        ..open.clone()
    };
    // It was read from JSON: it can be written.
    let written = || serde_json::to_vec(&kept).unwrap_or_default();
    (kept != Open::default()).then(|| digest(&written()))
}

fn digest(bytes: &[u8]) -> String {
    caliban_settings::hex(&Sha256::digest(bytes)[..8])
}

/// What a session is called where agents are listed.
fn label(wanted: &Wanted) -> String {
    let open = &wanted.open;
    let called = open.name.as_ref().or(open.tab.as_ref());
    match (called, &wanted.session) {
        (Some(name), _) => name.clone(),
        (None, SessionWanted::Earlier { session, .. }) => session.clone(),
        (None, SessionWanted::New(id)) => id.to_string(),
    }
}

/// What an application wants to be otherwise in a session that is at work already.
fn changes(open: &Open) -> Vec<Command> {
    let mut commands = Vec::new();
    if let Some(model) = &open.model {
        let model = ModelChange::Named(Arc::from(model.as_str()));
        commands.push(Command::SetModel { model });
    }
    if let Some(mode) = open.mode {
        commands.push(Command::SetMode { mode });
    }
    if let Some(effort) = open.effort {
        let reasoning = Reasoning::Effort(effort.into());
        commands.push(Command::SetReasoning { reasoning });
    }
    commands
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Why no process could be begun, and what to do without one.
fn no_worker(failure: &Failure) -> Unopened {
    Unopened::Failed(format!(
        "the session cannot have a process of its own: {failure}; a server that was started with \
         `--in-process` keeps its sessions itself"
    ))
}

/// What an exit code of a process that did not begin says.
fn reason(code: u8, reason: String) -> Unopened {
    match code {
        64 | 66 => Unopened::Misused(reason),
        75 => Unopened::Busy(reason),
        _ => Unopened::Failed(reason),
    }
}

impl Seat {
    /// Waits a moment for the process to be gone.
    async fn is_gone(&self) -> bool {
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
    async fn end(&self) {
        if let Ok(Some(mut client)) = Client::find(&self.places).await {
            let id = self.id.as_str();
            let _ = client.kill(id, KillHow::Politely, PATIENCE).await;
        }
    }

    fn unreachable(&self, error: &std::io::Error) -> Unopened {
        Unopened::Failed(format!(
            "the process of the session ({}) cannot be reached: {error}; `caliban agents kill {0}` \
             ends it",
            self.id
        ))
    }

    /// Why the session did not begin. Whoever asked is told, so nobody else needs to know.
    async fn never_began(&self) -> Unopened {
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
    async fn forget_done(&self) {
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
struct Worker {
    facts: Facts,
    joint: Joint,
    living: Seat,
    waiting: VecDeque<News>,
    settled: Vec<Settled>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    /// Its last event was heard.
    Over,
}

impl Worker {
    fn new(joint: Joint, living: Seat) -> Self {
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
