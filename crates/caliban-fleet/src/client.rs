//! Talking to the daemon of a repository, which is started where it is not there.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use caliban_process::Invocation;
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::control::{
    DaemonStatus, Hello, KillHow, Refusal, RefusedBecause, Reply, Request, Resumption, RmWhich,
};
use crate::daemon::DAEMON_ARGUMENT;
use crate::peer::is_within_tool;
use crate::places::Places;
use crate::spec::{CallerWorld, Limits, Task};
use crate::state::AgentView;
use crate::wire::{Connection, MAX_LINE, OLDEST, PROTOCOL, is_spoken};

/// How long a daemon may take to start.
const START: Duration = Duration::from_secs(10);
/// How often one is started that goes at the very moment it is wanted.
const ATTEMPTS: u32 = 5;

/// The digits of a process id.
const LONGEST_PID: u64 = 20;

/// A connection to the daemon.
#[derive(Debug)]
pub struct Client {
    connection: Connection,
    hello: Hello,
}

/// How a daemon is started.
#[derive(Debug, Clone)]
pub struct Starter {
    pub executable: PathBuf,
    /// What it sees; nothing in it is a secret.
    pub environment: Vec<(OsString, OsString)>,
}

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("there is no daemon for `{}`: {reason}", .root.display())]
    NoDaemon { root: PathBuf, reason: String },
    #[error("the daemon: {0}")]
    Io(#[from] io::Error),
}

impl ClientError {
    /// Whether the daemon that was spoken to is not there any more, so that the next one can be
    /// asked.
    pub fn is_gone(&self) -> bool {
        match self {
            Self::Io(error) => matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::ConnectionReset
                    | io::ErrorKind::BrokenPipe
            ),
            Self::Refused(_) | Self::NoDaemon { .. } => false,
        }
    }
}

impl ClientError {
    /// Whether what has the daemon's place does not speak.
    pub fn is_silent(&self) -> bool {
        matches!(self, Self::Io(error) if error.kind() == io::ErrorKind::TimedOut)
    }
}

impl Client {
    /// The daemon, if there is one.
    pub async fn find(places: &Places) -> Result<Option<Self>, ClientError> {
        let socket = places.control_socket();
        if !socket.exists() {
            return Ok(None);
        }
        places.check_runtime()?;
        let mut connection = match Connection::open(&socket).await {
            Ok(connection) => connection,
            Err(error)
                if matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused
                ) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        connection.send(&Hello::ours(0)).await?;
        let hello: Hello = connection.lines.hello().await.map_err(|error| {
            let text = format!(
                "`{}`: {error}; `caliban daemon stop` ends what is there, or remove it",
                socket.display()
            );
            io::Error::new(error.kind(), text)
        })?;
        if !is_spoken(hello.protocol) {
            let message = format!(
                "the daemon runs with caliban {} and speaks version {} of the protocol, and this is \
                 caliban {}, which speaks {OLDEST} to {PROTOCOL}; use that caliban, or end the \
                 daemon's process ({}): its agents go on",
                hello.build,
                hello.protocol,
                env!("CARGO_PKG_VERSION"),
                hello.pid
            );
            return Err(Refusal::new(RefusedBecause::Version, message).into());
        }
        if hello.protocol < PROTOCOL {
            // It has refused ours already, and is spoken to in its own.
            connection = Connection::open(&socket).await?;
            let protocol = hello.protocol;
            let ours = Hello {
                protocol,
                ..Hello::ours(0)
            };
            connection.send(&ours).await?;
            connection.lines.hello::<Hello>().await?;
        }
        Ok(Some(Self { connection, hello }))
    }

    /// Whether the daemon makes room for ours: an older one does, unless agents wait in it for a
    /// place, of which nobody else knows what they are to do. Those that have a process go on, and
    /// the next daemon takes them over.
    async fn gives_way(&mut self) -> Result<bool, ClientError> {
        let is_older = self.hello.protocol < PROTOCOL
            || is_older(&self.hello.build, env!("CARGO_PKG_VERSION"));
        if !is_older {
            return Ok(false);
        }
        Ok(self.hello.alive == 0 || self.status().await?.waiting == 0)
    }

