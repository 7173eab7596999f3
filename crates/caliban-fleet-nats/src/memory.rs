//! The board in memory: what holds of every board, without a server. For tests.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use crate::board::{
    Answered, Artefact, Board, BoardError, Claim, Entry, Nudge, Revised, Settled, Submitted, Told,
};
use crate::job::{JobId, JobSpec, Pool};
use crate::record::{AnswerRecord, JobRecord, JobResult, Stored};

/// Whispers and nudges that wait for a slow listener.
const WAITING: usize = 256;

/// A board that is gone with its process.
#[derive(Debug)]
pub struct MemoryBoard {
    state: Arc<Mutex<Kept>>,
    changed: watch::Sender<u64>,
    live: broadcast::Sender<(JobId, Bytes)>,
    nudged: broadcast::Sender<(JobId, Nudge)>,
    lease: Duration,
    queue: usize,
    connections: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Kept {
    known: HashSet<JobId>,
    queue: VecDeque<Waiting>,
    seq: u64,
    records: BTreeMap<JobId, Revised<JobRecord>>,
    results: BTreeMap<JobId, JobResult>,
    journal: Vec<(JobId, Entry)>,
    events: Vec<(JobId, String, Told)>,
    questions: BTreeMap<(JobId, String), Bytes>,
    answers: BTreeMap<(JobId, String), AnswerRecord>,
    artefacts: BTreeMap<String, Bytes>,
}

#[derive(Debug)]
struct Waiting {
    job: JobId,
    pool: Pool,
    spec: Bytes,
    delivered: u64,
    /// Who has it, and until when.
    not_before: Option<Instant>,
}

impl Kept {
    fn next(&mut self) -> u64 {
        self.seq += 1;
        self.seq
    }

    fn waiting(&mut self, job: JobId) -> Option<&mut Waiting> {
        self.queue.iter_mut().find(|waiting| waiting.job == job)
    }
}

type Done<T> = Result<T, BoardError>;

impl MemoryBoard {
    /// A board whose leases hold for so long, and whose queue takes so many jobs.
    pub fn new(lease: Duration, queue: usize) -> Self {
        Self {
            state: Arc::default(),
            changed: watch::Sender::new(0),
            live: broadcast::Sender::new(WAITING),
            nudged: broadcast::Sender::new(WAITING),
            lease,
            queue,
            connections: watch::Sender::new(0),
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Board for MemoryBoard {
    type Lease = JobId;

    async fn submit(&self, spec: &JobSpec) -> Done<Submitted> {
        let bytes = spec.encode().map_err(|error| BoardError::Trouble {
            what: "the job".to_owned(),
            reason: error.to_string(),
        })?;
        {
            let mut kept = self.kept();
            if kept.known.contains(&spec.job) {
                return Ok(Submitted::Already);
            }
            if kept.queue.len() >= self.queue {
                return Err(BoardError::Full);
            }
            kept.known.insert(spec.job);
            kept.queue.push_back(Waiting {
                job: spec.job,
                pool: spec.pool.clone(),
                spec: bytes.into(),
                delivered: 0,
                not_before: None,
            });
        }
        match self.write_record(&JobRecord::queued(spec), 0).await {
            Ok(_) | Err(BoardError::Fenced) => Ok(Submitted::New),
            Err(error) => Err(error),
        }
    }

    async fn claim(&self, pool: &Pool, patience: Duration) -> Done<Option<Claim<JobId>>> {
        let deadline = Instant::now() + patience;
        loop {
            let now = Instant::now();
            {
                let mut kept = self.kept();
                let free = kept.queue.iter_mut().find(|waiting| {
                    waiting.pool == *pool && waiting.not_before.is_none_or(|until| until <= now)
                });
                if let Some(waiting) = free {
                    waiting.delivered += 1;
                    waiting.not_before = Some(now + self.lease);
                    return Ok(Some(Claim {
                        spec: waiting.spec.clone(),
                        delivered: waiting.delivered,
                        lease: waiting.job,
                    }));
                }
            }
            if now >= deadline {
                return Ok(None);
            }
            tokio::time::sleep(Duration::from_millis(10).min(deadline - now)).await;
        }
    }

    async fn renew(&self, lease: &JobId) -> Done<()> {
        let until = Instant::now() + self.lease;
        if let Some(waiting) = self.kept().waiting(*lease) {
            waiting.not_before = Some(until);
        }
        Ok(())
    }

    async fn release(&self, lease: &JobId, after: Duration) -> Done<()> {
        let until = Instant::now() + after;
        if let Some(waiting) = self.kept().waiting(*lease) {
            waiting.not_before = Some(until);
        }
        Ok(())
    }

    async fn finish(&self, lease: &JobId) -> Done<()> {
        self.kept().queue.retain(|waiting| waiting.job != *lease);
        Ok(())
    }

    async fn record(&self, job: JobId) -> Done<Option<Revised<JobRecord>>> {
        Ok(self.kept().records.get(&job).cloned())
    }

    async fn write_record(&self, record: &JobRecord, over: u64) -> Done<u64> {
        let mut kept = self.kept();
        let found = kept.records.get(&record.job);
        if found.map_or(0, |found| found.revision) != over {
            return Err(BoardError::Fenced);
        }
        let revision = kept.next();
        let value = record.clone();
        kept.records.insert(record.job, Revised { value, revision });
        Ok(revision)
    }

    async fn records(&self) -> Done<Vec<JobRecord>> {
        let kept = self.kept();
        let records = kept.records.values();
        Ok(records.map(|record| record.value.clone()).collect())
    }

    async fn settle(&self, result: &JobResult) -> Done<Settled> {
        let mut kept = self.kept();
        if let Some(first) = kept.results.get(&result.job) {
            if first.attempt == result.attempt && first.worker == result.worker {
                return Ok(Settled::Recorded);
            }
            return Ok(Settled::Already(Box::new(first.clone())));
        }
        kept.results.insert(result.job, result.clone());
        Ok(Settled::Recorded)
    }

    async fn result(&self, job: JobId) -> Done<Option<JobResult>> {
        Ok(self.kept().results.get(&job).cloned())
    }

    async fn append(&self, job: JobId, after: u64, bytes: Bytes) -> Done<u64> {
        let mut kept = self.kept();
        let last = kept.journal.iter().rfind(|(of, _)| *of == job);
        if last.map_or(0, |(_, entry)| entry.seq) != after {
            return Err(BoardError::Fenced);
        }
        let seq = kept.next();
        kept.journal.push((job, Entry { seq, bytes }));
        Ok(seq)
    }

    async fn journal(&self, job: JobId) -> Done<Vec<Entry>> {
        let kept = self.kept();
        let entries = kept.journal.iter().filter(|(of, _)| *of == job);
        Ok(entries.map(|(_, entry)| entry.clone()).collect())
    }

    async fn publish(&self, job: JobId, name: &str, frame: Bytes) -> Done<()> {
        let mut kept = self.kept();
        if kept.events.iter().all(|(_, known, _)| known != name) {
            let seq = kept.next();
            kept.events
                .push((job, name.to_owned(), Told { seq, frame }));
            self.changed.send_modify(|count| *count += 1);
        }
        Ok(())
    }

    async fn whisper(&self, job: JobId, frame: Bytes) -> Done<()> {
        // Nobody need be listening.
        let _ = self.live.send((job, frame));
        Ok(())
    }

    async fn events(&self, job: JobId, after: u64) -> Done<BoxStream<'static, Done<Told>>> {
        let state = Arc::clone(&self.state);
        let start = (state, self.changed.subscribe(), after);
        let told = stream::unfold(start, move |(state, mut changed, after)| async move {
            loop {
                let next = {
                    let kept = state.lock().unwrap_or_else(PoisonError::into_inner);
                    let mut of_job = kept.events.iter().filter(|(of, _, _)| *of == job);
                    of_job.find_map(|(_, _, told)| (told.seq > after).then(|| told.clone()))
                };
                if let Some(told) = next {
                    let seq = told.seq;
                    return Some((Ok(told), (state, changed, seq)));
                }
                changed.changed().await.ok()?;
            }
        });
        Ok(told.boxed())
    }

    async fn last_event(&self, job: JobId) -> Done<u64> {
        let kept = self.kept();
        let last = kept.events.iter().rfind(|(of, _, _)| *of == job);
        Ok(last.map_or(0, |(_, _, told)| told.seq))
    }

    async fn whispers(&self, job: JobId) -> Done<BoxStream<'static, Bytes>> {
        Ok(heard(self.live.subscribe(), job))
    }

    async fn nudge(&self, job: JobId, nudge: Nudge) -> Done<()> {
        // Nobody need be working on it.
        let _ = self.nudged.send((job, nudge));
        Ok(())
    }

    async fn nudges(&self, job: JobId) -> Done<BoxStream<'static, Nudge>> {
        Ok(heard(self.nudged.subscribe(), job))
    }

