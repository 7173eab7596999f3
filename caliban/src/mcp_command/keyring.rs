//! The desktop's secret store as a place for logins.

use std::sync::Arc;

use caliban_mcp::oauth::Keyring;
use caliban_settings::variables::Environment;

#[cfg(feature = "keyring")]
pub(super) fn find(environment: &Environment<'_>) -> Option<Arc<dyn Keyring>> {
    let store = caliban_settings::keyring::SecretStore::find(environment)?;
    Some(Arc::new(desktop::Desktop(store)))
}

#[cfg(not(feature = "keyring"))]
pub(super) fn find(_: &Environment<'_>) -> Option<Arc<dyn Keyring>> {
    None
}

#[cfg(feature = "keyring")]
mod desktop {
    use caliban_mcp::oauth::{Keyring, KeyringUnavailable};
    use caliban_settings::keyring::{SecretStore, Unavailable};

    #[derive(Debug)]
    pub(super) struct Desktop(pub(super) SecretStore);

    impl Keyring for Desktop {
        fn get(&self, entry: &str) -> Result<Option<String>, KeyringUnavailable> {
            self.0.get(entry).map_err(|Unavailable| KeyringUnavailable)
        }

        fn set(&self, entry: &str, secret: &str) -> Result<(), KeyringUnavailable> {
            let done = self.0.set(entry, secret);
            done.map_err(|Unavailable| KeyringUnavailable)
        }

        fn remove(&self, entry: &str) -> Result<bool, KeyringUnavailable> {
            let done = self.0.remove(entry);
            done.map_err(|Unavailable| KeyringUnavailable)
        }
    }
}
