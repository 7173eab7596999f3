//! What was sent before, to be sent again: of this session, of this project, of all projects.

use std::collections::{HashSet, VecDeque};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

use crate::atoms::{Piece, flatten};

/// Entries of a project that are kept.
const KEPT: usize = 1_000;

/// Entries a file may grow to before it is written anew.
const MOST_IN_FILE: usize = 2_000;

/// What is read of a file, from its end; a longer one is written anew.
const MOST_BYTES: u64 = 8 << 20;
const REWRITTEN_BYTES: usize = 4 << 20;

/// A longer entry is remembered in the session alone.
const ENTRY_BYTES: usize = 64 << 10;

/// The bytes that the entries of a session may hold, and those of a project.
const HELD_BYTES: usize = 32 << 20;

/// Entries of all projects that are looked at.
const ALL_ENTRIES: usize = 50_000;

/// The name of a project's file.
const FILE: &str = "input-history.txt";

/// An entry that was found, and where in it the words are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    /// Which of the entries.
    pub index: usize,
    pub matches: Vec<Range<usize>>,
}

/// What was sent before. The file is read when it is first asked for.
#[derive(Debug)]
pub struct History {
    path: Option<PathBuf>,
    project: Option<Vec<String>>,
    /// The oldest first.
    session: VecDeque<Vec<Piece>>,
    session_texts: Vec<String>,
    browsing: Option<Browsing>,
}

/// A walk through the entries.
#[derive(Debug)]
struct Browsing {
    /// What was written before it began; it comes back at its end.
    draft: String,
    /// How many entries are newer than the one shown.
    newer: usize,
}

impl History {
    pub fn open(path: Option<PathBuf>) -> Self {
        Self {
            path,
            project: None,
            session: VecDeque::new(),
            session_texts: Vec::new(),
            browsing: None,
        }
    }

    /// Remembers a text that was sent. The error is the file's; the entry is remembered anyway.
    pub fn add(&mut self, text: &str) -> io::Result<()> {
        self.add_pieces(&[Piece::Text(text.to_owned())])
    }

    /// Remembers a draft that was sent. Its chips are chips again when it is recalled in this
    /// session, see [`History::pieces`].
    pub fn add_pieces(&mut self, pieces: &[Piece]) -> io::Result<()> {
        self.browsing = None;
        let text = flatten(pieces);
        if text.trim().is_empty() {
            return Ok(());
        }
        let is_repeated = self.project().last() == Some(&text);
        if self.session_texts.last() != Some(&text) {
            self.session_texts.push(text.clone());
            self.session.push_back(pieces.to_vec());
            let forgotten = forget_oldest(&mut self.session_texts);
            self.session.drain(..forgotten);
        }
        if is_repeated {
            return Ok(());
        }
        let project = self.project.get_or_insert_default();
        project.push(text.clone());
        forget_oldest(project);
        match &self.path {
            Some(path) if text.len() <= ENTRY_BYTES => append(path, &text),
            Some(_) | None => Ok(()),
        }
    }

    /// The entry before the one shown. The draft is kept when the walk begins.
    pub fn older(&mut self, draft: &str) -> Option<String> {
        let newer = self.browsing.as_ref().map_or(0, |walk| walk.newer + 1);
        let entries = self.project();
        let place = entries.len().checked_sub(newer + 1)?;
        let entry = entries.get(place)?.clone();
        match &mut self.browsing {
            Some(walk) => walk.newer = newer,
            None => {
                self.browsing = Some(Browsing {
                    draft: draft.to_owned(),
                    newer,
                });
            }
        }
        Some(entry)
    }

    /// The entry after the one shown; after the newest, the draft.
    pub fn newer(&mut self) -> Option<String> {
        let walk = self.browsing.as_mut()?;
        match walk.newer.checked_sub(1) {
            None => self.browsing.take().map(|walk| walk.draft),
            Some(newer) => {
                walk.newer = newer;
                let entries = self.project();
                let place = entries.len().checked_sub(newer + 1)?;
                entries.get(place).cloned()
            }
        }
    }

    /// Ends the walk: what is shown is a draft of its own now.
    pub fn leave(&mut self) {
        self.browsing = None;
    }

