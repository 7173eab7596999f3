//! Sessions as workers of the fleet: each has a process of its own, which goes on when the server
//! ends or is killed, is listed by `caliban agents list`, and is found again by the next server.

mod worker;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use caliban_fleet::{AgentDirectory, From, Joint, NotJoined, Places, Registry, Served};
use caliban_harness::{Configuration, Permissions, RunOptions, configure, locations};
use caliban_model::{Message, Reasoning};
use caliban_serve::{
    HostedSession, News, Open, Saved, SessionHost, SessionWanted, Unopened, Wanted,
};
use caliban_session::{Command, ModelChange, Shutdown};
use futures::FutureExt;
use futures::future::BoxFuture;
use sha2::{Digest, Sha256};
use tokio::time::{Instant, sleep};

use super::ground::{Ground, blocking, unopened};
use crate::exit::Failure;
use crate::fleet;
use worker::{Seat, Worker};

/// Between two looks at a process that is about to come or to go.
const LOOK: Duration = Duration::from_millis(10);
/// How long a process may take to be reached or to be gone.
const PATIENCE: Duration = Duration::from_secs(10);

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

impl SessionHost for Workers {
    fn open(&self, wanted: Wanted) -> BoxFuture<'_, Result<Box<dyn HostedSession>, Unopened>> {
        async move {
            let options = self.ground.options(&wanted)?;
            let configuration = configure(&options, self.ground.process.clone());
            let configuration = configuration.map_err(|error| unopened(&error))?;
            // A mode that may not be is refused here, where it is known what was asked for.
            Permissions::of_new_run(&options.permissions, &configuration)
                .map_err(|error| unopened(&error))?;
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
