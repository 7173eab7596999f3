//! A confined program that does nothing, beside bubblewrap alone and beside no sandbox at all, and
//! what passes through the proxy, beside what needs none.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result};

use super::answers;
use super::process::{measure, measure_with, milliseconds};
use super::report::{Row, Target, Unit};
use super::samples::{Better, Summary};
use super::server::Bodies;
use super::stage::Stage;
use crate::environment::{self, is_installed};
use crate::shell::say;

/// The least that makes a sandbox.
const LEAST: [&str; 12] = [
    "--unshare-all",
    "--die-with-parent",
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--proc",
    "/proc",
    "--cap-drop",
    "ALL",
    "true",
];

/// What a connection through the proxy fetches.
const FETCHED: u64 = 500_000_000;
/// What is sent of it at a time.
const PIECE: usize = 256 * 1024;
const MEGABYTE: f64 = 1e6;
/// How fast the proxy is to be, in millions of bytes a second.
const FAST: f64 = 500.0;

pub(super) fn rows(stage: &Stage) -> Result<Vec<Row>> {
    environment::install(&[("bwrap", "bubblewrap")])?;
    let works = is_installed("bwrap") && Command::new("bwrap").args(LEAST).status()?.success();
    if !works {
        say("no sandbox can be made here; nothing is measured");
        return Ok(Vec::new());
    }
    let confined = |stage: &Stage| {
        let mut command = stage.caliban(&stage.workspace());
        command.args(["sandbox", "exec", "--", "true"]);
        command
    };
    // What is found out once a boot is not what a call costs.
    measure(&mut confined(stage))?;
    let (mut ours, mut alone, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..stage.runs {
        ours.push(milliseconds(measure(&mut confined(stage))?.wall));
        let mut bwrap = Command::new("bwrap");
        alone.push(milliseconds(measure(bwrap.args(LEAST))?.wall));
        let mut version = stage.caliban(&stage.workspace());
        bare.push(milliseconds(measure(version.arg("--version"))?.wall));
    }
    let summary = |values: Vec<f64>| Summary::of(values, Better::Less).context("no runs");
    let (ours, alone, bare) = (summary(ours)?, summary(alone)?, summary(bare)?);
    let start = format!("of these {:.1} ms are the program's own start", bare.median);
    let row = Row::new("confined `true`, wall", Unit::Milliseconds, ours);
    let mut rows = vec![row.against("bwrap", alone).note(start)];
    rows.extend(calls(stage)?);
    rows.extend(proxied(stage)?);
    Ok(rows)
}

/// What the sandbox adds to a command of the model's: a session that runs `true`, with it and
/// without.
fn calls(stage: &Stage) -> Result<Vec<Row>> {
    let input = serde_json::json!({"command": "true"});
    let (mut confined, mut open) = (Vec::new(), Vec::new());
    let run = |enabled: bool| -> Result<f64> {
        let answers = vec![answers::call(0, "Bash", &input), answers::text("done")];
        stage.server.play(answers, Bodies::Dropped);
        let settings =
            format!("{{\"sandbox\":{{\"enabled\":{enabled},\"fail_if_unavailable\":true}}}}");
        let mut command = stage.prompt(&["--allow", "Bash", "--settings", &settings]);
        Ok(milliseconds(measure(&mut command)?.wall))
    };
    for _ in 0..stage.runs {
        confined.push(run(true)?);
        open.push(run(false)?);
    }
    let summary = |values: Vec<f64>| Summary::of(values, Better::Less).context("no runs");
    let (confined, open) = (summary(confined)?, summary(open)?);
    let added = format!(
        "the sandbox adds {:.1} ms to a session with one command; 12 are the target",
        confined.median - open.median
    );
    let row = Row::new(
        "`true` called by a model, wall",
        Unit::Milliseconds,
        confined,
    );
    Ok(vec![row.against("unconfined", open).note(added)])
}

/// One stream through the proxy, and the same without.
fn proxied(stage: &Stage) -> Result<Vec<Row>> {
    if !is_installed("curl") {
        say("there is no curl; the proxy is not measured");
        return Ok(Vec::new());
    }
    let port = serve()?;
    let url = format!("http://127.0.0.1:{port}/");
    let settings =
        format!("{{\"sandbox\":{{\"network\":{{\"allowed_domains\":[\"127.0.0.1:{port}\"]}}}}}}");
    let fetch = ["curl", "--silent", "--output", "/dev/null"];
    // By curl's own count, so that nothing but the connection is measured.
    let count = ["--write-out", "%{speed_download}", &url];
    let (mut ours, mut direct) = (Vec::new(), Vec::new());
    for _ in 0..stage.runs {
        let mut command = stage.caliban(&stage.workspace());
        command
            .args(["--settings", &settings, "sandbox", "exec", "--", "env"])
            .args(["-u", "NO_PROXY", "-u", "no_proxy"])
            .args(fetch)
            .args(count);
        ours.push(speed(&mut command)?);
        let mut command = Command::new(fetch[0]);
        command
            .args(&fetch[1..])
            .args(["--noproxy", "*"])
            .args(count);
        direct.push(speed(&mut command)?);
    }
    let summary = |values: Vec<f64>| Summary::of(values, Better::More).context("no runs");
    let row = Row::new(
        "one stream through the proxy",
        Unit::MegabytesPerSecond,
        summary(ours)?,
    );
    let row = row.against("direct", summary(direct)?);
    Ok(vec![row.target(Target::AtLeast(FAST))])
}

/// What curl says of its speed, in millions of bytes a second.
fn speed(command: &mut Command) -> Result<f64> {
    let mut said = Vec::new();
    measure_with(command, |piece| said.extend_from_slice(piece))?;
    let said = String::from_utf8(said)?;
    let bytes: f64 = said.trim().parse().context("curl says no speed")?;
    Ok(bytes / MEGABYTE)
}

/// Serves the same to everybody who asks; its port.
fn serve() -> Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || send(stream));
        }
    });
    Ok(port)
}

fn send(mut stream: TcpStream) -> std::io::Result<()> {
    // The head of a request fits into one reading here.
    let mut head = [0; 4096];
    let _ = stream.read(&mut head)?;
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-length: {FETCHED}\r\nconnection: close\r\n\r\n"
    )?;
    let piece = vec![0; PIECE];
    let mut left = FETCHED;
    while left > 0 {
        let now = usize::try_from(left).map_or(PIECE, |left| left.min(PIECE));
        stream.write_all(&piece[..now])?;
        left -= now as u64;
    }
    Ok(())
}
