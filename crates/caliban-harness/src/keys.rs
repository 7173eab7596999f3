//! Keys of providers that were given at the screen: in the desktop's secret store where there is
//! one, else in a file that only the user can read.

use std::convert::Infallible;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use caliban_model::{ProviderKind, SecretString};
use serde_json::{Map, Value};

use crate::configuration::Configuration;

/// The file is never longer than this.
const LARGEST: u64 = 64 * 1024;
/// The longest key; what is longer was pasted by mistake.
const LONGEST: usize = 8 * 1024;

/// Where a key is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeptIn {
    SecretStore,
    File(PathBuf),
}

/// Whether there was a key to forget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forgotten {
    Key,
    Nothing,
}

/// Keeps the key of a provider in the place of an earlier one.
pub fn save_key(
    kind: ProviderKind,
    key: &str,
    configuration: &Configuration,
) -> Result<KeptIn, String> {
    let is_printable = |char: char| char.is_ascii_graphic();
    if key.is_empty() || key.len() > LONGEST || !key.chars().all(is_printable) {
        return Err("that is no key: it has spaces, or letters that no key has".to_owned());
    }
    if kind.key_variables().is_empty() {
        return Err(format!("{kind} needs no key"));
    }
    if store::set(kind.as_str(), key, configuration).is_ok() {
        // One place has it: an older copy would only confuse.
        edit(configuration, |keys| drop(keys.remove(kind.as_str())))?;
        return Ok(KeptIn::SecretStore);
    }
    edit(configuration, |keys| {
        keys.insert(kind.as_str().to_owned(), key.into());
    })?;
    Ok(KeptIn::File(configuration.locations.provider_keys()))
}

/// Forgets the key of a provider wherever it is kept.
pub fn forget_key(kind: ProviderKind, configuration: &Configuration) -> Result<Forgotten, String> {
    let in_store = store::remove(kind.as_str(), configuration).unwrap_or(false);
    let mut in_file = false;
    if configuration.locations.provider_keys().exists() {
        edit(configuration, |keys| {
            in_file = keys.remove(kind.as_str()).is_some();
        })?;
    }
    Ok(if in_store || in_file {
        Forgotten::Key
    } else {
        Forgotten::Nothing
    })
}

/// The key in the file, if it is nobody else's to read.
pub(crate) fn kept_key(kind: ProviderKind, configuration: &Configuration) -> Option<SecretString> {
    let path = configuration.locations.provider_keys();
    let keys = read(&path)?;
    let key = keys.get(kind.as_str())?.as_str()?.trim();
    (!key.is_empty()).then(|| SecretString::from(key.to_owned()))
}

fn read(path: &Path) -> Option<Map<String, Value>> {
    let file = fs::File::open(path).ok()?;
    if !is_private(&file) {
        return None;
    }
    let mut text = String::new();
    file.take(LARGEST).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(unix)]
fn is_private(file: &fs::File) -> bool {
    use std::os::unix::fs::PermissionsExt;
    const OTHERS: u32 = 0o077;
    let metadata = file.metadata();
    metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & OTHERS == 0)
}

#[cfg(not(unix))]
fn is_private(_: &fs::File) -> bool {
    true
}

fn edit(
    configuration: &Configuration,
    change: impl FnOnce(&mut Map<String, Value>),
) -> Result<(), String> {
    let path = configuration.locations.provider_keys();
    let edited = configuration.writer().edit_json(&path, |keys| {
        change(keys);
        Ok::<_, Infallible>(())
    });
    edited.map_err(|error| error.to_string())
}

#[cfg(feature = "keyring")]
mod store {
    use caliban_settings::keyring::{SecretStore, Unavailable};

    use crate::configuration::Configuration;

    fn find(configuration: &Configuration) -> Result<SecretStore, Unavailable> {
        SecretStore::find(configuration.environment()).ok_or(Unavailable)
    }

    pub(super) fn set(
        entry: &str,
        key: &str,
        configuration: &Configuration,
    ) -> Result<(), Unavailable> {
        find(configuration)?.set(entry, key)
    }

    pub(super) fn remove(entry: &str, configuration: &Configuration) -> Result<bool, Unavailable> {
        find(configuration)?.remove(entry)
    }
}

#[cfg(not(feature = "keyring"))]
mod store {
    use crate::configuration::Configuration;

    /// This build has no secret store.
    pub(super) struct Unavailable;

    pub(super) fn set(_: &str, _: &str, _: &Configuration) -> Result<(), Unavailable> {
        Err(Unavailable)
    }

    pub(super) fn remove(_: &str, _: &Configuration) -> Result<bool, Unavailable> {
        Err(Unavailable)
    }
}
