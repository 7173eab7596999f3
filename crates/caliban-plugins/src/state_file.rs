//! A small document of our own on disk: one writer at a time, replaced in one step.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use caliban_settings::{ensure_private_dir, replace_private_file};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The version that is written, and the only one that is read.
const VERSION: u32 = 1;
/// The largest document, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("cannot write `{}`: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("`{}` is not used: {reason}; move it away to begin anew", path.display())]
    Unusable { path: PathBuf, reason: String },
}

#[derive(Debug, Serialize, Deserialize)]
struct Versioned<T> {
    version: u32,
    #[serde(flatten)]
    content: T,
}

/// A document that is a `T`; an absent one is its default.
#[derive(Debug, Clone)]
pub(crate) struct StateFile<T> {
    path: PathBuf,
    content: PhantomData<T>,
}

impl<T: Default + Serialize + DeserializeOwned> StateFile<T> {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            content: PhantomData,
        }
    }

    /// What stands in it. One that cannot be understood, or that others can write, says nothing.
    pub(crate) fn read(&self) -> Result<T, StateError> {
        let unusable = |reason: String| StateError::Unusable {
            path: self.path.clone(),
            reason,
        };
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(T::default()),
            Err(error) => return Err(unusable(error.to_string())),
        };
        let metadata = file
            .metadata()
            .map_err(|error| unusable(error.to_string()))?;
        if is_writable_by_others(&metadata) {
            return Err(unusable("others can write to it".to_owned()));
        }
        let mut text = String::new();
        file.take(LARGEST)
            .read_to_string(&mut text)
            .map_err(|error| unusable(error.to_string()))?;
        let document: Versioned<T> =
            serde_json::from_str(&text).map_err(|error| unusable(error.to_string()))?;
        match document.version {
            VERSION => Ok(document.content),
            version => Err(unusable(format!("its version is {version}"))),
        }
    }

    /// Changes it while nobody else does.
    pub(crate) fn update<R>(&self, change: impl FnOnce(&mut T) -> R) -> Result<R, StateError> {
        let failed = |source| StateError::Write {
            path: self.path.clone(),
            source,
        };
        let directory = self.path.parent().unwrap_or(Path::new("."));
        ensure_private_dir(directory).map_err(failed)?;
        let _lock = lock(&self.path.with_extension("json.lock")).map_err(failed)?;
        let mut content = self.read()?;
        let before = serde_json::to_value(&content).ok();
        let result = change(&mut content);
        if before.is_some() && before == serde_json::to_value(&content).ok() {
            return Ok(result);
        }
        let document = Versioned {
            version: VERSION,
            content,
        };
        let mut text = serde_json::to_vec_pretty(&document)
            .map_err(|error| failed(io::Error::other(error)))?;
        text.push(b'\n');
        replace_private_file(&self.path, &text).map_err(failed)?;
        Ok(result)
    }
}

/// Holds others off until it is dropped.
pub(crate) fn lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    let file = options.open(path)?;
    file.lock()?;
    Ok(file)
}

#[cfg(unix)]
fn is_writable_by_others(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o022 != 0
}

#[cfg(not(unix))]
fn is_writable_by_others(_: &fs::Metadata) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
    struct Content {
        numbers: BTreeMap<String, u32>,
    }

    fn file(root: &Path) -> StateFile<Content> {
        StateFile::new(root.join("d/state.json"))
    }

    #[test]
    fn many_writers_lose_nothing() {
        let temp = tempfile::tempdir().unwrap();
        let file = file(temp.path());
        std::thread::scope(|scope| {
            for index in 0..10 {
                let file = &file;
                scope.spawn(move || {
                    let insert =
                        |content: &mut Content| content.numbers.insert(index.to_string(), index);
                    file.update(insert).unwrap();
                });
            }
        });
        assert_eq!(file.read().unwrap().numbers.len(), 10);
    }

    #[test]
    fn what_cannot_be_understood_is_not_overwritten() {
        let temp = tempfile::tempdir().unwrap();
        let file = file(temp.path());
        file.update(|_| ()).unwrap();
        for text in ["{", "{\"version\": 2, \"numbers\": {}}", "[]"] {
            fs::write(&file.path, text).unwrap();
            assert!(file.read().is_err(), "{text}");
            let error = file.update(|content| content.numbers.clear()).unwrap_err();
            assert!(error.to_string().contains("move it away"), "{error}");
            assert_eq!(fs::read_to_string(&file.path).unwrap(), text);
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_others_can_write_is_not_believed() {
        use std::os::unix::fs::PermissionsExt;
        let temp = tempfile::tempdir().unwrap();
        let file = file(temp.path());
        file.update(|content| content.numbers.insert("a".to_owned(), 1))
            .unwrap();
        fs::set_permissions(&file.path, fs::Permissions::from_mode(0o666)).unwrap();
        assert!(file.read().is_err());
    }
}
