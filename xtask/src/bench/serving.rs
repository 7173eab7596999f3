//! Sessions over HTTP: how many connections and how many events in a second, beside a server that
//! writes what it has ready.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::answers;
use super::report::{Row, Unit};
use super::samples::{Better, Summary};
use super::server::Bodies;
use super::stage::Stage;

const CONNECTIONS: usize = 500;
const READERS: usize = 8;
const DELTAS: usize = 5_000;

/// The server that is measured; it ends with this.
struct Served {
    child: Child,
    /// Ends the daemon of its sessions.
    stop: Command,
    host: String,
    token: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = self.stop.output();
    }
}

impl Served {
    fn start(stage: &Stage) -> Result<Self> {
        let mut command: Command = stage.caliban(&stage.workspace());
        let socket = stage.home().join("serve.sock");
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--listen"])
            .arg(format!("unix:{}", socket.display()))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = child.stdout.take().context("the output of the server")?;
        let mut lines = BufReader::new(output).lines().map_while(Result::ok);
        let told = lines.find_map(|line| {
            let (url, file) = line.split_once("; the token is in ")?;
            let host = url.rsplit_once("//")?.1;
            Some((host.to_owned(), file.to_owned()))
        });
        let (host, file) = told.context("the server says no address")?;
        let known: Value = serde_json::from_slice(&std::fs::read(file)?)?;
        let token = known["token"].as_str().context("no token")?.to_owned();
        let mut stop = stage.caliban(&stage.workspace());
        stop.args(["daemon", "stop"]);
        Ok(Self {
            child,
            stop,
            host,
            token,
        })
    }

    /// Sends a request; what comes back is still to be read.
    fn ask(&self, method: &str, path: &str, body: &str) -> Result<BufReader<TcpStream>> {
        let mut stream = TcpStream::connect(&self.host)?;
        let length = body.len();
        let (host, token) = (&self.host, &self.token);
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n\
             content-type: application/json\r\ncontent-length: {length}\r\n\
             connection: close\r\n\r\n{body}"
        );
        stream.write_all(head.as_bytes())?;
        Ok(BufReader::new(stream))
    }

    fn done(&self, method: &str, path: &str, body: &str) -> Result<String> {
        let mut text = String::new();
        self.ask(method, path, body)?.read_to_string(&mut text)?;
        ensure!(text.starts_with("HTTP/1.1 2"), "{path}: {text}");
        Ok(text)
    }
}

pub(super) fn rows(stage: &Stage) -> Result<Vec<Row>> {
    let served = Served::start(stage)?;
    let (mut ours, mut least) = ([Vec::new(), Vec::new()], [Vec::new(), Vec::new()]);
    for run in 0..stage.runs {
        ours[0].push(connections(|| {
            served.done("GET", "/healthz", "").map(drop)
        })?);
        stage
            .server
            .play(vec![answers::text("hello")], Bodies::Dropped);
        let host = minimal(stage)?;
        least[0].push(connections(|| read(&host).map(drop))?);
        stage.server.exchanges();
        stage
            .server
            .play(vec![answers::deltas(" word", DELTAS)], Bodies::Dropped);
        ours[1].push(events(&served, run)?);
        least[1].push(written(&host)?);
        stage.server.exchanges();
    }
    let summaries = |values: [Vec<f64>; 2]| {
        let [connections, events] = values.map(|it| Summary::of(it, Better::More));
        connections.zip(events).context("no runs")
    };
    let (ours, least) = (summaries(ours)?, summaries(least)?);
    Ok(vec![
        Row::new("serve: connections, per second", Unit::PerSecond, ours.0)
            .against("a minimal server", least.0)
            .note("one after the other, with a token each"),
        Row::new(
            "serve: events to 8 readers, per second",
            Unit::PerSecond,
            ours.1,
        )
        .against("a minimal server", least.1)
        .note("it writes the provider's bytes 8 times and knows nothing of sessions"),
    ])
}

pub(super) fn minimal(stage: &Stage) -> Result<String> {
    let host = stage.server.url().strip_prefix("http://");
    Ok(host.context("an address")?.to_owned())
}

/// Requests in a second, each over a connection of its own.
fn connections(mut once: impl FnMut() -> Result<()>) -> Result<f64> {
    let started = Instant::now();
    for _ in 0..CONNECTIONS {
        once()?;
    }
    Ok(rate(CONNECTIONS, started))
}

/// One answer of the minimal server: the number of its events.
pub(super) fn read(host: &str) -> Result<usize> {
    let mut stream = TcpStream::connect(host)?;
    write!(stream, "GET / HTTP/1.1\r\nhost: {host}\r\n\r\n")?;
    let (mut events, mut line) = (0, String::new());
    let mut reader = BufReader::new(stream);
    while !line.contains("message_stop\"") {
        line.clear();
        ensure!(reader.read_line(&mut line)? > 0, "the answer broke off");
        events += usize::from(line.starts_with("data:"));
    }
    Ok(events)
}

/// Events in a second that the minimal server writes to its readers.
fn written(host: &str) -> Result<f64> {
    let started = Instant::now();
    let counts = thread::scope(|scope| {
        let readers: Vec<_> = (0..READERS).map(|_| scope.spawn(|| read(host))).collect();
        readers.into_iter().map(joined).collect::<Result<Vec<_>>>()
    })?;
    Ok(rate(counts.iter().sum(), started))
}

/// Events in a second that readers of one session hear while a prompt is worked on.
fn events(served: &Served, run: usize) -> Result<f64> {
    let tab = format!("bench-{run}");
    served.done("POST", "/v1/sessions", &format!("{{\"tab\":\"{tab}\"}}"))?;
    let path = format!("/v1/sessions/{tab}/events");
    let streams: Vec<_> = (0..READERS)
        .map(|_| served.ask("GET", &path, ""))
        .collect::<Result<_>>()?;
    let started = Instant::now();
    let counts = thread::scope(|scope| {
        let readers: Vec<_> = streams
            .into_iter()
            .map(|stream| scope.spawn(|| heard(stream)))
            .collect();
        let prompt = "{\"request_id\":\"r\",\"content\":\"go\"}";
        served.done("POST", &format!("/v1/sessions/{tab}/prompts"), prompt)?;
        readers.into_iter().map(joined).collect::<Result<Vec<_>>>()
    })?;
    let value = rate(counts.iter().sum(), started);
    served.done("DELETE", &format!("/v1/sessions/{tab}?purge=true"), "")?;
    Ok(value)
}

/// How many events a reader was told until the result; a line may stand for several.
fn heard(stream: BufReader<TcpStream>) -> Result<usize> {
    let (mut first, mut events) = (None, 0);
    for line in stream.lines() {
        let line = line?;
        let Some(data) = line.strip_prefix("data: ") else {
            continue;
        };
        let told: Value = serde_json::from_str(data)?;
        let seq = usize::try_from(told["seq"].as_u64().context("no number")?)?;
        events = seq - *first.get_or_insert(seq);
        if told["event"]["type"] == "result" {
            ensure!(events > DELTAS, "{events} events");
            return Ok(events);
        }
    }
    anyhow::bail!("the stream ended after {events} events")
}

fn joined(reader: thread::ScopedJoinHandle<'_, Result<usize>>) -> Result<usize> {
    let read = reader.join();
    read.map_err(|_| anyhow::anyhow!("a reader panicked"))?
}

#[expect(clippy::cast_precision_loss, reason = "small numbers")]
pub(super) fn rate(count: usize, since: Instant) -> f64 {
    count as f64 / since.elapsed().as_secs_f64()
}