    /// The daemon, which is started where there is none. One of an earlier version makes room for
    /// ours as soon as nothing is lost by it.
    pub async fn find_or_start(places: &Places, starter: &Starter) -> Result<Self, ClientError> {
        for _ in 0..ATTEMPTS {
            match Self::find(places).await {
                Ok(Some(mut client)) => {
                    if !client.gives_way().await? {
                        return Ok(client);
                    }
                    client.stop().await?;
                }
                // It was just about to go, or was ended in this very moment.
                Err(error) if error.is_gone() => {}
                Err(error) => return Err(error),
                Ok(None) => start(places, starter).await?,
            }
        }
        Err(ClientError::NoDaemon {
            root: places.root.clone(),
            reason: "it goes as soon as it comes".to_owned(),
        })
    }

    async fn ask(&mut self, request: &Request) -> Result<Reply, ClientError> {
        self.connection.send(request).await?;
        self.reply().await
    }

    async fn reply(&mut self) -> Result<Reply, ClientError> {
        let reply = self.connection.lines.next(usize::MAX / 2).await?;
        match reply {
            Some(Reply::Refused(refusal)) => Err(refusal.into()),
            Some(reply) => Ok(reply),
            None => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        }
    }

    async fn agent(&mut self, request: &Request) -> Result<AgentView, ClientError> {
        match self.ask(request).await? {
            Reply::Agent { agent } => Ok(*agent),
            _ => Err(unexpected()),
        }
    }

    pub async fn spawn(
        &mut self,
        task: Task,
        world: CallerWorld,
        limits: Limits,
    ) -> Result<AgentView, ClientError> {
        let task = Box::new(task);
        let request = Request::Spawn {
            task,
            world,
            limits,
        };
        self.agent(&request).await
    }

    pub async fn respawn(
        &mut self,
        id: &str,
        world: CallerWorld,
        limits: Limits,
    ) -> Result<AgentView, ClientError> {
        let id = id.to_owned();
        let request = Request::Respawn { id, world, limits };
        self.agent(&request).await
    }

    pub async fn resume(
        &mut self,
        id: &str,
        wish: Resumption,
        world: CallerWorld,
        limits: Limits,
    ) -> Result<AgentView, ClientError> {
        let request = Request::Resume {
            id: id.to_owned(),
            wish,
            world,
            limits,
        };
        self.agent(&request).await
    }

    /// Ends an agent; one that has ended stays as it is.
    pub async fn kill(
        &mut self,
        id: &str,
        how: KillHow,
        grace: Duration,
    ) -> Result<AgentView, ClientError> {
        let request = Request::Kill {
            id: id.to_owned(),
            how,
            grace_ms: u64::try_from(grace.as_millis()).unwrap_or(u64::MAX),
        };
        self.agent(&request).await
    }

    /// Removes an agent; returns what it was.
    pub async fn rm(&mut self, id: &str, which: RmWhich) -> Result<AgentView, ClientError> {
        let id = id.to_owned();
        self.agent(&Request::Rm { id, which }).await
    }

    pub async fn list(&mut self) -> Result<Vec<AgentView>, ClientError> {
        match self.ask(&Request::List).await? {
            Reply::Agents { agents } => Ok(agents),
            _ => Err(unexpected()),
        }
    }

    pub async fn status(&mut self) -> Result<DaemonStatus, ClientError> {
        match self.ask(&Request::Status).await? {
            Reply::Status(status) => Ok(status),
            _ => Err(unexpected()),
        }
    }

    /// Ends the daemon; returns how many agents go on without it. Whoever starts the next one need
    /// not wait: this one has given its place up.
    pub async fn stop(&mut self) -> Result<usize, ClientError> {
        match self.ask(&Request::Stop).await? {
            Reply::Gone { alive } => {
                // Its end, so that nobody finds it any more.
                let _ = self.connection.lines.text(MAX_LINE).await;
                Ok(alive)
            }
            _ => Err(unexpected()),
        }
    }

