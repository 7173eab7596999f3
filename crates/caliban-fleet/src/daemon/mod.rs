//! The daemon of a repository: it starts agents, lists them and notices when they are gone. All it
//! knows is on disk and in locks, but for what waits to be started.

mod fleet;
mod hosting;

use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use caliban_model::CancellationToken;
use jiff::Timestamp;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use crate::client::holder;
use crate::control::{DaemonStatus, Hello, Refusal, RefusedBecause, Reply, Request};
use crate::id::AgentId;
use crate::places::Places;
use crate::wire::{Connection, MAX_LINE, OLDEST, PROTOCOL, is_spoken};
use fleet::Fleet;

/// The first argument that makes the program a daemon.
pub const DAEMON_ARGUMENT: &str = "__daemon";

/// How often a daemon looks whether it can still be found.
const FOUND: Duration = Duration::from_secs(2);
/// Connections at the same time.
const CONNECTIONS: usize = 64;

/// What a daemon needs to know.
#[derive(Debug, Clone)]
pub struct Setup {
    pub places: Places,
    /// What workers are started as.
    pub executable: PathBuf,
    /// How long it stays with nothing to do.
    pub linger: Duration,
}

/// Runs the daemon until it is told to end or has had nothing to do for a while. Says `ready` on
/// standard output when it can be reached; the error says why it cannot. `tidying` is done beside it,
/// once it is the one daemon there is.
pub async fn serve(setup: Setup, tidying: impl Future<Output = ()>) -> io::Result<()> {
    // Ours alone from here on: the terminal does not take it along.
    let _ = rustix::process::setsid();
    let places = setup.places.clone();
    places.prepare_runtime()?;
    let mut lock = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(places.daemon_lock())?;
    let socket = places.control_socket();
    if let Place::Taken = place(&lock, &places).await? {
        say_ready();
        return Ok(());
    }
    // For whoever finds the place taken and nobody there.
    lock.set_len(0)?;
    lock.rewind()?;
    lock.write_all(std::process::id().to_string().as_bytes())?;
    match std::fs::remove_file(&socket) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            let text = format!(
                "`{}` is where the daemon listens, and what is there cannot be removed: {error}; \
                 remove it",
                socket.display()
            );
            return Err(io::Error::new(error.kind(), text));
        }
        Ok(()) | Err(_) => {}
    }
    let listener = UnixListener::bind(&socket)?;
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o600))?;
    let own = inode(&socket);
    let fleet = Fleet::new(setup.clone());
    fleet.adopt();
    say_ready();
    let stop = CancellationToken::new();
    let daemon = Arc::new(Daemon {
        fleet: Arc::clone(&fleet),
        started: Timestamp::now(),
        stop: stop.clone(),
    });
    let places_left = Arc::new(Semaphore::new(CONNECTIONS));
    let receiving = daemon.receive(&listener, &places_left);
    let quiet = quiet(&fleet, &places_left, setup.linger);
    let tidying = async {
        tidying.await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = tidying => {}
        never = receiving => never?,
        () = quiet => {}
        () = stop.cancelled() => {}
        () = hidden(&fleet, &socket, own) => {}
    }
    // Nobody finds it from here on; who has it still is answered with its end. Another daemon's
    // socket may be there, where the directory was removed and made anew.
    if inode(&socket) == own {
        let _ = std::fs::remove_file(&socket);
    }
    drop(lock);
    Ok(())
}

/// What tells one file of a name from the next.
fn inode(path: &Path) -> Option<(u64, u64)> {
    let about = std::fs::symlink_metadata(path).ok()?;
    Some((about.dev(), about.ino()))
}

/// Waits until somebody has removed the socket: nobody finds this daemon any more, and the next one
/// takes the agents over. Only agents that wait for a place would be lost with it.
async fn hidden(fleet: &Fleet, socket: &Path, own: Option<(u64, u64)>) {
    while inode(socket) == own || fleet.waiting() > 0 {
        tokio::time::sleep(FOUND).await;
    }
}

