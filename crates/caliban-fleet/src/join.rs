//! Going on with a session that a worker has, as the server whose session it is.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use caliban_session::{Command, Standing};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::joining::{From, Join, Told, Welcome, Why};
use crate::wire::{Connection, Lines, line};
use crate::worker::visitor::{First, STALLED};

/// How long a session may take to begin: servers are started and a long conversation is read.
const BEGINNING: Duration = Duration::from_mins(10);
/// How long one that lives may take to answer: another server may be about to be gone.
const ANSWER: Duration = Duration::from_secs(15);
/// Lines that may wait to be heard; the socket holds back the rest.
const LINES: usize = 256;
/// Commands that may wait to be written.
const COMMANDS: usize = 64;

/// A session of a worker, in the hands of its server. It goes on when this is dropped.
#[derive(Debug)]
pub struct Joint {
    /// Names the process that the session lives in.
    pub life: Arc<str>,
    pub standing: Standing,
    /// Whether events come from the first on, or only those behind `standing`.
    pub from: From,
    told: mpsc::Receiver<Told>,
    commands: mpsc::Sender<Command>,
    _reading: AbortOnDropHandle<()>,
}

/// Why a session cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum NotJoined {
    /// Another server has it.
    #[error("{0}")]
    Busy(String),
    #[error("{0}")]
    Forbidden(String),
    /// It is gone, or not there yet.
    #[error(transparent)]
    Gone(#[from] io::Error),
}

impl Joint {
    pub async fn open(socket: &Path, from: From) -> Result<Self, NotJoined> {
        let mut connection = Connection::open(socket).await?;
        connection.send(&First::Join(Join::new(from))).await?;
        // What a session is has no bound that is known here.
        let welcome = connection.lines.next(usize::MAX / 2);
        let patience = match from {
            From::Beginning => BEGINNING,
            From::Now => ANSWER,
        };
        let welcome = timeout(patience, welcome).await;
        let welcome = welcome
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "it does not answer in time"))??;
        let joined = match welcome {
            Some(Welcome::Joined(joined)) => joined,
            Some(Welcome::Refused { why, message }) => {
                return Err(match why {
                    Why::Busy => NotJoined::Busy(message),
                    Why::Forbidden => NotJoined::Forbidden(message),
                });
            }
            None => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
        };
        let Connection { lines, writer, .. } = connection;
        let (heard, told) = mpsc::channel(LINES);
        let (commands, wishes) = mpsc::channel(COMMANDS);
        // It ends by itself, once what was said last is written.
        tokio::spawn(write(writer, wishes));
        Ok(Self {
            life: joined.life,
            standing: joined.standing,
            from: joined.from,
            told,
            commands,
            _reading: AbortOnDropHandle::new(tokio::spawn(read(lines, heard))),
        })
    }

    /// Says a command; an error where the session cannot be reached any more.
    pub async fn send(&self, command: Command) -> io::Result<()> {
        let sent = self.commands.send(command).await;
        sent.map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// What was told since, some of it; waits until there is something. Nothing at the end of the
    /// connection. May be dropped without a loss.
    pub async fn next(&mut self) -> Option<Vec<Told>> {
        let mut told = Vec::new();
        match self.told.recv_many(&mut told, LINES).await {
            0 => None,
            _ => Some(told),
        }
    }
}

async fn read(mut lines: Lines<OwnedReadHalf>, heard: mpsc::Sender<Told>) {
    // An event may be as long as its conversation.
    while let Ok(Some(told)) = lines.next(usize::MAX / 2).await {
        if heard.send(told).await.is_err() {
            return;
        }
    }
}

async fn write(mut writer: OwnedWriteHalf, mut wishes: mpsc::Receiver<Command>) {
    while let Some(command) = wishes.recv().await {
        let text = line(&command);
        let written = timeout(STALLED, writer.write_all(text.as_bytes())).await;
        if !matches!(written, Ok(Ok(()))) {
            return;
        }
    }
}
