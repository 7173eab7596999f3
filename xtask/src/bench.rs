//! `cargo xtask bench`: what the program costs, as ratios to `curl` in the same run. Absolute
//! times mean nothing on a shared machine; a ratio of interleaved runs does. Only the verdict on a
//! tool call, which nobody may feel, has a bound of its own.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::shell::{cargo, root, run as run_command};

/// A complete Anthropic answer, written in one piece: the server must not be what is measured.
const ANSWER: &str = concat!(
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"claude-sonnet-4-6\",\"content\":[],\"usage\":{\"input_tokens\":9,\"output_tokens\":1}}}\n\n",
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"hello\"}}\n\n",
    "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
);

struct Sample {
    to_request: Duration,
    whole: Duration,
}

pub(crate) fn run(runs: usize) -> Result<()> {
    run_command(cargo().args(["build", "--release", "--quiet", "--package", "caliban"]))?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let (sender, arrivals) = channel();
    std::thread::spawn(move || serve(&listener, &sender));
    let binary = root().join("target/release/caliban");
    let home = root().join("target/bench-home");
    std::fs::create_dir_all(&home)?;
    let mut ours = Vec::new();
    let mut curl = Vec::new();
    for _ in 0..runs {
        ours.push(measure(
            Command::new(&binary)
                .args(["-p", "hi", "--no-system"])
                .env_clear()
                .env("HOME", &home)
                .env("ANTHROPIC_API_KEY", "bench")
                .env("ANTHROPIC_BASE_URL", &url)
                .current_dir(&home),
            &arrivals,
        )?);
        curl.push(measure(
            Command::new("curl")
                .args(["-s", "-d", "{\"model\":\"m\",\"messages\":[]}"])
                .arg(format!("{url}/v1/messages")),
            &arrivals,
        )?);
    }
    report("exec to first request byte", &ours, &curl, |sample| {
        sample.to_request
    });
    report("whole one-turn exchange", &ours, &curl, |sample| {
        sample.whole
    });
    let verdicts = [
        "--package",
        "caliban-permissions",
        "--example",
        "verdict_time",
    ];
    run_command(cargo().args(["run", "--release", "--quiet"]).args(verdicts))
}

fn serve(listener: &TcpListener, arrivals: &Sender<Instant>) {
    for stream in listener.incoming().flatten() {
        // A client that hangs up is its own affair; the next run goes on.
        let _ = answer(&stream, arrivals);
    }
}

fn answer(stream: &TcpStream, arrivals: &Sender<Instant>) -> Result<()> {
    let mut reader = BufReader::new(stream);
    reader.fill_buf()?;
    arrivals.send(Instant::now())?;
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse()?;
        }
    }
    reader.take(length).read_to_end(&mut Vec::new())?;
    write!(
        &mut &*stream,
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{ANSWER}",
        ANSWER.len()
    )?;
    Ok(())
}

fn measure(command: &mut Command, arrivals: &Receiver<Instant>) -> Result<Sample> {
    let start = Instant::now();
    let status = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .status()
        .context("the measured program")?;
    let whole = start.elapsed();
    anyhow::ensure!(status.success(), "the measured program failed: {status}");
    let arrived = arrivals.recv_timeout(Duration::from_secs(5))?;
    Ok(Sample {
        to_request: arrived.duration_since(start),
        whole,
    })
}

fn report(what: &str, ours: &[Sample], curl: &[Sample], part: fn(&Sample) -> Duration) {
    let (ours, curl) = (median(ours, part), median(curl, part));
    let ratio = ours.as_secs_f64() / curl.as_secs_f64();
    let _ = writeln!(
        std::io::stdout(),
        "{what}: {ratio:.2} × curl ({:.1} ms against {:.1} ms, medians)",
        ours.as_secs_f64() * 1e3,
        curl.as_secs_f64() * 1e3,
    );
}

fn median(samples: &[Sample], part: fn(&Sample) -> Duration) -> Duration {
    let mut values: Vec<Duration> = samples.iter().map(part).collect();
    values.sort();
    values.get(values.len() / 2).copied().unwrap_or_default()
}
