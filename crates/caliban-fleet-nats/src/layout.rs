//! The names of everything on the server, and the numbers it is made with.

use std::time::Duration;

use crate::job::{JobId, Pool};

pub(crate) const JOBS: &str = "CALIBAN_JOBS";
pub(crate) const JOURNAL: &str = "CALIBAN_JOURNAL";
pub(crate) const EVENTS: &str = "CALIBAN_EVENTS";
pub(crate) const RECORDS: &str = "caliban-jobs";
pub(crate) const RESULTS: &str = "caliban-results";
pub(crate) const QUESTIONS: &str = "caliban-questions";
pub(crate) const ARTEFACTS: &str = "caliban-artifacts";

pub(crate) fn job_subject(pool: &Pool) -> String {
    format!("caliban.job.{pool}")
}

pub(crate) fn journal_subject(job: JobId) -> String {
    format!("caliban.jnl.{job}")
}

pub(crate) fn event_subject(job: JobId) -> String {
    format!("caliban.ev.{job}")
}

pub(crate) fn live_subject(job: JobId) -> String {
    format!("caliban.live.{job}")
}

pub(crate) fn control_subject(job: JobId) -> String {
    format!("caliban.ctl.{job}")
}

pub(crate) fn consumer(pool: &Pool) -> String {
    format!("pool-{pool}")
}

pub(crate) fn question_key(job: JobId, question: &str) -> String {
    format!("q.{job}.{question}")
}

pub(crate) fn answer_key(job: JobId, question: &str) -> String {
    format!("a.{job}.{question}")
}

/// What the streams and buckets of a fleet are made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub pools: Vec<Pool>,
    /// Jobs that are queued or running, in all pools; more are refused.
    pub queue: u32,
    /// Jobs of a pool that run at the same time, on all its workers.
    pub running: u32,
    /// How long a lease holds that is not renewed.
    pub lease: Duration,
    /// How long it is remembered that a job was submitted.
    pub memory: Duration,
    /// How long journals, events, records and artefacts are kept.
    pub keep: Duration,
    /// How many servers keep everything.
    pub replicas: u8,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            pools: Vec::new(),
            queue: 10_000,
            running: 1_000,
            lease: Duration::from_mins(1),
            memory: Duration::from_hours(24),
            keep: Duration::from_hours(7 * 24),
            replicas: 1,
        }
    }
}
