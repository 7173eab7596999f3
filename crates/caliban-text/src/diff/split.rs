//! A difference side by side: what was on the left, what is on the right.

use ratatui_core::style::Style;
use ratatui_core::text::Span;

use super::rows::Page;
use super::{Detail, DiffLine, DiffView, Hunk, LineEnd, LineKind};
use crate::highlight::LexState;
use crate::palette::Palette;
use crate::row::{Row, RowEnd};

/// Columns between the two sides.
const GAP: u16 = 2;

/// One of the two texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Old,
    New,
}

impl DiffView {
    /// The rows of both texts beside each other, each in half of the width.
    pub fn split_rows(&self, width: u16, palette: &Palette) -> Vec<Row> {
        match self.detail {
            Detail::Counts => self.rows(width, palette),
            Detail::Lines => {
                let whole = Page::new(self, width, palette);
                let half = Page::new(self, width.saturating_sub(GAP) / 2, palette);
                let mut rows = Vec::new();
                for hunk in &self.hunks {
                    whole.head(hunk, &mut rows);
                    half.sides(hunk, &mut rows);
                }
                whole.fold(self.after, &mut rows);
                rows
            }
        }
    }
}

impl Page<'_> {
    /// The lines of a hunk in pairs: unchanged ones with themselves, and what was taken away with
    /// what came instead.
    fn sides(&self, hunk: &Hunk, rows: &mut Vec<Row>) {
        let (mut old, mut new) = (hunk.old_state, hunk.new_state);
        let mut left = hunk.lines.as_slice();
        while let Some(first) = left.first() {
            if first.kind == LineKind::Context {
                let one = self.side(hunk, first, Side::Old, &mut old);
                let other = self.side(hunk, first, Side::New, &mut new);
                self.beside(one, other, rows);
                left = &left[1..];
                continue;
            }
            let of = |kind: LineKind| move |line: &&DiffLine| line.kind == kind;
            let removed = left.iter().take_while(of(LineKind::Removed)).count();
            let (gone, rest) = left.split_at(removed);
            let added = rest.iter().take_while(of(LineKind::Added)).count();
            let (come, rest) = rest.split_at(added);
            for place in 0..removed.max(added) {
                let gone = gone.get(place);
                let come = come.get(place);
                let one = gone.map(|line| self.side(hunk, line, Side::Old, &mut old));
                let other = come.map(|line| self.side(hunk, line, Side::New, &mut new));
                self.beside(one.unwrap_or_default(), other.unwrap_or_default(), rows);
            }
            left = rest;
        }
    }

    /// The rows of a line on one side.
    fn side(&self, hunk: &Hunk, line: &DiffLine, side: Side, state: &mut LexState) -> Vec<Row> {
        let mut rows = Vec::new();
        let text = self.text(hunk, line, state);
        let number = match side {
            Side::Old => line.old,
            Side::New => line.new,
        };
        self.line(line, number, text, &mut rows);
        match line.end {
            LineEnd::Newline => {}
            LineEnd::Nothing => {
                self.note("\\ no newline at the end", self.palette.dim, &mut rows);
            }
        }
        rows
    }

    fn beside(&self, one: Vec<Row>, other: Vec<Row>, rows: &mut Vec<Row>) {
        let count = one.len().max(other.len());
        let (mut one, mut other) = (one.into_iter(), other.into_iter());
        for _ in 0..count {
            let mut row = one.next().unwrap_or_default();
            let taken = row.width();
            let free = usize::from(self.width + GAP).saturating_sub(taken);
            row.spans.push(Span::styled(" ".repeat(free), Style::new()));
            row.spans.extend(other.next().unwrap_or_default().spans);
            row.end = RowEnd::Hard;
            rows.push(row);
        }
    }
}
