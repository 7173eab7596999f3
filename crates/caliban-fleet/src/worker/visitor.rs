//! One connection to a worker: somebody who watches or types, or the daemon, which wants to know how
//! it is doing.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use caliban_agent::Reply;
use caliban_protocol::{Command, Decision, command};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::partner::Session;
use super::ring::{Cursor, Pieces};
use super::room::{Claim, Heard, Role, Room, VisitorId};
use crate::joining::Join;
use crate::spec::Launch;
use crate::wire::{Connection, Lines, MAX_LINE, OLDEST, PROTOCOL, is_spoken, line};

/// Bytes that are written in one piece.
pub(super) const PIECE: usize = 256 * 1024;
/// How long somebody may take nothing before the connection is cut.
pub(crate) const STALLED: Duration = Duration::from_secs(30);
/// How long what somebody typed who has gone may take to be read.
const LAST_WORDS: Duration = Duration::from_secs(5);
/// Lines for one visitor alone that may wait.
const ASIDES: usize = 64;

/// The first line of a connection.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub(crate) enum First {
    /// Somebody who watches or types.
    Hello(Hello),
    /// The server whose session it is.
    Join(Join),
    /// The daemon.
    Supervise { protocol: u32 },
    /// The daemon that started the worker: what it is to do.
    Launch(Box<Launch>),
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) protocol: u32,
    /// The number of the last line that was heard.
    #[serde(default)]
    pub(crate) after: Option<u64>,
    /// Whether what was told before is told again.
    #[serde(default)]
    pub(crate) replay: Replay,
    /// Whether the visitor types and answers.
    #[serde(default)]
    pub(crate) input: bool,
    /// Whether it does so instead of whoever does.
    #[serde(default)]
    pub(crate) take: bool,
    /// Whether answers are told as they come.
    #[serde(default)]
    pub(crate) partial: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Replay {
    #[default]
    All,
    None,
}

/// What a visitor wants of the worker.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) visitor: VisitorId,
    pub(crate) what: Wish,
    pub(crate) aside: Aside,
}

#[derive(Debug)]
pub(crate) enum Wish {
    Came,
    Left,
    Prompt {
        id: Arc<str>,
        message: Box<caliban_model::Message>,
    },
    Interrupt,
    Answer {
        question: Arc<str>,
        decision: Decision,
        input: Option<Value>,
        message: Option<String>,
    },
    Reply {
        question: Arc<str>,
        reply: Reply,
    },
    /// The session ends when nothing waits any more.
    End,
}

/// Where something is said to one visitor alone.
#[derive(Debug, Clone)]
pub(crate) struct Aside(mpsc::Sender<String>);

impl Aside {
    pub(super) fn new() -> (Self, mpsc::Receiver<String>) {
        let (sender, waiting) = mpsc::channel(ASIDES);
        (Self(sender), waiting)
    }

    /// Says something, unless the visitor listens to nothing.
    pub(crate) fn say(&self, frame: &Value) {
        let _ = self.0.try_send(line(frame));
    }

    pub(crate) fn refuse(&self, message: &str) {
        self.say(&json!({"type": "error", "message": message}));
    }
}

/// What all connections share.
#[derive(Debug, Clone)]
pub(crate) struct Reception {
    pub(crate) room: Arc<Room>,
    pub(crate) words: mpsc::Sender<Word>,
    pub(crate) snapshot: Arc<dyn Snapshot>,
    /// What a server needs, where it is a server's.
    pub(crate) session: Option<Session>,
}

/// Tells the whole conversation, to somebody who missed a part of it.
pub trait Snapshot: Send + Sync + std::fmt::Debug {
    /// The messages so far.
    fn messages(&self) -> Vec<Value>;
}

impl Reception {
    /// Serves a connection to its end.
    pub(crate) async fn serve(self, stream: UnixStream) -> io::Result<()> {
        let mut connection = Connection::of(stream)?;
        match connection.lines.hello().await? {
            First::Supervise { protocol } => {
                check(protocol, &mut connection).await?;
                self.report(connection.writer, connection.lines).await
            }
            First::Join(join) => {
                check(join.protocol, &mut connection).await?;
                self.join(join, connection).await
            }
            First::Launch(_) => Err(io::ErrorKind::InvalidInput.into()),
            First::Hello(hello) => {
                check(hello.protocol, &mut connection).await?;
                if hello.input && connection.peer.is_of_an_agent() {
                    let message = "an agent can neither type to an agent nor answer its questions";
                    let refusal = json!({"type": "error", "message": message});
                    return connection.send(&refusal).await;
                }
                self.attach(hello, connection).await
            }
        }
    }

