//! Which pieces of work a session was given: each is written down before it is acknowledged, before
//! it is begun and before its result is told, so that an id means one piece of work and one result,
//! also after a crash.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::Content;

/// Ended requests that are remembered.
const REMEMBERED: usize = 256;
/// A file that is larger than this, and twice what it has to say, is written anew.
const LARGE: u64 = 1024 * 1024;
/// The longest result that is remembered whole; of a longer one the texts are left out.
const LONGEST_RESULT: usize = 64 * 1024;

/// The requests of one session.
#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    file: Arc<File>,
    length: u64,
    entries: VecDeque<Entry>,
}

#[derive(Debug, Clone, PartialEq)]
struct Entry {
    request: Arc<str>,
    digest: String,
    standing: Standing,
}

/// Where a request stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Standing {
    /// It waits.
    Accepted(Content),
    /// It is worked on, or was when the server died: in this process, where that outlives it.
    Began {
        content: Content,
        life: Option<Arc<str>>,
    },
    /// With this result.
    Ended(Value),
}

/// What is known of a request.
#[derive(Debug, PartialEq)]
pub(crate) enum Known<'a> {
    Nothing,
    /// The same id had other content.
    Otherwise,
    Same(&'a Standing),
}

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Record {
    Accepted {
        request: Arc<str>,
        digest: String,
        content: Content,
    },
    Began {
        request: Arc<str>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        life: Option<Arc<str>>,
    },
    Ended {
        request: Arc<str>,
        /// For a file that was written anew.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
        result: Value,
    },
}

impl Ledger {
    /// Reads what is known of a session, or begins. A line that a crash cut off was never
    /// acknowledged, and is removed.
    pub(crate) fn open(directory: &Path, session: &str) -> io::Result<Self> {
        caliban_settings::ensure_private_dir(directory)?;
        let path = directory.join(format!("{session}.jsonl"));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        let mut file = options.open(&path)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let whole = text
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |end| end + 1);
        let length = u64::try_from(whole).unwrap_or(u64::MAX);
        if whole < text.len() {
            file.set_len(length)?;
        }
        file.seek(SeekFrom::Start(length))?;
        let mut ledger = Self {
            path,
            file: Arc::new(file),
            length,
            entries: VecDeque::new(),
        };
        for line in text[..whole].split(|byte| *byte == b'\n') {
            // What a later version wrote is passed over.
            if let Ok(record) = serde_json::from_slice(line) {
                ledger.apply(record);
            }
        }
        Ok(ledger)
    }

    pub(crate) fn known(&self, request: &str, digest: &str) -> Known<'_> {
        match self.find(request) {
            None => Known::Nothing,
            Some(entry) if entry.digest == digest => Known::Same(&entry.standing),
            Some(_) => Known::Otherwise,
        }
    }

    pub(crate) fn standing(&self, request: &str) -> Option<&Standing> {
        self.find(request).map(|entry| &entry.standing)
    }

    /// Whether nothing was ever asked, as far as is remembered.
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Requests without a result, in the order they were accepted.
    pub(crate) fn open_requests(&self) -> Vec<(Arc<str>, Standing)> {
        let open = self.entries.iter();
        open.filter(|entry| !matches!(entry.standing, Standing::Ended(_)))
            .map(|entry| (Arc::clone(&entry.request), entry.standing.clone()))
            .collect()
    }

    pub(crate) async fn accept(
        &mut self,
        request: &Arc<str>,
        digest: String,
        content: Content,
    ) -> io::Result<()> {
        let request = Arc::clone(request);
        self.append(Record::Accepted {
            request,
            digest,
            content,
        })
        .await
    }

    pub(crate) async fn begin(
        &mut self,
        request: &Arc<str>,
        life: Option<Arc<str>>,
    ) -> io::Result<()> {
        let request = Arc::clone(request);
        self.append(Record::Began { request, life }).await
    }

    pub(crate) async fn end(&mut self, request: &Arc<str>, result: &Value) -> io::Result<()> {
        self.append(Record::Ended {
            request: Arc::clone(request),
            digest: None,
            result: bounded(result),
        })
        .await
    }

    /// Writes a record; after `Ok` a loss of power leaves it.
    async fn append(&mut self, record: Record) -> io::Result<()> {
        let mut line = serde_json::to_vec(&record)?;
        line.push(b'\n');
        let written = match (&*self.file).write_all(&line) {
            Ok(()) => synced(&self.file).await,
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            // What is there of it must not be the beginning of the next.
            let _ = self.file.set_len(self.length);
            let _ = (&*self.file).seek(SeekFrom::Start(self.length));
            return Err(error);
        }
        self.length += line.len() as u64;
        self.apply(record);
        if self.length > LARGE {
            // It is right as it is; the next time may go better.
            let _ = self.compact();
        }
        Ok(())
    }

    fn apply(&mut self, record: Record) {
        match record {
            Record::Accepted {
                request,
                digest,
                content,
            } => {
                self.entries.retain(|entry| entry.request != request);
                self.entries.push_back(Entry {
                    request,
                    digest,
                    standing: Standing::Accepted(content),
                });
            }
            Record::Began { request, life } => {
                if let Some(entry) = self.find_mut(&request)
                    && let Standing::Accepted(content) = &entry.standing
                {
                    let content = content.clone();
                    entry.standing = Standing::Began { content, life };
                }
            }
            Record::Ended {
                request,
                digest,
                result,
            } => {
                if let Some(entry) = self.find_mut(&request) {
                    entry.standing = Standing::Ended(result);
                } else if let Some(digest) = digest {
                    self.entries.push_back(Entry {
                        request,
                        digest,
                        standing: Standing::Ended(result),
                    });
                }
                self.forget();
            }
        }
    }

    fn forget(&mut self) {
        let is_ended = |entry: &Entry| matches!(entry.standing, Standing::Ended(_));
        let ended = self.entries.iter().filter(|entry| is_ended(entry)).count();
        if ended > REMEMBERED
            && let Some(oldest) = self.entries.iter().position(is_ended)
        {
            self.entries.remove(oldest);
        }
    }

    /// Writes the file anew where more than half of it says nothing any more.
    fn compact(&mut self) -> io::Result<()> {
        let mut text = Vec::new();
        for entry in &self.entries {
            for record in entry.records() {
                serde_json::to_writer(&mut text, &record)?;
                text.push(b'\n');
            }
        }
        let length = text.len() as u64;
        if length * 2 > self.length {
            return Ok(());
        }
        caliban_settings::replace_private_file(&self.path, &text)?;
        let mut file = OpenOptions::new().read(true).write(true).open(&self.path)?;
        file.seek(SeekFrom::End(0))?;
        if let Some(directory) = self.path.parent() {
            File::open(directory)?.sync_all()?;
        }
        self.file = Arc::new(file);
        self.length = length;
        Ok(())
    }

    /// Nothing of it is wanted any more.
    pub(crate) fn remove(&self) {
        // It may be gone already.
        let _ = std::fs::remove_file(&self.path);
    }

    fn find(&self, request: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| *entry.request == *request)
    }

    fn find_mut(&mut self, request: &str) -> Option<&mut Entry> {
        let mut entries = self.entries.iter_mut();
        entries.find(|entry| *entry.request == *request)
    }
}

