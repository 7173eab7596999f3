//! The `BashOutput` and `KillShell` tools, which look after background jobs.

use std::sync::Arc;
use std::time::Instant;

use caliban_agent::{Effect, ToolContext, ToolOutput, ToolStatus, TypedTool};
use caliban_process::Ending;
use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::job::{Boundary, Job, JobProgress, JobStatus, Reading};
use super::jobs::Jobs;
use super::text::{self, Script};

/// Reads what background jobs wrote.
#[derive(Debug)]
pub struct BashOutput {
    jobs: Arc<Jobs>,
}

impl BashOutput {
    pub fn new(jobs: Arc<Jobs>) -> Self {
        Self { jobs }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashOutputInput {
    /// The id Bash returned.
    #[serde(alias = "bash_id", alias = "task_id")]
    id: String,
    /// Return only lines that match this regular expression; others are dropped for good.
    #[serde(default)]
    filter: Option<String>,
    /// Whether and how long to wait, which this does not.
    #[serde(default, rename = "block")]
    #[schemars(skip)]
    _block: IgnoredAny,
    #[serde(default, rename = "timeout")]
    #[schemars(skip)]
    _timeout: IgnoredAny,
}

impl TypedTool for BashOutput {
    type Input = BashOutputInput;

    const NAME: &'static str = "BashOutput";
    const DESCRIPTION: &'static str = "Returns what a background command wrote since the last \
        call, and whether it still runs. Does not wait.";
    const EFFECT: Effect = Effect::ReadOnly;

    fn first_arg(&self, input: &BashOutputInput) -> Option<String> {
        Some(input.id.clone())
    }

    async fn run(&self, input: BashOutputInput, _context: ToolContext) -> ToolOutput {
        let filter = match input.filter.as_deref().map(Regex::new).transpose() {
            Ok(filter) => filter,
            Err(error) => return ToolOutput::invalid(format!("The filter is wrong: {error}")),
        };
        let Some(job) = self.jobs.find(&input.id) else {
            return unknown(&input.id, &self.jobs);
        };
        // A line is matched whole, so it must be complete.
        let boundary = match filter {
            Some(_) => Boundary::Line,
            None => Boundary::Character,
        };
        match job.read(boundary).await {
            Ok(reading) => ToolOutput::ok(format!(
                "{}\n[{}]",
                output(&reading, filter.as_ref()),
                state(&job, &reading)
            )),
            Err(error) => ToolOutput::failed(format!(
                "The output of {} cannot be read: {error}.",
                job.id()
            )),
        }
    }
}

fn output(reading: &Reading, filter: Option<&Regex>) -> String {
    if reading.bytes.is_empty() {
        return "(no new output)".to_owned();
    }
    if text::script(&reading.bytes) == Script::Binary {
        return text::binary_summary(reading.bytes.len() as u64);
    }
    let text = text::readable(&reading.bytes);
    let Some(filter) = filter else {
        return text.trim_end_matches('\n').to_owned();
    };
    let lines = text.lines().count();
    let matching: Vec<&str> = text.lines().filter(|line| filter.is_match(line)).collect();
    match matching.as_slice() {
        [] => format!("(none of {lines} new lines match)"),
        matching => matching.join("\n"),
    }
}

fn state(job: &Job, reading: &Reading) -> String {
    let progress = &reading.progress;
    let mut parts = vec![
        format!("{}: {}", job.id(), status(&progress.status)),
        format!("started {} s ago", job.age().as_secs()),
        last_output(progress),
    ];
    if reading.left > 0 {
        parts.push(format!(
            "{} bytes more to read, call BashOutput again",
            reading.left
        ));
    }
    if let Some(error) = &progress.write_error {
        parts.push(format!("output could not be written: {error}"));
    }
    if progress.dropped > 0 {
        parts.push(format!(
            "{} bytes of output were not kept",
            progress.dropped
        ));
    }
    parts.join("; ")
}

fn status(status: &JobStatus) -> String {
    let finished = match status {
        JobStatus::Running => return "running".to_owned(),
        JobStatus::Lost(reason) => return format!("ended, but how is not known ({reason})"),
        JobStatus::Ended(finished) => finished,
    };
    let seconds = finished.elapsed.as_secs_f64();
    match finished.ending {
        Ending::Exited(code) => format!("exit {code} after {seconds:.1} s"),
        Ending::Signalled(signal) => format!("killed by {signal} after {seconds:.1} s"),
        Ending::TimedOut => format!("timed out after {seconds:.1} s and was killed"),
        Ending::Cancelled => format!("killed on request after {seconds:.1} s"),
    }
}

fn last_output(progress: &JobProgress) -> String {
    match progress.last_output {
        Some(at) => {
            let ago = Instant::now().saturating_duration_since(at);
            format!("last output {} s ago", ago.as_secs())
        }
        None => "no output yet".to_owned(),
    }
}

fn unknown(id: &str, jobs: &Jobs) -> ToolOutput {
    let ids = jobs.ids();
    let known = if ids.is_empty() {
        "There are none.".to_owned()
    } else {
        format!("Known: {}.", ids.join(", "))
    };
    ToolOutput::new(
        ToolStatus::InvalidInput,
        format!("There is no background command `{id}`. {known}"),
    )
}

/// Ends background jobs.
#[derive(Debug)]
pub struct KillShell {
    jobs: Arc<Jobs>,
}

impl KillShell {
    pub fn new(jobs: Arc<Jobs>) -> Self {
        Self { jobs }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KillShellInput {
    /// The id Bash returned.
    #[serde(alias = "shell_id", alias = "task_id")]
    id: String,
}

impl TypedTool for KillShell {
    type Input = KillShellInput;

    const NAME: &'static str = "KillShell";
    const DESCRIPTION: &'static str = "Ends a background command and everything it started.";
    const EFFECT: Effect = Effect::Executes;

    fn first_arg(&self, input: &KillShellInput) -> Option<String> {
        Some(input.id.clone())
    }

    async fn run(&self, input: KillShellInput, _context: ToolContext) -> ToolOutput {
        let Some(job) = self.jobs.find(&input.id) else {
            return unknown(&input.id, &self.jobs);
        };
        let before = job.progress().status;
        match before {
            JobStatus::Running => {
                let after = job.kill().await.status;
                ToolOutput::ok(format!("{}: {}.", job.id(), status(&after)))
            }
            JobStatus::Ended(_) | JobStatus::Lost(_) => ToolOutput::ok(format!(
                "{} had already ended: {}.",
                job.id(),
                status(&before)
            )),
        }
    }
}
