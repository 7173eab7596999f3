//! What is drawn: rows of spans, and where the caret stands.

use std::ops::Range;

use crate::text::{clusters, is_chip};
use crate::wrap::{Wrapping, row_of};

/// A text as it is drawn in a width.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    pub rows: Vec<EditorRow>,
    /// Column and row.
    pub caret: (u16, u16),
}

/// A row, no wider than was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EditorRow {
    pub spans: Vec<(String, Look)>,
}

impl EditorRow {
    /// What it says, without looks.
    pub fn text(&self) -> String {
        self.spans.iter().map(|(text, _)| text.as_str()).collect()
    }
}

/// How a span is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Look {
    Text,
    Chip,
    Selection,
    SearchMatch,
}

/// What is drawn unlike the rest.
#[derive(Debug, Default)]
pub(crate) struct Marked {
    pub(crate) selection: Range<usize>,
    /// In order, and apart from each other.
    pub(crate) matches: Vec<Range<usize>>,
}

pub(crate) fn lay_out(
    wrapping: Wrapping<'_>,
    text: &str,
    caret: usize,
    width: u16,
    marked: &Marked,
) -> Layout {
    let rows = wrapping.rows();
    let row = row_of(&rows, caret);
    let column = rows
        .get(row)
        .map_or(0, |row| wrapping.column(row.start, caret));
    let mut matches = marked.matches.iter().peekable();
    let mut look = |at: usize, cluster: &str| {
        while matches.next_if(|found| found.end <= at).is_some() {}
        if marked.selection.contains(&at) {
            Look::Selection
        } else if matches.peek().is_some_and(|found| found.contains(&at)) {
            Look::SearchMatch
        } else if cluster.starts_with(is_chip) {
            Look::Chip
        } else {
            Look::Text
        }
    };
    let drawn = rows.iter().map(|row| {
        let mut spans: Vec<(String, Look)> = Vec::new();
        let mut column = 0;
        for (at, cluster) in clusters(&text[..row.end], row.start) {
            let look = look(at, cluster);
            if spans.last().is_none_or(|(_, last)| *last != look) {
                spans.push((String::new(), look));
            }
            if let Some((span, _)) = spans.last_mut() {
                wrapping.show(cluster, column, span);
            }
            column += wrapping.columns_of(cluster, column);
        }
        EditorRow { spans }
    });
    let rows = drawn.collect();
    let cell = |number: usize| u16::try_from(number).unwrap_or(u16::MAX);
    Layout {
        rows,
        caret: (cell(column).min(width.saturating_sub(1)), cell(row)),
    }
}
