//! The agents of a repository as the daemon has them in hand: which run, which wait for a place, and
//! what is done when one of them is gone.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use rust_decimal::Decimal;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use super::Setup;
use crate::control::{KillHow, Refusal, RefusedBecause, Resumption, RmWhich};
use crate::directory::{AgentDirectory, Held, Registry};
use crate::id::AgentId;
use crate::places::Places;
use crate::spec::{Begin, CallerWorld, Isolation, Launch, Limits, Restart, Spec, Task};
use crate::state::{AgentView, End, Phase, Report};

/// Ids that are tried before that is an error.
const IDS: u32 = 16;
/// How many agents may have asked for each other.
const DEPTH: u32 = 2;
/// How often an agent that crashed is begun again, and in which time.
const RESTARTS: usize = 3;
const RESTARTED: Duration = Duration::from_mins(10);
/// How often it is looked whether a process has gone.
const LOOK: Duration = Duration::from_millis(10);
/// How long a process that was killed may take to be gone.
const GONE: Duration = Duration::from_secs(5);

pub(crate) struct Fleet {
    pub(super) setup: Setup,
    inner: Mutex<Inner>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Inner {
    active: HashMap<AgentId, Active>,
    waiting: VecDeque<Waiting>,
    /// As whoever asked last has them.
    limits: Option<Limits>,
}

/// An agent with a process.
struct Active {
    state: Phase,
    /// Whether it takes one of the places; a server counts what it has worked on itself.
    place: Place,
    pid: Option<u32>,
    /// What it was started with, where this daemon did.
    launch: Option<Launch>,
    restarts: Vec<Instant>,
    end: Wished,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Taken,
    None,
}

impl Place {
    fn of(spec: &Spec) -> Self {
        if spec.is_served() {
            Self::None
        } else {
            Self::Taken
        }
    }
}

impl Active {
    fn is_busy(&self) -> bool {
        self.place == Place::Taken && matches!(self.state, Phase::Spawning | Phase::Running)
    }
}

/// Whether somebody wants an agent to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wished {
    Nothing,
    End,
}

/// An agent that waits for a place. Its lock is held meanwhile.
struct Waiting {
    launch: Launch,
    held: Held,
}

impl Fleet {
    pub(crate) fn new(setup: Setup) -> Arc<Self> {
        Arc::new(Self {
            setup,
            inner: Mutex::default(),
            changes: watch::Sender::new(0),
        })
    }

