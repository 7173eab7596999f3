//! Starting the process of an agent, and hearing how it is doing.

use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;

use caliban_process::Invocation;
use serde::Deserialize;
use tokio::net::UnixStream;

use super::fleet::Fleet;
use crate::directory::{AgentDirectory, Held};
use crate::id::AgentId;
use crate::peer::{AGENT_VARIABLE, WORKER_ARGUMENT};
use crate::spec::Launch;
use crate::state::Report;
use crate::wire::{Connection, MAX_LINE, OLDEST, PROTOCOL};
use crate::worker::visitor::First;

impl Fleet {
    /// Starts the process of an agent, which listens and counts as alive from the first moment.
    /// What it is to do is to be told over the connection.
    pub(super) fn host(
        &self,
        launch: &Launch,
        held: &Held,
    ) -> io::Result<(Option<u32>, std::os::unix::net::UnixStream)> {
        let cwd = &launch.spec.task.cwd;
        if !cwd.is_dir() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                format!("its working directory `{}` is gone", cwd.display()),
            ));
        }
        let listener = listen(&launch.socket)?;
        let log = AgentDirectory::at(&launch.directory).open_log()?;
        let environment = &launch.world.environment;
        let marked = [(AGENT_VARIABLE.to_owned(), launch.spec.id.to_string())];
        let invocation = Invocation {
            program: self.setup.executable.clone().into(),
            args: vec![WORKER_ARGUMENT.into(), launch.spec.id.as_str().into()],
            directory: cwd.clone(),
            environment: environment
                .iter()
                .chain(&marked)
                .map(|(name, value)| (OsString::from(name), OsString::from(value)))
                .collect(),
        };
        // Before it is started, so that the first connection is this one.
        let connection = std::os::unix::net::UnixStream::connect(&launch.socket)?;
        let lock = held.0.try_clone()?;
        let child = invocation.detach(
            Stdio::from(OwnedFd::from(listener)),
            lock.into(),
            log.into(),
        )?;
        Ok((child.id(), connection))
    }

    /// Tells a worker what to do and hears it to its end.
    pub(super) fn supervise_started(
        self: &Arc<Self>,
        id: AgentId,
        stream: std::os::unix::net::UnixStream,
        launch: Launch,
    ) {
        let fleet = Arc::clone(self);
        tokio::spawn(async move {
            let connected = async {
                stream.set_nonblocking(true)?;
                let mut connection = Connection::of(UnixStream::from_std(stream)?)?;
                connection.send(&First::Launch(Box::new(launch))).await?;
                Ok::<_, io::Error>(connection)
            };
            if let Ok(connection) = connected.await {
                fleet.hear(&id, connection).await;
            }
            fleet.lost(&id).await;
        });
    }

    /// Connects to a worker that an earlier daemon started, and hears it to its end.
    pub(super) fn supervise_adopted(self: &Arc<Self>, id: AgentId, socket: Option<PathBuf>) {
        let fleet = Arc::clone(self);
        let socket = socket.unwrap_or_else(|| self.places().worker_socket(&id));
        tokio::spawn(async move {
            // A worker of an earlier version keeps its executable, and speaks what it did.
            for protocol in (OLDEST..=PROTOCOL).rev() {
                let Ok(mut connection) = Connection::open(&socket).await else {
                    break;
                };
                let wish = First::Supervise { protocol };
                let is_sent = connection.send(&wish).await.is_ok();
                if is_sent && fleet.hear(&id, connection).await == Understood::Yes {
                    break;
                }
            }
            fleet.lost(&id).await;
        });
    }

    /// Hears a worker to its end.
    async fn hear(self: &Arc<Self>, id: &AgentId, mut connection: Connection) -> Understood {
        let mut understood = Understood::No;
        while let Ok(Some(State { report })) = connection.lines.next(MAX_LINE).await {
            understood = Understood::Yes;
            self.heard(id, &report);
        }
        understood
    }
}

/// Whether a worker said anything that made sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Understood {
    Yes,
    No,
}

/// How a worker is doing.
#[derive(Deserialize)]
struct State {
    #[serde(flatten)]
    report: Report,
}

/// A socket for the owner alone, in the place of one that nobody listens on any more.
fn listen(path: &Path) -> io::Result<std::os::unix::net::UnixListener> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let listener = std::os::unix::net::UnixListener::bind(path)?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}
