//! A text as rows of a width: where they begin and end, and where a position is among them.

use caliban_text::{cluster_width, width};

use crate::atoms::Atoms;
use crate::text::{Class, clusters, is_chip, line_end, prev};

const TAB: usize = 4;

/// Characters of a cluster that are shown; marks beyond are left out.
const CLUSTER_CHARS: usize = 16;

/// A row: a range of the text, without a newline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) ends: Ends,
}

/// What ends a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ends {
    /// The end of its line: a caret may stand behind its last cluster.
    Line,
    /// The width: the place behind it is the first of the next row.
    Width,
}

/// A text to be laid out in a width.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wrapping<'a> {
    text: &'a str,
    atoms: &'a Atoms,
    /// Columns for text. One more is the caret's, so that it has room behind a full row.
    columns: usize,
}

impl<'a> Wrapping<'a> {
    pub(crate) fn new(text: &'a str, atoms: &'a Atoms, width: u16) -> Self {
        Self {
            text,
            atoms,
            columns: usize::from(width).saturating_sub(1).max(1),
        }
    }

    /// All rows; there is always one.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut start = 0;
        loop {
            let end = line_end(self.text, start);
            self.wrap_line(start, end, &mut rows);
            if end == self.text.len() {
                return rows;
            }
            start = end + 1;
        }
    }

    fn wrap_line(&self, line: usize, end: usize, rows: &mut Vec<Row>) {
        let mut start = line;
        let mut column = 0;
        let mut after_break = line;
        for (at, cluster) in clusters(&self.text[..end], line) {
            let breaks = match Class::of(cluster) {
                Class::Newline | Class::Blank | Class::Chip => true,
                // What is wide is written without blanks.
                Class::Word | Class::Sign => cluster_width(cluster) > 1,
            };
            // Twice at most: behind the last break, and where the rest is still too wide, here.
            while column + self.columns_of(cluster, column) > self.columns && at > start {
                let cut = if breaks || after_break <= start {
                    at
                } else {
                    after_break
                };
                rows.push(Row {
                    start,
                    end: cut,
                    ends: Ends::Width,
                });
                start = cut;
                column = self.column(start, at);
            }
            column += self.columns_of(cluster, column);
            if breaks {
                after_break = at + cluster.len();
            }
        }
        rows.push(Row {
            start,
            end,
            ends: Ends::Line,
        });
    }

    /// The column of a position in a row that begins at another.
    pub(crate) fn column(&self, start: usize, at: usize) -> usize {
        clusters(&self.text[..at], start).fold(0, |column, (_, cluster)| {
            column + self.columns_of(cluster, column)
        })
    }

    pub(crate) fn columns_of(&self, cluster: &str, column: usize) -> usize {
        let columns = match cluster.chars().next() {
            Some('\t') => TAB - column % TAB,
            Some(c) if is_chip(c) => width(self.atoms.label(c)),
            Some(c) if is_bidi_control(c) => 1,
            Some(_) | None => cluster_width(cluster),
        };
        columns.min(self.columns)
    }

    /// A cluster as it is shown at a column.
    pub(crate) fn show(&self, cluster: &str, column: usize, into: &mut String) {
        let columns = self.columns_of(cluster, column);
        match cluster.chars().next() {
            Some('\t') => into.extend(std::iter::repeat_n(' ', columns)),
            Some(c) if is_chip(c) => cut(self.atoms.label(c), columns, into),
            Some(c) if is_bidi_control(c) => into.push(char::REPLACEMENT_CHARACTER),
            Some(_) if cluster_width(cluster) > columns => into.push('·'),
            Some(_) | None => into.extend(cluster.chars().take(CLUSTER_CHARS)),
        }
    }

    /// The place in a row that is nearest to a column from the left.
    pub(crate) fn at_column(&self, row: Row, column: usize) -> usize {
        let mut seen = 0;
        for (at, cluster) in clusters(&self.text[..row.end], row.start) {
            seen += self.columns_of(cluster, seen);
            if seen > column {
                return at;
            }
        }
        match row.ends {
            Ends::Line => row.end,
            Ends::Width => prev(self.text, row.end).max(row.start),
        }
    }
}

/// The row of a position.
pub(crate) fn row_of(rows: &[Row], at: usize) -> usize {
    rows.partition_point(|row| row.start <= at)
        .saturating_sub(1)
}

/// Characters that would reorder what is shown around them.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{61c}')
}

/// As much of a label as fits, the end marked where it is cut.
fn cut(label: &str, columns: usize, into: &mut String) {
    if width(label) <= columns {
        into.push_str(label);
        return;
    }
    let mut used = 0;
    for (_, cluster) in clusters(label, 0) {
        used += cluster_width(cluster);
        if used >= columns {
            break;
        }
        into.push_str(cluster);
    }
    into.push('…');
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", 10, &[""])]
    #[case("one two three", 9, &["one two ", "three"])]
    #[case("abcdefgh", 5, &["abcd", "efgh"])]
    #[case("a\n\nb\n", 5, &["a", "", "b", ""])]
    #[case("ab cdefghij", 6, &["ab ", "cdefg", "hij"])]
    #[case("日本語", 5, &["日本", "語"])]
    #[case("日本", 1, &["日", "本"])]
    #[case("ab 日日日", 6, &["ab 日", "日日"])]
    #[case("a bcd日", 6, &["a bcd", "日"])]
    #[case("a b c d", 2, &["a", " ", "b", " ", "c", " ", "d"])]
    fn words_are_wrapped(#[case] text: &str, #[case] width: u16, #[case] expected: &[&str]) {
        let atoms = Atoms::default();
        let rows = Wrapping::new(text, &atoms, width).rows();
        let rows: Vec<&str> = rows.iter().map(|row| &text[row.start..row.end]).collect();
        assert_eq!(rows, expected);
    }
}