    pub(crate) fn places(&self) -> &Places {
        &self.setup.places
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn registry(&self) -> Registry {
        let places = self.places();
        Registry::of(&places.agents, &places.root)
    }

    /// Something may have changed.
    pub(crate) fn touch(&self) {
        self.changes.send_modify(|count| *count += 1);
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Agents that have a process or wait for one.
    pub(crate) fn alive(&self) -> usize {
        let inner = self.inner();
        inner.active.len() + inner.waiting.len()
    }

    pub(crate) fn waiting(&self) -> usize {
        self.inner().waiting.len()
    }

    /// All agents as they are on disk.
    pub(crate) async fn views(&self) -> Result<Vec<AgentView>, Refusal> {
        let registry = self.registry();
        let looked = tokio::task::spawn_blocking(move || registry.views()).await;
        let looked = looked.map_err(io::Error::other).flatten();
        looked.map_err(|error| Refusal::failed(&error))
    }

    fn find(&self, text: &str) -> Result<(AgentId, AgentDirectory), Refusal> {
        let registry = self.registry();
        let id = registry.find(text)?;
        let directory = registry.directory(&id);
        Ok((id, directory))
    }

    /// Takes over the agents that live, which an earlier daemon started.
    pub(crate) fn adopt(self: &Arc<Self>) {
        let registry = self.registry();
        for id in registry.ids().unwrap_or_default() {
            let directory = registry.directory(&id);
            if directory.is_held() {
                let report = directory.report().ok();
                let place = directory
                    .spec()
                    .map_or(Place::Taken, |spec| Place::of(&spec));
                // One that cannot be reached takes no more room than it did when it was.
                let state = report.as_ref().map_or(Phase::Spawning, |it| it.state);
                let pid = report.as_ref().and_then(|report| report.pid);
                self.enlist(&id, (place, state), pid, None);
                self.supervise_adopted(id, report.and_then(|report| report.socket));
            }
        }
    }

    fn enlist(
        &self,
        id: &AgentId,
        (place, state): (Place, Phase),
        pid: Option<u32>,
        launch: Option<Launch>,
    ) {
        let mut inner = self.inner();
        let restarts = inner
            .active
            .remove(id)
            .map(|active| active.restarts)
            .unwrap_or_default();
        let active = Active {
            state,
            place,
            pid,
            launch,
            restarts,
            end: Wished::Nothing,
        };
        inner.active.insert(id.clone(), active);
    }

    /// Registers an agent and starts it, or lets it wait for a place.
    pub(crate) async fn spawn(
        self: &Arc<Self>,
        task: Task,
        world: CallerWorld,
        limits: Limits,
    ) -> Result<AgentView, Refusal> {
        let depth = self.depth(task.parent.as_ref())?;
        self.check(&limits).await?;
        let fleet = Arc::clone(self);
        let registered = tokio::task::spawn_blocking(move || fleet.register(task, depth)).await;
        let registered = registered.map_err(io::Error::other).flatten();
        let (spec, held) = registered.map_err(|error| Refusal::failed(&error))?;
        let (id, directory) = (
            spec.id.clone(),
            AgentDirectory::at(self.places().agent(&spec.id)),
        );
        self.enter(spec, world, limits, Begin::Task, held);
        Ok(directory.view(&id))
    }

    /// How many agents asked for each other before one that this one asks for.
    fn depth(&self, parent: Option<&AgentId>) -> Result<u32, Refusal> {
        let Some(parent) = parent else {
            return Ok(0);
        };
        let directory = AgentDirectory::at(self.places().agent(parent));
        let depth = directory.spec().map_or(0, |spec| spec.depth) + 1;
        if depth > DEPTH {
            return Err(Refusal::new(
                RefusedBecause::Limit,
                format!("agents ask agents for agents no further than {DEPTH} deep"),
            ));
        }
        Ok(depth)
    }

    /// Whether there may be one more.
    async fn check(&self, limits: &Limits) -> Result<(), Refusal> {
        let views = self.views().await?;
        let refuse = |message: String| Err(Refusal::new(RefusedBecause::Limit, message));
        if views.len() >= limits.registered {
            return refuse(format!(
                "there are {} agents, and there may be {}; `caliban agents prune` removes those \
                 that have ended (`fleet.max_agents`)",
                views.len(),
                limits.registered
            ));
        }
        let spent: Decimal = views.iter().map(|view| view.cost_usd).sum();
        if let Some(budget) = limits.budget
            && spent >= budget
        {
            return refuse(format!(
                "the agents of this repository have cost ${spent} of ${budget} \
                 (`fleet.max_budget_usd`); `caliban agents prune` forgets those that have ended"
            ));
        }
        Ok(())
    }

    fn register(&self, task: Task, depth: u32) -> io::Result<(Spec, Held)> {
        let places = self.places();
        let created = Timestamp::now();
        for _ in 0..IDS {
            let id = AgentId::random();
            let directory = match AgentDirectory::create(&places.agents, &id) {
                Ok(directory) => directory,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            let held = directory.hold()?.ok_or(io::ErrorKind::ResourceBusy)?;
            let spec = Spec {
                id,
                root: places.root.clone(),
                created,
                depth,
                task,
            };
            directory.write_report(&Report::registered(created))?;
            directory.write_spec(&spec)?;
            return Ok((spec, held));
        }
        Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            "no id is free",
        ))
    }

    /// An agent whose lock is held is started as soon as there is a place.
    fn enter(
        self: &Arc<Self>,
        spec: Spec,
        world: CallerWorld,
        limits: Limits,
        begin: Begin,
        held: Held,
    ) {
        let launch = Launch {
            directory: self.places().agent(&spec.id),
            socket: self.places().worker_socket(&spec.id),
            spec,
            world,
            begin,
        };
        let place = Place::of(&launch.spec);
        {
            let mut inner = self.inner();
            inner.limits = Some(limits);
            if place == Place::Taken {
                inner.waiting.push_back(Waiting { launch, held });
                drop(inner);
                return self.fill();
            }
        }
        self.start(launch, held);
        self.touch();
    }

    /// Starts those that wait, as far as there is room.
    fn fill(self: &Arc<Self>) {
        loop {
            let next = {
                let mut inner = self.inner();
                let most = inner.limits.as_ref().map_or(1, |limits| limits.running);
                let busy = inner.active.values();
                let busy = busy.filter(|active| active.is_busy()).count();
                if busy >= most {
                    None
                } else {
                    inner.waiting.pop_front()
                }
            };
            let Some(Waiting { launch, held }) = next else {
                break;
            };
            self.start(launch, held);
        }
        self.touch();
    }

    /// Starts the process of an agent; one that cannot be started has failed.
    fn start(self: &Arc<Self>, launch: Launch, held: Held) {
        let id = launch.spec.id.clone();
        let place = Place::of(&launch.spec);
        self.enlist(&id, (place, Phase::Spawning), None, Some(launch.clone()));
        match self.host(&launch, &held) {
            Ok((pid, connecting)) => {
                if let Some(active) = self.inner().active.get_mut(&id) {
                    active.pid = pid;
                }
                self.supervise_started(id, connecting, launch);
            }
            Err(error) => {
                self.inner().active.remove(&id);
                let directory = AgentDirectory::at(&launch.directory);
                let written = directory.write_end(&never_began(Phase::Failed, error.to_string()));
                // Where even that fails it has crashed, which is true enough.
                drop((written, held));
            }
        }
    }

    /// A worker said how it is doing.
    pub(super) fn heard(self: &Arc<Self>, id: &AgentId, report: &Report) {
        {
            let mut inner = self.inner();
            let Some(active) = inner.active.get_mut(id) else {
                return;
            };
            active.state = report.state;
            active.pid = report.pid.or(active.pid);
        }
        self.fill();
    }

    /// A worker is not heard of any more: waits until its process is gone, and takes note.
    pub(super) async fn lost(self: &Arc<Self>, id: &AgentId) {
        let directory = AgentDirectory::at(self.places().agent(id));
        let deadline = Instant::now() + GONE;
        while directory.is_held() && Instant::now() < deadline {
            sleep(LOOK).await;
        }
        if directory.is_held() {
            // It lives and does not speak. Its lock says when it is gone.
            return self.wait_for_silent(id, &directory).await;
        }
        self.gone(id, &directory);
    }

    async fn wait_for_silent(self: &Arc<Self>, id: &AgentId, directory: &AgentDirectory) {
        /// How often it is looked for a process that does not speak.
        const RARELY: Duration = Duration::from_secs(1);
        while directory.is_held() {
            sleep(RARELY).await;
        }
        self.gone(id, directory);
    }

    fn gone(self: &Arc<Self>, id: &AgentId, directory: &AgentDirectory) {
        let _ = std::fs::remove_file(self.places().worker_socket(id));
        let active = self.inner().active.remove(id);
        let has_crashed = matches!(directory.end(), Ok(None));
        if let Some(active) = active
            && has_crashed
            && active.end == Wished::Nothing
        {
            self.restart(id, directory, active);
        }
        self.fill();
    }

    /// Begins an agent again that crashed, where that is wanted and helps.
    fn restart(self: &Arc<Self>, id: &AgentId, directory: &AgentDirectory, mut active: Active) {
        let wanted = self.inner().limits.as_ref().map(|limits| limits.restart);
        let (Some(Restart::OnCrash), Some(mut launch)) = (wanted, active.launch.take()) else {
            return;
        };
        let now = Instant::now();
        active
            .restarts
            .retain(|at| now.duration_since(*at) < RESTARTED);
        if active.restarts.len() >= RESTARTS {
            return;
        }
        active.restarts.push(now);
        let Ok(Some(held)) = directory.hold() else {
            return;
        };
        launch.begin = resumed(directory, Phase::Crashed);
        active.launch = None;
        self.inner().active.insert(id.clone(), active);
        self.start(launch, held);
    }

    /// Ends an agent. One that has ended stays as it is.
    pub(crate) async fn kill(
        self: &Arc<Self>,
        text: &str,
        how: KillHow,
        grace: Duration,
    ) -> Result<AgentView, Refusal> {
        let (id, directory) = self.find(text)?;
        self.end(&id, &directory, how, grace).await?;
        Ok(directory.view(&id))
    }

    async fn end(
        self: &Arc<Self>,
        id: &AgentId,
        directory: &AgentDirectory,
        how: KillHow,
        grace: Duration,
    ) -> Result<(), Refusal> {
        let waiting = {
            let mut inner = self.inner();
            let place = inner
                .waiting
                .iter()
                .position(|waiting| waiting.launch.spec.id == *id);
            place.and_then(|place| inner.waiting.remove(place))
        };
        if let Some(waiting) = waiting {
            let end = never_began(Phase::Killed, "it was ended before it began".to_owned());
            let written = directory.write_end(&end);
            drop(waiting.held);
            self.touch();
            return written.map_err(|error| Refusal::failed(&error));
        }
        if !directory.is_held() {
            return Ok(());
        }
        let pid = {
            let mut inner = self.inner();
            let active = inner.active.get_mut(id);
            active.and_then(|active| {
                active.end = Wished::End;
                active.pid
            })
        };
        let pid = pid.or_else(|| directory.report().ok()?.pid);
        let pid = pid
            .and_then(|pid| i32::try_from(pid).ok())
            .and_then(Pid::from_raw)
            .ok_or_else(|| Refusal::new(RefusedBecause::Failed, "its process is not known"))?;
        if how == KillHow::Politely {
            // It may go at this very moment.
            let _ = kill_process(pid, Signal::TERM);
            wait_until_gone(directory, grace).await;
        }
        if directory.is_held() {
            // What it started has guardians, who notice.
            let _ = kill_process_group(pid, Signal::KILL);
            let _ = kill_process(pid, Signal::KILL);
            wait_until_gone(directory, GONE).await;
        }
        self.note_killed(id, directory, how)
    }

    /// An agent that was killed and could not say so itself was killed all the same.
    fn note_killed(
        &self,
        id: &AgentId,
        directory: &AgentDirectory,
        how: KillHow,
    ) -> Result<(), Refusal> {
        let failed = |error: io::Error| Refusal::failed(&error);
        let Some(_held) = directory.hold().map_err(failed)? else {
            return Err(Refusal::new(
                RefusedBecause::Failed,
                format!("the process of {id} cannot be ended"),
            ));
        };
        if matches!(directory.end(), Ok(None)) {
            let reason = match how {
                KillHow::Now => "it was ended at once",
                KillHow::Politely => "it did not end in time",
            };
            let report = directory.report().ok();
            let end = End {
                cost_usd: report
                    .as_ref()
                    .map_or(Decimal::ZERO, |report| report.cost_usd),
                turns: report.map_or(0, |report| report.turns),
                exit_code: 137,
                ..never_began(Phase::Killed, reason.to_owned())
            };
            directory.write_end(&end).map_err(failed)?;
        }
        self.touch();
        Ok(())
    }

    /// Removes an agent and everything of it.
    pub(crate) async fn rm(
        self: &Arc<Self>,
        text: &str,
        which: RmWhich,
    ) -> Result<AgentView, Refusal> {
        let (id, directory) = self.find(text)?;
        let running = |view: &AgentView| {
            let message = format!(
                "{id} is {}; `caliban agents kill {id}` ends it, `--force` does both",
                view.state.as_str()
            );
            Refusal::new(RefusedBecause::Running, message)
        };
        let view = directory.view(&id);
        if view.state.is_alive() {
            match which {
                RmWhich::Ended => return Err(running(&view)),
                RmWhich::Any => {
                    self.end(&id, &directory, KillHow::Now, Duration::ZERO)
                        .await?;
                }
            }
        }
        let failed = |error: io::Error| Refusal::failed(&error);
        let Some(held) = directory.hold().map_err(failed)? else {
            return Err(running(&directory.view(&id)));
        };
        let view = directory.view(&id);
        directory.remove().map_err(failed)?;
        let _ = std::fs::remove_file(self.places().worker_socket(&id));
        drop(held);
        self.touch();
        Ok(view)
    }

    /// The same task once more, under another id.
    pub(crate) async fn respawn(
        self: &Arc<Self>,
        text: &str,
        world: CallerWorld,
        limits: Limits,
    ) -> Result<AgentView, Refusal> {
        let (id, directory) = self.find(text)?;
        let spec = directory.spec().map_err(|error| Refusal::failed(&error))?;
        complete(&spec.task, &world)?;
        let grace = Duration::from_millis(limits.grace_ms);
        self.end(&id, &directory, KillHow::Politely, grace).await?;
        let registered = Limits {
            registered: limits.registered.saturating_add(1),
            ..limits
        };
        let mut task = spec.task;
        if let Isolation::Worktree(wish) = &mut task.isolation {
            // The name is the old one's, and so is what is in it.
            wish.name = None;
        }
        let view = self.spawn(task, world, registered).await?;
        self.rm(id.as_str(), RmWhich::Any).await?;
        Ok(view)
    }

    /// An agent that ended goes on, under its id.
    pub(crate) fn resume(
        self: &Arc<Self>,
        text: &str,
        wish: Resumption,
        world: CallerWorld,
        limits: Limits,
    ) -> Result<AgentView, Refusal> {
        let failed = |error: io::Error| Refusal::failed(&error);
        let (id, directory) = self.find(text)?;
        let spec = directory.spec().map_err(failed)?;
        complete(&spec.task, &world)?;
        let Some(held) = directory.hold().map_err(failed)? else {
            let state = directory.view(&id).state.as_str();
            let message = format!("{id} is {state}; `caliban attach {id}` speaks to it");
            return Err(Refusal::new(RefusedBecause::Running, message));
        };
        let state = match directory.end() {
            Ok(Some(end)) => end.state,
            Ok(None) | Err(_) => Phase::Crashed,
        };
        let begin = match wish {
            Resumption::Prompt(text) => Begin::Prompt(text),
            Resumption::Wait => Begin::Wait,
            Resumption::AsItWas => resumed(&directory, state),
        };
        let before = directory.report().ok();
        directory.forget_end().map_err(failed)?;
        let registered = Report::registered(Timestamp::now());
        let report = Report {
            cost_usd: before
                .as_ref()
                .map_or(Decimal::ZERO, |report| report.cost_usd),
            turns: before.as_ref().map_or(0, |report| report.turns),
            session_id: before.and_then(|report| report.session_id),
            ..registered
        };
        directory.write_report(&report).map_err(failed)?;
        self.enter(spec, world, limits, begin, held);
        Ok(directory.view(&id))
    }
}

/// What an agent goes on with that was in this state.
fn resumed(directory: &AgentDirectory, state: Phase) -> Begin {
    match state {
        // Its server says what there is to do.
        _ if directory.spec().is_ok_and(|spec| spec.is_served()) => Begin::Wait,
        _ if !directory.has_conversation() => Begin::Task,
        Phase::Crashed => Begin::GoOn,
        Phase::Spawning
        | Phase::Running
        | Phase::Idle
        | Phase::Killed
        | Phase::Done
        | Phase::Failed => Begin::Wait,
    }
}

/// Refuses to begin an agent again without what was not written down.
fn complete(task: &Task, world: &CallerWorld) -> Result<(), Refusal> {
    let missing: Vec<&str> = task
        .withheld
        .iter()
        .filter(|name| world.withheld.iter().all(|(given, _)| given != *name))
        .map(String::as_str)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(
        RefusedBecause::Invalid,
        format!(
            "it was started with values that are not kept, because they may hold secrets: give {} \
             again",
            missing.join(" and ")
        ),
    ))
}

fn never_began(state: Phase, reason: String) -> End {
    End {
        state,
        outcome: None,
        exit_code: match state {
            Phase::Killed => 124,
            _ => 1,
        },
        reason: Some(reason),
        cost_usd: Decimal::ZERO,
        turns: 0,
        at: Timestamp::now(),
    }
}

async fn wait_until_gone(directory: &AgentDirectory, most: Duration) {
    let deadline = Instant::now() + most;
    while directory.is_held() && Instant::now() < deadline {
        sleep(LOOK).await;
    }
}
