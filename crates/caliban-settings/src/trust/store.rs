//! Which workspaces have been trusted, and with which content: a private file, one writer at a
//! time.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::files::{FilesDigest, WorkspaceFiles};
use crate::private::{ensure_private_dir, replace_private_file};
use crate::source::read_file;

/// How many contents of one workspace stay trusted, so that switching branches does not ask
/// again.
const DIGESTS: usize = 8;
/// How many workspaces are remembered; the longest unused go first.
const WORKSPACES: usize = 1000;

#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("cannot write `{}`: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("`{}` cannot be trusted: its path is not UTF-8", path.display())]
    Path { path: PathBuf },
    #[error(
        "`{}` cannot be trusted: it has too many plugin files, or starts too many or too large programs, to be recognised again",
        path.display()
    )]
    TooManyFiles { path: PathBuf },
}

/// A workspace that has been trusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustRecord {
    /// Digests of the contents that were trusted, the latest last.
    pub digests: Vec<String>,
    pub granted_at: Timestamp,
}

/// What the store says about a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recorded {
    Trusted,
    /// It was trusted with other content.
    Changed,
    Unknown,
}

/// The answer, and what is wrong with the store where something is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    pub recorded: Recorded,
    pub warning: Option<String>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Records {
    version: u32,
    workspaces: BTreeMap<String, TrustRecord>,
}

#[derive(Debug, Clone)]
pub struct TrustStore {
    path: PathBuf,
}

impl TrustStore {
    /// The store in a file, which need not exist.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Whether a workspace is trusted with exactly these files.
    pub fn lookup(&self, files: &WorkspaceFiles) -> Lookup {
        let (records, warning) = self.read();
        let record = files
            .workspace()
            .to_str()
            .and_then(|path| records.workspaces.get(path));
        let recorded = match (record, files.digest()) {
            (Some(record), Some(digest)) if record.digests.iter().any(|d| d == digest.as_str()) => {
                Recorded::Trusted
            }
            (Some(_), _) => Recorded::Changed,
            (None, _) => Recorded::Unknown,
        };
        Lookup { recorded, warning }
    }

    /// Trusts a workspace with these files.
    pub fn grant(&self, files: &WorkspaceFiles) -> Result<(), TrustError> {
        let digest = files.digest().ok_or_else(|| TrustError::TooManyFiles {
            path: files.workspace().to_owned(),
        })?;
        let path = key(files.workspace())?;
        self.update(|records| {
            records.add(path, &digest);
            Outcome::Changed(())
        })
    }

    /// Carries trust over a change this program made itself: the new content is trusted where
    /// the old one was.
    pub fn renew(&self, before: &FilesDigest, after: &WorkspaceFiles) -> Result<bool, TrustError> {
        let Some(digest) = after.digest() else {
            return Ok(false);
        };
        let path = key(after.workspace())?;
        self.update(|records| {
            let was_trusted = records
                .workspaces
                .get(&path)
                .is_some_and(|record| record.digests.iter().any(|d| d == before.as_str()));
            if !was_trusted {
                return Outcome::Same(false);
            }
            records.add(path, &digest);
            Outcome::Changed(true)
        })
    }

    /// Forgets a workspace; whether it was known.
    pub fn revoke(&self, workspace: &Path) -> Result<bool, TrustError> {
        let canonical = fs::canonicalize(workspace).unwrap_or_else(|_| workspace.to_owned());
        let path = key(&canonical)?;
        self.update(|records| match records.workspaces.remove(&path) {
            Some(_) => Outcome::Changed(true),
            None => Outcome::Same(false),
        })
    }

    /// Every trusted workspace by its path.
    pub fn list(&self) -> Vec<(PathBuf, TrustRecord)> {
        let (records, _) = self.read();
        records
            .workspaces
            .into_iter()
            .map(|(path, record)| (PathBuf::from(path), record))
            .collect()
    }