    /// Tells the daemon that started the worker how it is doing.
    pub(crate) async fn supervise(self, connection: Connection) -> io::Result<()> {
        self.report(connection.writer, connection.lines).await
    }

    /// Tells the state, whenever it changes.
    async fn report(
        self,
        mut writer: OwnedWriteHalf,
        mut lines: Lines<OwnedReadHalf>,
    ) -> io::Result<()> {
        let mut report = self.room.watch();
        // Whoever only wants to know keeps nothing going.
        drop(self);
        // The end of the other side is the end of this one.
        let gone = tokio::spawn(async move { while let Ok(Some(_)) = lines.text(0).await {} });
        let mut gone = AbortOnDropHandle::new(gone);
        loop {
            let current = report.borrow_and_update().clone();
            let text = line(&state_frame(&current));
            tokio::time::timeout(STALLED, writer.write_all(text.as_bytes())).await??;
            tokio::select! {
                changed = report.changed() => match changed {
                    Ok(()) => {}
                    Err(_) => return Ok(()),
                },
                _ = &mut gone => return Ok(()),
            }
        }
    }

    async fn attach(self, hello: Hello, connection: Connection) -> io::Result<()> {
        let Connection {
            lines, mut writer, ..
        } = connection;
        let role = if hello.input {
            Role::Operator
        } else {
            Role::Viewer
        };
        let claim = if hello.take {
            Claim::TakeOver
        } else {
            Claim::IfFree
        };
        let id = self.room.enter(role, claim);
        let last = self.room.last();
        let after = match (hello.replay, hello.after) {
            (Replay::None, _) => last,
            // What lies ahead is of another life.
            (Replay::All, Some(after)) if after <= last => after,
            (Replay::All, Some(_) | None) => 0,
        };
        let attached = json!({
            "type": "attached",
            "protocol": PROTOCOL,
            "build": env!("CARGO_PKG_VERSION"),
            "seq": last,
            "input": self.room.may_type(id),
            "attached": self.room.attached(),
            "report": self.room.report(),
        });
        writer.write_all(line(&attached).as_bytes()).await?;
        let (aside, waiting) = Aside::new();
        let guest = Guest {
            id,
            reception: self.clone(),
            aside: aside.clone(),
        };
        guest.send(Wish::Came).await;
        let mut listening = AbortOnDropHandle::new(tokio::spawn(listen(guest, lines, role)));
        let pieces = if hello.partial {
            Pieces::Wanted
        } else {
            Pieces::Left
        };
        let cursor = Cursor::new(after, pieces);
        let told = self
            .tell(writer, waiting, cursor, pieces, &mut listening)
            .await;
        if told.is_err() && !listening.is_finished() {
            // Who went without hearing the end may have typed before.
            let _ = tokio::time::timeout(LAST_WORDS, &mut listening).await;
        }
        // Whatever it typed before is the visitor's still: it leaves when it is this word's turn.
        let word = Word {
            visitor: id,
            what: Wish::Left,
            aside,
        };
        let _ = self.words.send(word).await;
        told
    }

    /// Tells everything, until there is nothing more or the visitor has gone.
    async fn tell(
        &self,
        mut writer: OwnedWriteHalf,
        mut waiting: mpsc::Receiver<String>,
        mut cursor: Cursor,
        pieces: Pieces,
        listening: &mut AbortOnDropHandle<()>,
    ) -> io::Result<()> {
        loop {
            let text = tokio::select! {
                biased;
                _ = &mut *listening => {
                    while let Ok(line) = waiting.try_recv() {
                        tokio::time::timeout(STALLED, writer.write_all(line.as_bytes())).await??;
                    }
                    return Ok(());
                }
                Some(line) = waiting.recv() => line,
                heard = self.room.hear(&mut cursor, PIECE) => match heard {
                    Heard::Lines(text) => text,
                    Heard::End => return Ok(()),
                    Heard::Lost => {
                        let last = self.room.last();
                        cursor = Cursor::new(last, pieces);
                        let messages = self.snapshot.messages();
                        line(&json!({
                            "type": "snapshot",
                            "seq": last,
                            "messages": messages,
                            "report": self.room.report(),
                        }))
                    }
                },
            };
            tokio::time::timeout(STALLED, writer.write_all(text.as_bytes())).await??;
        }
    }
}

/// A visitor whose lines are read.
struct Guest {
    id: VisitorId,
    reception: Reception,
    aside: Aside,
}

impl Guest {
    async fn send(&self, what: Wish) {
        let word = Word {
            visitor: self.id,
            what,
            aside: self.aside.clone(),
        };
        // The worker is about to end.
        let _ = self.reception.words.send(word).await;
    }
}

