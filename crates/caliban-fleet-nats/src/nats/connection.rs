//! Connecting to the server, and opening what a board consists of.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::jetstream::{self, Context};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, Event, ServerError};
use tokio::sync::watch;
use url::{Host, Url};

use super::{NatsBoard, trouble};
use crate::board::BoardError;
use crate::layout::{ARTEFACTS, EVENTS, JOBS, JOURNAL, QUESTIONS, RECORDS, RESULTS};

/// How long the server may take to take us in, and to answer anything.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest pause between two tries to reach a server that is gone.
const LONGEST_PAUSE: Duration = Duration::from_secs(4);

/// Where the server is, and who comes.
#[derive(Debug, Clone, Default)]
pub struct Access {
    /// Such as `nats://127.0.0.1:4222` or `tls://nats.example.org`.
    pub address: String,
    /// A file with the seed of an nkey.
    pub key: Option<PathBuf>,
    /// A file with a JWT and its seed.
    pub credentials: Option<PathBuf>,
    /// Certificates of those who may vouch for the server, besides the system's.
    pub authority: Option<PathBuf>,
    pub refusals: Refusals,
}

/// What the server did not let us do. It says so beside the request, which then has no answer.
#[derive(Debug, Clone, Default)]
pub struct Refusals(Arc<Mutex<Option<String>>>);

impl Refusals {
    fn hear(&self, event: &Event) {
        if let Event::ServerError(ServerError::Other(text)) = event
            && text.to_ascii_lowercase().contains("permissions violation")
        {
            let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert_with(|| text.clone());
        }
    }

    /// The first of them, with what to do about it.
    pub fn first(&self) -> Option<String> {
        let first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.as_ref().map(|text| {
            format!(
                "the server does not let this identity do that ({text}); `--key` or \
                 CALIBAN_FLEET_KEY names the key of another role: admin makes streams and pools, \
                 submitter queues jobs, worker takes them"
            )
        })
    }
}

impl Access {
    /// Whether the server is this machine, so that nobody is on the way.
    pub fn is_loopback(&self) -> bool {
        let url = Url::parse(&self.address);
        match url.as_ref().map(Url::host) {
            Ok(Some(Host::Domain(name))) => name == "localhost" || is_loopback(name),
            Ok(Some(Host::Ipv4(address))) => address.is_loopback(),
            Ok(Some(Host::Ipv6(address))) => address.is_loopback(),
            Ok(None) | Err(_) => false,
        }
    }

    pub(super) async fn connect(&self) -> Result<(Client, watch::Receiver<u64>), BoardError> {
        let unreachable = |reason: String| BoardError::Unreachable {
            address: self.address.clone(),
            reason,
        };
        let (connections, reconnected) = watch::channel(0);
        let refusals = self.refusals.clone();
        let mut options = ConnectOptions::new()
            .name("caliban")
            .connection_timeout(PATIENCE)
            .request_timeout(Some(PATIENCE))
            .max_reconnects(None)
            .reconnect_delay_callback(|tries| {
                let tries = u32::try_from(tries).unwrap_or(u32::MAX).min(10);
                (Duration::from_millis(50) * 2_u32.pow(tries)).min(LONGEST_PAUSE)
            })
            .event_callback(move |event| {
                refusals.hear(&event);
                if let Event::Connected = event {
                    connections.send_modify(|count| *count += 1);
                }
                std::future::ready(())
            });
        if !self.is_loopback() {
            options = options.require_tls(true);
        }
        if let Some(file) = &self.authority {
            options = options.add_root_certificates(file.clone());
        }
        if let Some(file) = &self.key {
            let seed = tokio::fs::read_to_string(file).await;
            let seed = seed.map_err(|error| {
                unreachable(format!(
                    "`{}`: {error}; `--key` or CALIBAN_FLEET_KEY names the file with the key",
                    file.display()
                ))
            })?;
            options = options.nkey(seed.trim().to_owned());
        }
        if let Some(file) = &self.credentials {
            let read = options.credentials_file(file).await;
            options =
                read.map_err(|error| unreachable(format!("`{}`: {error}", file.display())))?;
        }
        let connected = options.connect(self.address.as_str()).await;
        let client = connected.map_err(|error| {
            unreachable(match error.kind() {
                ConnectErrorKind::Authentication | ConnectErrorKind::AuthorizationViolation => {
                    let key = self.key.as_ref().map_or_else(
                        || "no key was given".to_owned(),
                        |file| format!("it does not know the key in `{}`", file.display()),
                    );
                    format!(
                        "it lets in only whom it knows ({error}), and {key}; `--key FILE` or \
                         CALIBAN_FLEET_KEY names the key of a role"
                    )
                }
                _ => error.to_string(),
            })
        })?;
        Ok((client, reconnected))
    }
}

/// Addresses that a URL of another scheme keeps as a name.
fn is_loopback(name: &str) -> bool {
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.parse::<std::net::IpAddr>()
        .is_ok_and(|address| address.is_loopback())
}

impl NatsBoard {
    /// Opens the board that [`provision`](Self::provision) made.
    pub async fn open(access: &Access) -> Result<Self, BoardError> {
        let (client, reconnected) = access.connect().await?;
        let mut context = jetstream::new(client);
        context.set_timeout(PATIENCE);
        for name in [JOBS, JOURNAL, EVENTS] {
            check(&context, name).await?;
        }
        let bucket = async |name: &str| {
            check(&context, &format!("KV_{name}")).await?;
            let found = context.get_key_value(name).await;
            found.map_err(|error| trouble(format!("the bucket `{name}`"), error))
        };
        let stream = async |name: &str| {
            let found = context.get_stream_no_info(name).await;
            found.map_err(|error| trouble(format!("the stream `{name}`"), error))
        };
        check(&context, &format!("OBJ_{ARTEFACTS}")).await?;
        let artefacts = context.get_object_store(ARTEFACTS).await;
        Ok(Self {
            jobs: stream(JOBS).await?,
            journal: stream(JOURNAL).await?,
            events: stream(EVENTS).await?,
            records: bucket(RECORDS).await?,
            results: bucket(RESULTS).await?,
            questions: bucket(QUESTIONS).await?,
            artefacts: artefacts.map_err(|error| trouble("the store of artefacts", error))?,
            address: access.address.clone(),
            refusals: access.refusals.clone(),
            context,
            reconnected,
        })
    }
}

/// Whether a stream is there.
async fn check(context: &Context, name: &str) -> Result<(), BoardError> {
    use async_nats::jetstream::context::GetStreamErrorKind;
    match context.get_stream(name).await {
        Ok(_) => Ok(()),
        Err(error) => match error.kind() {
            GetStreamErrorKind::JetStream(error) if error.code() == 404 => {
                Err(BoardError::Missing(format!("stream `{name}`")))
            }
            _ => Err(trouble(format!("the stream `{name}`"), error)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::Access;

    #[test]
    fn this_machine_is_known_by_its_names() {
        let is_loopback = |address: &str| {
            let address = address.to_owned();
            let access = Access {
                address,
                ..Access::default()
            };
            access.is_loopback()
        };
        for address in [
            "nats://127.0.0.1:4222",
            "nats://localhost",
            "tls://[::1]:4222",
        ] {
            assert!(is_loopback(address), "{address}");
        }
        for address in [
            "nats://10.0.0.1",
            "nats://localhost.example.org",
            "nonsense",
        ] {
            assert!(!is_loopback(address), "{address}");
        }
    }
}
