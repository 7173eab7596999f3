//! The process of one agent. It is started with its socket, which already listens, as standard
//! input and its lock, which is already held, as standard output, so that there is no moment in
//! which it cannot be reached or counts as dead. What it is to do its parent tells over the socket.

mod conduct;
mod host;
mod partner;
mod questions;
pub(crate) mod ring;
mod room;
mod telling;
pub(crate) mod visitor;

use std::future::Future;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use caliban_model::CancellationToken;
use caliban_session::{Command, Delivery, Events, Prompt, SessionHandle};
use jiff::Timestamp;
use rust_decimal::Decimal;
use tokio::net::UnixListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::time::timeout;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};
use uuid::Uuid;

pub use conduct::{Attends, Conduct, OnFailure};
use host::{Host, Work, write_end};
use partner::Session;
pub use questions::OnQuestion;
pub(crate) use questions::short;
pub use ring::Kind;
pub use room::Beginning;
use room::Room;
pub use telling::lines;
pub use visitor::Snapshot;
use visitor::{First, Reception};

use crate::directory::AgentDirectory;
use crate::spec::{Begin, Launch};
use crate::state::{End, Phase, Report, boot_id};
use crate::wire::{Connection, MAX_LINE};

/// How long the parent may take to say what there is to do.
const ORDERS: Duration = Duration::from_secs(10);
/// Connections at the same time.
const CONNECTIONS: usize = 64;
/// What visitors want that may wait to be heard.
const WORDS: usize = 64;
/// How long those who are attached have to hear the end.
const FAREWELL: Duration = Duration::from_secs(1);

/// What the model is told that was cut off in the middle.
const GO_ON: &str = "You were cut off before you had finished: the process that you ran in ended \
                     unexpectedly. Look at what is done and what is not, and go on with your task.";

/// A session that a worker runs.
#[derive(Debug)]
pub struct Started {
    pub handle: SessionHandle,
    pub events: Events,
    pub conduct: Conduct,
    pub snapshot: Arc<dyn Snapshot>,
    pub beginning: Beginning,
}

/// Why there is no session.
#[derive(Debug)]
pub struct NotStarted {
    pub reason: String,
    pub exit_code: u8,
}

/// Runs the agent that the parent names, to its end. `begin` makes a session of what it is told;
/// `stop` is the wish of a signal that it end.
pub async fn run<B, F>(begin: B, stop: CancellationToken) -> io::Result<End>
where
    B: FnOnce(Launch) -> F,
    F: Future<Output = Result<Started, NotStarted>>,
{
    // Ours alone from here on: neither the terminal nor the daemon takes it along.
    let _ = rustix::process::setsid();
    let listener = listener(io::stdin().as_fd().try_clone_to_owned()?)?;
    let (launch, parent) = timeout(ORDERS, orders(&listener)).await??;
    let directory = AgentDirectory::at(&launch.directory);
    let report = Report {
        pid: Some(std::process::id()),
        boot: boot_id(),
        socket: Some(launch.socket.clone()),
        ..earlier(&directory)
    };
    directory.write_report(&report)?;
    let first = first_prompt(&launch);
    let is_served = launch.spec.is_served();
    let started = tokio::select! {
        started = begin(launch) => started,
        () = stop.cancelled() => Err(NotStarted {
            reason: String::new(),
            exit_code: 124,
        }),
    };
    let started = match started {
        Ok(started) => started,
        Err(problem) => {
            let end = End {
                cost_usd: report.cost_usd,
                turns: report.turns,
                ..unbegun(problem, &stop)
            };
            write_end(&directory, &end).await?;
            drop(parent);
            return Ok(end);
        }
    };
    let room = Arc::new(Room::new(report, started.beginning));
    let (words, heard) = mpsc::channel(WORDS);
    let session = is_served.then(|| Session::new(started.handle.clone()));
    let life = session.as_ref().map(Session::life);
    let reception = Reception {
        session,
        room: Arc::clone(&room),
        words,
        snapshot: started.snapshot,
    };
    let visitors = TaskTracker::new();
    let supervision = reception.clone().supervise(parent);
    visitors.spawn(async move {
        // The daemon may go and come back.
        let _ = supervision.await;
    });
    let receiving =
        AbortOnDropHandle::new(tokio::spawn(receive(listener, reception, visitors.clone())));
    let work = match &first {
        Some(_) => Work::Going,
        None => Work::Waiting,
    };
    if let Some(prompt) = first {
        let delivery = Delivery::Queue;
        // A session that is over already says so itself.
        let _ = started
            .handle
            .send(Command::Prompt { prompt, delivery })
            .await;
    }
    let host = Host {
        handle: started.handle,
        events: started.events,
        room: Arc::clone(&room),
        directory,
        words: heard,
        conduct: started.conduct,
        work,
        life,
        stop,
    };
    let end = host.live().await?;
    drop(receiving);
    drop(room);
    visitors.close();
    let _ = timeout(FAREWELL, visitors.wait()).await;
    Ok(end)
}

fn listener(socket: OwnedFd) -> io::Result<UnixListener> {
    let listener = std::os::unix::net::UnixListener::from(socket);
    listener.set_nonblocking(true)?;
    UnixListener::from_std(listener)
}

/// Waits for the parent to say what there is to do. Nobody else is listened to.
async fn orders(listener: &UnixListener) -> io::Result<(Launch, Connection)> {
    loop {
        let (stream, _) = listener.accept().await?;
        let Ok(mut connection) = Connection::of(stream) else {
            continue;
        };
        if !is_parent(connection.peer.pid) {
            continue;
        }
        // A task may have as much to say as any line.
        if let Ok(Some(First::Launch(launch))) = connection.lines.next(MAX_LINE).await {
            return Ok((*launch, connection));
        }
    }
}

fn is_parent(pid: Option<i32>) -> bool {
    let parent = rustix::process::getppid().map(rustix::process::Pid::as_raw_pid);
    parent.is_some() && parent == pid
}

/// The state to begin with: what the agent had come to before this process stays.
fn earlier(directory: &AgentDirectory) -> Report {
    let report = Report::registered(Timestamp::now());
    match directory.report() {
        Ok(earlier) => Report {
            cost_usd: earlier.cost_usd,
            turns: earlier.turns,
            ..report
        },
        Err(_) => report,
    }
}

fn first_prompt(launch: &Launch) -> Option<Prompt> {
    let text = match &launch.begin {
        // Its server says what there is to do.
        Begin::Task | Begin::GoOn if launch.spec.is_served() => return None,
        Begin::Task => launch.spec.task.prompt.clone(),
        Begin::GoOn => GO_ON.to_owned(),
        Begin::Prompt(text) => text.clone(),
        Begin::Wait => return None,
    };
    Some(Prompt::typed(Uuid::new_v4().to_string(), text))
}

fn unbegun(problem: NotStarted, stop: &CancellationToken) -> End {
    let is_killed = stop.is_cancelled();
    End {
        state: if is_killed {
            Phase::Killed
        } else {
            Phase::Failed
        },
        outcome: None,
        exit_code: problem.exit_code,
        reason: Some(problem.reason).filter(|reason| !reason.is_empty()),
        cost_usd: Decimal::ZERO,
        turns: 0,
        at: Timestamp::now(),
    }
}

/// Takes in connections, so many at a time.
async fn receive(listener: UnixListener, reception: Reception, visitors: TaskTracker) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // Too many open files, most likely; they become fewer.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let reception = reception.clone();
        visitors.spawn(async move {
            // A visitor that goes or misbehaves is no trouble of the agent's.
            let _ = reception.serve(stream).await;
            drop(place);
        });
    }
}
