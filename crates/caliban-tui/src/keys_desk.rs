//! Keys of providers, as they are given and forgotten at the screen.

use std::fmt::Debug;

/// Where keys of providers are kept. All of it touches the disk or the desktop.
pub trait KeysDesk: Debug + Send + Sync {
    /// The providers that have keys, the one that is configured first.
    fn providers(&self) -> Result<Vec<String>, String>;

    /// The provider whose key is missing, where a session cannot begin for want of it.
    fn missing_key(&self) -> Option<String>;

    /// Keeps a key, and says where.
    fn save_key(&self, provider: &str, key: &str) -> Result<String, String>;

    /// Forgets the key that is kept, and says what is left of it.
    fn forget_key(&self, provider: &str) -> Result<String, String>;
}
