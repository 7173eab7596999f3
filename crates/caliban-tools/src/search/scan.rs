//! The search of many files: one thread walks, others search, and the results come out in path
//! order whatever the timing was.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Mutex, PoisonError};

use caliban_model::CancellationToken;
use grep_regex::RegexMatcher;
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};

use super::beneath::{Directory, Name, Opened};
use super::hits::{Collector, Content, Hits, Wanted};
use super::walk::{Walk, WalkEnd};

/// The longest line that is held in memory; a file with a longer one is skipped and reported.
const MAX_LINE_BYTES: usize = 8 * 1024 * 1024;

/// The largest file that is searched across lines, since it is held whole.
const MAX_MULTILINE_BYTES: usize = 32 * 1024 * 1024;

/// The most threads that search; together with the limits above this bounds memory.
const MAX_WORKERS: usize = 4;

/// How many paths are handed over at once. A few, so that they cost less to hand over than to
/// search; not many, because all of them are searched even when enough was found.
const BATCH: usize = 16;

/// How many batches the walk may be ahead of the search.
const QUEUE: usize = 64;

/// How many skipped files are named.
const MAX_SKIPPED: usize = 5;

/// What to look for and how much of it is wanted.
#[derive(Debug)]
pub(super) struct Query {
    pub(super) matcher: RegexMatcher,
    pub(super) span: Span,
    pub(super) context: usize,
    pub(super) wanted: Wanted,
    /// How many results are shown: matching lines, or files.
    pub(super) limit: usize,
}

/// Whether a match can cross lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    Line,
    Lines,
}

/// The outcome of a search.
#[derive(Debug, Default)]
pub(super) struct Report {
    /// Files with matches, in path order.
    pub(super) files: Vec<(PathBuf, Hits)>,
    pub(super) searched: usize,
    pub(super) binary: usize,
    /// Files that could not be searched, with the reason; the first few only.
    pub(super) skipped: Vec<(PathBuf, String)>,
    pub(super) skipped_more: usize,
    pub(super) walk: Option<(WalkEnd, usize)>,
}

/// Searches what the walk yields and `select` accepts, unless `may_read` objects to what was opened.
/// Ends early when there is more than the limit, or when cancelled.
pub(super) fn scan(
    query: &Query,
    base: &Directory,
    mut walk: Walk,
    select: impl Fn(&Path) -> bool,
    may_read: impl Fn(&Metadata) -> bool + Sync,
    cancel: &CancellationToken,
) -> Report {
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get().min(MAX_WORKERS));
    let gathered = Mutex::new(Gathered::default());
    let found = AtomicU64::new(0);
    let is_over = || cancel.is_cancelled() || found.load(Ordering::Relaxed) > query.limit as u64;
    let (sender, receiver) = sync_channel::<Batch>(QUEUE);
    let receiver = std::sync::Arc::new(Mutex::new(receiver));
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let receiver = std::sync::Arc::clone(&receiver);
            let (gathered, found, is_over) = (&gathered, &found, &is_over);
            let may_read = &may_read;
            scope.spawn(move || {
                let mut searcher = searcher(query);
                let mut opener = base.opener();
                let mut own = Gathered::default();
                // Files are taken in path order, and what was taken is finished. So when more
                // than enough was found, nothing that is left could come before it.
                while !is_over()
                    && let Some((first, batch)) = take(&receiver)
                {
                    for (index, path) in (first..).zip(batch) {
                        let file = opener.file(&path, Name::Listed);
                        let result = search(&mut searcher, query, file, may_read, cancel);
                        if let Ok(Searched::Read(hits)) = &result {
                            let results = match query.wanted {
                                Wanted::Lines(_) => hits.matched,
                                Wanted::Presence | Wanted::Count => hits.matched.min(1),
                            };
                            found.fetch_add(results, Ordering::Relaxed);
                        }
                        own.add(index, path, result, query.span);
                    }
                }
                let mut gathered = gathered.lock().unwrap_or_else(PoisonError::into_inner);
                gathered.merge(own);
            });
        }
        // Only the workers hold the queue now: when they are done, sending fails.
        drop(receiver);
        let mut first = 0;
        let mut batch = Vec::with_capacity(BATCH);
        while !is_over()
            && let Some((path, kind)) = walk.next()
        {
            if !kind.is_file() || !select(&path) {
                continue;
            }
            batch.push(path);
            if batch.len() == BATCH {
                let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH));
                if sender.send((first, full)).is_err() {
                    break;
                }
                first += BATCH;
            }
        }
        // Nobody takes it when enough was found.
        let _ = sender.send((first, batch));
        drop(sender);
    });
    let gathered = gathered
        .into_inner()
        .unwrap_or_else(PoisonError::into_inner);
    let mut report = gathered.report();
    report.walk = Some((walk.end, walk.unreadable));
    report
}

/// Searches one file that was asked for by name.
pub(super) fn scan_file(
    query: &Query,
    directory: &Directory,
    name: &Path,
    cancel: &CancellationToken,
) -> io::Result<Searched> {
    let file = directory.opener().file(name, Name::Given);
    search(&mut searcher(query), query, file, |_| true, cancel)
}

/// What became of one file.
#[derive(Debug)]
pub(super) enum Searched {
    Read(Hits),
    /// A device, FIFO, socket or link, or something that may not be read.
    LeftAlone,
}

/// The number of the first path, and the paths.
type Batch = (usize, Vec<PathBuf>);

fn take(receiver: &Mutex<Receiver<Batch>>) -> Option<Batch> {
    let receiver = receiver.lock().unwrap_or_else(PoisonError::into_inner);
    receiver.recv().ok()
}