impl Entry {
    fn records(&self) -> Vec<Record> {
        let request = Arc::clone(&self.request);
        let accepted = |content: &Content| Record::Accepted {
            request: Arc::clone(&self.request),
            digest: self.digest.clone(),
            content: content.clone(),
        };
        match &self.standing {
            Standing::Accepted(content) => vec![accepted(content)],
            Standing::Began { content, life } => {
                let life = life.clone();
                vec![accepted(content), Record::Began { request, life }]
            }
            Standing::Ended(result) => vec![Record::Ended {
                request,
                digest: Some(self.digest.clone()),
                result: result.clone(),
            }],
        }
    }
}

/// A disk may take long; what waits for it must not hold up the rest.
async fn synced(file: &Arc<File>) -> io::Result<()> {
    let file = Arc::clone(file);
    let synced = tokio::task::spawn_blocking(move || file.sync_data()).await;
    synced.map_err(io::Error::other)?
}

/// A result that can be kept 256 times.
fn bounded(result: &Value) -> Value {
    if result.to_string().len() <= LONGEST_RESULT {
        return result.clone();
    }
    let mut short = result.clone();
    if let Some(fields) = short.as_object_mut() {
        for name in [
            "result",
            "last_assistant_text",
            "structured_output",
            "report",
            "denials",
            "permission_denials",
        ] {
            if fields.contains_key(name) {
                fields.insert(name.to_owned(), Value::Null);
            }
        }
        fields.insert("truncated".to_owned(), Value::Bool(true));
    }
    short
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn content(text: &str) -> Content {
        Content::Text(text.to_owned())
    }

    async fn accept(ledger: &mut Ledger, request: &str) {
        let (request, content) = (Arc::from(request), content("c"));
        ledger
            .accept(&request, content.digest(), content)
            .await
            .unwrap();
    }

    #[tokio::test]
    async fn what_was_acknowledged_is_known_after_a_crash() {
        let place = tempfile::tempdir().unwrap();
        let mut ledger = Ledger::open(place.path(), "s").unwrap();
        for request in ["a", "b", "c"] {
            accept(&mut ledger, request).await;
        }
        ledger.begin(&"a".into(), None).await.unwrap();
        ledger.end(&"a".into(), &json!({"n": 1})).await.unwrap();
        let life: Option<Arc<str>> = Some("l".into());
        ledger.begin(&"b".into(), life.clone()).await.unwrap();
        // A line that the crash cut off.
        let mut file = OpenOptions::new()
            .append(true)
            .open(place.path().join("s.jsonl"))
            .unwrap();
        file.write_all(br#"{"accepted":{"requ"#).unwrap();
        let again = Ledger::open(place.path(), "s").unwrap();
        let digest = content("c").digest();
        let ended = Standing::Ended(json!({"n": 1}));
        assert_eq!(again.known("a", &digest), Known::Same(&ended));
        assert_eq!(again.known("a", "other"), Known::Otherwise);
        assert_eq!(again.known("d", &digest), Known::Nothing);
        let open = again.open_requests();
        let began = Standing::Began {
            content: content("c"),
            life,
        };
        assert_eq!(open[0], ("b".into(), began));
        assert_eq!(open[1], ("c".into(), Standing::Accepted(content("c"))));
    }

    #[tokio::test]
    async fn the_last_256_are_remembered_and_the_file_stays_small() {
        // Hundreds of syncs: in memory, where there is such a place.
        let place = tempfile::tempdir_in("/dev/shm")
            .or_else(|_| tempfile::tempdir())
            .unwrap();
        let mut ledger = Ledger::open(place.path(), "s").unwrap();
        let result = json!({"result": "x".repeat(10_000)});
        for number in 0..300 {
            let request = number.to_string();
            accept(&mut ledger, &request).await;
            ledger.end(&request.into(), &result).await.unwrap();
        }
        assert_eq!(ledger.standing("43"), None);
        assert!(ledger.standing("44").is_some());
        let again = Ledger::open(place.path(), "s").unwrap();
        assert_eq!(again.entries, ledger.entries);
        let huge = json!({"type": "result", "result": "x".repeat(100_000)});
        assert_eq!(
            bounded(&huge),
            json!({"type": "result", "result": null, "truncated": true})
        );
    }
}
