//! A model server that is never what is measured: a thread for each connection, answers that are
//! ready before they are asked for, and a note of when everything happened.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use super::answers::Answer;

/// What is read of a connection at a time.
const BUFFER: usize = 64 * 1024;

/// Whether requests are remembered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bodies {
    Kept,
    Dropped,
}

/// One request and its answer.
#[derive(Debug)]
pub(super) struct Exchange {
    /// The first byte of the request was there.
    pub(super) arrived: Instant,
    pub(super) length: u64,
    /// Empty unless bodies are kept.
    pub(super) body: Vec<u8>,
    /// The answer was written.
    pub(super) answered: Instant,
}

#[derive(Debug)]
pub(super) struct Server {
    url: String,
    play: Arc<Mutex<Play>>,
}

/// What is said to whom, and what happened so far.
#[derive(Debug)]
struct Play {
    answers: Vec<Answer>,
    bodies: Bodies,
    asked: usize,
    exchanges: Vec<Exchange>,
}

impl Server {
    pub(super) fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let play = Arc::new(Mutex::new(Play {
            answers: Vec::new(),
            bodies: Bodies::Dropped,
            asked: 0,
            exchanges: Vec::new(),
        }));
        let shared = Arc::clone(&play);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let play = Arc::clone(&shared);
                // A client that hangs up is its own affair.
                std::thread::spawn(move || drop(converse(&stream, &play)));
            }
        });
        Ok(Self { url, play })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// From now on the answers are these, in order; the last one is given to all who come later.
    pub(super) fn play(&self, answers: Vec<Answer>, bodies: Bodies) {
        let mut play = lock(&self.play);
        play.answers = answers;
        play.bodies = bodies;
        play.asked = 0;
        play.exchanges.clear();
    }

    /// What happened since the last call; the play begins anew.
    pub(super) fn exchanges(&self) -> Vec<Exchange> {
        let mut play = lock(&self.play);
        play.asked = 0;
        std::mem::take(&mut play.exchanges)
    }
}

/// Answers what comes over one connection until the client closes it.
fn converse(stream: &TcpStream, play: &Mutex<Play>) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::with_capacity(BUFFER, stream);
    while !reader.fill_buf()?.is_empty() {
        let arrived = Instant::now();
        let length = head(&mut reader)?;
        let (answer, bodies) = {
            let mut play = lock(play);
            let last = play.answers.len().checked_sub(1).context("no answers")?;
            let number = play.asked.min(last);
            play.asked += 1;
            (Arc::clone(&play.answers[number]), play.bodies)
        };
        let mut body = Vec::new();
        let mut rest = (&mut reader).take(length);
        match bodies {
            Bodies::Kept => rest.read_to_end(&mut body).map(|read| read as u64),
            Bodies::Dropped => io::copy(&mut rest, &mut io::sink()),
        }?;
        // Noted before the client can ask again, so that exchanges are in order.
        let index = {
            let mut play = lock(play);
            play.exchanges.push(Exchange {
                arrived,
                length,
                body,
                answered: arrived,
            });
            play.exchanges.len() - 1
        };
        (&mut &*stream).write_all(&answer)?;
        if let Some(exchange) = lock(play).exchanges.get_mut(index) {
            exchange.answered = Instant::now();
        }
    }
    Ok(())
}

/// Reads the head of a request; returns the length of its body.
fn head(reader: &mut impl BufRead) -> Result<u64> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        ensure!(reader.read_line(&mut line)? > 0, "the head broke off");
        if line.trim().is_empty() {
            return Ok(length);
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
    }
}

/// Whoever panicked left a note missing, which the rows find out.
fn lock(play: &Mutex<Play>) -> MutexGuard<'_, Play> {
    play.lock().unwrap_or_else(PoisonError::into_inner)
}
