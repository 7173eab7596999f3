//! Differences that are already written as patches.

use std::time::Instant;

use similar::{Algorithm, TextDiff};

use super::{
    CHANGED, Detail, DiffLine, DiffView, Hunk, LineEnd, LineKind, Mark, PATIENCE, changed_lines,
};
use crate::languages::Language;

impl DiffView {
    /// Reads a unified diff. What is not part of one is left out, but for the names of files.
    pub fn of_patch(unified: &str, path: &str) -> Self {
        let mut reader = Reader::new(path);
        for line in unified.strip_suffix('\n').unwrap_or(unified).split('\n') {
            reader.take(line);
        }
        reader.end_hunk();
        let (added, removed) = (reader.added, reader.removed);
        let too_large = added + removed > CHANGED;
        let mut hunks = reader.hunks;
        if too_large {
            hunks.clear();
        }
        refine(&mut hunks);
        Self {
            hunks,
            after: 0,
            added,
            removed,
            detail: if too_large {
                Detail::Counts
            } else {
                Detail::Lines
            },
            language: Language::of_path(path),
        }
    }
}

struct Reader<'a> {
    path: &'a str,
    language: Option<Language>,
    heading: Option<String>,
    hunks: Vec<Hunk>,
    hunk: Option<Open>,
    /// The number of the old line after the last hunk of this file.
    old_after: usize,
    added: usize,
    removed: usize,
}

/// A hunk that is being read, and how many lines it still has.
struct Open {
    hunk: Hunk,
    old: usize,
    new: usize,
    old_left: usize,
    new_left: usize,
}

impl<'a> Reader<'a> {
    fn new(path: &'a str) -> Self {
        Self {
            path,
            language: Language::of_path(path),
            heading: None,
            hunks: Vec::new(),
            hunk: None,
            old_after: 1,
            added: 0,
            removed: 0,
        }
    }

    fn take(&mut self, line: &str) {
        if let Some(open) = &mut self.hunk {
            if line.starts_with('\\') {
                if let Some(last) = open.hunk.lines.last_mut() {
                    last.end = LineEnd::Nothing;
                }
                return;
            }
            if open.old_left > 0 || open.new_left > 0 {
                match open.line(line) {
                    Some(LineKind::Added) => self.added += 1,
                    Some(LineKind::Removed) => self.removed += 1,
                    Some(LineKind::Context) => {}
                    None => self.end_hunk(),
                }
                return;
            }
            self.end_hunk();
        }
        let line = line.strip_suffix('\r').unwrap_or(line);
        if let Some(begun) = Begun::read(line) {
            self.hunk = Some(begun.open(self.heading.take(), self.language, self.old_after));
        } else if let Some(name) = line.strip_prefix("+++ ") {
            self.enter_file(name);
        }
    }

    fn enter_file(&mut self, name: &str) {
        let name = name.split('\t').next().unwrap_or(name);
        let name = name.strip_prefix("b/").unwrap_or(name);
        self.old_after = 1;
        if self.path.ends_with(name) || name == "/dev/null" {
            return;
        }
        self.language = Language::of_path(name);
        self.heading = Some(name.to_owned());
    }

    fn end_hunk(&mut self) {
        if let Some(open) = self.hunk.take() {
            self.old_after = open.old;
            self.hunks.push(open.hunk);
        }
    }
}

impl Open {
    /// Takes a line in, if it can be one of a hunk.
    fn line(&mut self, line: &str) -> Option<LineKind> {
        let kind = match line.as_bytes().first() {
            Some(b'+') => LineKind::Added,
            Some(b'-') => LineKind::Removed,
            // Blanks at the end of lines are easily lost.
            Some(b' ') | None => LineKind::Context,
            Some(_) => return None,
        };
        let (in_old, in_new) = match kind {
            LineKind::Added => (0, 1),
            LineKind::Removed => (1, 0),
            LineKind::Context => (1, 1),
        };
        let text = line.get(1..).unwrap_or_default();
        self.hunk.lines.push(DiffLine {
            kind,
            old: (in_old > 0).then_some(self.old),
            new: (in_new > 0).then_some(self.new),
            parts: (!text.is_empty())
                .then(|| (Mark::Same, text.to_owned()))
                .into_iter()
                .collect(),
            end: LineEnd::Newline,
        });
        self.old = self.old.saturating_add(in_old);
        self.new = self.new.saturating_add(in_new);
        self.old_left = self.old_left.saturating_sub(in_old);
        self.new_left = self.new_left.saturating_sub(in_new);
        Some(kind)
    }
}

/// The line that begins a hunk: `@@ -1,2 +3,4 @@ where`.
struct Begun<'a> {
    old: (usize, usize),
    new: (usize, usize),
    place: &'a str,
}

impl<'a> Begun<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let (ranges, place) = line.strip_prefix("@@ -")?.split_once(" @@")?;
        let (old, new) = ranges.split_once(" +")?;
        Some(Self {
            old: range(old)?,
            new: range(new)?,
            place: place.trim(),
        })
    }

    fn open(self, file: Option<String>, language: Option<Language>, old_after: usize) -> Open {
        let place = (!self.place.is_empty()).then(|| self.place.to_owned());
        let heading = match (file, place) {
            (Some(file), Some(place)) => Some(format!("{file}: {place}")),
            (file, place) => file.or(place),
        };
        Open {
            hunk: Hunk {
                skipped: self.old.0.saturating_sub(old_after),
                heading,
                language,
                ..Hunk::default()
            },
            old: self.old.0,
            new: self.new.0,
            old_left: self.old.1,
            new_left: self.new.1,
        }
    }
}

fn range(text: &str) -> Option<(usize, usize)> {
    match text.split_once(',') {
        Some((start, length)) => Some((start.parse().ok()?, length.parse().ok()?)),
        None => Some((text.parse().ok()?, 1)),
    }
}

/// Marks the words that changed where removed lines are followed by added ones.
fn refine(hunks: &mut [Hunk]) {
    let deadline = Instant::now() + PATIENCE;
    for run in hunks.iter_mut().flat_map(|hunk| {
        hunk.lines.chunk_by_mut(|a, b| {
            a.kind == b.kind || (a.kind == LineKind::Removed && b.kind == LineKind::Added)
        })
    }) {
        let removed = run
            .iter()
            .take_while(|line| line.kind == LineKind::Removed)
            .count();
        let (old, new) = run.split_at_mut(removed);
        if old.is_empty() || new.is_empty() {
            continue;
        }
        let old_texts: Vec<String> = old.iter().map(|line| line.text() + "\n").collect();
        let new_texts: Vec<String> = new.iter().map(|line| line.text() + "\n").collect();
        let old_lines: Vec<&str> = old_texts.iter().map(String::as_str).collect();
        let new_lines: Vec<&str> = new_texts.iter().map(String::as_str).collect();
        let diff = TextDiff::configure()
            .algorithm(Algorithm::Myers)
            .timeout(PATIENCE)
            .diff_slices(&old_lines, &new_lines);
        for line in diff
            .ops()
            .iter()
            .flat_map(|op| changed_lines(&diff, op, deadline))
        {
            let place = match line.kind {
                LineKind::Context => None,
                LineKind::Removed => line.old.and_then(|number| old.get_mut(number - 1)),
                LineKind::Added => line.new.and_then(|number| new.get_mut(number - 1)),
            };
            if let Some(place) = place {
                place.parts = line.parts;
            }
        }
    }
}
