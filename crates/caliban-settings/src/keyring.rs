//! Secrets kept in the desktop's secret store, under the service `caliban`.

use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use caliban_model::SecretString;
use keyring_core::{Entry, Error};
use zbus_secret_service_keyring_store::Store;

use crate::variables::Environment;

/// The service that entries are kept under.
const SERVICE: &str = "caliban";

/// How long the store may take. A locked one asks its owner, who may not be there.
const PATIENCE: Duration = Duration::from_secs(5);

/// The store is absent, locked or slow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the secret store cannot be used")]
pub struct Unavailable;

/// The key of a provider, if there is a secret store and it has one. A store that is absent,
/// locked or slow is the same as one without the key.
pub fn lookup(provider: &str, environment: &Environment) -> Option<SecretString> {
    let password = SecretStore::find(environment)?.get(provider).ok()??;
    (!password.trim().is_empty()).then(|| SecretString::from(password.trim().to_owned()))
}

/// A secret store that is likely to be there. Its calls block.
#[derive(Debug, Clone, Copy)]
pub struct SecretStore(());

impl SecretStore {
    /// Nothing without a session bus: then there is no store either.
    pub fn find(environment: &Environment) -> Option<Self> {
        let has_bus = environment.text("DBUS_SESSION_BUS_ADDRESS").is_some()
            || environment
                .text("XDG_RUNTIME_DIR")
                .is_some_and(|directory| Path::new(&directory).join("bus").exists());
        has_bus.then_some(Self(()))
    }

    pub fn get(self, entry: &str) -> Result<Option<String>, Unavailable> {
        in_time(entry, |entry| match entry.get_password() {
            Err(Error::NoEntry) => Ok(None),
            password => password.map(Some),
        })
    }

    pub fn set(self, entry: &str, secret: &str) -> Result<(), Unavailable> {
        let secret = secret.to_owned();
        in_time(entry, move |entry| entry.set_password(&secret))
    }

    /// Whether there was something to remove.
    pub fn remove(self, entry: &str) -> Result<bool, Unavailable> {
        in_time(entry, |entry| match entry.delete_credential() {
            Ok(()) => Ok(true),
            Err(Error::NoEntry) => Ok(false),
            Err(error) => Err(error),
        })
    }
}

/// The store blocks on a runtime of its own, which may not happen inside another; and it may wait
/// for a person, which we do not.
fn in_time<T: Send + 'static>(
    name: &str,
    work: impl FnOnce(&Entry) -> Result<T, Error> + Send + 'static,
) -> Result<T, Unavailable> {
    let name = name.to_owned();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let done = Store::new().and_then(|store| {
            keyring_core::set_default_store(store);
            work(&Entry::new(SERVICE, &name)?)
        });
        let _ = sender.send(done);
    });
    match receiver.recv_timeout(PATIENCE) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(_)) | Err(_) => Err(Unavailable),
    }
}