/// Passes on what a visitor types, to its end.
async fn listen(guest: Guest, mut lines: Lines<OwnedReadHalf>, role: Role) {
    let mut number = 0;
    loop {
        let text = match lines.text(MAX_LINE).await {
            Ok(Some(text)) => text,
            Ok(None) => return,
            Err(error) => return guest.aside.refuse(&error.to_string()),
        };
        number += 1;
        if role == Role::Viewer {
            guest.aside.refuse("this connection only watches");
            continue;
        }
        match read(&text, number) {
            Ok(None) => {}
            Ok(Some(Typed::Take)) => guest.reception.room.claim(guest.id, Claim::TakeOver),
            Ok(Some(Typed::Wish(wish))) => guest.send(wish).await,
            Err(problem) => guest.aside.refuse(&problem),
        }
    }
}

enum Typed {
    /// From here on this visitor types.
    Take,
    Wish(Wish),
}

/// What a line means. An id that whoever sends it chose names the prompt, so that it is worked on
/// once.
fn read(text: &str, number: u64) -> Result<Option<Typed>, String> {
    let Ok(Value::Object(mut fields)) = serde_json::from_str(text) else {
        let refused = command(text, number).err();
        return Err(refused.map_or_else(String::new, |error| error.to_string()));
    };
    match fields.get("type").and_then(Value::as_str) {
        Some("end") => return Ok(Some(Typed::Wish(Wish::End))),
        Some("take") => return Ok(Some(Typed::Take)),
        Some(_) | None => {}
    }
    let id = match fields.remove("request_id") {
        Some(Value::String(id)) => id,
        Some(_) => return Err("`request_id` is not a text".to_owned()),
        None => Uuid::new_v4().to_string(),
    };
    let text = Value::Object(fields).to_string();
    let read = command(&text, number).map_err(|error| error.to_string())?;
    Ok(read.map(|read| {
        Typed::Wish(match read {
            Command::User(message) => Wish::Prompt {
                id: id.into(),
                message: Box::new(message),
            },
            Command::Interrupt => Wish::Interrupt,
            Command::Answer {
                question,
                decision,
                input,
                message,
            } => Wish::Answer {
                question,
                decision,
                input,
                message,
            },
            Command::Reply { question, reply } => Wish::Reply { question, reply },
        })
    }))
}

/// Refuses another version, and says which one is spoken here.
async fn check(protocol: u32, connection: &mut Connection) -> io::Result<()> {
    if is_spoken(protocol) {
        return Ok(());
    }
    let message = format!(
        "this agent speaks versions {OLDEST} to {PROTOCOL} of the protocol and not {protocol}: it runs with \
         caliban {}; use that one, or `caliban agents kill` and `resume` it",
        env!("CARGO_PKG_VERSION")
    );
    let refusal = json!({"type": "error", "protocol": PROTOCOL, "message": message});
    connection.send(&refusal).await?;
    Err(io::Error::new(io::ErrorKind::Unsupported, message))
}

/// The state as a frame.
pub(crate) fn state_frame(report: &crate::state::Report) -> Value {
    let mut frame = json!({"type": "state"});
    if let (Value::Object(frame), Ok(Value::Object(fields))) =
        (&mut frame, serde_json::to_value(report))
    {
        frame.extend(fields);
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wish(text: &str) -> Wish {
        match read(text, 1).unwrap().unwrap() {
            Typed::Wish(wish) => wish,
            Typed::Take => panic!("take"),
        }
    }

    #[test]
    fn lines_are_the_native_frames_and_two_more() {
        let prompt = wish(r#"{"type":"user","content":"x","request_id":"r1"}"#);
        assert!(matches!(prompt, Wish::Prompt { id, .. } if &*id == "r1"));
        assert!(matches!(
            wish(r#"{"type":"control","subtype":"interrupt"}"#),
            Wish::Interrupt
        ));
        assert!(matches!(wish(r#"{"type":"end"}"#), Wish::End));
        assert!(matches!(
            read(r#"{"type":"take"}"#, 1),
            Ok(Some(Typed::Take))
        ));
        let answer = wish(r#"{"type":"answer","question":"q","decision":"allow"}"#);
        assert!(matches!(answer, Wish::Answer { .. }));
        for wrong in [
            "x",
            "[]",
            r#"{"type":"user"}"#,
            r#"{"type":"user","content":"x","request_id":1}"#,
        ] {
            assert!(read(wrong, 3).is_err(), "{wrong}");
        }
    }
}
