//! Sessions of an uncommon size, and uncommonly many.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::json;

use super::answers;
use super::process::{measure, megabytes, milliseconds};
use super::report::{Row, Unit};
use super::samples::{Better, Summary};
use super::server::Bodies;
use super::stage::Stage;

const MESSAGES: usize = 2_000;
const MESSAGE_BYTES: usize = 50_000;
const SESSIONS: usize = 5_000;
/// What messages consist of.
pub(super) const SAID: &str = "what was said about this part of the work, and why\n";

pub(super) fn rows(stage: &Stage) -> Result<Vec<Row>> {
    let mut rows = resume(stage)?;
    rows.push(list(stage)?);
    Ok(rows)
}

/// A conversation of 100 MB goes on. It is more than any model takes, so it is shortened first.
fn resume(stage: &Stage) -> Result<Vec<Row>> {
    let file = long_session(stage)?;
    let directory = file.parent().context("a directory")?;
    stage
        .server
        .play(vec![answers::text("hello")], Bodies::Dropped);
    let mut samples: [Vec<f64>; 3] = Default::default();
    for _ in 0..stage.runs {
        let mut command = stage.prompt(&["--resume", "long", "--no-save", "--sessions-dir"]);
        let ours = measure(command.arg(directory))?;
        let asked = stage.server.exchanges();
        let curl = measure(&mut stage.curl(&file, 1))?;
        let posted = stage.server.exchanges();
        let (asked, posted) = asked.first().zip(posted.first()).context("no request")?;
        let [ours_times, curl_times, peaks] = &mut samples;
        ours_times.push(milliseconds(asked.arrived.duration_since(ours.started)));
        curl_times.push(milliseconds(posted.answered.duration_since(curl.started)));
        peaks.push(megabytes(ours.peak));
    }
    let [ours, curl, peaks] = samples.map(|values| Summary::of(values, Better::Less));
    let (ours, curl) = ours.zip(curl).context("no runs")?;
    let peaks = peaks.context("no runs")?;
    Ok(vec![
        Row::new("resume 100 MB, to first request", Unit::Milliseconds, ours)
            .against("curl", curl)
            .note("curl posts the file"),
        Row::new("resume 100 MB, peak memory", Unit::Megabytes, peaks),
    ])
}

/// The file of a session of 100 MB that is called `long`, alone in its directory.
pub(super) fn long_session(stage: &Stage) -> Result<PathBuf> {
    let directory = stage.place("long-session");
    std::fs::create_dir_all(&directory)?;
    let file = directory.join("long.json");
    if !file.exists() {
        write_session(&file, 1, MESSAGES, MESSAGE_BYTES)?;
    }
    Ok(file)
}

fn list(stage: &Stage) -> Result<Row> {
    let directory = stage.place("many-sessions");
    std::fs::create_dir_all(&directory)?;
    for number in 0..SESSIONS {
        let file = directory.join(format!("session-{number}.json"));
        if !file.exists() {
            write_session(&file, number, 10, 500)?;
        }
    }
    let (mut ours, mut heads) = (Vec::new(), Vec::new());
    for _ in 0..stage.runs {
        let mut command = stage.caliban(&stage.workspace());
        command
            .args(["sessions", "list", "--sessions-dir"])
            .arg(&directory);
        ours.push(milliseconds(measure(&mut command)?.wall));
        let mut command = Command::new("sh");
        command
            .args(["-c", "head -qc 4096 *"])
            .current_dir(&directory);
        heads.push(milliseconds(measure(&mut command)?.wall));
    }
    let summary = |values| Summary::of(values, Better::Less);
    let (ours, heads) = summary(ours).zip(summary(heads)).context("no runs")?;
    Ok(Row::new("list 5,000 sessions", Unit::Milliseconds, ours)
        .against("head", heads)
        .note("head prints the first 4 KiB of each"))
}

/// A session file as the program writes it, message by message.
fn write_session(path: &Path, number: usize, messages: usize, bytes: usize) -> Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let head = json!({
        "format": 1,
        "session_id": format!("00000000-0000-4000-8000-{number:012}"),
        "named": true,
        "title": format!("session {number}"),
        "provider": "anthropic",
        "model": "claude-sonnet-4-6",
        "plan_mode": false,
        "cwd": "/",
        "program_version": "0.1.0",
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "turns": messages / 2,
        "journal_seq": messages,
    });
    let head = serde_json::to_string_pretty(&head)?;
    let head = head.trim_end_matches("\n}");
    write!(file, "{head},\n  \"messages\": [")?;
    let line = SAID;
    let text = line.repeat(bytes / line.len() + 1);
    for number in 0..messages {
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        let message = json!({"role": role, "content": [{"type": "text", "text": text}]});
        let comma = if number == 0 { "" } else { "," };
        write!(file, "{comma}\n    {message}")?;
    }
    write!(file, "\n  ],\n  \"todos\": []\n}}\n")?;
    file.flush()?;
    Ok(())
}
