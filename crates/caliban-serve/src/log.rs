//! The stream of a tab: numbered without holes, bounded, and heard by each reader at its own pace.
//!
//! Where more is kept than a tab may keep, pieces of answers are merged; what every reader has is
//! let go; for readers that are still behind, pieces are dropped and a `gap` stands in their place.
//! What is no piece is never dropped before a reader that is there has had it, unless that reader is
//! behind by four times the bound: then it finds its place gone and begins again from a snapshot.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::delta::{Weight, merge};
use crate::told::Told;

/// By how much a reader may exceed the bound before its place is let go.
const PATIENCE: usize = 4;
/// How long pieces become by being merged.
const LONGEST_PIECE: usize = 64 * 1024;
/// What an entry takes beside its text.
const OVERHEAD: usize = 96;

/// The stream of one tab.
#[derive(Debug)]
pub(crate) struct TabLog {
    tab: Arc<str>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    entries: VecDeque<Entry>,
    bytes: usize,
    bound: usize,
    /// The number of the next event.
    next: u64,
    start: Start,
    end: End,
    /// The next event that each reader wants, and how it is woken.
    readers: HashMap<u64, (u64, Arc<Notify>)>,
    next_reader: u64,
}

/// What the first event stands at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    /// The beginning of everything.
    Whole,
    /// Something was said before, which events do not tell.
    Later,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Closed,
}

#[derive(Debug, Clone)]
struct Entry {
    first: u64,
    seq: u64,
    request: Option<Arc<str>>,
    event: Arc<RawValue>,
    weight: Weight,
}

impl Entry {
    fn size(&self) -> usize {
        self.event.get().len() + OVERHEAD
    }
}

/// What a reader finds.
#[derive(Debug)]
pub(crate) enum Found {
    Lines(Vec<Told>),
    /// What it wants next was let go.
    Gone,
    Nothing,
    /// There will be nothing more.
    End,
}

impl TabLog {
    pub(crate) fn new(tab: Arc<str>, bound: usize) -> Arc<Self> {
        Arc::new(Self {
            tab,
            inner: Mutex::new(Inner {
                entries: VecDeque::new(),
                bytes: 0,
                bound,
                next: 1,
                start: Start::Whole,
                end: End::Open,
                readers: HashMap::new(),
                next_reader: 0,
            }),
        })
    }

    pub(crate) fn tab(&self) -> &Arc<str> {
        &self.tab
    }

    /// Tells something and gives it its number.
    pub(crate) fn push(&self, request: Option<&Arc<str>>, event: &Value) -> u64 {
        let raw = raw(event);
        let mut inner = self.lock();
        let seq = inner.next;
        inner.next += 1;
        let entry = Entry {
            first: seq,
            seq,
            request: request.cloned(),
            event: raw,
            weight: Weight::of(event),
        };
        inner.bytes += entry.size();
        inner.entries.push_back(entry);
        if inner.bytes > inner.bound {
            inner.condense();
        }
        for (_, wake) in inner.readers.values() {
            wake.notify_one();
        }
        seq
    }

    /// What is told goes on from an earlier conversation.
    pub(crate) fn go_on(&self) {
        self.lock().start = Start::Later;
    }

    /// Whether something was said before the first event.
    pub(crate) fn goes_on(&self) -> bool {
        self.lock().start == Start::Later
    }

    /// Nothing more will be told.
    pub(crate) fn close(&self) {
        let mut inner = self.lock();
        inner.end = End::Closed;
        for (_, wake) in inner.readers.values() {
            wake.notify_one();
        }
    }

    /// Lets go of what every reader has: it can be had from the session again.
    pub(crate) fn forget_heard(&self) {
        self.lock().let_go(0);
    }

    /// The number of the last event.
    pub(crate) fn last(&self) -> u64 {
        self.lock().next - 1
    }

    /// A reader that wants this event next, at most the next one there will be; 0 is what was before
    /// the first, which is let go of.
    pub(crate) fn subscribe(&self, from: Option<u64>, wake: Arc<Notify>) -> (u64, u64) {
        let mut inner = self.lock();
        let id = inner.next_reader;
        inner.next_reader += 1;
        let first = u64::from(inner.start == Start::Whole);
        let from = from.map_or(inner.next, |from| from.clamp(first, inner.next));
        wake.notify_one();
        inner.readers.insert(id, (from, wake));
        (id, from)
    }

    pub(crate) fn unsubscribe(&self, reader: u64) {
        self.lock().readers.remove(&reader);
    }

