//! A credential that lasts a while: fetched by one at a time, renewed before it ends.

use std::time::Duration;

use caliban_model::{Error, Freshness};
use jiff::{SignedDuration, Timestamp};
use tokio::sync::Mutex;

/// How long a credential counts of which nobody says when it ends.
const UNDATED: SignedDuration = SignedDuration::from_hours(1);
/// How long a renewal that failed is not tried again, as long as the old credential counts.
const PAUSE: SignedDuration = SignedDuration::from_secs(30);

/// A credential, and when it ends.
#[derive(Debug, Clone)]
pub(crate) struct Lease<T> {
    pub(crate) value: T,
    pub(crate) expires: Option<Timestamp>,
}

/// Keeps one credential.
#[derive(Debug)]
pub(crate) struct Kept<T> {
    slot: Mutex<Option<Held<T>>>,
    early: SignedDuration,
}

#[derive(Debug)]
struct Held<T> {
    value: T,
    expires: Timestamp,
    /// Not renewed before this.
    renew: Timestamp,
}

impl<T: Clone> Kept<T> {
    /// Renews `early` before the end.
    pub(crate) fn new(early: Duration) -> Self {
        Self {
            slot: Mutex::new(None),
            early: SignedDuration::try_from(early).unwrap_or(SignedDuration::MAX),
        }
    }

    /// The credential, fetched if there is none that will do. Others wait meanwhile, so that one
    /// login is enough for all. A renewal that fails leaves the old one in use until it ends.
    pub(crate) async fn get<F>(&self, freshness: Freshness, fetch: F) -> Result<T, Error>
    where
        F: Future<Output = Result<Lease<T>, Error>>,
    {
        let mut slot = self.slot.lock().await;
        let now = Timestamp::now();
        if let Some(held) = &*slot
            && freshness == Freshness::Cached
            && now < held.renew
        {
            return Ok(held.value.clone());
        }
        match fetch.await {
            Ok(lease) => {
                let expires = lease.expires.unwrap_or_else(|| now + UNDATED);
                let early = match lease.expires {
                    // One that is short-lived is renewed half way, not for every call.
                    Some(_) => self.early.min(expires.duration_since(now) / 2),
                    None => SignedDuration::ZERO,
                };
                *slot = Some(Held {
                    value: lease.value.clone(),
                    expires,
                    renew: expires - early,
                });
                Ok(lease.value)
            }
            Err(error) => match slot.as_mut() {
                Some(held) if freshness == Freshness::Cached && now < held.expires => {
                    held.renew = (now + PAUSE).min(held.expires);
                    Ok(held.value.clone())
                }
                Some(_) | None => {
                    *slot = None;
                    Err(error)
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use caliban_model::ErrorKind;
    use std::sync::atomic::{AtomicI64, Ordering};

    /// Fetches numbers that each last so many seconds.
    struct Source {
        fetched: AtomicI64,
        lasts: i64,
    }

    impl Source {
        #[expect(
            clippy::unused_async,
            reason = "nothing is fetched before somebody waits"
        )]
        async fn next(&self) -> Result<Lease<i64>, Error> {
            Ok(Lease {
                value: self.fetched.fetch_add(1, Ordering::Relaxed),
                expires: Some(Timestamp::now() + SignedDuration::from_secs(self.lasts)),
            })
        }
    }

    fn refused() -> Error {
        Error::new(ErrorKind::Auth, "bedrock", "m", "no")
    }

    #[tokio::test]
    async fn one_is_kept_until_it_is_nearly_over_or_refused() {
        let kept = Kept::new(Duration::from_mins(5));
        let source = Source {
            fetched: AtomicI64::new(0),
            lasts: 3600,
        };
        for (freshness, expected) in [
            (Freshness::Cached, 0),
            (Freshness::Cached, 0),
            (Freshness::Renewed, 1),
            (Freshness::Cached, 1),
        ] {
            assert_eq!(kept.get(freshness, source.next()).await, Ok(expected));
        }
    }

    #[tokio::test]
    async fn a_renewal_that_fails_leaves_the_old_one_in_use() {
        let kept = Kept::new(Duration::from_mins(5));
        let now = Timestamp::now();
        *kept.slot.lock().await = Some(Held {
            value: 7,
            expires: now + SignedDuration::from_secs(60),
            renew: now - SignedDuration::from_secs(1),
        });
        let failing = || async { Err(refused()) };
        assert_eq!(kept.get(Freshness::Cached, failing()).await, Ok(7));
        assert_eq!(
            kept.get(Freshness::Renewed, failing()).await,
            Err(refused())
        );
        assert_eq!(kept.get(Freshness::Cached, failing()).await, Err(refused()));
    }
}
