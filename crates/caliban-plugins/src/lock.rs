//! Which plugins a project is worked on with, to the byte: a file that is kept with it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use caliban_settings::replace_private_file;
use serde::{Deserialize, Serialize};

use crate::installed::Installed;
use crate::market::Origin;
use crate::name::PluginName;

/// The file, beside the settings of a project.
const FILE: &str = "plugins.lock";
/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;
/// The largest file, in bytes.
const LARGEST: u64 = 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("there is no `{}`; `caliban plugin lock` writes one", .0.display())]
    Absent(PathBuf),
    #[error("`{}` is not used: {reason}", path.display())]
    Unusable { path: PathBuf, reason: String },
    #[error("cannot write `{}`: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// A plugin as it is locked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Locked {
    pub origin: Origin,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub version: Option<String>,
    /// Of all its files.
    pub digest: String,
}

impl From<Installed> for Locked {
    fn from(installed: Installed) -> Self {
        Self {
            origin: installed.origin,
            version: installed.version,
            digest: installed.digest,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Document {
    version: u32,
    plugins: BTreeMap<PluginName, Locked>,
}

/// The file of a project.
#[derive(Debug, Clone)]
pub struct PluginLock(PathBuf);

impl PluginLock {
    /// In the directory that a project keeps its settings in.
    pub fn of(directory: &Path) -> Self {
        Self(directory.join(FILE))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn read(&self) -> Result<BTreeMap<PluginName, Locked>, LockError> {
        let unusable = |reason: String| LockError::Unusable {
            path: self.0.clone(),
            reason,
        };
        let said = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => LockError::Absent(self.0.clone()),
            _ => unusable(error.to_string()),
        };
        if fs::metadata(&self.0).map_err(said)?.len() > LARGEST {
            return Err(unusable(format!("it is larger than {LARGEST} bytes")));
        }
        let text = fs::read_to_string(&self.0).map_err(said)?;
        let document: Document =
            serde_json::from_str(&text).map_err(|error| unusable(error.to_string()))?;
        match document.version {
            VERSION => Ok(document.plugins),
            version => Err(unusable(format!("its version is {version}"))),
        }
    }

    pub fn write(&self, plugins: BTreeMap<PluginName, Locked>) -> Result<(), LockError> {
        let failed = |source| LockError::Write {
            path: self.0.clone(),
            source,
        };
        let version = VERSION;
        let document = Document { version, plugins };
        let mut text = serde_json::to_vec_pretty(&document)
            .map_err(|error| failed(io::Error::other(error)))?;
        text.push(b'\n');
        if let Some(directory) = self.0.parent() {
            fs::create_dir_all(directory).map_err(failed)?;
        }
        replace_private_file(&self.0, &text).map_err(failed)
    }
}