    /// The next lines of a reader, of about this many bytes.
    pub(crate) fn take(&self, reader: u64, bytes: usize) -> Found {
        let mut inner = self.lock();
        let Some(&(from, _)) = inner.readers.get(&reader) else {
            return Found::End;
        };
        let found = inner.find(&self.tab, from, bytes);
        if let Found::Lines(lines) = &found
            && let Some(last) = lines.last()
        {
            let next = last.seq + 1;
            inner.move_to(reader, next);
        }
        found
    }

    /// A reader goes on from here: what is before came to it in another way.
    pub(crate) fn move_to(&self, reader: u64, next: u64) {
        self.lock().move_to(reader, next);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn move_to(&mut self, reader: u64, next: u64) {
        if let Some((wanted, _)) = self.readers.get_mut(&reader) {
            *wanted = next;
        }
    }

    fn find(&self, tab: &Arc<str>, from: u64, bytes: usize) -> Found {
        if from >= self.next {
            return match self.end {
                End::Open => Found::Nothing,
                End::Closed => Found::End,
            };
        }
        let place = self.entries.partition_point(|entry| entry.seq < from);
        match self.entries.get(place) {
            Some(entry) if entry.first == from => {}
            // Within what was merged there is no place to begin.
            Some(_) | None => return Found::Gone,
        }
        let mut taken = 0;
        let lines = self.entries.range(place..).take_while(|entry| {
            let goes_on = taken < bytes;
            taken += entry.size();
            goes_on
        });
        Found::Lines(
            lines
                .map(|entry| Told {
                    tab: Arc::clone(tab),
                    first: (entry.first != entry.seq).then_some(entry.first),
                    seq: entry.seq,
                    request: entry.request.clone(),
                    event: Arc::clone(&entry.event),
                })
                .collect(),
        )
    }

    /// Makes room, to three quarters of the bound so that it is seldom needed.
    fn condense(&mut self) {
        let wanted = self.bound / 4 * 3;
        self.merge_pieces();
        if self.bytes > wanted {
            self.let_go(wanted);
        }
        if self.bytes > self.bound {
            self.drop_pieces(wanted);
        }
        while self.bytes > self.bound * PATIENCE {
            if let Some(entry) = self.entries.pop_front() {
                self.bytes -= entry.size();
            }
        }
    }

    /// Joins pieces that follow each other. Each is read once, however many become one.
    fn merge_pieces(&mut self) {
        let places: Vec<u64> = self.readers.values().map(|(next, _)| *next).collect();
        let mut merged: VecDeque<Entry> = VecDeque::with_capacity(self.entries.len());
        // The last one as a value, as long as more may join it, and its length.
        let mut open: Option<(Value, usize)> = None;
        for entry in std::mem::take(&mut self.entries) {
            let length = entry.event.get().len();
            let is_piece = entry.weight == Weight::Piece && length < LONGEST_PIECE;
            let added = is_piece.then(|| value(&entry.event));
            if let (Some(last), Some((event, so_far)), Some(added)) =
                (merged.back_mut(), &mut open, &added)
                && !places.contains(&entry.first)
                && last.request == entry.request
                && *so_far + length < LONGEST_PIECE
                && merge(event, added)
            {
                last.seq = entry.seq;
                *so_far += length;
                continue;
            }
            close(&mut merged, open.take());
            open = added.map(|added| (added, length));
            merged.push_back(entry);
        }
        close(&mut merged, open);
        self.bytes = merged.iter().map(Entry::size).sum();
        self.entries = merged;
    }

    /// Joins neighbours, except where a reader stands between them.
    fn fold(&mut self, join: impl Fn(&mut Entry, &Entry) -> bool) {
        let places: Vec<u64> = self.readers.values().map(|(next, _)| *next).collect();
        let mut folded: VecDeque<Entry> = VecDeque::with_capacity(self.entries.len());
        for entry in std::mem::take(&mut self.entries) {
            if let Some(last) = folded.back_mut()
                && !places.contains(&entry.first)
                && join(last, &entry)
            {
                last.seq = entry.seq;
                continue;
            }
            folded.push_back(entry);
        }
        self.bytes = folded.iter().map(Entry::size).sum();
        self.entries = folded;
    }

    /// Lets go of the oldest entries that every reader has, until so much is left.
    fn let_go(&mut self, wanted: usize) {
        let slowest = self.readers.values().map(|(next, _)| *next).min();
        while self.bytes > wanted
            && let Some(entry) = self.entries.front()
            && slowest.is_none_or(|slowest| entry.seq < slowest)
        {
            self.bytes -= entry.size();
            self.entries.pop_front();
        }
    }

    /// Drops the oldest pieces, until so much is left; a `gap` stands for them.
    fn drop_pieces(&mut self, wanted: usize) {
        let gap = raw(&json!({"type": "gap"}));
        for entry in &mut self.entries {
            if self.bytes <= wanted {
                break;
            }
            if entry.weight == Weight::Piece && entry.event.get().len() > gap.get().len() {
                self.bytes -= entry.event.get().len() - gap.get().len();
                entry.event = Arc::clone(&gap);
            }
        }
        let is_gap = |entry: &Entry| entry.event.get() == gap.get();
        self.fold(|one, next| is_gap(one) && is_gap(next));
    }
}

/// Writes what the last entry has become.
fn close(merged: &mut VecDeque<Entry>, open: Option<(Value, usize)>) {
    if let (Some(last), Some((event, _))) = (merged.back_mut(), open)
        && last.first != last.seq
    {
        last.event = raw(&event);
    }
}

/// An event as text without the line separators of Unicode.
fn raw(event: &Value) -> Arc<RawValue> {
    let line = caliban_protocol::line(event);
    let text = line.trim_end_matches('\n').to_owned();
    // It is JSON: it was written a line above.
    RawValue::from_string(text).map_or_else(|_| Arc::from(RawValue::NULL.to_owned()), Arc::from)
}

fn value(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(bound: usize) -> Arc<TabLog> {
        TabLog::new("t".into(), bound)
    }

    fn text(log: &TabLog, delta: &str) {
        log.push(None, &json!({"type": "text", "delta": delta}));
    }

    fn reader(log: &TabLog, from: u64) -> u64 {
        log.subscribe(Some(from), Arc::new(Notify::new())).0
    }

    /// Everything a reader gets, held to numbers without holes.
    fn drain(log: &TabLog, reader: u64, mut next: u64) -> Vec<Value> {
        let mut all = Vec::new();
        while let Found::Lines(lines) = log.take(reader, 100) {
            for line in lines {
                assert_eq!(line.first.unwrap_or(line.seq), next);
                next = line.seq + 1;
                all.push(value(&line.event));
            }
        }
        all
    }

    #[test]
    fn pieces_are_merged_before_anything_is_dropped() {
        let log = log(20_000);
        let slow = reader(&log, 1);
        for _ in 0..1_000 {
            text(&log, "word ");
        }
        log.push(None, &json!({"type": "result"}));
        let heard = drain(&log, slow, 1);
        let said: String = heard.iter().filter_map(|it| it["delta"].as_str()).collect();
        assert_eq!(said, "word ".repeat(1_000));
        assert_eq!(heard.last().unwrap()["type"], "result");
    }

    #[test]
    fn what_counts_outlives_the_pieces_of_a_slow_reader() {
        let log = log(20_000);
        let (slow, quick) = (reader(&log, 1), reader(&log, 1));
        let mut quickly = 0;
        for number in 0..100 {
            text(&log, &"x".repeat(1_000));
            log.push(None, &json!({"type": "tool_use", "number": number}));
            quickly += drain(&log, quick, 2 * number + 1).len();
        }
        // Who keeps up has everything.
        assert_eq!(quickly, 200);
        let heard = drain(&log, slow, 1);
        let calls: Vec<_> = heard.iter().filter(|it| it["type"] == "tool_use").collect();
        assert_eq!(calls.len(), 100);
        assert!(heard.iter().any(|it| it["type"] == "gap"));
        assert!(log.lock().bytes <= 2 * 20_000);
    }

    #[test]
    fn memory_is_bounded_whatever_a_reader_does() {
        let log = log(10_000);
        let dead = reader(&log, 1);
        for _ in 0..1_000 {
            log.push(
                None,
                &json!({"type": "tool_result", "content": "y".repeat(200)}),
            );
        }
        assert!(log.lock().bytes <= 10_000 * PATIENCE);
        assert!(matches!(log.take(dead, 100), Found::Gone));
        // Without readers the newest are kept.
        log.unsubscribe(dead);
        log.push(None, &json!({"type": "result"}));
        assert!(log.lock().bytes <= 10_000);
        let late = reader(&log, 1_001);
        assert_eq!(drain(&log, late, 1_001).len(), 1);
        log.close();
        assert!(matches!(log.take(late, 100), Found::End));
    }
}
