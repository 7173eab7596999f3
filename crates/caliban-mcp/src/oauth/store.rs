//! Where logins are kept: the keyring of the desktop, else a file.

use std::fmt::Debug;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::record::{Key, Record};
use super::token_file::{FileError, TokenFile};

/// There is no keyring, or nobody to unlock it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no usable keyring")]
pub struct KeyringUnavailable;

/// A place of the system for secrets. Its calls block, and are made where that does no harm.
pub trait Keyring: Send + Sync + Debug {
    fn get(&self, entry: &str) -> Result<Option<String>, KeyringUnavailable>;
    fn set(&self, entry: &str, secret: &str) -> Result<(), KeyringUnavailable>;
    /// Whether there was something to remove.
    fn remove(&self, entry: &str) -> Result<bool, KeyringUnavailable>;
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum StoreError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the login in the keyring cannot be understood: {0}")]
    Content(serde_json::Error),
    #[error("the login could not be kept: {0}")]
    Task(tokio::task::JoinError),
}

/// What is known of logins, shared by every process of a user.
#[derive(Debug, Clone)]
pub struct TokenStore {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    keyring: Option<Arc<dyn Keyring>>,
    /// A keyring that did not answer once makes nobody wait again.
    gave_up: AtomicBool,
    file: TokenFile,
}

impl TokenStore {
    /// A keyring, if there is one, and the file that takes its place.
    pub fn new(keyring: Option<Arc<dyn Keyring>>, file: PathBuf) -> Self {
        Self {
            inner: Arc::new(Inner {
                keyring,
                gave_up: AtomicBool::new(false),
                file: TokenFile::new(file),
            }),
        }
    }

    pub(crate) async fn load(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let key = key.clone();
        self.blocking(move |inner| inner.load(&key)).await
    }

    pub(crate) async fn save(&self, key: &Key, record: Record) -> Result<(), StoreError> {
        let key = key.clone();
        self.blocking(move |inner| inner.save(&key, record)).await
    }

    /// Whether there was something to forget.
    pub(crate) async fn forget(&self, key: &Key) -> Result<bool, StoreError> {
        let key = key.clone();
        self.blocking(move |inner| inner.forget(&key)).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Inner) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let inner = self.inner.clone();
        tokio::task::spawn_blocking(move || work(&inner))
            .await
            .map_err(StoreError::Task)?
    }
}

impl Inner {
    /// A keyring that was away for a while has an older login than the file: the later one counts.
    fn load(&self, key: &Key) -> Result<Option<Record>, StoreError> {
        let kept = self
            .keyring(|keyring| keyring.get(key.as_str()))
            .flatten()
            .map(|text| serde_json::from_str::<Record>(&text).map_err(StoreError::Content))
            .transpose()?;
        match (kept, self.file.get(key)) {
            (None, in_file) => Ok(in_file?),
            (Some(kept), Ok(Some(in_file))) if in_file.saved_at > kept.saved_at => {
                Ok(Some(in_file))
            }
            (Some(kept), _) => Ok(Some(kept)),
        }
    }

    fn save(&self, key: &Key, record: Record) -> Result<(), StoreError> {
        let text = serde_json::to_string(&record).map_err(StoreError::Content)?;
        match self.keyring(|keyring| keyring.set(key.as_str(), &text)) {
            Some(()) => {
                // The one in the keyring is later; a file that cannot be changed is only clutter.
                let _ = self.file.remove(key);
                Ok(())
            }
            None => Ok(self.file.set(key, record)?),
        }
    }

    fn forget(&self, key: &Key) -> Result<bool, StoreError> {
        let kept = self
            .keyring(|keyring| keyring.remove(key.as_str()))
            .unwrap_or(false);
        let in_file = self.file.remove(key)?;
        Ok(kept || in_file)
    }

    fn keyring<T>(
        &self,
        work: impl FnOnce(&dyn Keyring) -> Result<T, KeyringUnavailable>,
    ) -> Option<T> {
        let keyring = self.keyring.as_deref()?;
        if self.gave_up.load(Ordering::Relaxed) {
            return None;
        }
        let answer = work(keyring).ok();
        if answer.is_none() {
            self.gave_up.store(true, Ordering::Relaxed);
        }
        answer
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Mutex;

    use jiff::Timestamp;
    use url::Url;

    use super::*;
    use crate::oauth::record::Secret;

    #[derive(Debug, Default)]
    struct Fake {
        entries: Mutex<HashMap<String, String>>,
        locked: AtomicBool,
        calls: Mutex<u32>,
    }

    impl Fake {
        fn open(&self) -> Result<(), KeyringUnavailable> {
            *self.calls.lock().unwrap() += 1;
            if self.locked.load(Ordering::Relaxed) {
                return Err(KeyringUnavailable);
            }
            Ok(())
        }
    }

    impl Keyring for Fake {
        fn get(&self, entry: &str) -> Result<Option<String>, KeyringUnavailable> {
            self.open()?;
            Ok(self.entries.lock().unwrap().get(entry).cloned())
        }

        fn set(&self, entry: &str, secret: &str) -> Result<(), KeyringUnavailable> {
            self.open()?;
            let mut entries = self.entries.lock().unwrap();
            entries.insert(entry.to_owned(), secret.to_owned());
            Ok(())
        }

        fn remove(&self, entry: &str) -> Result<bool, KeyringUnavailable> {
            self.open()?;
            Ok(self.entries.lock().unwrap().remove(entry).is_some())
        }
    }

    fn record(second: i64) -> Record {
        Record {
            client_id: second.to_string(),
            client_secret: Secret::default(),
            issuer: None,
            token_endpoint: "https://a.example/token".to_owned(),
            tokens: None,
            missed: Vec::new(),
            saved_at: Timestamp::from_second(second).unwrap(),
        }
    }

    fn key() -> Key {
        Key::new("a", &Url::parse("https://a.example").unwrap())
    }

    #[tokio::test]
    async fn the_keyring_is_preferred_and_the_file_takes_its_place() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("mcp-tokens.json");
        let keyring = Arc::new(Fake::default());
        let store = || TokenStore::new(Some(keyring.clone()), path.clone());

        store().save(&key(), record(1)).await.unwrap();
        assert!(!path.exists());
        assert_eq!(store().load(&key()).await.unwrap(), Some(record(1)));

        keyring.locked.store(true, Ordering::Relaxed);
        let away = store();
        away.save(&key(), record(2)).await.unwrap();
        assert!(path.exists());
        let calls = *keyring.calls.lock().unwrap();
        assert_eq!(away.load(&key()).await.unwrap(), Some(record(2)));
        assert_eq!(*keyring.calls.lock().unwrap(), calls, "it is asked once");

        keyring.locked.store(false, Ordering::Relaxed);
        assert_eq!(store().load(&key()).await.unwrap(), Some(record(2)));
        store().save(&key(), record(3)).await.unwrap();
        assert_eq!(store().load(&key()).await.unwrap(), Some(record(3)));
        assert!(
            !std::fs::read_to_string(&path)
                .unwrap()
                .contains("a.example/token")
        );

        assert!(store().forget(&key()).await.unwrap());
        assert!(!store().forget(&key()).await.unwrap());
        assert_eq!(store().load(&key()).await.unwrap(), None);
    }
}
