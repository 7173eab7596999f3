//! The logins to MCP servers: in the desktop's secret store where there is one, else in a file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use caliban_mcp::oauth::{Clock, Keyring, Oauth, OauthServer, TokenStore};
use caliban_settings::variables::Environment;

use crate::configuration::Configuration;

/// The logins to one server or many.
pub fn logins(configuration: &Configuration, servers: BTreeMap<String, OauthServer>) -> Oauth {
    let locations = &configuration.locations;
    let keyring = find(configuration.environment());
    Oauth::new(
        servers,
        TokenStore::new(keyring, locations.mcp_tokens()),
        locations.mcp_locks(),
        Clock::system(),
    )
}

/// Where logins are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoginPlace {
    SecretStore,
    /// A file that only the user can read.
    File(PathBuf),
}

/// Where the logins of this machine are kept.
pub fn login_place(configuration: &Configuration) -> LoginPlace {
    match find(configuration.environment()) {
        Some(_) => LoginPlace::SecretStore,
        None => LoginPlace::File(configuration.locations.mcp_tokens()),
    }
}

/// Whether this build can use a secret store at all.
pub const HAS_SECRET_STORE: bool = cfg!(feature = "keyring");

#[cfg(feature = "keyring")]
pub(crate) fn find(environment: &Environment) -> Option<Arc<dyn Keyring>> {
    let store = caliban_settings::keyring::SecretStore::find(environment)?;
    Some(Arc::new(desktop::Desktop(store)))
}

#[cfg(not(feature = "keyring"))]
pub(crate) fn find(_: &Environment) -> Option<Arc<dyn Keyring>> {
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