    /// An entry as pieces: with chips where it was sent with chips in this session.
    pub fn pieces(&self, text: &str) -> Vec<Piece> {
        let place = self.session_texts.iter().rposition(|entry| entry == text);
        match place.and_then(|place| self.session.get(place)) {
            Some(pieces) => pieces.clone(),
            None => vec![Piece::Text(text.to_owned())],
        }
    }

    /// The entries of this session, the oldest first.
    pub fn session(&self) -> &[String] {
        &self.session_texts
    }

    /// The entries of this project, the oldest first.
    pub fn project(&mut self) -> &[String] {
        let path = self.path.as_deref();
        self.project.get_or_insert_with(|| {
            let mut entries = path.map(read).unwrap_or_default();
            forget_oldest(&mut entries);
            entries
        })
    }

    /// The entries of all projects whose folders are in one, without repetition: projects that were
    /// used last come last. It ends early when it is told to break.
    pub fn all_projects(root: &Path, mut go_on: impl FnMut() -> ControlFlow<()>) -> Vec<String> {
        let Ok(folders) = fs::read_dir(root) else {
            return Vec::new();
        };
        let mut files: Vec<_> = folders
            .flatten()
            .map(|folder| folder.path().join(FILE))
            .filter_map(|file| Some((fs::metadata(&file).ok()?.modified().ok()?, file)))
            .collect();
        files.sort();
        let mut seen = HashSet::new();
        let mut newest_first = Vec::new();
        for (_, file) in files.iter().rev() {
            if go_on().is_break() || newest_first.len() >= ALL_ENTRIES {
                break;
            }
            let entries = read(file).into_iter().rev().take(KEPT);
            newest_first.extend(entries.filter(|entry| seen.insert(entry.clone())));
        }
        newest_first.truncate(ALL_ENTRIES);
        newest_first.reverse();
        newest_first
    }

    /// The entries that hold every word of a query, the newest first, each once. A word in small
    /// letters finds capitals too.
    pub fn search<S: AsRef<str>>(entries: &[S], query: &str) -> Vec<Hit> {
        let words: Vec<&str> = query.split_whitespace().collect();
        let mut seen = HashSet::new();
        let newest_first = entries.iter().enumerate().rev();
        newest_first
            .filter_map(|(index, entry)| {
                let entry = entry.as_ref();
                let mut matches = Vec::new();
                for word in &words {
                    let found = crate::finding::all(entry, word);
                    if found.is_empty() {
                        return None;
                    }
                    matches.extend(found);
                }
                matches.sort_by_key(|range| (range.start, range.end));
                seen.insert(entry).then_some(Hit {
                    index,
                    matches: apart(matches),
                })
            })
            .collect()
    }
}

/// Forgets the oldest entries where there are too many, and tells how many.
fn forget_oldest(entries: &mut Vec<String>) -> usize {
    let forgotten = entries.len() - newest_within(entries, HELD_BYTES).len();
    entries.drain(..forgotten);
    forgotten
}

/// The newest entries that may be kept, and hold no more than so many bytes; the newest always.
fn newest_within(entries: &[String], bytes: usize) -> &[String] {
    let mut held = 0;
    let fits = |entry: &&String| {
        held += entry.len();
        held <= bytes
    };
    let newest = entries.iter().rev().take(KEPT).take_while(fits).count();
    &entries[entries.len() - newest.max(1).min(entries.len())..]
}

/// Joins ranges that overlap.
fn apart(sorted: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match ranges.last_mut() {
            Some(last) if range.start < last.end => last.end = last.end.max(range.end),
            Some(_) | None => ranges.push(range),
        }
    }
    ranges
}

/// Files of the user's alone.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes the folder a file goes to, for the user alone.
pub(crate) fn make_folder(file: &Path) -> io::Result<()> {
    let Some(folder) = file.parent() else {
        return Ok(());
    };
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Adds an entry to a file. Processes take turns; the lock is a file of its own, because the
/// history's is replaced when it has grown.
fn append(path: &Path, text: &str) -> io::Result<()> {
    make_folder(path)?;
    let lock = private()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path.with_extension("lock"))?;
    lock.lock()?;
    let mut file = private().create(true).append(true).open(path)?;
    let line = format!("{}\n", escape(text));
    file.write_all(line.as_bytes())?;
    let length = file.metadata()?.len();
    drop(file);
    let entries = read(path);
    if entries.len() > MOST_IN_FILE || length > MOST_BYTES {
        // Half of what is read, so that it is not written anew with every entry from then on.
        rewrite(path, newest_within(&entries, REWRITTEN_BYTES))?;
    }
    Ok(())
}

