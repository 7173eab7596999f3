//! What processes tell each other about routes that do not work: one small file for each that is
//! open, so that a fleet of short runs does not find the same outage out one by one. It is advice:
//! what cannot be read, is old or asks for too much is passed over.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What is older, or lasts longer from now on, is not believed.
pub(crate) const BELIEVED: Duration = Duration::from_mins(10);
/// The most of a file that is read.
const MAX_BYTES: u64 = 4_096;
/// The most files that are looked through.
const MAX_FILES: usize = 256;

/// An open breaker, as it is written down. Neither keys nor prompts are in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRecord {
    pub provider: String,
    pub model: String,
    /// Milliseconds since 1970.
    pub until_ms: u64,
    /// The kind of failure.
    pub reason: String,
    pub pid: u32,
    /// When it was written, in milliseconds since 1970.
    pub at_ms: u64,
}

/// The directory of such files.
#[derive(Debug)]
pub struct SharedStates {
    directory: PathBuf,
    /// What was read last, by when the file was written.
    read: Mutex<HashMap<String, (SystemTime, Option<OpenRecord>)>>,
}

impl SharedStates {
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            read: Mutex::default(),
        }
    }

    /// The name of a model at an account, from which neither can be told.
    pub fn key(account: &str, model: &str) -> String {
        use std::fmt::Write;

        let mut digest = Sha256::new();
        digest.update(account.as_bytes());
        digest.update([0]);
        digest.update(model.as_bytes());
        let bytes = digest.finalize();
        bytes.iter().take(16).fold(String::new(), |mut name, byte| {
            let _ = write!(name, "{byte:02x}");
            name
        })
    }

    fn path(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{key}.json"))
    }

    /// What is known about a route that another process has opened; `now` is milliseconds since
    /// 1970.
    pub fn open(&self, key: &str, now: u64) -> Option<OpenRecord> {
        let path = self.path(key);
        let written = fs::symlink_metadata(&path).ok()?.modified().ok()?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let record = match read.get(key) {
            Some((at, record)) if *at == written => record.clone(),
            Some(_) | None => {
                let record = record_in(&path);
                read.insert(key.to_owned(), (written, record.clone()));
                record
            }
        };
        record.filter(|record| is_believed(record, now))
    }

    /// Tells the others. Where it cannot be written they find out themselves.
    pub fn publish(&self, key: &str, record: &OpenRecord) {
        let _ = self.write(key, record);
        self.tidy(record.at_ms);
    }

    fn write(&self, key: &str, record: &OpenRecord) -> std::io::Result<()> {
        fs::create_dir_all(&self.directory)?;
        let temporary = self
            .directory
            .join(format!(".{key}.{}.tmp", std::process::id()));
        let written = (|| {
            let mut file = File::create(&temporary)?;
            file.write_all(&serde_json::to_vec(record)?)?;
            file.sync_all()?;
            fs::rename(&temporary, self.path(key))
        })();
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written
    }

    /// The route works again.
    pub fn withdraw(&self, key: &str) {
        let _ = fs::remove_file(self.path(key));
    }

    /// Everything that is open according to anybody.
    pub fn all(&self, now: u64) -> Vec<OpenRecord> {
        let mut records: Vec<OpenRecord> = self
            .files()
            .filter_map(|path| record_in(&path))
            .filter(|record| is_believed(record, now))
            .collect();
        records.sort_by(|a, b| (&a.provider, &a.model).cmp(&(&b.provider, &b.model)));
        records
    }

    fn files(&self) -> impl Iterator<Item = PathBuf> {
        let entries = fs::read_dir(&self.directory).into_iter().flatten();
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
        paths
            .filter(|path| {
                path.extension()
                    .is_some_and(|ending| ending == "json" || ending == "tmp")
            })
            .take(MAX_FILES)
    }

    /// Takes away what nobody believes any more, and what a process that was killed left half
    /// written.
    fn tidy(&self, now: u64) {
        for path in self.files() {
            let is_half = path.extension().is_some_and(|ending| ending == "tmp");
            let written = fs::symlink_metadata(&path).and_then(|data| data.modified());
            let is_old = written.is_ok_and(|at| at.elapsed().is_ok_and(|age| age > BELIEVED));
            let is_over = !is_half && record_in(&path).is_some_and(|it| !is_believed(&it, now));
            if is_old || is_over {
                let _ = fs::remove_file(path);
            }
        }
    }
}

fn record_in(path: &Path) -> Option<OpenRecord> {
    let mut text = Vec::new();
    let file = File::open(path).ok()?;
    file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

fn is_believed(record: &OpenRecord, now: u64) -> bool {
    let limit = u64::try_from(BELIEVED.as_millis()).unwrap_or(u64::MAX);
    record.until_ms > now
        && record.until_ms.saturating_sub(now) <= limit
        && now.saturating_sub(record.at_ms) <= limit
        && record.at_ms.saturating_sub(now) <= limit
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const NOW: u64 = 1_800_000_000_000;

    fn record(at_ms: u64, until_ms: u64) -> OpenRecord {
        OpenRecord {
            provider: "anthropic".into(),
            model: "m".into(),
            until_ms,
            reason: "overloaded".into(),
            pid: 1,
            at_ms,
        }
    }

    #[rstest]
    #[case::fresh(0, 30_000, true)]
    #[case::over(-60_000, -1, false)]
    #[case::old(-700_000, 1_000, false)]
    #[case::too_far_ahead(0, 700_000, false)]
    #[case::from_the_future(700_000, 1_000, false)]
    fn what_is_old_or_asks_for_too_much_is_not_believed(
        #[case] at: i64,
        #[case] until: i64,
        #[case] is_believed: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let states = SharedStates::new(folder.path());
        let moment = |offset: i64| NOW.checked_add_signed(offset).unwrap();
        let record = record(moment(at), moment(until));
        states.write("k", &record).unwrap();
        assert_eq!(states.open("k", NOW).is_some(), is_believed);
        assert_eq!(states.all(NOW).len(), usize::from(is_believed));
        // Another process sees the same.
        let other = SharedStates::new(folder.path());
        assert_eq!(other.open("k", NOW).is_some(), is_believed);
    }

    #[test]
    fn what_cannot_be_read_is_passed_over_and_what_is_withdrawn_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let states = SharedStates::new(folder.path());
        for text in ["", "{", "[]", "{\"until_ms\": -1}"] {
            fs::write(folder.path().join("k.json"), text).unwrap();
            assert_eq!(SharedStates::new(folder.path()).open("k", NOW), None);
        }
        states.publish("k", &record(NOW, NOW + 5_000));
        assert!(states.open("k", NOW).is_some());
        states.withdraw("k");
        assert_eq!(states.open("k", NOW), None);
        fs::write(folder.path().join("file"), "").unwrap();
        let nowhere = SharedStates::new(folder.path().join("file/x"));
        nowhere.publish("k", &record(NOW, NOW + 5_000));
        assert_eq!(nowhere.open("k", NOW), None);
    }

    #[test]
    fn a_name_tells_nothing_and_differs() {
        let one = SharedStates::key("account", "m");
        assert_eq!(one.len(), 32);
        assert!(!one.contains("account"));
        assert_ne!(one, SharedStates::key("accoun", "tm"));
        assert_eq!(one, SharedStates::key("account", "m"));
    }
}
