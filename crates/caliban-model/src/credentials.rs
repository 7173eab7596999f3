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

    /// What the user can do about a key that is refused: it names where the key came from. Nothing
    /// where that is not known, and what the provider advises holds.
    fn remedy(&self) -> Option<String> {
        None
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Freshness {
    /// A key remembered from earlier will do.
    Cached,
    /// The remembered key was rejected.
    Renewed,
}

/// A key that never changes.
#[derive(Debug)]
pub struct StaticKey {
    key: SecretString,
    remedy: Option<String>,
}

impl StaticKey {
    pub fn new(key: impl Into<SecretString>) -> Self {
        Self {
            key: key.into(),
            remedy: None,
        }
    }

    /// The same, with what helps when it is refused.
    #[must_use]
    pub fn with_remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

impl Credentials for StaticKey {
    fn key(&self, _: Freshness) -> BoxFuture<'_, Result<Option<SecretString>, Error>> {
        let key = self.key.clone();
        async move { Ok(Some(key)) }.boxed()
    }

    fn renewable(&self) -> bool {
        false
    }

    fn remedy(&self) -> Option<String> {
        self.remedy.clone()
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