/// Whether there is another daemon.
enum Place {
    Ours,
    Taken,
}

/// Takes the place of the daemon, or waits until the one that has it can be reached. Somebody may
/// only be looking whether there is one.
async fn place(lock: &std::fs::File, places: &Places) -> io::Result<Place> {
    const PATIENCE: Duration = Duration::from_secs(5);
    const LOOK: Duration = Duration::from_millis(10);
    let socket = places.control_socket();
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(Place::Ours),
            Err(std::fs::TryLockError::WouldBlock) => {}
            Err(std::fs::TryLockError::Error(error)) => return Err(error),
        }
        if UnixStream::connect(&socket).await.is_ok() {
            return Ok(Place::Taken);
        }
        if tokio::time::Instant::now() > deadline {
            let who = match holder(places)? {
                Some(pid) => format!("the process {pid}"),
                None => "another process".to_owned(),
            };
            return Err(io::Error::new(
                io::ErrorKind::ResourceBusy,
                format!(
                    "{who} is the daemon and does not answer at `{}`; `caliban daemon stop` ends it, \
                     and its agents go on",
                    socket.display()
                ),
            ));
        }
        tokio::time::sleep(LOOK).await;
    }
}

fn say_ready() {
    let mut out = io::stdout().lock();
    // Whoever wanted it may have gone.
    let _ = out.write_all(b"ready\n").and_then(|()| out.flush());
}

/// Waits until there was nothing to do for so long.
async fn quiet(fleet: &Fleet, places: &Semaphore, linger: Duration) {
    let mut changes = fleet.changes();
    loop {
        let is_busy = || fleet.alive() > 0 || places.available_permits() < CONNECTIONS - 1;
        changes.mark_unchanged();
        if is_busy() {
            // Connections that go are a change as well.
            let _ = changes.changed().await;
            continue;
        }
        match tokio::time::timeout(linger, changes.changed()).await {
            Ok(_) => {}
            Err(_) if is_busy() => {}
            Err(_) => return,
        }
    }
}

/// Who wants something.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Caller {
    Person,
    /// An agent, or something that one started; which one, where that can be found out.
    Agent(Option<AgentId>),
}

struct Daemon {
    fleet: Arc<Fleet>,
    started: Timestamp,
    stop: CancellationToken,
}

impl Daemon {
    async fn receive(
        self: &Arc<Self>,
        listener: &UnixListener,
        places: &Arc<Semaphore>,
    ) -> io::Result<()> {
        loop {
            let place = Arc::clone(places)
                .acquire_owned()
                .await
                .map_err(io::Error::other)?;
            let (stream, _) = listener.accept().await?;
            let daemon = Arc::clone(self);
            tokio::spawn(async move {
                // A client that goes or misbehaves is no trouble of the others'.
                let _ = daemon.converse(stream).await;
                drop(place);
                daemon.fleet.touch();
            });
        }
    }

    async fn converse(&self, stream: UnixStream) -> io::Result<()> {
        let mut connection = Connection::of(stream)?;
        let hello: Hello = connection.lines.hello().await?;
        connection.send(&Hello::ours(self.fleet.alive())).await?;
        if !is_spoken(hello.protocol) {
            let message = format!(
                "this daemon runs with caliban {} and speaks versions {OLDEST} to {PROTOCOL} of the \
                 protocol, not {}; use that caliban, or end it with its own `caliban daemon stop`: \
                 its agents go on",
                env!("CARGO_PKG_VERSION"),
                hello.protocol
            );
            let refusal = Refusal::new(RefusedBecause::Version, message);
            return connection.send(&Reply::Refused(refusal)).await;
        }
        loop {
            let request = match connection.lines.next(MAX_LINE).await {
                Ok(Some(request)) => request,
                Ok(None) => return Ok(()),
                Err(error) => {
                    let refusal = Refusal::new(RefusedBecause::Invalid, error.to_string());
                    return connection.send(&Reply::Refused(refusal)).await;
                }
            };
            match request {
                Request::Watch => return self.watch(&mut connection).await,
                Request::Stop => {
                    let alive = self.fleet.alive();
                    let _ = std::fs::remove_file(self.fleet.places().control_socket());
                    connection.send(&Reply::Gone { alive }).await?;
                    self.stop.cancel();
                    return Ok(());
                }
                request => {
                    let caller = if connection.peer.is_of_an_agent() {
                        Caller::Agent(connection.peer.agent())
                    } else {
                        Caller::Person
                    };
                    let reply = self.obey(request, caller).await;
                    let reply = reply.unwrap_or_else(Reply::Refused);
                    connection.send(&reply).await?;
                }
            }
        }
    }

