//! How many lines a prompt added and removed, for lists. A look at what is at hand; within bounds,
//! and never a reason to fail.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use similar::{ChangeTag, TextDiff};

/// Bytes of a file whose lines are counted.
pub(crate) const COUNTED: u64 = 256 << 10;
/// How long the shortest difference of one file is looked for; then a longer one will do.
const PATIENCE: Duration = Duration::from_millis(20);
/// How long all files of a prompt may take; those after that are not counted.
const ALL: Duration = Duration::from_millis(300);

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    pub added: u64,
    pub removed: u64,
}

/// Counts while there is time.
#[derive(Debug)]
pub(crate) struct Counter {
    lines: Lines,
    deadline: Instant,
}

impl Counter {
    pub(crate) fn new() -> Self {
        Self {
            lines: Lines::default(),
            deadline: Instant::now() + ALL,
        }
    }

    pub(crate) fn is_out_of_time(&self) -> bool {
        Instant::now() > self.deadline
    }

    /// One file; what is not text has no lines.
    pub(crate) fn add(&mut self, before: &[u8], after: &[u8]) {
        let (Some(before), Some(after)) = (text(before), text(after)) else {
            return;
        };
        let diff = TextDiff::configure()
            .timeout(PATIENCE)
            .diff_lines(before, after);
        for change in diff.iter_all_changes() {
            match change.tag() {
                ChangeTag::Insert => self.lines.added += 1,
                ChangeTag::Delete => self.lines.removed += 1,
                ChangeTag::Equal => {}
            }
        }
    }

    /// What was counted; nothing where there was nothing.
    pub(crate) fn lines(self) -> Option<Lines> {
        (self.lines != Lines::default()).then_some(self.lines)
    }
}

fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes)
        .ok()
        .filter(|text| !text.contains('\0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_text_are_counted() {
        let mut counter = Counter::new();
        counter.add(b"a\nb\nc\n", b"a\nB\nc\nd\n");
        counter.add(b"", b"new\n");
        counter.add(b"a\0b", b"");
        let lines = counter.lines().unwrap();
        assert_eq!((lines.added, lines.removed), (3, 1));
        assert_eq!(Counter::new().lines(), None);
    }
}
