//! Where an API key comes from.

use std::fmt::Debug;

use futures::FutureExt;
use futures::future::BoxFuture;
use secrecy::SecretString;

use crate::error::Error;

/// A source of keys. Sources that can produce a new key are asked for one, once, when the
/// provider rejects the current one.
pub trait Credentials: Send + Sync + Debug {
    fn key(&self, freshness: Freshness) -> BoxFuture<'_, Result<Option<SecretString>, Error>>;

    /// Whether asking again with [`Freshness::Renewed`] may give another key.
    fn renewable(&self) -> bool;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// A key remembered from earlier will do.
    Cached,
    /// The remembered key was rejected.
    Renewed,
}

/// A key that never changes, from the environment.
#[derive(Debug)]
pub struct StaticKey(SecretString);

impl StaticKey {
    pub fn new(key: impl Into<SecretString>) -> Self {
        Self(key.into())
    }
}

impl Credentials for StaticKey {
    fn key(&self, _: Freshness) -> BoxFuture<'_, Result<Option<SecretString>, Error>> {
        let key = self.0.clone();
        async move { Ok(Some(key)) }.boxed()
    }

    fn renewable(&self) -> bool {
        false
    }
}

/// For servers that ask for none.
#[derive(Debug)]
pub struct NoKey;

impl Credentials for NoKey {
    fn key(&self, _: Freshness) -> BoxFuture<'_, Result<Option<SecretString>, Error>> {
        async { Ok(None) }.boxed()
    }

    fn renewable(&self) -> bool {
        false
    }
}