    async fn obey(&self, request: Request, caller: Caller) -> Result<Reply, Refusal> {
        let agent = |agent| {
            Ok(Reply::Agent {
                agent: Box::new(agent),
            })
        };
        let fleet = &self.fleet;
        match request {
            Request::Spawn {
                task,
                world,
                limits,
            } => {
                let mut task = *task;
                // It is not asked whose child it is.
                if let Caller::Agent(asking) = caller {
                    task.parent = asking.or(task.parent);
                    if task.parent.is_none() {
                        return Err(Refusal::new(
                            RefusedBecause::Limit,
                            "an agent asks for another, and which one cannot be found out",
                        ));
                    }
                }
                agent(fleet.spawn(task, world, limits).await?)
            }
            Request::Respawn { id, world, limits } => {
                agent(fleet.respawn(&id, world, limits).await?)
            }
            // What it is told then would be an agent's word to an agent.
            Request::Resume { .. } if matches!(caller, Caller::Agent(_)) => Err(Refusal::new(
                RefusedBecause::Invalid,
                "an agent can neither type to an agent nor answer its questions",
            )),
            Request::Resume {
                id,
                wish,
                world,
                limits,
            } => agent(fleet.resume(&id, wish, world, limits)?),
            Request::Kill { id, how, grace_ms } => {
                let grace = Duration::from_millis(grace_ms);
                agent(fleet.kill(&id, how, grace).await?)
            }
            Request::Rm { id, which } => agent(fleet.rm(&id, which).await?),
            Request::List => Ok(Reply::Agents {
                agents: fleet.views().await?,
            }),
            Request::Status => Ok(Reply::Status(self.status().await?)),
            Request::Watch | Request::Stop => Err(Refusal::new(
                RefusedBecause::Invalid,
                "it is not answered like this",
            )),
        }
    }

    async fn status(&self) -> Result<DaemonStatus, Refusal> {
        let places = self.fleet.places();
        Ok(DaemonStatus {
            pid: std::process::id(),
            build: env!("CARGO_PKG_VERSION").to_owned(),
            protocol: PROTOCOL,
            started: self.started,
            root: places.root.clone(),
            socket: places.control_socket(),
            alive: self.fleet.alive(),
            waiting: self.fleet.waiting(),
            agents: self.fleet.views().await?.len(),
        })
    }

    /// Tells all agents, whenever one of them changes, to the end of the connection.
    async fn watch(&self, connection: &mut Connection) -> io::Result<()> {
        /// The shortest pause between two lists.
        const PAUSE: Duration = Duration::from_millis(50);
        let mut changes = self.fleet.changes();
        let mut last = None;
        let Connection { lines, writer, .. } = connection;
        let gone = lines.text(MAX_LINE);
        tokio::pin!(gone);
        loop {
            changes.mark_unchanged();
            let agents = self.fleet.views().await.map_err(io::Error::other)?;
            if last.as_ref() != Some(&agents) {
                last = Some(agents.clone());
                crate::wire::send(writer, &Reply::Agents { agents }).await?;
            }
            tokio::select! {
                told = changes.changed() => told.map_err(io::Error::other)?,
                _ = &mut gone => return Ok(()),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
