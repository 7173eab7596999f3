//! Logins in a file of the owner's, where there is no keyring.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use caliban_settings::{ensure_private_dir, replace_private_file};
use serde::{Deserialize, Serialize};

use super::lock::take_blocking;
use super::record::{Key, Record};

/// No token file is read beyond this.
const LIMIT: u64 = 4 << 20;
const VERSION: u32 = 1;

#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error(
        "the tokens in `{}` are not used, because others can read them (mode {mode:03o}); run `chmod 600 {}`, and log in again if somebody may have",
        path.display(), path.display()
    )]
    Permissions { path: PathBuf, mode: u32 },
    #[error("the tokens in `{}` cannot be read: {reason}; remove the file and log in again", path.display())]
    Content { path: PathBuf, reason: String },
    #[error("cannot use `{}`: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    version: u32,
    logins: BTreeMap<String, Record>,
}

/// Every call blocks.
#[derive(Debug, Clone)]
pub(crate) struct TokenFile {
    path: PathBuf,
}

impl TokenFile {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub(crate) fn get(&self, key: &Key) -> Result<Option<Record>, FileError> {
        Ok(self.read()?.logins.remove(key.as_str()))
    }

    pub(crate) fn set(&self, key: &Key, record: Record) -> Result<(), FileError> {
        self.update(|logins| {
            logins.insert(key.as_str().to_owned(), record);
            Change::Made
        })
        .map(drop)
    }

    /// Whether there was something to remove.
    pub(crate) fn remove(&self, key: &Key) -> Result<bool, FileError> {
        if !self.path.exists() {
            return Ok(false);
        }
        let change = self.update(|logins| match logins.remove(key.as_str()) {
            Some(_) => Change::Made,
            None => Change::None,
        })?;
        Ok(change == Change::Made)
    }

    fn update(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, Record>) -> Change,
    ) -> Result<Change, FileError> {
        let failed = |source| self.failed(source);
        ensure_private_dir(self.path.parent().unwrap_or(Path::new("."))).map_err(failed)?;
        let _turn = take_blocking(&self.path.with_extension("json.lock")).map_err(failed)?;
        let mut content = self.read()?;
        let change = change(&mut content.logins);
        if change == Change::Made {
            content.version = VERSION;
            let text = serde_json::to_vec_pretty(&content)
                .map_err(|error| failed(io::Error::other(error)))?;
            replace_private_file(&self.path, &text).map_err(failed)?;
        }
        Ok(change)
    }

    fn read(&self) -> Result<Content, FileError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::default()),
            Err(error) => return Err(self.failed(error)),
        };
        let metadata = file.metadata().map_err(|error| self.failed(error))?;
        let content = |reason: String| FileError::Content {
            path: self.path.clone(),
            reason,
        };
        if !metadata.is_file() {
            return Err(content("it is not a file".to_owned()));
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = metadata.permissions().mode() & 0o777;
            if mode & 0o077 != 0 {
                return Err(FileError::Permissions {
                    path: self.path.clone(),
                    mode,
                });
            }
        }
        let mut text = String::new();
        let read = file
            .take(LIMIT + 1)
            .read_to_string(&mut text)
            .map_err(|error| self.failed(error))?;
        if read as u64 > LIMIT {
            return Err(content(format!("it is larger than {LIMIT} bytes")));
        }
        match serde_json::from_str::<Content>(&text) {
            Ok(found) if found.version == VERSION => Ok(found),
            Ok(found) => Err(content(format!("its version is {}", found.version))),
            Err(error) => Err(content(error.to_string())),
        }
    }

    fn failed(&self, source: io::Error) -> FileError {
        FileError::Io {
            path: self.path.clone(),
            source,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Made,
    None,
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use jiff::Timestamp;
    use url::Url;

    use super::*;
    use crate::oauth::record::Secret;

    fn record(id: &str) -> Record {
        Record {
            client_id: id.to_owned(),
            client_secret: Secret::default(),
            issuer: None,
            token_endpoint: "https://a.example/token".to_owned(),
            tokens: None,
            missed: Vec::new(),
            saved_at: Timestamp::UNIX_EPOCH,
        }
    }

    fn key(name: &str) -> Key {
        Key::new(name, &Url::parse("https://a.example").unwrap())
    }

    fn file(root: &tempfile::TempDir) -> TokenFile {
        TokenFile::new(root.path().join("data/mcp-tokens.json"))
    }

    #[test]
    fn logins_are_kept_for_the_owner_alone() {
        let root = tempfile::tempdir().unwrap();
        let file = file(&root);
        assert!(!file.remove(&key("a")).unwrap());
        assert!(!file.path.exists(), "looking creates nothing");
        file.set(&key("a"), record("1")).unwrap();
        file.set(&key("b"), record("2")).unwrap();
        let mode = fs::metadata(&file.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(file.get(&key("a")).unwrap(), Some(record("1")));
        assert!(file.remove(&key("a")).unwrap());
        assert_eq!(file.get(&key("a")).unwrap(), None);
        assert_eq!(file.get(&key("b")).unwrap(), Some(record("2")));
    }

    #[test]
    fn a_file_others_can_read_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let file = file(&root);
        file.set(&key("a"), record("1")).unwrap();
        fs::set_permissions(&file.path, fs::Permissions::from_mode(0o644)).unwrap();
        let error = file.get(&key("a")).unwrap_err().to_string();
        assert!(
            error.contains("mode 644") && error.contains("chmod 600"),
            "{error}"
        );
        assert!(file.set(&key("b"), record("2")).is_err());
    }

    #[test]
    fn what_cannot_be_understood_is_not_overwritten() {
        let root = tempfile::tempdir().unwrap();
        let file = file(&root);
        file.set(&key("a"), record("1")).unwrap();
        for text in ["{", "[]", r#"{"version": 2, "logins": {}}"#] {
            replace_private_file(&file.path, text.as_bytes()).unwrap();
            assert!(file.get(&key("a")).is_err());
            assert!(file.set(&key("a"), record("1")).is_err());
            assert_eq!(fs::read_to_string(&file.path).unwrap(), text);
        }
    }

    #[test]
    fn concurrent_writers_lose_nothing() {
        let root = tempfile::tempdir().unwrap();
        let file = file(&root);
        std::thread::scope(|scope| {
            for index in 0..12 {
                let file = file.clone();
                scope.spawn(move || {
                    let name = index.to_string();
                    file.set(&key(&name), record(&name)).unwrap();
                });
            }
        });
        assert_eq!(file.read().unwrap().logins.len(), 12);
    }
}