fn rewrite(path: &Path, entries: &[String]) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = private()
        .create(true)
        .truncate(true)
        .write(true)
        .open(&beside)?;
    let lines: String = entries
        .iter()
        .flat_map(|entry| [escape(entry), "\n".to_owned()])
        .collect();
    file.write_all(lines.as_bytes())?;
    drop(file);
    fs::rename(&beside, path)
}

/// The entries of a file, the oldest first; of one that cannot be read, none.
fn read(path: &Path) -> Vec<String> {
    let tail = || -> io::Result<(Vec<u8>, bool)> {
        let mut file = File::open(path)?;
        let skipped = file.metadata()?.len().saturating_sub(MOST_BYTES);
        file.seek(SeekFrom::Start(skipped))?;
        let mut bytes = Vec::new();
        file.take(MOST_BYTES).read_to_end(&mut bytes)?;
        Ok((bytes, skipped > 0))
    };
    let Ok((bytes, is_cut)) = tail() else {
        return Vec::new();
    };
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().skip(usize::from(is_cut));
    lines
        .filter(|line| !line.is_empty())
        .map(unescape)
        .collect()
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => escaped.push_str("\\\\"),
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            c => escaped.push(c),
        }
    }
    escaped
}

fn unescape(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some('n') => text.push('\n'),
                Some('r') => text.push('\r'),
                Some('\\') | None => text.push('\\'),
                // Written by another hand.
                Some(other) => text.extend(['\\', other]),
            },
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::atoms::Atom;

    fn in_folder() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("projects/abc").join(FILE);
        (folder, path)
    }

    #[test]
    fn entries_are_there_in_the_next_session() {
        let (_folder, path) = in_folder();
        let mut history = History::open(Some(path.clone()));
        history.add("one").unwrap();
        history.add("two\nlines \\n").unwrap();
        history.add("two\nlines \\n").unwrap();
        history.add("  \n").unwrap();
        let mut next = History::open(Some(path));
        assert_eq!(next.project(), ["one", "two\nlines \\n"]);
        assert!(next.session().is_empty());
        assert_eq!(history.session(), ["one", "two\nlines \\n"]);
    }

    #[test]
    fn without_a_file_there_is_a_session() {
        let mut history = History::open(None);
        history.add("one").unwrap();
        assert_eq!(history.older("").as_deref(), Some("one"));
    }

    #[test]
    fn a_walk_goes_back_and_returns_to_the_draft() {
        let mut history = History::open(None);
        for entry in ["one", "two", "three"] {
            history.add(entry).unwrap();
        }
        assert_eq!(history.newer(), None);
        assert_eq!(history.older("draft").as_deref(), Some("three"));
        assert_eq!(history.older("three").as_deref(), Some("two"));
        assert_eq!(history.older("two").as_deref(), Some("one"));
        assert_eq!(history.older("one"), None);
        assert_eq!(history.newer().as_deref(), Some("two"));
        assert_eq!(history.newer().as_deref(), Some("three"));
        assert_eq!(history.newer().as_deref(), Some("draft"));
        assert_eq!(history.newer(), None);
        history.older("draft");
        history.older("");
        history.leave();
        assert_eq!(history.older("other").as_deref(), Some("three"));
    }

    #[test]
    fn chips_are_chips_again_in_their_session() {
        let (_folder, path) = in_folder();
        let sent = vec![
            Piece::Text("see ".to_owned()),
            Piece::Atom {
                number: 3,
                atom: Atom::Paste("a\nb".into()),
            },
        ];
        let mut history = History::open(Some(path.clone()));
        history.add_pieces(&sent).unwrap();
        let text = history.older("").unwrap();
        assert_eq!(text, "see a\nb");
        assert_eq!(history.pieces(&text), sent);
        let later = History::open(Some(path));
        assert_eq!(later.pieces(&text), [Piece::Text(text.clone())]);
    }

    #[test]
    fn a_file_that_has_grown_is_written_anew() {
        let (_folder, path) = in_folder();
        make_folder(&path).unwrap();
        let lines: Vec<String> = (0..MOST_IN_FILE).map(|n| n.to_string()).collect();
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        let mut history = History::open(Some(path.clone()));
        assert_eq!(history.project().len(), KEPT);
        history.add("newest").unwrap();
        let entries = read(&path);
        assert_eq!(entries.len(), KEPT);
        assert_eq!(entries.last().map(String::as_str), Some("newest"));
        assert_eq!(entries.first().map(String::as_str), Some("1001"));
    }

    #[test]
    fn a_large_file_shrinks_and_a_large_entry_is_not_written() {
        let (_folder, path) = in_folder();
        make_folder(&path).unwrap();
        let line = "x".repeat(ENTRY_BYTES) + "\n";
        fs::write(&path, line.repeat(200)).unwrap();
        let mut history = History::open(Some(path.clone()));
        history.add("small").unwrap();
        assert!(fs::metadata(&path).unwrap().len() <= REWRITTEN_BYTES as u64 + 200);
        history.add(&"y".repeat(ENTRY_BYTES + 1)).unwrap();
        assert_eq!(read(&path).last().map(String::as_str), Some("small"));
        assert!(history.older("").unwrap().starts_with('y'));
    }

    #[test]
    fn a_damaged_file_gives_what_it_has() {
        let (_folder, path) = in_folder();
        make_folder(&path).unwrap();
        fs::write(&path, b"one\n\n\xff\\q\\\nlast\\").unwrap();
        let mut history = History::open(Some(path));
        assert_eq!(history.project(), ["one", "\u{fffd}\\q\\", "last\\"]);
    }

    #[cfg(unix)]
    #[test]
    fn history_is_the_users_alone() {
        use std::os::unix::fs::PermissionsExt as _;

        let (_folder, path) = in_folder();
        History::open(Some(path.clone())).add("secret").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&path), 0o600);
        assert_eq!(mode(path.parent().unwrap()), 0o700);
    }

    #[test]
    fn processes_take_turns() {
        let (_folder, path) = in_folder();
        let add = |name: char| {
            let path = path.clone();
            move || {
                let mut history = History::open(Some(path));
                for number in 0..50 {
                    history.add(&format!("{name}{number}")).unwrap();
                }
            }
        };
        let other = std::thread::spawn(add('a'));
        add('b')();
        other.join().unwrap();
        let mut entries = read(&path);
        entries.sort();
        entries.dedup();
        assert_eq!(entries.len(), 100);
    }

    #[test]
    fn all_projects_are_read_until_it_is_enough() {
        let folder = tempfile::tempdir().unwrap();
        for (number, name) in ["a", "b"].into_iter().enumerate() {
            let path = folder.path().join(name).join(FILE);
            let mut history = History::open(Some(path.clone()));
            history.add("both").unwrap();
            history.add(name).unwrap();
            let age = std::time::Duration::from_secs(1_000 + number as u64);
            let file = File::options().append(true).open(&path).unwrap();
            file.set_modified(std::time::UNIX_EPOCH + age).unwrap();
        }
        fs::write(folder.path().join("no folder"), "").unwrap();
        let go_on = || ControlFlow::Continue(());
        assert_eq!(
            History::all_projects(folder.path(), go_on),
            ["a", "both", "b"]
        );
        let mut left = 1;
        let once = || {
            left -= 1;
            if left < 0 {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        assert_eq!(History::all_projects(folder.path(), once), ["both", "b"]);
        let nowhere = folder.path().join("nowhere");
        assert!(History::all_projects(&nowhere, go_on).is_empty());
    }

    #[test]
    fn a_search_finds_every_word_the_newest_first_and_once() {
        let entries = ["fix the Tests", "run tests", "fix it", "fix the Tests"];
        let found = |query| {
            let hits = History::search(&entries, query);
            hits.iter().map(|hit| hit.index).collect::<Vec<_>>()
        };
        assert_eq!(found("tests"), [3, 1]);
        assert_eq!(found("tests fix"), [3]);
        assert_eq!(found("Tests"), [3]);
        assert_eq!(found(""), [3, 2, 1]);
        assert!(found("none").is_empty());
        let hits = History::search(&["abcabc"], "bc cab");
        assert_eq!(hits[0].matches, vec![1..6; 1]);
    }

    proptest! {
        #[test]
        fn an_entry_is_one_line_and_comes_back(text in any::<String>()) {
            let line = escape(&text);
            prop_assert!(!line.contains(['\n', '\r']));
            prop_assert_eq!(unescape(&line), text);
        }
    }
}