    async fn ask(&self, job: JobId, question: &str, frame: Bytes) -> Done<()> {
        let key = (job, question.to_owned());
        self.kept().questions.insert(key, frame);
        Ok(())
    }

    async fn question(&self, job: JobId, question: &str) -> Done<Option<Bytes>> {
        let key = (job, question.to_owned());
        Ok(self.kept().questions.get(&key).cloned())
    }

    async fn answer(&self, job: JobId, question: &str, answer: &AnswerRecord) -> Done<Answered> {
        let key = (job, question.to_owned());
        let mut kept = self.kept();
        if let Some(first) = kept.answers.get(&key) {
            return Ok(Answered::Already(first.clone()));
        }
        kept.answers.insert(key, answer.clone());
        Ok(Answered::Taken)
    }

    async fn answer_to(&self, job: JobId, question: &str) -> Done<Option<AnswerRecord>> {
        let key = (job, question.to_owned());
        Ok(self.kept().answers.get(&key).cloned())
    }

    async fn store(&self, artefact: Artefact) -> Done<Stored> {
        let Artefact { name, bytes } = artefact;
        let stored = Stored {
            name: name.clone(),
            bytes: bytes.len() as u64,
            digest: String::new(),
        };
        self.kept().artefacts.insert(name, bytes);
        Ok(stored)
    }

    async fn fetch(&self, name: &str, most: u64) -> Done<Option<Bytes>> {
        let found = self.kept().artefacts.get(name).cloned();
        match found {
            Some(bytes) if bytes.len() as u64 > most => {
                Err(BoardError::TooLarge(format!("the artefact `{name}`")))
            }
            found => Ok(found),
        }
    }

    fn reconnected(&self) -> watch::Receiver<u64> {
        self.connections.subscribe()
    }
}

/// What concerns one job; a listener that is too slow misses some.
fn heard<T: Clone + Send + 'static>(
    receiver: broadcast::Receiver<(JobId, T)>,
    job: JobId,
) -> BoxStream<'static, T> {
    let heard = stream::unfold(receiver, move |mut receiver| async move {
        loop {
            match receiver.recv().await {
                Ok((of, value)) if of == job => return Some((value, receiver)),
                Ok(_) | Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    });
    heard.boxed()
}