fn searcher(query: &Query) -> Searcher {
    let (across, heap) = match query.span {
        Span::Line => (false, MAX_LINE_BYTES),
        Span::Lines => (true, MAX_MULTILINE_BYTES),
    };
    SearcherBuilder::new()
        .line_number(true)
        .multi_line(across)
        .heap_limit(Some(heap))
        .before_context(query.context)
        .after_context(query.context)
        .binary_detection(BinaryDetection::quit(0))
        .build()
}

fn search(
    searcher: &mut Searcher,
    query: &Query,
    file: io::Result<Opened>,
    may_read: impl Fn(&Metadata) -> bool,
    cancel: &CancellationToken,
) -> io::Result<Searched> {
    let file = match file? {
        Opened::Regular(file, meta) if may_read(&meta) => file,
        Opened::Regular(..) | Opened::Other => return Ok(Searched::LeftAlone),
    };
    let mut collector = Collector::new(&query.matcher, query.wanted);
    searcher.search_reader(&query.matcher, Watched { file, cancel }, &mut collector)?;
    Ok(Searched::Read(collector.finish()))
}

/// A file whose reading ends when the call is cancelled: one file can be very large.
struct Watched<'c> {
    file: File,
    cancel: &'c CancellationToken,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.cancel.is_cancelled() {
            return Err(io::Error::other("cancelled"));
        }
        self.file.read(buffer)
    }
}

#[derive(Debug, Default)]
struct Gathered {
    files: Vec<(usize, PathBuf, Hits)>,
    searched: usize,
    binary: usize,
    skipped: Vec<(usize, PathBuf, String)>,
}

impl Gathered {
    fn add(&mut self, index: usize, path: PathBuf, result: io::Result<Searched>, span: Span) {
        match result {
            Ok(Searched::Read(hits)) => {
                self.searched += 1;
                match hits.kind {
                    Content::Binary => self.binary += 1,
                    Content::Text if hits.matched > 0 => self.files.push((index, path, hits)),
                    Content::Text => {}
                }
            }
            Ok(Searched::LeftAlone) => {}
            Err(error) => self.skipped.push((index, path, explain(&error, span))),
        }
    }

    fn merge(&mut self, other: Self) {
        self.files.extend(other.files);
        self.searched += other.searched;
        self.binary += other.binary;
        self.skipped.extend(other.skipped);
    }

    fn report(mut self) -> Report {
        self.files.sort_by_key(|(index, ..)| *index);
        self.skipped.sort_by_key(|(index, ..)| *index);
        Report {
            skipped_more: self.skipped.len().saturating_sub(MAX_SKIPPED),
            files: self
                .files
                .into_iter()
                .map(|(_, path, hits)| (path, hits))
                .collect(),
            searched: self.searched,
            binary: self.binary,
            skipped: self
                .skipped
                .into_iter()
                .take(MAX_SKIPPED)
                .map(|(_, path, reason)| (path, reason))
                .collect(),
            walk: None,
        }
    }
}

/// Says what an error means; the searcher reports an exhausted buffer without a kind of its own.
pub(super) fn explain(error: &io::Error, span: Span) -> String {
    const MIB: usize = 1024 * 1024;
    let text = error.to_string();
    match span {
        Span::Line if text.contains("allocation limit") => {
            format!("it has a line longer than {} MiB", MAX_LINE_BYTES / MIB)
        }
        Span::Lines if text.contains("allocation limit") => format!(
            "it is larger than {} MiB, too large to search across lines",
            MAX_MULTILINE_BYTES / MIB
        ),
        Span::Line | Span::Lines => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::walk::Hidden;

    fn query(pattern: &str) -> Query {
        Query {
            matcher: RegexMatcher::new(pattern).unwrap(),
            span: Span::Line,
            context: 0,
            wanted: Wanted::Count,
            limit: 10,
        }
    }

    #[test]
    fn nothing_is_read_once_cancelled() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        std::fs::write(root.join("a"), "needle").unwrap();
        let directory = Directory::open(&root).unwrap();
        let walk = || Walk::new(&root, Hidden::Skipped, |_| true);
        let cancel = CancellationToken::new();
        let query = query("needle");
        let report = scan(&query, &directory, walk(), |_| true, |_| true, &cancel);
        assert_eq!((report.searched, report.files.len()), (1, 1));
        cancel.cancel();
        let report = scan(&query, &directory, walk(), |_| true, |_| true, &cancel);
        assert_eq!(report.searched, 0);
        // Inside of a file, too.
        assert!(scan_file(&query, &directory, Path::new("a"), &cancel).is_err());
    }

    #[test]
    fn results_come_in_path_order_whatever_the_limit() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        for number in 0..200 {
            // Early files take longer than late ones.
            let text = "nothing\n".repeat((200 - number) * 20) + "needle\n";
            std::fs::write(root.join(format!("{number:03}")), text).unwrap();
        }
        let directory = Directory::open(&root).unwrap();
        let cancel = CancellationToken::new();
        let walk = Walk::new(&root, Hidden::Skipped, |_| true);
        let report = scan(
            &query("needle"),
            &directory,
            walk,
            |_| true,
            |_| true,
            &cancel,
        );
        let names: Vec<String> = report
            .files
            .iter()
            .take(11)
            .map(|(path, _)| path.display().to_string())
            .collect();
        let expected: Vec<String> = (0..11).map(|number| format!("{number:03}")).collect();
        assert_eq!(names, expected);
        assert!(report.searched < 200);
    }
}
