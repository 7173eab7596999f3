//! Being attached to an agent: its lines as they come, and a way to say something.

use std::io;
use std::path::Path;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

use crate::wire::{Connection, HELLO_PATIENCE, MAX_LINE, PROTOCOL, is_spoken, line};

/// Lines that may wait to be shown; the socket holds back the rest.
const LINES: usize = 256;

/// What is wanted of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    pub input: Input,
    /// The number of the last line that was heard; everything is told again without one.
    pub after: Option<u64>,
    pub past: Past,
    pub answers: Answers,
}

/// Whether something is said to the agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Input {
    None,
    /// Where nobody else types.
    Shared,
    /// Whoever else types.
    TakenOver,
}

/// Whether what happened before is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Past {
    Told,
    Left,
}

/// How the model's answers are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answers {
    AsTheyCome,
    Whole,
}

/// A connection to an agent.
#[derive(Debug)]
pub struct Attachment {
    /// What the agent said first: its state, and the number of its newest line.
    pub greeting: Value,
    pub lines: mpsc::Receiver<String>,
    writer: OwnedWriteHalf,
    _reading: AbortOnDropHandle<()>,
}

/// Says what is wanted, and hears what the agent says to it.
async fn greet(socket: &Path, wanted: Wanted, protocol: u32) -> io::Result<(Connection, Value)> {
    let mut connection = Connection::open(socket).await?;
    let hello = json!({
        "type": "hello",
        "protocol": protocol,
        "after": wanted.after,
        "replay": match wanted.past {
            Past::Told => "all",
            Past::Left => "none",
        },
        "input": wanted.input != Input::None,
        "take": wanted.input == Input::TakenOver,
        "partial": wanted.answers == Answers::AsTheyCome,
    });
    connection.send(&hello).await?;
    let first = tokio::time::timeout(HELLO_PATIENCE * 5, connection.lines.next(MAX_LINE));
    let greeting: Value = first
        .await
        .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "the agent does not answer"))??
        .ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok((connection, greeting))
}

impl Attachment {
    /// Connects to the socket of an agent. The error says why the agent does not want it.
    pub async fn open(socket: &Path, wanted: Wanted) -> io::Result<Self> {
        let (mut connection, mut greeting) = greet(socket, wanted, PROTOCOL).await?;
        let older = greeting["protocol"]
            .as_u64()
            .and_then(|it| u32::try_from(it).ok());
        if let Some(older) = older.filter(|older| *older < PROTOCOL && is_spoken(*older))
            && greeting["type"] == "error"
        {
            // An agent of an earlier version is spoken to as it speaks.
            (connection, greeting) = greet(socket, wanted, older).await?;
        }
        if greeting["type"] == "error" {
            let message = greeting["message"].as_str().unwrap_or_default().to_owned();
            return Err(io::Error::other(message));
        }
        let (heard, lines) = mpsc::channel(LINES);
        let Connection {
            lines: mut reader,
            writer,
            ..
        } = connection;
        let reading = tokio::spawn(async move {
            // A snapshot is as long as its conversation.
            while let Ok(Some(line)) = reader.text(usize::MAX / 2).await {
                if heard.send(line).await.is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            greeting,
            lines,
            writer,
            _reading: AbortOnDropHandle::new(reading),
        })
    }

    /// The number of the newest line when the connection was made.
    pub fn newest(&self) -> u64 {
        self.greeting["seq"].as_u64().unwrap_or_default()
    }

    /// Says something that is no longer than a line may be.
    pub async fn say(&mut self, frame: &Value) -> io::Result<()> {
        let line = line(frame);
        if line.len() > MAX_LINE {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!(
                    "a message of {} bytes is longer than the {MAX_LINE} that an agent takes",
                    line.len()
                ),
            ));
        }
        self.writer.write_all(line.as_bytes()).await
    }

    /// Nothing more is said. The agent ends the connection when it has taken everything.
    pub async fn close(&mut self) -> io::Result<()> {
        self.writer.shutdown().await
    }
}
