//! Looks at a server without changing anything.

use async_nats::jetstream;
use serde_json::Value;
use tokio::time::{Duration, timeout};

use super::{Access, NatsBoard};
use crate::board::BoardError;
use crate::layout::{ARTEFACTS, EVENTS, JOBS, JOURNAL, QUESTIONS, RECORDS, RESULTS};
use crate::survey::{StreamFacts, Survey};

/// How long the server may take to say whether it would delete a stream that is not there.
const PATIENCE: Duration = Duration::from_secs(2);
/// A stream that nobody has.
const NOTHING: &str = "$JS.API.STREAM.DELETE.CALIBAN_DOCTOR_NOTHING";

impl NatsBoard {
    /// What the server says of itself and of the streams of the fleet.
    pub async fn survey(access: &Access) -> Result<Survey, BoardError> {
        let (client, _) = access.connect().await?;
        let about = client.server_info();
        let context = jetstream::new(client.clone());
        let names = [
            JOBS.to_owned(),
            JOURNAL.to_owned(),
            EVENTS.to_owned(),
            format!("KV_{RECORDS}"),
            format!("KV_{RESULTS}"),
            format!("KV_{QUESTIONS}"),
            format!("OBJ_{ARTEFACTS}"),
        ];
        let mut streams = Vec::new();
        for name in names {
            let found = context.get_stream(&name).await;
            let facts = found.map(|stream| {
                let config = &stream.cached_info().config;
                StreamFacts {
                    is_on_disk: config.storage == jetstream::stream::StorageType::File,
                    refuses_when_full: config.discard == jetstream::stream::DiscardPolicy::New,
                    replicas: config.num_replicas,
                    duplicates: config.duplicate_window,
                }
            });
            streams.push((name, facts.map_err(|error| error.to_string())));
        }
        let asked = client.request(NOTHING, bytes::Bytes::new());
        let may_delete = match timeout(PATIENCE, asked).await {
            Ok(Ok(answer)) => {
                // It would have, had there been one.
                let answer: Value = serde_json::from_slice(&answer.payload).unwrap_or_default();
                answer["error"]["code"] == 404
            }
            // The server does not even pass it on.
            Ok(Err(_)) | Err(_) => false,
        };
        Ok(Survey {
            version: about.version,
            is_loopback: access.is_loopback(),
            asks_who: about.auth_required,
            is_encrypted: about.tls_required || access.address.starts_with("tls:"),
            is_clustered: about.cluster.is_some(),
            may_delete,
            streams,
        })
    }
}