    /// Reads the store. One that cannot be understood, or that others can write, trusts nothing.
    fn read(&self) -> (Records, Option<String>) {
        let distrust = |reason: String| {
            let path = self.path.display();
            let warning = format!("the trust store `{path}` is not used: {reason}");
            (Records::default(), Some(warning))
        };
        let text = match read_file(&self.path) {
            Ok(Some(text)) => text,
            Ok(None) => return (Records::default(), None),
            Err(error) => return distrust(error.to_string()),
        };
        if is_writable_by_others(&self.path) {
            return distrust("others can write to it".to_owned());
        }
        match serde_json::from_str::<Records>(&text) {
            Ok(records) if records.version == 1 => (records, None),
            Ok(records) => distrust(format!("its version is {}", records.version)),
            Err(error) => distrust(error.to_string()),
        }
    }

    fn update<T>(&self, change: impl FnOnce(&mut Records) -> Outcome<T>) -> Result<T, TrustError> {
        let failed = |source| TrustError::Write {
            path: self.path.clone(),
            source,
        };
        let directory = self.path.parent().unwrap_or(Path::new("."));
        ensure_private_dir(directory).map_err(failed)?;
        let lock = self.lock().map_err(failed)?;
        let (mut records, warning) = self.read();
        let outcome = match change(&mut records) {
            Outcome::Same(value) => return Ok(value),
            Outcome::Changed(value) => value,
        };
        if warning.is_some() {
            // Nothing is lost: whoever wonders what it said can still look.
            let aside = self.path.with_extension("json.corrupt");
            fs::rename(&self.path, aside).map_err(failed)?;
        }
        records.version = 1;
        records.forget_the_oldest();
        let text =
            serde_json::to_vec_pretty(&records).map_err(|error| failed(io::Error::other(error)))?;
        replace_private_file(&self.path, &text).map_err(failed)?;
        drop(lock);
        Ok(outcome)
    }

    fn lock(&self) -> io::Result<File> {
        let path = self.path.with_extension("json.lock");
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
}

enum Outcome<T> {
    Changed(T),
    Same(T),
}

impl Records {
    fn add(&mut self, path: String, digest: &FilesDigest) {
        let now = Timestamp::now();
        let record = self.workspaces.entry(path).or_insert(TrustRecord {
            digests: Vec::new(),
            granted_at: now,
        });
        record.granted_at = now;
        record.digests.retain(|known| known != digest.as_str());
        record.digests.push(digest.as_str().to_owned());
        let surplus = record.digests.len().saturating_sub(DIGESTS);
        record.digests.drain(..surplus);
    }

    fn forget_the_oldest(&mut self) {
        while self.workspaces.len() > WORKSPACES {
            let oldest = self
                .workspaces
                .iter()
                .min_by_key(|(_, record)| record.granted_at)
                .map(|(path, _)| path.clone());
            if let Some(path) = oldest {
                self.workspaces.remove(&path);
            }
        }
    }
}

fn key(path: &Path) -> Result<String, TrustError> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| TrustError::Path {
            path: path.to_owned(),
        })
}

#[cfg(unix)]
fn is_writable_by_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).map_or(true, |metadata| metadata.permissions().mode() & 0o022 != 0)
}