    /// All agents, whenever one of them changes.
    pub async fn watch(mut self) -> Result<Watching, ClientError> {
        self.connection.send(&Request::Watch).await?;
        Ok(Watching(self))
    }
}

/// All agents, again and again.
#[derive(Debug)]
pub struct Watching(Client);

impl Watching {
    /// The agents as they are now; waits until something has changed. Nothing once the daemon is
    /// gone.
    pub async fn next(&mut self) -> Result<Option<Vec<AgentView>>, ClientError> {
        match self.0.reply().await {
            Ok(Reply::Agents { agents }) => Ok(Some(agents)),
            Ok(_) => Err(unexpected()),
            Err(error) if error.is_gone() => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Whether one version of the program is earlier than another; what is no version is not.
fn is_older(one: &str, other: &str) -> bool {
    let numbers = |text: &str| {
        let plain = text.split(['-', '+']).next().unwrap_or_default();
        let numbers = plain.split('.').map(str::parse::<u64>);
        numbers.collect::<Result<Vec<u64>, _>>().ok()
    };
    match (numbers(one), numbers(other)) {
        (Some(one), Some(other)) => one < other,
        _ => false,
    }
}

fn unexpected() -> ClientError {
    io::Error::new(io::ErrorKind::InvalidData, "it answers something else").into()
}

/// The process that has the place of the daemon, where one has it and says so.
pub fn holder(places: &Places) -> io::Result<Option<u32>> {
    let mut lock = match std::fs::File::open(places.daemon_lock()) {
        Ok(lock) => lock,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match lock.try_lock_shared() {
        Ok(()) => return Ok(None),
        Err(std::fs::TryLockError::WouldBlock) => {}
        Err(std::fs::TryLockError::Error(error)) => return Err(error),
    }
    let mut text = String::new();
    std::io::Read::take(&mut lock, LONGEST_PID).read_to_string(&mut text)?;
    Ok(text.trim().parse().ok())
}

/// Starts a daemon and waits until it listens.
async fn start(places: &Places, starter: &Starter) -> Result<(), ClientError> {
    let failed = |reason: String| ClientError::NoDaemon {
        root: places.root.clone(),
        reason,
    };
    if is_within_tool() {
        return Err(failed(
            "it cannot be started by a command of an agent, with which it would end; start it with \
             `caliban agents list` in a terminal"
                .to_owned(),
        ));
    }
    places.prepare_runtime()?;
    let log = std::fs::OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .open(places.daemon_log())?;
    let (ready, told) = io::pipe()?;
    let invocation = Invocation {
        program: starter.executable.clone().into(),
        args: vec![DAEMON_ARGUMENT.into(), places.root.clone().into()],
        directory: "/".into(),
        environment: starter.environment.clone(),
    };
    invocation
        .detach(std::process::Stdio::null(), told.into(), log.into())
        .map_err(|error| failed(error.to_string()))?;
    let ready = tokio::net::unix::pipe::Receiver::from_owned_fd(ready.into())?;
    let mut line = String::new();
    let mut ready = BufReader::new(ready);
    match tokio::time::timeout(START, ready.read_line(&mut line)).await {
        Ok(Ok(_)) if line.trim() == "ready" => Ok(()),
        Ok(Ok(0)) => Err(failed(format!(
            "it ended at once; `{}` may say why",
            places.daemon_log().display()
        ))),
        Ok(Ok(_)) => Err(failed(line.trim().to_owned())),
        Ok(Err(error)) => Err(error.into()),
        Err(_) => Err(failed("it does not start in time".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::is_older;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert!(is_older("0.9.9", "0.10.0"));
        assert!(is_older("0.1.0-rc.1", "0.1.1"));
        assert!(!is_older("0.1.0", "0.1.0"));
        assert!(!is_older("1.0.0", "0.9.0"));
        assert!(!is_older("unknown", "0.9.0"));
    }
}
