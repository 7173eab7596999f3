//! What holds of a board, wherever it is kept.

use std::future::Future;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use tokio::sync::watch;

use crate::job::{JobId, JobSpec, Pool};
use crate::record::{AnswerRecord, JobRecord, JobResult, Stored};

/// Why the board did not do what it should.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BoardError {
    #[error(
        "the server of the fleet cannot be reached at {address}: {reason}; `--server` or `CALIBAN_FLEET_SERVER` names another"
    )]
    Unreachable { address: String, reason: String },
    /// Too many jobs wait already. Nothing was submitted.
    #[error("the queue is full; try again later")]
    Full,
    /// Somebody else has written since: who sees this must stop.
    #[error("another attempt has taken over")]
    Fenced,
    #[error("the server has no {0}; `caliban fleet init --apply` makes it")]
    Missing(String),
    #[error("{0} is larger than the server takes")]
    TooLarge(String),
    /// Anything else; most of it is worth another try.
    #[error("{what}: {reason}")]
    Trouble { what: String, reason: String },
}

/// What became of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Submitted {
    New,
    /// The job was there already, and nothing has changed.
    Already,
}

/// A job that a worker has taken.
#[derive(Debug)]
pub struct Claim<L> {
    /// As it was sent; [`JobSpec::decode`] reads it.
    pub spec: Bytes,
    /// How often it was handed out, this time included.
    pub delivered: u64,
    pub lease: L,
}

/// A record and its revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revised<T> {
    pub value: T,
    pub revision: u64,
}

/// What became of a result.
#[derive(Debug, Clone, PartialEq)]
pub enum Settled {
    Recorded,
    /// Another attempt was first; this is its result.
    Already(Box<JobResult>),
}

/// What became of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    Taken,
    /// Somebody was first.
    Already(AnswerRecord),
}

/// An entry of a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub seq: u64,
    pub bytes: Bytes,
}

/// An event, with its number among all events of the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub seq: u64,
    pub frame: Bytes,
}

/// Why a worker should look up from its work. It is a hint: what counts is on the board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nudge {
    /// An answer or a wish to end is there.
    Look,
    /// Somebody watches, for a while.
    Watch,
}

/// An artefact to be stored.
#[derive(Debug, Clone)]
pub struct Artefact {
    pub name: String,
    pub bytes: Bytes,
}

type Done<T> = Result<T, BoardError>;

/// Where a fleet keeps its work. Everything that returns without an error is durable, but for
/// events, of which the last may be lost with the server and are published again, and for what is
/// only for those who watch.
pub trait Board: Send + Sync + 'static {
    /// The right to work on a job, for as long as it is renewed.
    type Lease: Send + Sync + 'static;

    /// Queues a job, once for each id.
    fn submit(&self, spec: &JobSpec) -> impl Future<Output = Done<Submitted>> + Send;

    /// Takes the next job of a pool, or none within this time.
    fn claim(
        &self,
        pool: &Pool,
        patience: Duration,
    ) -> impl Future<Output = Done<Option<Claim<Self::Lease>>>> + Send;

    /// Keeps a job for longer; known to the board when it returns.
    fn renew(&self, lease: &Self::Lease) -> impl Future<Output = Done<()>> + Send;

    /// Gives a job back, to be handed out again after a while.
    fn release(
        &self,
        lease: &Self::Lease,
        after: Duration,
    ) -> impl Future<Output = Done<()>> + Send;

    /// Takes a job off the queue for good.
    fn finish(&self, lease: &Self::Lease) -> impl Future<Output = Done<()>> + Send;

    fn record(&self, job: JobId) -> impl Future<Output = Done<Option<Revised<JobRecord>>>> + Send;

    /// Writes a record over that of this revision, 0 for none; [`BoardError::Fenced`] where it is
    /// not that any more.
    fn write_record(&self, record: &JobRecord, over: u64)
    -> impl Future<Output = Done<u64>> + Send;

    /// All jobs that are known, in no order.
    fn records(&self) -> impl Future<Output = Done<Vec<JobRecord>>> + Send;

    /// Records a result, if there is none.
    fn settle(&self, result: &JobResult) -> impl Future<Output = Done<Settled>> + Send;

    fn result(&self, job: JobId) -> impl Future<Output = Done<Option<JobResult>>> + Send;

    /// Appends to the journal of a job, whose last entry must be this one, 0 for none.
    fn append(
        &self,
        job: JobId,
        after: u64,
        entry: Bytes,
    ) -> impl Future<Output = Done<u64>> + Send;

    /// The journal of a job, from its beginning.
    fn journal(&self, job: JobId) -> impl Future<Output = Done<Vec<Entry>>> + Send;

    /// Tells an event, once for each name.
    fn publish(
        &self,
        job: JobId,
        name: &str,
        frame: Bytes,
    ) -> impl Future<Output = Done<()>> + Send;

    /// Tells those who watch at this moment.
    fn whisper(&self, job: JobId, frame: Bytes) -> impl Future<Output = Done<()>> + Send;

    /// The events of a job after this number, and then those that come, without end.
    fn events(
        &self,
        job: JobId,
        after: u64,
    ) -> impl Future<Output = Done<BoxStream<'static, Done<Told>>>> + Send;

    /// The number of the last event of a job, 0 for none.
    fn last_event(&self, job: JobId) -> impl Future<Output = Done<u64>> + Send;

    /// What is whispered from now on.
    fn whispers(&self, job: JobId) -> impl Future<Output = Done<BoxStream<'static, Bytes>>> + Send;

    fn nudge(&self, job: JobId, nudge: Nudge) -> impl Future<Output = Done<()>> + Send;

    /// Nudges from now on.
    fn nudges(&self, job: JobId) -> impl Future<Output = Done<BoxStream<'static, Nudge>>> + Send;

    /// Puts a question on the board.
    fn ask(
        &self,
        job: JobId,
        question: &str,
        frame: Bytes,
    ) -> impl Future<Output = Done<()>> + Send;

    /// The question of this id.
    fn question(
        &self,
        job: JobId,
        question: &str,
    ) -> impl Future<Output = Done<Option<Bytes>>> + Send;

    /// Answers a question, if nobody has.
    fn answer(
        &self,
        job: JobId,
        question: &str,
        answer: &AnswerRecord,
    ) -> impl Future<Output = Done<Answered>> + Send;

    /// What was answered.
    fn answer_to(
        &self,
        job: JobId,
        question: &str,
    ) -> impl Future<Output = Done<Option<AnswerRecord>>> + Send;

    /// Keeps an artefact.
    fn store(&self, artefact: Artefact) -> impl Future<Output = Done<Stored>> + Send;

    /// An artefact of at most so many bytes.
    fn fetch(&self, name: &str, most: u64) -> impl Future<Output = Done<Option<Bytes>>> + Send;

    /// Whether there is a pool of this name, as far as it can be told.
    fn has_pool(&self, _pool: &Pool) -> impl Future<Output = Done<bool>> + Send {
        std::future::ready(Ok(true))
    }

    /// What whoever comes may not do, where something was refused for that reason.
    fn refusal(&self) -> Option<String> {
        None
    }

    /// Changes whenever the connection was lost and is there again: what was told last may be lost.
    fn reconnected(&self) -> watch::Receiver<u64>;
}