#[cfg(not(unix))]
fn is_writable_by_others(_: &Path) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture {
        root: tempfile::TempDir,
        store: TrustStore,
    }

    fn fixture() -> Fixture {
        let root = tempfile::tempdir().unwrap();
        let store = TrustStore::new(root.path().join("data/trust/workspaces.json"));
        Fixture { root, store }
    }

    impl Fixture {
        fn workspace(&self, name: &str, settings: &str) -> WorkspaceFiles {
            let path = self.root.path().join(name);
            fs::create_dir_all(path.join(".caliban")).unwrap();
            fs::write(path.join(".caliban/settings.toml"), settings).unwrap();
            WorkspaceFiles::read(&path, None)
        }

        fn recorded(&self, files: &WorkspaceFiles) -> Recorded {
            self.store.lookup(files).recorded
        }
    }

    #[test]
    fn trust_is_for_a_path_and_a_content() {
        let fixture = fixture();
        let files = fixture.workspace("w", "a = 1");
        assert_eq!(fixture.recorded(&files), Recorded::Unknown);
        fixture.store.grant(&files).unwrap();
        assert_eq!(fixture.recorded(&files), Recorded::Trusted);
        let other = fixture.workspace("v", "a = 1");
        assert_eq!(fixture.recorded(&other), Recorded::Unknown);
        let changed = fixture.workspace("w", "a = 2");
        assert_eq!(fixture.recorded(&changed), Recorded::Changed);
        fixture.store.grant(&changed).unwrap();
        assert_eq!(
            fixture.recorded(&files),
            Recorded::Trusted,
            "a branch switched back to"
        );
        assert_eq!(fixture.store.list().len(), 1);
        assert!(fixture.store.revoke(files.workspace()).unwrap());
        assert!(!fixture.store.revoke(files.workspace()).unwrap());
        assert_eq!(fixture.recorded(&files), Recorded::Unknown);
    }

    #[test]
    fn only_the_latest_contents_stay_trusted() {
        let fixture = fixture();
        let first = fixture.workspace("w", "a = 0");
        fixture.store.grant(&first).unwrap();
        for index in 1..=DIGESTS {
            let files = fixture.workspace("w", &format!("a = {index}"));
            fixture.store.grant(&files).unwrap();
        }
        assert_eq!(fixture.recorded(&first), Recorded::Changed);
    }

    #[test]
    fn own_writes_keep_trust_and_create_none() {
        let fixture = fixture();
        let before = fixture.workspace("w", "a = 1");
        let digest = before.digest().unwrap();
        let after = fixture.workspace("w", "a = 2");
        assert!(!fixture.store.renew(&digest, &after).unwrap());
        assert_eq!(fixture.recorded(&after), Recorded::Unknown);
        fixture.store.grant(&before).unwrap();
        assert!(fixture.store.renew(&digest, &after).unwrap());
        assert_eq!(fixture.recorded(&after), Recorded::Trusted);
    }

    #[test]
    fn a_corrupt_store_trusts_nothing_and_is_set_aside() {
        let fixture = fixture();
        let files = fixture.workspace("w", "a = 1");
        fixture.store.grant(&files).unwrap();
        for text in ["{", "[]", r#"{"version": 2, "workspaces": {}}"#] {
            replace_private_file(&fixture.store.path, text.as_bytes()).unwrap();
            let lookup = fixture.store.lookup(&files);
            assert_eq!(lookup.recorded, Recorded::Unknown);
            assert!(lookup.warning.unwrap().contains("is not used"));
            fixture.store.grant(&files).unwrap();
            assert_eq!(fixture.recorded(&files), Recorded::Trusted);
            let aside = fixture.store.path.with_extension("json.corrupt");
            assert_eq!(fs::read_to_string(aside).unwrap(), text);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_store_others_can_write_trusts_nothing() {
        use std::os::unix::fs::PermissionsExt;
        let fixture = fixture();
        let files = fixture.workspace("w", "a = 1");
        fixture.store.grant(&files).unwrap();
        let mode = fs::metadata(&fixture.store.path)
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        fs::set_permissions(&fixture.store.path, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(fixture.recorded(&files), Recorded::Unknown);
    }

    #[test]
    fn concurrent_writers_lose_nothing() {
        let fixture = fixture();
        let workspaces: Vec<_> = (0..24)
            .map(|index| fixture.workspace(&format!("w{index}"), "a = 1"))
            .collect();
        std::thread::scope(|scope| {
            for files in &workspaces {
                let store = fixture.store.clone();
                scope.spawn(move || store.grant(files).unwrap());
            }
        });
        assert_eq!(fixture.store.list().len(), workspaces.len());
        for files in &workspaces {
            assert_eq!(fixture.recorded(files), Recorded::Trusted);
        }
    }

    #[test]
    fn the_number_of_workspaces_is_bounded() {
        let mut records = Records::default();
        let digest = fixture().workspace("w", "").digest().unwrap();
        for index in 0..WORKSPACES + 5 {
            records.add(format!("/w{index}"), &digest);
        }
        records.forget_the_oldest();
        assert_eq!(records.workspaces.len(), WORKSPACES);
    }
}
