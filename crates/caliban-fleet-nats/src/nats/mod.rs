//! The board on NATS `JetStream`. Nothing outside of this module knows NATS.

mod connection;
mod layout;
mod probe;

use std::fmt::{self, Display};
use std::io::Cursor;
use std::time::Duration;

use async_nats::jetstream::consumer::{DeliverPolicy, PullConsumer, pull};
use async_nats::jetstream::context::{
    ConsumerInfoError, ConsumerInfoErrorKind, PublishError, PublishErrorKind,
};
use async_nats::jetstream::kv::{CreateErrorKind, Store, UpdateErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::object_store::{GetErrorKind, ObjectMetadata, ObjectStore};
use async_nats::jetstream::stream::{LastRawMessageErrorKind, Stream};
use async_nats::jetstream::{self, AckKind, Context};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use serde::de::DeserializeOwned;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncReadExt as _;
use tokio::sync::watch;

pub use connection::{Access, Refusals};

use crate::board::{
    Answered, Artefact, Board, BoardError, Claim, Entry, Nudge, Revised, Settled, Submitted, Told,
};
use crate::hex;
use crate::job::{JobId, JobSpec, Pool};
use crate::layout::{
    answer_key, consumer, control_subject, event_subject, job_subject, journal_subject,
    live_subject, question_key,
};
use crate::record::{AnswerRecord, JobRecord, JobResult, Stored};

/// Records that are read at the same time.
const READING: usize = 32;
/// How the server calls a queue that takes no more.
const QUEUE_FULL: [u64; 2] = [10_077, 10_122];
const WATCH: &[u8] = b"watch";
const LOOK: &[u8] = b"look";

/// A board on a server, and everything that is open there.
pub struct NatsBoard {
    context: Context,
    address: String,
    refusals: Refusals,
    jobs: Stream<()>,
    journal: Stream<()>,
    events: Stream<()>,
    records: Store,
    results: Store,
    questions: Store,
    artefacts: ObjectStore,
    reconnected: watch::Receiver<u64>,
}

/// A message that is not acknowledged yet.
#[derive(Debug)]
pub struct Lease(jetstream::Message);

type Done<T> = Result<T, BoardError>;

fn trouble(what: impl Into<String>, reason: impl Display) -> BoardError {
    BoardError::Trouble {
        what: what.into(),
        reason: reason.to_string(),
    }
}

/// Why a message was not stored.
fn refused(what: &str, error: &PublishError) -> BoardError {
    match error.kind() {
        PublishErrorKind::WrongLastSequence | PublishErrorKind::WrongLastMessageId => {
            BoardError::Fenced
        }
        PublishErrorKind::MaxPayloadExceeded => BoardError::TooLarge(what.to_owned()),
        PublishErrorKind::StreamNotFound => BoardError::Missing("stream for it".to_owned()),
        PublishErrorKind::TimedOut
        | PublishErrorKind::BrokenPipe
        | PublishErrorKind::MaxAckPending
        | PublishErrorKind::Other => {
            let cause = std::error::Error::source(error);
            let code = cause
                .and_then(|cause| cause.downcast_ref::<jetstream::Error>())
                .map(|error| error.error_code().0);
            if code.is_some_and(|code| QUEUE_FULL.contains(&code)) {
                return BoardError::Full;
            }
            match cause {
                Some(cause) => trouble(what, format!("{error}: {cause}")),
                None => trouble(what, error),
            }
        }
    }
}

fn encoded(what: &str, value: &impl serde::Serialize) -> Done<Bytes> {
    let bytes = serde_json::to_vec(value).map_err(|error| trouble(what, error))?;
    Ok(bytes.into())
}

fn decoded<T: DeserializeOwned>(what: &str, bytes: &[u8]) -> Done<T> {
    serde_json::from_slice(bytes).map_err(|error| trouble(what, error))
}

async fn read<T: DeserializeOwned>(store: &Store, what: &str, key: String) -> Done<Option<T>> {
    let bytes = store.get(key).await.map_err(|error| trouble(what, error))?;
    bytes.map(|bytes| decoded(what, &bytes)).transpose()
}

impl fmt::Debug for NatsBoard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("NatsBoard");
        shown
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl NatsBoard {
    async fn put(&self, subject: String, message: PublishMessage, what: &str) -> Done<(u64, bool)> {
        let sent = self.context.send_publish(subject, message).await;
        let acknowledged = sent.map_err(|error| refused(what, &error))?.await;
        let acknowledged = acknowledged.map_err(|error| refused(what, &error))?;
        Ok((acknowledged.sequence, acknowledged.duplicate))
    }

    /// The address that it was reached at.
    pub fn address(&self) -> &str {
        &self.address
    }
}

impl Board for NatsBoard {
    type Lease = Lease;

    async fn submit(&self, spec: &JobSpec) -> Done<Submitted> {
        let bytes = spec.encode().map_err(|error| trouble("the job", error))?;
        let message = PublishMessage::build()
            .message_id(spec.job.to_string())
            .payload(bytes.into());
        let (_, is_duplicate) = self
            .put(job_subject(&spec.pool), message, "the job was not queued")
            .await?;
        // A worker may have written it by now.
        match self.write_record(&JobRecord::queued(spec), 0).await {
            Ok(_) | Err(BoardError::Fenced) => {}
            Err(error) => return Err(error),
        }
        Ok(if is_duplicate {
            Submitted::Already
        } else {
            Submitted::New
        })
    }

    async fn has_pool(&self, pool: &Pool) -> Done<bool> {
        let found = self
            .jobs
            .get_consumer::<pull::Config>(&consumer(pool))
            .await;
        match found {
            Ok(_) => Ok(true),
            Err(error) if is_no_pool(&*error) => Ok(false),
            Err(error) => Err(trouble(format!("the pool `{pool}`"), error)),
        }
    }

    fn refusal(&self) -> Option<String> {
        self.refusals.first()
    }

    async fn claim(&self, pool: &Pool, patience: Duration) -> Done<Option<Claim<Lease>>> {
        let queue = self.jobs.get_consumer(&consumer(pool)).await;
        let queue: PullConsumer = queue.map_err(|error| {
            if is_no_pool(&*error) {
                BoardError::Missing(format!("pool `{pool}`"))
            } else {
                trouble(format!("the pool `{pool}`"), error)
            }
        })?;
        let what = "no job could be taken";
        let batch = queue.batch().max_messages(1).expires(patience);
        let mut messages = batch
            .messages()
            .await
            .map_err(|error| trouble(what, error))?;
        let Some(message) = messages.next().await else {
            return Ok(None);
        };
        let message = message.map_err(|error| trouble(what, error))?;
        let info = message.info().map_err(|error| trouble(what, error))?;
        let delivered = u64::try_from(info.delivered).unwrap_or_default();
        Ok(Some(Claim {
            spec: message.payload.clone(),
            delivered,
            lease: Lease(message),
        }))
    }

    async fn renew(&self, lease: &Lease) -> Done<()> {
        let renewed = lease.0.double_ack_with(AckKind::Progress).await;
        renewed.map_err(|error| trouble("the lease was not renewed", error))
    }

    async fn release(&self, lease: &Lease, after: Duration) -> Done<()> {
        let released = lease.0.double_ack_with(AckKind::Nak(Some(after))).await;
        released.map_err(|error| trouble("the job was not given back", error))
    }

    async fn finish(&self, lease: &Lease) -> Done<()> {
        let finished = lease.0.double_ack().await;
        finished.map_err(|error| trouble("the job was not taken off the queue", error))
    }

    async fn record(&self, job: JobId) -> Done<Option<Revised<JobRecord>>> {
        let what = "the record of the job";
        let entry = self.records.entry(job.to_string()).await;
        let Some(entry) = entry.map_err(|error| trouble(what, error))? else {
            return Ok(None);
        };
        Ok(Some(Revised {
            value: decoded(what, &entry.value)?,
            revision: entry.revision,
        }))
    }

    async fn write_record(&self, record: &JobRecord, over: u64) -> Done<u64> {
        let what = "the record of the job";
        let bytes = encoded(what, record)?;
        let written = self.records.update(record.job.to_string(), bytes, over);
        written.await.map_err(|error| match error.kind() {
            UpdateErrorKind::WrongLastRevision => BoardError::Fenced,
            _ => trouble(what, error),
        })
    }

    async fn records(&self) -> Done<Vec<JobRecord>> {
        let what = "the list of jobs";
        let keys = self.records.keys().await;
        let keys = keys.map_err(|error| trouble(what, error))?;
        let found: Vec<Done<Option<JobRecord>>> = keys
            .map(|key| async move {
                let key = key.map_err(|error| trouble(what, error))?;
                read(&self.records, what, key).await
            })
            .buffer_unordered(READING)
            .collect()
            .await;
        found.into_iter().filter_map(Result::transpose).collect()
    }

    async fn settle(&self, result: &JobResult) -> Done<Settled> {
        let what = "the result of the job";
        let key = result.job.to_string();
        let created = self.results.create(key, encoded(what, result)?).await;
        match created {
            Ok(_) => Ok(Settled::Recorded),
            Err(error) if error.kind() == CreateErrorKind::AlreadyExists => {
                let Some(first) = self.result(result.job).await? else {
                    return Err(trouble(what, "it was there and is gone"));
                };
                // An earlier try of this very attempt that went through unheard.
                if first.attempt == result.attempt && first.worker == result.worker {
                    return Ok(Settled::Recorded);
                }
                Ok(Settled::Already(Box::new(first)))
            }
            Err(error) => Err(trouble(what, error)),
        }
    }

    async fn result(&self, job: JobId) -> Done<Option<JobResult>> {
        read(&self.results, "the result of the job", job.to_string()).await
    }

    async fn append(&self, job: JobId, after: u64, entry: Bytes) -> Done<u64> {
        let message = PublishMessage::build()
            .expected_last_subject_sequence(after)
            .payload(entry);
        let (seq, _) = self
            .put(journal_subject(job), message, "the journal of the job")
            .await?;
        Ok(seq)
    }

    async fn journal(&self, job: JobId) -> Done<Vec<Entry>> {
        let subject = journal_subject(job);
        let mut entries: Vec<Entry> = Vec::new();
        loop {
            let from = entries.last().map_or(1, |entry| entry.seq + 1);
            // Asked of the leader: a follower may not have it all yet.
            let found = self
                .journal
                .raw_message_builder()
                .next_by_subject(&subject)
                .sequence(from)
                .send()
                .await;
            match found {
                Ok(message) => entries.push(Entry {
                    seq: message.sequence,
                    bytes: message.payload,
                }),
                Err(error) if is_nothing(&error.kind()) => return Ok(entries),
                Err(error) => return Err(trouble("the journal of the job", error)),
            }
        }
    }

    async fn publish(&self, job: JobId, name: &str, frame: Bytes) -> Done<()> {
        let message = PublishMessage::build().message_id(name).payload(frame);
        let told = self.put(event_subject(job), message, "an event of the job");
        told.await.map(drop)
    }

    async fn whisper(&self, job: JobId, frame: Bytes) -> Done<()> {
        let client = self.context.client();
        let sent = client.publish(live_subject(job), frame).await;
        sent.map_err(|error| trouble("an event of the job", error))
    }

    async fn events(&self, job: JobId, after: u64) -> Done<BoxStream<'static, Done<Told>>> {
        let what = "the events of the job";
        let config = pull::OrderedConfig {
            filter_subject: event_subject(job),
            deliver_policy: DeliverPolicy::ByStartSequence {
                start_sequence: after + 1,
            },
            ..pull::OrderedConfig::default()
        };
        let reader = self.events.create_consumer(config).await;
        let reader = reader.map_err(|error| trouble(what, error))?;
        let messages = reader.messages().await;
        let messages = messages.map_err(|error| trouble(what, error))?;
        let told = messages.map(move |message| {
            let message = message.map_err(|error| trouble(what, error))?;
            let info = message.info().map_err(|error| trouble(what, error))?;
            let seq = info.stream_sequence;
            let frame = message.payload.clone();
            Ok(Told { seq, frame })
        });
        Ok(told.boxed())
    }

    async fn last_event(&self, job: JobId) -> Done<u64> {
        let found = self
            .events
            .get_last_raw_message_by_subject(&event_subject(job))
            .await;
        match found {
            Ok(message) => Ok(message.sequence),
            Err(error) if is_nothing(&error.kind()) => Ok(0),
            Err(error) => Err(trouble("the events of the job", error)),
        }
    }

    async fn whispers(&self, job: JobId) -> Done<BoxStream<'static, Bytes>> {
        let client = self.context.client();
        let heard = client.subscribe(live_subject(job)).await;
        let heard = heard.map_err(|error| trouble("the events of the job", error))?;
        Ok(heard.map(|message| message.payload).boxed())
    }

    async fn nudge(&self, job: JobId, nudge: Nudge) -> Done<()> {
        let payload = match nudge {
            Nudge::Look => LOOK,
            Nudge::Watch => WATCH,
        };
        let client = self.context.client();
        let what = "the worker was not told";
        let sent = client
            .publish(control_subject(job), Bytes::from_static(payload))
            .await;
        sent.map_err(|error| trouble(what, error))?;
        client.flush().await.map_err(|error| trouble(what, error))
    }

    async fn nudges(&self, job: JobId) -> Done<BoxStream<'static, Nudge>> {
        let client = self.context.client();
        let heard = client.subscribe(control_subject(job)).await;
        let heard = heard.map_err(|error| trouble("the wishes about the job", error))?;
        let nudges = heard.filter_map(|message| {
            let nudge = match &*message.payload {
                LOOK => Some(Nudge::Look),
                WATCH => Some(Nudge::Watch),
                _ => None,
            };
            std::future::ready(nudge)
        });
        Ok(nudges.boxed())
    }

    async fn ask(&self, job: JobId, question: &str, frame: Bytes) -> Done<()> {
        let asked = self.questions.put(question_key(job, question), frame).await;
        asked.map_err(|error| trouble("the question", error))?;
        Ok(())
    }

    async fn question(&self, job: JobId, question: &str) -> Done<Option<Bytes>> {
        let found = self.questions.get(question_key(job, question)).await;
        found.map_err(|error| trouble("the question", error))
    }

    async fn answer(&self, job: JobId, question: &str, answer: &AnswerRecord) -> Done<Answered> {
        let what = "the answer";
        let key = answer_key(job, question);
        let created = self.questions.create(&key, encoded(what, answer)?).await;
        match created {
            Ok(_) => Ok(Answered::Taken),
            Err(error) if error.kind() == CreateErrorKind::AlreadyExists => {
                let first = self.answer_to(job, question).await?;
                let first = first.ok_or_else(|| trouble(what, "it was there and is gone"))?;
                Ok(Answered::Already(first))
            }
            Err(error) => Err(trouble(what, error)),
        }
    }

    async fn answer_to(&self, job: JobId, question: &str) -> Done<Option<AnswerRecord>> {
        read(&self.questions, "the answer", answer_key(job, question)).await
    }

    async fn store(&self, artefact: Artefact) -> Done<Stored> {
        let Artefact { name, bytes } = artefact;
        let length = bytes.len() as u64;
        let digest = hex(&Sha256::digest(&bytes));
        let about = ObjectMetadata {
            name: name.clone(),
            ..ObjectMetadata::default()
        };
        let mut reader = Cursor::new(bytes);
        let kept = self.artefacts.put(about, &mut reader).await;
        kept.map_err(|error| trouble(format!("the artefact `{name}`"), error))?;
        Ok(Stored {
            name,
            bytes: length,
            digest,
        })
    }

    async fn fetch(&self, name: &str, most: u64) -> Done<Option<Bytes>> {
        let what = format!("the artefact `{name}`");
        let object = match self.artefacts.get(name).await {
            Ok(object) => object,
            Err(error) if error.kind() == GetErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(trouble(what, error)),
        };
        let mut bytes = Vec::new();
        let mut object = object.take(most + 1);
        let read = object.read_to_end(&mut bytes).await;
        read.map_err(|error| trouble(&what, error))?;
        if bytes.len() as u64 > most {
            return Err(BoardError::TooLarge(what));
        }
        Ok(Some(bytes.into()))
    }

    fn reconnected(&self) -> watch::Receiver<u64> {
        self.reconnected.clone()
    }
}

/// Whether a consumer was looked for that is not there.
fn is_no_pool(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let told = error.downcast_ref::<ConsumerInfoError>();
    told.map(ConsumerInfoError::kind) == Some(ConsumerInfoErrorKind::NotFound)
}

fn is_nothing(kind: &LastRawMessageErrorKind) -> bool {
    match kind {
        LastRawMessageErrorKind::NoMessageFound => true,
        LastRawMessageErrorKind::JetStream(error) => error.code() == 404,
        LastRawMessageErrorKind::InvalidSubject | LastRawMessageErrorKind::Other => false,
    }
}
