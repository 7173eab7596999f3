//! The server whose session a worker has: it says commands and hears events. There is one at a
//! time; it may go and come back, and the session goes on meanwhile.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use caliban_session::{EventBatch, Events, SessionHandle};
use tokio::io::AsyncWriteExt;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::room::{Claim, Role};
use super::visitor::{Aside, PIECE, Reception, STALLED, Wish, Word};
use crate::joining::{From, Join, Joined, MAX_COMMAND, Told, Welcome, Why};
use crate::wire::{Connection, Lines, line};

/// How long a server waits for the one before it to be gone: the end of a process that was killed
/// is noticed a moment later.
const CHANGE_OVER: Duration = Duration::from_secs(2);

/// What a server needs of a session.
#[derive(Debug, Clone)]
pub(crate) struct Session {
    handle: SessionHandle,
    seat: Arc<Semaphore>,
    life: Arc<str>,
}

impl Session {
    pub(crate) fn new(handle: SessionHandle) -> Self {
        Self {
            handle,
            seat: Arc::new(Semaphore::new(1)),
            life: Uuid::new_v4().simple().to_string().into(),
        }
    }

    pub(crate) fn life(&self) -> Arc<str> {
        Arc::clone(&self.life)
    }

    async fn seat(&self) -> Option<OwnedSemaphorePermit> {
        let seat = Arc::clone(&self.seat).acquire_owned();
        timeout(CHANGE_OVER, seat).await.ok()?.ok()
    }
}

impl Reception {
    /// Serves a server to its end, or to that of the session.
    pub(crate) async fn join(self, join: Join, mut connection: Connection) -> io::Result<()> {
        let refused = |why, message: &str| Welcome::Refused {
            why,
            message: message.to_owned(),
        };
        let Some(session) = self.session.clone() else {
            let message = "this agent is no session of a server";
            return connection.send(&refused(Why::Forbidden, message)).await;
        };
        if connection.peer.is_of_an_agent() {
            let message = "an agent can neither type to an agent nor answer its questions";
            return connection.send(&refused(Why::Forbidden, message)).await;
        }
        if join.events != caliban_session::PROTOCOL {
            let message = format!(
                "the session runs with caliban {}, which tells its events in another way; \
                 `caliban agents kill` ends it, and it is kept",
                env!("CARGO_PKG_VERSION")
            );
            return connection.send(&refused(Why::Forbidden, &message)).await;
        }
        let Some(_seat) = session.seat().await else {
            let message = "another server has the session";
            return connection.send(&refused(Why::Busy, message)).await;
        };
        // What it is has been told and written down.
        let mut report = self.room.watch();
        let opened = report.wait_for(|report| report.counter > 0).await;
        opened.map(drop).map_err(io::Error::other)?;
        let id = self.room.enter(Role::Server, Claim::IfFree);
        let (aside, _unheard) = Aside::new();
        let word = |what| Word {
            visitor: id,
            what,
            aside: aside.clone(),
        };
        let _ = self.words.send(word(Wish::Came)).await;
        let told = self.converse(&session, join.from, connection).await;
        self.room.leave(id);
        // The session may be over, and the worker about to end.
        let _ = self.words.send(word(Wish::Left)).await;
        told
    }

    async fn converse(
        &self,
        session: &Session,
        from: From,
        connection: Connection,
    ) -> io::Result<()> {
        let Connection {
            lines, mut writer, ..
        } = connection;
        let standing = session.handle.standing();
        let mut hearing = Hearing::new(session, from, standing.seq);
        let joined = Welcome::Joined(Box::new(Joined {
            life: Arc::clone(&session.life),
            standing,
            from: hearing.from,
        }));
        write(&mut writer, line(&joined)).await?;
        let commands = AbortOnDropHandle::new(tokio::spawn(obey(session.handle.clone(), lines)));
        tokio::pin!(commands);
        loop {
            let batch = tokio::select! {
                biased;
                ended = &mut commands => return ended.map_err(io::Error::other)?,
                batch = hearing.events.next() => batch,
            };
            match batch {
                None => return Ok(()),
                Some(EventBatch::Events(events)) => {
                    hearing.next += events.len() as u64;
                    let mut text = String::new();
                    for event in events {
                        text.push_str(&line(&Told::Event(event)));
                        if text.len() > PIECE {
                            write(&mut writer, std::mem::take(&mut text)).await?;
                        }
                    }
                    write(&mut writer, text).await?;
                }
                Some(EventBatch::Missed(count)) => {
                    let standing = session.handle.standing();
                    let is_known = standing.seq < hearing.next;
                    hearing.next += count;
                    // Otherwise nothing but pieces was missed, which come again as a whole.
                    if !is_known {
                        hearing.go_on(session, standing.seq + 1);
                        let standing = Told::Standing(Box::new(standing));
                        write(&mut writer, line(&standing)).await?;
                    }
                }
            }
        }
    }
}

/// Events as a server hears them. The work does not wait for it.
struct Hearing {
    events: Events,
    /// The number of the event that comes next.
    next: u64,
    from: From,
}

impl Hearing {
    fn new(session: &Session, from: From, known: u64) -> Self {
        let next = match from {
            From::Beginning => 1,
            From::Now => known + 1,
        };
        Self {
            events: session.handle.subscribe(next),
            next,
            from,
        }
    }

    fn go_on(&mut self, session: &Session, next: u64) {
        self.events = session.handle.subscribe(next);
        self.next = next;
    }
}

async fn write(writer: &mut OwnedWriteHalf, text: String) -> io::Result<()> {
    timeout(STALLED, writer.write_all(text.as_bytes())).await?
}

/// Passes on what a server says, to its end.
async fn obey(session: SessionHandle, mut lines: Lines<OwnedReadHalf>) -> io::Result<()> {
    while let Some(command) = lines.next(MAX_COMMAND).await? {
        if session.send(command).await.is_err() {
            // Its end is told to its end.
            return std::future::pending().await;
        }
    }
    Ok(())
}
