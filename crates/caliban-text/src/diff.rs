//! What changed between two texts, and its rows.

use std::time::{Duration, Instant};

use similar::{Algorithm, ChangeTag, DiffOp, DiffTag, TextDiff};

use crate::highlight::{LexState, advance};
use crate::languages::Language;
use crate::palette::Palette;
use crate::row::Row;

mod patch;
mod rows;
mod split;
#[cfg(test)]
mod tests;

/// Changed lines that are shown; of more only their number is said.
const CHANGED: usize = 5_000;
/// Lines of both texts together that are compared when what they have in common at both ends is
/// taken away.
const COMPARED: usize = 40_000;
/// Lines of one side of a change within which single words are compared.
const REFINED: usize = 200;
/// Bytes of such a change.
const REFINED_BYTES: usize = 32 * 1_024;
/// Unchanged lines before a hunk that are read for what they leave open, such as comments.
const LEXED: usize = 10_000;
/// How long comparing may take; what is found then is right but longer than need be.
const PATIENCE: Duration = Duration::from_millis(200);

/// A difference, ready to be shown at any width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffView {
    pub hunks: Vec<Hunk>,
    /// Unchanged lines after the last hunk.
    pub after: usize,
    pub added: usize,
    pub removed: usize,
    pub detail: Detail,
    language: Option<Language>,
}

/// Whether a difference is shown or only counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    Lines,
    /// It is too large; there are no hunks.
    Counts,
}

/// Changed lines with those around them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hunk {
    /// Unchanged lines between this and what is before it.
    pub skipped: usize,
    /// What is said above it, such as the file or the function.
    pub heading: Option<String>,
    pub lines: Vec<DiffLine>,
    language: Option<Language>,
    old_state: LexState,
    new_state: LexState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffLine {
    pub kind: LineKind,
    /// Its number in the old text, from one.
    pub old: Option<usize>,
    /// Its number in the new text, from one.
    pub new: Option<usize>,
    /// As it is in the text, without the newline.
    pub parts: Vec<(Mark, String)>,
    pub end: LineEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind {
    Context,
    Added,
    Removed,
}

/// Whether a part of a changed line is what changed in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    Same,
    Changed,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEnd {
    Newline,
    /// It is the last of its text and has no newline.
    Nothing,
}

impl DiffLine {
    pub fn text(&self) -> String {
        self.parts.iter().map(|(_, text)| text.as_str()).collect()
    }
}

/// The rows of the difference between two texts, with so many unchanged lines around each change.
pub fn diff_rows(
    old: &str,
    new: &str,
    path: &str,
    width: u16,
    palette: &Palette,
    context: usize,
) -> Vec<Row> {
    DiffView::between(old, new, path, context).rows(width, palette)
}

/// The same rows from a difference that is already written as a patch.
pub fn unified_rows(unified: &str, path: &str, width: u16, palette: &Palette) -> Vec<Row> {
    DiffView::of_patch(unified, path).rows(width, palette)
}

/// How many lines were added and removed.
pub fn diff_counts(old: &str, new: &str) -> (usize, usize) {
    let (old, new) = (lines(old), lines(new));
    match compare(&old, &new) {
        Some(diff) => counts(diff.ops()),
        None => uncompared(&old, &new),
    }
}

fn lines(text: &str) -> Vec<&str> {
    text.split_inclusive('\n').collect()
}

/// Compares two texts unless that would take long.
fn compare<'a>(old: &[&'a str], new: &[&'a str]) -> Option<TextDiff<'a, 'a, str>> {
    let (removed, added) = uncompared(old, new);
    (removed + added <= COMPARED).then(|| {
        TextDiff::configure()
            .algorithm(Algorithm::Myers)
            .timeout(PATIENCE)
            .diff_slices(old, new)
    })
}

/// How many lines were added and removed if nothing but both ends is the same.
fn uncompared(old: &[&str], new: &[&str]) -> (usize, usize) {
    let head = old
        .iter()
        .zip(new)
        .take_while(|(old, new)| old == new)
        .count();
    let (old, new) = (&old[head..], &new[head..]);
    let tail = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take_while(|(old, new)| old == new)
        .count();
    (new.len() - tail, old.len() - tail)
}

fn counts(ops: &[DiffOp]) -> (usize, usize) {
    let mut counts = (0, 0);
    for op in ops {
        match op.tag() {
            DiffTag::Equal => {}
            DiffTag::Delete | DiffTag::Insert | DiffTag::Replace => {
                counts.0 += op.new_range().len();
                counts.1 += op.old_range().len();
            }
        }
    }
    counts
}

