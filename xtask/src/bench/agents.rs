//! Agents in the background: how soon one is there and asks its model, what memory they have while
//! they wait, and how many events whoever is attached to one hears in a second.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::answers;
use super::process::{Cost, measure, measure_with, megabytes, milliseconds};
use super::report::{Row, Target, Unit};
use super::samples::{Better, Summary};
use super::server::Bodies;
use super::serving::{minimal, rate, read};
use super::stage::Stage;

/// Agents that wait at once.
const IDLE: usize = 200;
const DELTAS: usize = 5_000;
/// How long an agent may take on a busy machine.
const PATIENCE: Duration = Duration::from_mins(2);
/// Between two looks at something that cannot be waited for.
const LOOK: Duration = Duration::from_millis(5);

/// The agents of a bench, which end with it.
struct Agents<'a> {
    stage: &'a Stage,
    /// Paths of sockets are short.
    runtime: tempfile::TempDir,
}

impl<'a> Agents<'a> {
    fn new(stage: &'a Stage) -> Result<Self> {
        let settings = stage.home().join(".config/caliban/settings.toml");
        std::fs::create_dir_all(settings.parent().context("a directory")?)?;
        // The bench measures agents, not how many of them may begin at once.
        std::fs::write(settings, "[fleet]\nmax_running = 64\n")?;
        std::fs::create_dir_all(stage.workspace().join(".git"))?;
        Ok(Self {
            stage,
            runtime: tempfile::Builder::new().prefix("cb").tempdir()?,
        })
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.stage.caliban(&self.stage.workspace());
        command
            .env("CALIBAN_DAEMON_RUNTIME_DIR", self.runtime.path().join("r"))
            .args(arguments);
        command
    }

    /// Begins an agent: its id, and what that cost.
    fn begin(&self) -> Result<(String, Cost)> {
        let mut printed = Vec::new();
        let cost = measure_with(&mut self.command(&["--bg", "hi"]), |bytes| {
            printed.extend_from_slice(bytes);
        })?;
        Ok((String::from_utf8(printed)?.trim().to_owned(), cost))
    }

    fn asked(&self, arguments: &[&str]) -> Result<Value> {
        let output = self.command(arguments).output()?;
        ensure!(output.status.success(), "{arguments:?}: {output:?}");
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// All agents, as soon as every one of them waits.
    fn when_idle(&self) -> Result<Vec<Value>> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let listed = self.asked(&["agents", "list", "--json"])?;
            let listed = listed.as_array().cloned().unwrap_or_default();
            if listed.iter().all(|agent| agent["state"] == "idle") {
                return Ok(listed);
            }
            ensure!(Instant::now() < deadline, "they do not come to rest");
            std::thread::sleep(LOOK);
        }
    }

    fn remove_all(&self) -> Result<()> {
        let listed = self.asked(&["agents", "list", "--json"])?;
        for agent in listed.as_array().into_iter().flatten() {
            let id = agent["id"].as_str().context("an id")?;
            measure(&mut self.command(&["agents", "rm", "--force", id]))?;
        }
        Ok(())
    }
}

impl Drop for Agents<'_> {
    fn drop(&mut self) {
        // What fails here was told before.
        let _ = self.remove_all();
        let _ = measure(&mut self.command(&["daemon", "stop"]));
        let settings = self.stage.home().join(".config/caliban/settings.toml");
        let _ = std::fs::remove_file(settings);
        let _ = std::fs::remove_dir(self.stage.workspace().join(".git"));
    }
}

pub(super) fn rows(stage: &Stage) -> Result<Vec<Row>> {
    let body = stage.first_body()?;
    let agents = Agents::new(stage)?;
    let mut rows = beginnings(&agents, &body)?;
    rows.extend(attached(&agents)?);
    rows.extend(waiting(&agents)?);
    Ok(rows)
}

/// Until the id is there, with a daemon and without, and until the agent asks its model.
fn beginnings(agents: &Agents<'_>, body: &Path) -> Result<Vec<Row>> {
    let stage = agents.stage;
    let answer = vec![answers::text("hello")];
    stage.server.play(answer, Bodies::Dropped);
    let (mut cold, mut warm, mut asks) = (Vec::new(), Vec::new(), Vec::new());
    let (mut curl, mut curl_asks) = (Vec::new(), Vec::new());
    for _ in 0..stage.runs {
        measure(&mut agents.command(&["daemon", "stop"]))?;
        let (_, cost) = agents.begin()?;
        cold.push(milliseconds(cost.wall));
        agents.when_idle()?;
        stage.server.exchanges();
        let (_, cost) = agents.begin()?;
        warm.push(milliseconds(cost.wall));
        agents.when_idle()?;
        asks.push(milliseconds(arrived(stage)?.duration_since(cost.started)));
        agents.remove_all()?;
        let cost = measure(&mut stage.curl(body, 1))?;
        curl.push(milliseconds(cost.wall));
        curl_asks.push(milliseconds(arrived(stage)?.duration_since(cost.started)));
    }
    let row = |name: &str, ours: Vec<f64>, curl: &[f64], most: f64| {
        let summary = |values: Vec<f64>| Summary::of(values, Better::Less).context("no runs");
        let curl = summary(curl.to_vec())?;
        let row = Row::new(name, Unit::Milliseconds, summary(ours)?).against("curl", curl);
        anyhow::Ok(row.target(Target::RatioAtMost(most)))
    };
    Ok(vec![
        row("agent: `--bg` to its id", warm, &curl, 3.0)?,
        row("agent: the same without a daemon", cold, &curl, 8.0)?,
        row(
            "agent: `--bg` to its first request byte",
            asks,
            &curl_asks,
            4.0,
        )?,
    ])
}

