//! A row of the screen: styled text, and what a reader who copies it wants to have.

use std::ops::Range;
use std::sync::Arc;

use ratatui_core::style::Style;
use ratatui_core::text::Span;

use crate::width::{cluster_width, clusters, width};

/// One row, at most as wide as it was laid out for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Row {
    pub spans: Vec<Span<'static>>,
    pub end: RowEnd,
    pub links: Vec<LinkSpan>,
    /// Leading columns that are decoration and not text, such as the indent of a continued list
    /// item or the bar of a quote. A row that is nothing else leaves no line when it is copied.
    pub margin: u16,
    /// Blanks of the text that fell off where it was wrapped; they come back when it is copied.
    pub fallen: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RowEnd {
    #[default]
    Hard,
    /// The logical line goes on in the next row.
    Soft,
}

/// Columns that lead somewhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkSpan {
    pub columns: Range<u16>,
    /// An `http`, `https`, `mailto` or `file` address.
    pub target: Arc<str>,
    /// The same for all parts of one link.
    pub id: u32,
}

impl Row {
    pub fn plain(text: impl Into<String>, style: Style) -> Self {
        Self {
            spans: vec![Span::styled(text.into(), style)],
            ..Self::default()
        }
    }

    /// A row that is decoration alone.
    pub(crate) fn decoration(spans: Vec<Span<'static>>) -> Self {
        let margin = columns(spans.iter().map(|span| width(&span.content)).sum());
        Self {
            spans,
            margin,
            ..Self::default()
        }
    }

    pub fn width(&self) -> usize {
        self.spans.iter().map(|span| width(&span.content)).sum()
    }

    pub fn text(&self) -> String {
        self.spans.iter().map(|span| &*span.content).collect()
    }

    /// The row behind a decoration.
    #[must_use]
    pub fn prefixed(mut self, prefix: Span<'static>) -> Self {
        let shift = columns(width(&prefix.content));
        for link in &mut self.links {
            link.columns =
                link.columns.start.saturating_add(shift)..link.columns.end.saturating_add(shift);
        }
        self.margin = self.margin.saturating_add(shift);
        self.spans.insert(0, prefix);
        self
    }

    /// What stands in these columns, as it is copied. A wide character belongs to its first column.
    #[must_use]
    pub fn part(&self, range: Range<usize>) -> Self {
        let text = self.text();
        let mut column = 0;
        let mut part = String::new();
        for cluster in clusters(&text) {
            if range.contains(&column) {
                part.push_str(cluster);
            }
            column += cluster_width(cluster);
        }
        let is_whole = range.end >= column;
        let margin = usize::from(self.margin).saturating_sub(range.start);
        Self {
            spans: vec![Span::raw(part)],
            end: if is_whole { self.end } else { RowEnd::Hard },
            margin: columns(margin),
            fallen: self.fallen,
            links: Vec::new(),
        }
    }

    /// What is left when the margin is taken away.
    fn without_margin(&self) -> String {
        let text = self.text();
        let (mut skipped, mut at) = (0, 0);
        for cluster in clusters(&text) {
            if skipped >= usize::from(self.margin) {
                break;
            }
            skipped += cluster_width(cluster);
            at += cluster.len();
        }
        text[at..].to_owned()
    }
}

/// A number of columns; more than there can be is as many as there can be.
pub(crate) fn columns(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(u16::MAX)
}

/// The text of rows as logical lines: wrapped ones are whole again, margins and trailing blanks
/// are left out.
pub fn copied(rows: &[Row]) -> String {
    let mut lines = Vec::new();
    let mut line = String::new();
    for row in rows {
        let text = row.without_margin();
        if row.margin > 0 && text.is_empty() && line.is_empty() && row.end == RowEnd::Hard {
            continue;
        }
        line.push_str(&text);
        match row.end {
            RowEnd::Soft => line.extend(std::iter::repeat_n(' ', usize::from(row.fallen))),
            RowEnd::Hard => lines.push(std::mem::take(&mut line)),
        }
    }
    if !line.is_empty() {
        lines.push(line);
    }
    let trimmed: Vec<&str> = lines
        .iter()
        .map(|line| line.trim_end_matches(' '))
        .collect();
    trimmed.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_copied_without_what_is_beside_it() {
        let rows = [
            row("  one two ", RowEnd::Soft, 2),
            row("  界three", RowEnd::Hard, 2),
        ];
        assert_eq!(
            copied(&[rows[0].part(6..99), rows[1].part(0..6)]),
            "two 界th"
        );
        assert_eq!(copied(&[rows[0].part(0..5)]), "one");
        assert_eq!(copied(&[rows[1].part(3..5)]), "t");
    }

    fn row(text: &str, end: RowEnd, margin: u16) -> Row {
        Row {
            end,
            margin,
            ..Row::plain(text, Style::new())
        }
    }

    #[test]
    fn copying_gives_logical_lines_back() {
        let rows = [
            row("- one ", RowEnd::Soft, 0),
            row("  two", RowEnd::Hard, 2),
            row("────", RowEnd::Hard, 4),
            row("▎ ", RowEnd::Hard, 1),
            row("▎ three  ", RowEnd::Hard, 2),
            Row::default(),
            row("four", RowEnd::Hard, 0),
        ];
        assert_eq!(copied(&rows), "- one two\n\nthree\n\nfour");
    }

    #[test]
    fn a_prefix_moves_links_and_is_no_text() {
        let mut row = row("see here", RowEnd::Hard, 0);
        row.links.push(LinkSpan {
            columns: 4..8,
            target: "https://a".into(),
            id: 1,
        });
        let row = row.prefixed(Span::raw("日 "));
        assert_eq!(row.links[0].columns, 7..11);
        assert_eq!((row.margin, row.width()), (3, 11));
        assert_eq!(copied(&[row]), "see here");
    }
}
