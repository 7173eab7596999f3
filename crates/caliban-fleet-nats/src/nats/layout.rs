//! Makes the streams, buckets and consumers of a fleet.

use async_nats::jetstream::consumer::{AckPolicy, pull};
use async_nats::jetstream::stream::{
    Config, DiscardPolicy, PersistenceMode, RetentionPolicy, StorageType,
};
use async_nats::jetstream::{self, kv, object_store};

use super::{Access, NatsBoard, trouble};
use crate::board::BoardError;
use crate::job::LARGEST_SPEC;
use crate::layout::{
    ARTEFACTS, EVENTS, JOBS, JOURNAL, Layout, QUESTIONS, RECORDS, RESULTS, consumer, job_subject,
};

/// How long it is remembered that an event was told.
const EVENT_MEMORY: std::time::Duration = std::time::Duration::from_mins(10);

impl NatsBoard {
    /// Makes everything that is not there, and changes what is to these numbers.
    pub async fn provision(access: &Access, layout: &Layout) -> Result<(), BoardError> {
        let (client, _) = access.connect().await?;
        let context = jetstream::new(client);
        let replicas = usize::from(layout.replicas);
        let common = Config {
            storage: StorageType::File,
            num_replicas: replicas,
            ..Config::default()
        };
        let streams = [
            Config {
                name: JOBS.to_owned(),
                subjects: vec!["caliban.job.*".to_owned()],
                retention: RetentionPolicy::WorkQueue,
                discard: DiscardPolicy::New,
                max_messages: i64::from(layout.queue),
                max_message_size: i32::try_from(LARGEST_SPEC + 4_096).unwrap_or(i32::MAX),
                duplicate_window: layout.memory,
                ..common.clone()
            },
            Config {
                name: JOURNAL.to_owned(),
                subjects: vec!["caliban.jnl.*".to_owned()],
                discard: DiscardPolicy::New,
                max_age: layout.keep,
                ..common.clone()
            },
            Config {
                name: EVENTS.to_owned(),
                subjects: vec!["caliban.ev.*".to_owned()],
                max_age: layout.keep,
                duplicate_window: EVENT_MEMORY.min(layout.keep),
                // Fast also on a server that syncs every write: workers tell again what is lost.
                persist_mode: (layout.replicas == 1).then_some(PersistenceMode::Async),
                ..common
            },
        ];
        for config in streams {
            let what = format!("the stream `{}`", config.name);
            let made = context.create_or_update_stream(config).await;
            made.map_err(|error| trouble(what, error))?;
        }
        for bucket in [RECORDS, RESULTS, QUESTIONS] {
            let config = kv::Config {
                bucket: bucket.to_owned(),
                history: 1,
                max_age: layout.keep,
                storage: StorageType::File,
                num_replicas: replicas,
                ..kv::Config::default()
            };
            let made = context.create_or_update_key_value(config).await;
            made.map_err(|error| trouble(format!("the bucket `{bucket}`"), error))?;
        }
        if context.get_object_store(ARTEFACTS).await.is_err() {
            let config = object_store::Config {
                bucket: ARTEFACTS.to_owned(),
                max_age: layout.keep,
                storage: StorageType::File,
                num_replicas: replicas,
                ..object_store::Config::default()
            };
            let made = context.create_object_store(config).await;
            made.map_err(|error| trouble("the store of artefacts", error))?;
        }
        for pool in &layout.pools {
            let config = pull::Config {
                durable_name: Some(consumer(pool)),
                filter_subject: job_subject(pool),
                ack_policy: AckPolicy::Explicit,
                ack_wait: layout.lease,
                max_ack_pending: i64::from(layout.running),
                // Who takes a job counts its attempts: the server would keep one that it does not
                // deliver any more, and nobody would say that it failed.
                max_deliver: -1,
                ..pull::Config::default()
            };
            let made = context.create_consumer_on_stream(config, JOBS).await;
            made.map_err(|error| trouble(format!("the pool `{pool}`"), error))?;
        }
        Ok(())
    }
}
