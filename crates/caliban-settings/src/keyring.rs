//! Keys kept in the desktop's secret store, under the service `caliban` and the provider's name.

use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use caliban_providers::SecretString;
use keyring_core::Entry;
use zbus_secret_service_keyring_store::Store;

use crate::variables::Environment;

/// The service that entries are kept under.
const SERVICE: &str = "caliban";

/// How long the store may take. A locked one asks its owner, who may not be there.
const PATIENCE: Duration = Duration::from_secs(5);

/// The key of a provider, if there is a secret store and it has one. A store that is absent,
/// locked or slow is the same as one without the key.
pub fn lookup(provider: &str, environment: &Environment<'_>) -> Option<SecretString> {
    if !has_session_bus(environment) {
        return None;
    }
    let provider = provider.to_owned();
    let (sender, receiver) = mpsc::channel();
    // The store blocks on a runtime of its own, which may not happen inside another; and it may
    // wait for a person, which we do not.
    thread::spawn(move || {
        let _ = sender.send(read(&provider));
    });
    receiver.recv_timeout(PATIENCE).ok()?
}

fn has_session_bus(environment: &Environment<'_>) -> bool {
    environment.is_set("DBUS_SESSION_BUS_ADDRESS")
        || environment
            .text("XDG_RUNTIME_DIR")
            .is_some_and(|directory| Path::new(&directory).join("bus").exists())
}

fn read(provider: &str) -> Option<SecretString> {
    keyring_core::set_default_store(Store::new().ok()?);
    let password = Entry::new(SERVICE, provider).ok()?.get_password().ok()?;
    (!password.trim().is_empty()).then(|| SecretString::from(password.trim().to_owned()))
}