/// When the first request since the last look was there.
fn arrived(stage: &Stage) -> Result<Instant> {
    let exchanges = stage.server.exchanges();
    Ok(exchanges.first().context("no request was made")?.arrived)
}

/// The memory of agents that wait, shared pages divided among those who share them.
fn waiting(agents: &Agents<'_>) -> Result<Vec<Row>> {
    agents
        .stage
        .server
        .play(vec![answers::text("hello")], Bodies::Dropped);
    for _ in 0..IDLE {
        agents.begin()?;
    }
    let listed = agents.when_idle()?;
    ensure!(listed.len() == IDLE, "{} agents", listed.len());
    let mut all = 0;
    for agent in &listed {
        all += proportional(agent["pid"].as_u64().context("a process")?)?;
    }
    let status = agents.asked(&["daemon", "status", "--json"])?;
    let daemon = proportional(status["pid"].as_u64().context("the daemon's process")?)?;
    let one = Summary::exact(megabytes(all / IDLE as u64));
    let together = Summary::exact(megabytes(all + daemon));
    Ok(vec![
        Row::new("agent: memory of one that waits", Unit::Megabytes, one).note(format!(
            "of {IDLE}, with what they share divided among them"
        )),
        Row::new(
            "agents: 200 that wait, and the daemon",
            Unit::Megabytes,
            together,
        )
        .target(Target::AtMost(500.0)),
    ])
}

/// The proportional set of a process, in bytes.
fn proportional(process: u64) -> Result<u64> {
    let file = format!("/proc/{process}/smaps_rollup");
    let text = std::fs::read_to_string(&file).with_context(|| file.clone())?;
    let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    let kilobytes: u64 = number.with_context(|| file)?.parse()?;
    Ok(kilobytes * 1024)
}

/// Events in a second to a client that is attached.
fn attached(agents: &Agents<'_>) -> Result<Vec<Row>> {
    let stage = agents.stage;
    stage
        .server
        .play(vec![answers::text("hello")], Bodies::Dropped);
    let (id, _) = agents.begin()?;
    agents.when_idle()?;
    stage
        .server
        .play(vec![answers::deltas(" word", DELTAS)], Bodies::Dropped);
    let mut client = Attached::new(agents, &id)?;
    let host = minimal(stage)?;
    let (mut ours, mut least) = (Vec::new(), Vec::new());
    for run in 0..stage.runs {
        ours.push(client.events(run)?);
        let started = Instant::now();
        least.push(rate(read(&host)?, started));
        stage.server.exchanges();
    }
    drop(client);
    agents.remove_all()?;
    let summary = |values: Vec<f64>| Summary::of(values, Better::More).context("no runs");
    let row = Row::new(
        "agent: events to an attached client, per second",
        Unit::PerSecond,
        summary(ours)?,
    );
    Ok(vec![row.against("a minimal server", summary(least)?).note(
        "it writes the provider's bytes once and knows nothing of agents",
    )])
}

/// `caliban attach --json`, which ends with this.
struct Attached {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    /// The last event that was heard of.
    seq: u64,
}

impl Attached {
    fn new(agents: &Agents<'_>, id: &str) -> Result<Self> {
        let mut child = agents
            .command(&["attach", id, "--json"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let output = child.stdout.take().context("no output")?;
        let mut lines = BufReader::new(output).lines();
        // The first line says how far the agent has come, and what follows up to there is past.
        let first = lines.next().context("it says nothing")??;
        let first: Value = serde_json::from_str(&first)?;
        let seq = first["seq"].as_u64().context("no number")?;
        Ok(Self { child, lines, seq })
    }

    /// Sends a prompt; the events until its result, in a second. A line may stand for several.
    fn events(&mut self, run: usize) -> Result<f64> {
        let prompt = json!({"type": "user", "content": "go", "request_id": format!("r{run}")});
        let input = self.child.stdin.as_mut().context("no input")?;
        let started = Instant::now();
        writeln!(input, "{prompt}")?;
        let before = self.seq;
        for line in self.lines.by_ref() {
            let frame: Value = serde_json::from_str(&line?)?;
            self.seq = frame["seq"].as_u64().unwrap_or(self.seq);
            if frame["type"] == "result" && self.seq > before {
                let events = usize::try_from(self.seq - before)?;
                ensure!(events > DELTAS, "{events} events");
                return Ok(rate(events, started));
            }
        }
        anyhow::bail!("the agent ended")
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