impl DiffView {
    /// Compares two texts.
    pub fn between(old: &str, new: &str, path: &str, context: usize) -> Self {
        let language = Language::of_path(path);
        let (old, new) = (lines(old), lines(new));
        let diff = compare(&old, &new);
        let (added, removed) = diff
            .as_ref()
            .map_or_else(|| uncompared(&old, &new), |diff| counts(diff.ops()));
        let mut view = Self {
            hunks: Vec::new(),
            after: 0,
            added,
            removed,
            detail: Detail::Lines,
            language,
        };
        match diff {
            Some(diff) if added + removed <= CHANGED => view.take(&diff, &old, &new, context),
            Some(_) | None => view.detail = Detail::Counts,
        }
        view
    }

    fn take(&mut self, diff: &TextDiff<'_, '_, str>, old: &[&str], new: &[&str], context: usize) {
        let deadline = Instant::now() + PATIENCE;
        let mut lexed = Lexed::new(self.language);
        let mut shown = 0;
        // Twice the context is counted somewhere in there.
        for group in diff.grouped_ops(context.min(old.len().max(new.len()))) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else {
                continue;
            };
            lexed.to(old, first.old_range().start, new, first.new_range().start);
            let mut hunk = Hunk {
                skipped: first.new_range().start - shown,
                heading: None,
                lines: Vec::new(),
                language: self.language,
                old_state: lexed.old.state,
                new_state: lexed.new.state,
            };
            shown = last.new_range().end;
            for op in &group {
                hunk.lines.extend(changed_lines(diff, op, deadline));
            }
            self.hunks.push(hunk);
        }
        self.after = new.len().saturating_sub(shown);
        if self.hunks.is_empty() {
            self.after = 0;
        }
    }
}

/// The lines of one operation, words marked where that is not too much.
fn changed_lines(diff: &TextDiff<'_, '_, str>, op: &DiffOp, deadline: Instant) -> Vec<DiffLine> {
    let sides = op.old_range().len().max(op.new_range().len());
    let bytes = || {
        diff.iter_changes(op)
            .map(|change| change.value().len())
            .sum::<usize>()
    };
    if sides <= REFINED && bytes() <= REFINED_BYTES {
        let line = |change: similar::InlineChange<'_, str>| {
            let parts = change.values().iter().map(|(marked, text)| {
                let mark = if *marked { Mark::Changed } else { Mark::Same };
                (mark, *text)
            });
            diff_line(change.tag(), change.old_index(), change.new_index(), parts)
        };
        diff.iter_inline_changes_deadline(op, Some(deadline))
            .map(line)
            .collect()
    } else {
        let line = |change: similar::Change<&str>| {
            let parts = std::iter::once((Mark::Same, change.value()));
            diff_line(change.tag(), change.old_index(), change.new_index(), parts)
        };
        diff.iter_changes(op).map(line).collect()
    }
}

fn diff_line<'a>(
    tag: ChangeTag,
    old: Option<usize>,
    new: Option<usize>,
    parts: impl Iterator<Item = (Mark, &'a str)>,
) -> DiffLine {
    let mut end = LineEnd::Nothing;
    let mut kept = Vec::new();
    for (mark, text) in parts {
        let bare = text.strip_suffix('\n').map_or(text, |bare| {
            end = LineEnd::Newline;
            bare
        });
        if !bare.is_empty() {
            kept.push((mark, bare.to_owned()));
        }
    }
    DiffLine {
        kind: match tag {
            ChangeTag::Equal => LineKind::Context,
            ChangeTag::Insert => LineKind::Added,
            ChangeTag::Delete => LineKind::Removed,
        },
        old: old.map(|index| index + 1),
        new: new.map(|index| index + 1),
        parts: kept,
        end,
    }
}

/// How far both texts were read for what their lines leave open.
struct Lexed {
    language: Option<Language>,
    old: Side,
    new: Side,
}

#[derive(Default)]
struct Side {
    state: LexState,
    at: usize,
}

impl Lexed {
    fn new(language: Option<Language>) -> Self {
        Self {
            language,
            old: Side::default(),
            new: Side::default(),
        }
    }

    fn to(&mut self, old: &[&str], old_at: usize, new: &[&str], new_at: usize) {
        if let Some(language) = self.language {
            self.old.to(old, old_at, language);
            self.new.to(new, new_at, language);
        }
    }
}

impl Side {
    fn to(&mut self, lines: &[&str], at: usize, language: Language) {
        // Further down nobody knows what is open, and nothing is assumed to be.
        if at > LEXED {
            self.state = LexState::default();
            return;
        }
        for line in lines.get(self.at..at).unwrap_or_default() {
            advance(line.trim_end_matches('\n'), &mut self.state, language);
        }
        self.at = at;
    }
}
