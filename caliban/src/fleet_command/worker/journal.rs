//! The conversation of a job on its way to the board and back: the files of the session, as pieces,
//! with points at which they and the files of the checkout belong together.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Component, Path, PathBuf};

use bytes::Bytes;
use caliban_fleet_nats::{Board, BoardError, Entry, JobId};
use serde::{Deserialize, Serialize};

/// Bytes of a piece; messages have at most a MiB.
const PIECE: usize = 512 * 1024;

/// What an entry is: the first line of it, as JSON. The rest of a piece is what is in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
enum Head {
    /// Another attempt has begun; what was incomplete before it does not count.
    Attempt {
        attempt: u32,
        worker: String,
    },
    Piece {
        file: String,
        from: u64,
    },
    /// All pieces before it make a session, which belongs to these files.
    Point {
        files: Option<Kept>,
    },
}

/// Where the files of a checkout are kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kept {
    /// A ref of the remote.
    Ref { name: String, commit: String },
    /// A bundle among the artefacts.
    Bundle { name: String, commit: String },
}

/// What a journal says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Restored {
    pub(super) session: BTreeMap<String, Vec<u8>>,
    pub(super) files: Option<Kept>,
    pub(super) last: u64,
}

/// Reads a journal, to its last point.
pub(super) fn restore(entries: &[Entry]) -> Result<Restored, String> {
    let mut restored = Restored::default();
    let mut pieces: Vec<(String, u64, &[u8])> = Vec::new();
    for entry in entries {
        restored.last = entry.seq;
        let end = entry.bytes.iter().position(|byte| *byte == b'\n');
        let (head, rest) = entry.bytes.split_at(end.unwrap_or(entry.bytes.len()));
        let head: Head = serde_json::from_slice(head)
            .map_err(|error| format!("entry {} of the journal: {error}", entry.seq))?;
        match head {
            Head::Attempt { .. } => pieces.clear(),
            Head::Piece { file, from } => pieces.push((file, from, rest.get(1..).unwrap_or(&[]))),
            Head::Point { files } => {
                for (file, from, bytes) in pieces.drain(..) {
                    let known = restored.session.entry(file).or_default();
                    known.truncate(usize::try_from(from).unwrap_or(usize::MAX));
                    known.extend_from_slice(bytes);
                }
                restored.files = files.or(restored.files);
            }
        }
    }
    Ok(restored)
}

/// Writes the files of a session where there are none.
pub(super) fn write(directory: &Path, session: &BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    for (name, bytes) in session {
        let relative = Path::new(name);
        let is_inside = relative
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !is_inside {
            return Err(io::Error::other(format!(
                "`{name}` leads out of the session"
            )));
        }
        let path = directory.join(relative);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(path, bytes)?;
    }
    Ok(())
}

/// How much of a file was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sent {
    inode: u64,
    changed: (i64, i64),
    len: u64,
}

/// Sends what changes in the files of a session.
#[derive(Debug)]
pub(super) struct Journal {
    job: JobId,
    directory: PathBuf,
    sent: BTreeMap<String, Sent>,
    last: u64,
    waiting: VecDeque<Bytes>,
    /// Whether the first that waits may have arrived already.
    is_uncertain: bool,
}

impl Journal {
    /// Begins an attempt: from here on nobody else can append.
    pub(super) async fn begin<B: Board>(
        board: &B,
        job: JobId,
        directory: PathBuf,
        last: u64,
        attempt: u32,
        worker: &str,
    ) -> Result<Self, BoardError> {
        let mut journal = Self {
            job,
            directory,
            sent: BTreeMap::new(),
            last,
            waiting: VecDeque::new(),
            is_uncertain: false,
        };
        let worker = worker.to_owned();
        journal.put(&Head::Attempt { attempt, worker }, &[]);
        journal.flush(board).await?;
        Ok(journal)
    }

    /// Takes in everything that has changed, as a point.
    pub(super) fn note(&mut self, files: Option<Kept>) -> io::Result<()> {
        let before = self.waiting.len();
        // The journal before the snapshot: who replaces both puts all of the old journal into the
        // new snapshot first.
        let mut names = Vec::new();
        list(&self.directory, Path::new(""), &mut names)?;
        names.sort_by_key(|name| !is_journal(name));
        for name in names {
            self.note_file(&name)?;
        }
        if self.waiting.len() > before || files.is_some() {
            self.put(&Head::Point { files }, &[]);
        }
        Ok(())
    }

    fn note_file(&mut self, name: &str) -> io::Result<()> {
        let mut file = match File::open(self.directory.join(name)) {
            Ok(file) => file,
            // Replaced or removed meanwhile; the next point has it.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        let about = file.metadata()?;
        let found = Sent {
            inode: about.ino(),
            changed: (about.mtime(), about.mtime_nsec()),
            len: about.len(),
        };
        let from =
            match self.sent.get(name) {
                Some(sent) if *sent == found => return Ok(()),
                Some(sent) if is_journal(name) && sent.inode == found.inode => {
                    if found.len < sent.len { 0 } else { sent.len }
                }
                Some(_) | None => 0,
            };
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(found.len - from).read_to_end(&mut bytes)?;
        if is_journal(name) {
            // A record that is being written belongs to the next point.
            let whole = bytes.iter().rposition(|byte| *byte == b'\n');
            bytes.truncate(whole.map_or(0, |at| at + 1));
        }
        let len = from + bytes.len() as u64;
        if bytes.is_empty() && from > 0 {
            return Ok(());
        }
        self.sent.insert(name.to_owned(), Sent { len, ..found });
        let mut at = from;
        let mut rest = bytes.as_slice();
        loop {
            let (piece, more) = rest.split_at(rest.len().min(PIECE));
            let head = Head::Piece {
                file: name.to_owned(),
                from: at,
            };
            self.put(&head, piece);
            at += piece.len() as u64;
            rest = more;
            if rest.is_empty() {
                return Ok(());
            }
        }
    }

    fn put(&mut self, head: &Head, bytes: &[u8]) {
        // It has no maps with keys that are not texts, so it can always be written.
        let mut entry = serde_json::to_vec(head).unwrap_or_default();
        if let Head::Piece { .. } = head {
            entry.push(b'\n');
            entry.extend_from_slice(bytes);
        }
        self.waiting.push_back(entry.into());
    }

    /// Whether something is not on the board yet.
    pub(super) fn is_behind(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Sends what waits. What did not go is tried again the next time;
    /// [`BoardError::Fenced`] means that another attempt has taken over.
    pub(super) async fn flush<B: Board>(&mut self, board: &B) -> Result<(), BoardError> {
        while let Some(entry) = self.waiting.front() {
            match board.append(self.job, self.last, entry.clone()).await {
                Ok(seq) => self.last = seq,
                Err(BoardError::Fenced) if self.is_uncertain => {
                    // It may have been this very entry that arrived unheard.
                    let entries = board.journal(self.job).await?;
                    match entries.last() {
                        Some(last) if last.bytes == *entry && last.seq > self.last => {
                            self.last = last.seq;
                        }
                        Some(_) | None => return Err(BoardError::Fenced),
                    }
                }
                Err(BoardError::Fenced) => return Err(BoardError::Fenced),
                Err(error) => {
                    self.is_uncertain = true;
                    return Err(error);
                }
            }
            self.is_uncertain = false;
            self.waiting.pop_front();
        }
        Ok(())
    }
}

fn is_journal(name: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|extension| extension == "journal")
}

/// The files of a session, without locks and what is being written.
fn list(directory: &Path, below: &Path, names: &mut Vec<String>) -> io::Result<()> {
    for entry in std::fs::read_dir(directory.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            list(directory, &path, names)?;
        } else if kind.is_file() {
            let extension = path.extension().unwrap_or_default();
            let is_passing = ["lock", "new", "tmp"]
                .iter()
                .any(|known| extension == *known);
            if let (false, Some(name)) = (is_passing, path.to_str()) {
                names.push(name.to_owned());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::time::Duration;

    use caliban_fleet_nats::MemoryBoard;

    use super::*;

    #[tokio::test]
    async fn a_session_comes_back_as_it_was_at_the_last_point() {
        let board = MemoryBoard::new(Duration::from_mins(1), 10);
        let job = JobId::new();
        let here = tempfile::tempdir().unwrap();
        let path = here.path().to_owned();
        let mut journal = Journal::begin(&board, job, path, 0, 1, "a").await.unwrap();
        let file = here.path().join("session.journal");
        std::fs::create_dir_all(here.path().join("session/blobs")).unwrap();
        std::fs::write(here.path().join("session/blobs/x"), "blob").unwrap();
        std::fs::write(here.path().join("session.lock"), "").unwrap();
        std::fs::write(&file, "one\ntw").unwrap();
        journal.note(None).unwrap();
        journal.flush(&board).await.unwrap();
        let mut appended = File::options().append(true).open(&file).unwrap();
        appended.write_all(b"o\nthr").unwrap();
        let kept = Kept::Ref {
            name: "refs/x".to_owned(),
            commit: "c".to_owned(),
        };
        journal.note(Some(kept.clone())).unwrap();
        journal.flush(&board).await.unwrap();
        assert!(!journal.is_behind());
        let restored = restore(&board.journal(job).await.unwrap()).unwrap();
        let text = |name: &str| String::from_utf8_lossy(&restored.session[name]).into_owned();
        assert_eq!(text("session.journal"), "one\ntwo\n");
        assert_eq!(text("session/blobs/x"), "blob");
        assert_eq!(restored.session.len(), 2);
        assert_eq!(restored.files, Some(kept));
        let there = tempfile::tempdir().unwrap();
        write(there.path(), &restored.session).unwrap();
        assert!(there.path().join("session/blobs/x").exists());
        // Another attempt: the first cannot write any more.
        let path = there.path().to_owned();
        let second = Journal::begin(&board, job, path, restored.last, 2, "b");
        second.await.unwrap();
        std::fs::write(&file, "something else\n").unwrap();
        journal.note(None).unwrap();
        assert_eq!(journal.flush(&board).await, Err(BoardError::Fenced));
        let again = restore(&board.journal(job).await.unwrap()).unwrap();
        assert_eq!(again.session, restored.session);
    }

    #[test]
    fn nothing_is_written_outside_of_a_session() {
        let here = tempfile::tempdir().unwrap();
        let outside = BTreeMap::from([("../x".to_owned(), Vec::new())]);
        assert!(write(here.path(), &outside).is_err());
    }
}
