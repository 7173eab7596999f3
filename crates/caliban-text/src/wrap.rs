//! Styled text broken into rows.

use std::ops::Range;
use std::sync::Arc;

use ratatui_core::style::Style;
use ratatui_core::text::Span;

use crate::row::{LinkSpan, Row, RowEnd, columns};
use crate::width::{cluster_width, clusters, width};

/// Columns of one logical line that are laid out; of the rest its length is said.
pub(crate) const LINE: usize = 4_096;
/// Columns from one tab stop to the next.
const TAB: usize = 4;
/// What must be left beside decoration; where less is left there is none.
const LEAST: usize = 4;

/// Where a line may be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Breaks {
    /// Between words; a word that is too long anywhere.
    Words,
    /// Anywhere: code keeps its columns.
    Anywhere,
}

/// A stretch of text with one look.
#[derive(Debug, Clone)]
pub(crate) struct Piece {
    pub(crate) text: String,
    pub(crate) style: Style,
    pub(crate) link: Option<Link>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) target: Arc<str>,
    pub(crate) id: u32,
}

impl Piece {
    pub(crate) fn new(text: impl Into<String>, style: Style) -> Self {
        Self {
            text: text.into(),
            style,
            link: None,
        }
    }
}

impl From<Span<'static>> for Piece {
    fn from(span: Span<'static>) -> Self {
        Self::new(span.content, span.style)
    }
}

/// Breaks a text at blanks, after hyphens and between the characters of scripts that have no
/// blanks; words longer than a row are cut. `hanging` stands before every row but the first of a
/// line. Rows together are the text again, but for the blanks that fell off between them.
pub fn wrap(spans: Vec<Span<'static>>, width: u16, hanging: &[Span<'static>]) -> Vec<Row> {
    let pieces: Vec<Piece> = spans.into_iter().map(Piece::from).collect();
    lay(&pieces, width, hanging, Breaks::Words)
}

/// Breaks a text into rows.
pub(crate) fn lay(
    pieces: &[Piece],
    width: u16,
    hanging: &[Span<'static>],
    breaks: Breaks,
) -> Vec<Row> {
    let mut layout = Layout::new(pieces, width, hanging, breaks);
    for (number, piece) in pieces.iter().enumerate() {
        layout.take(number, piece);
    }
    layout.end_line();
    layout.rows
}

/// One cluster of the text.
#[derive(Debug, Clone, Copy)]
struct Unit {
    piece: usize,
    start: usize,
    end: usize,
    wide: usize,
    sort: Sort,
    /// The first character, by which breaks are judged.
    first: char,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Text,
    /// A space; also one of those that a tab became.
    Blank,
}

struct Layout<'a> {
    pieces: &'a [Piece],
    hanging: &'a [Span<'static>],
    indent: usize,
    width: usize,
    breaks: Breaks,
    units: Vec<Unit>,
    /// Columns of the line so far.
    column: usize,
    /// Clusters of the line beyond what is laid out.
    beyond: usize,
    rows: Vec<Row>,
}

impl<'a> Layout<'a> {
    fn new(
        pieces: &'a [Piece],
        columns: u16,
        hanging: &'a [Span<'static>],
        breaks: Breaks,
    ) -> Self {
        let columns = usize::from(columns).max(1);
        let indent: usize = hanging.iter().map(|span| width(&span.content)).sum();
        let fits = indent + LEAST <= columns;
        Self {
            pieces,
            hanging: if fits { hanging } else { &[] },
            indent: if fits { indent } else { 0 },
            width: columns,
            breaks,
            units: Vec::new(),
            column: 0,
            beyond: 0,
            rows: Vec::new(),
        }
    }

    fn take(&mut self, number: usize, piece: &Piece) {
        let mut at = 0;
        for cluster in clusters(&piece.text) {
            let start = at;
            at += cluster.len();
            match cluster {
                "\n" | "\r\n" => self.end_line(),
                _ if self.column >= LINE => self.beyond += 1,
                "\t" => {
                    for _ in 0..TAB - self.column % TAB {
                        self.push(number, start..start, 1, Sort::Blank, ' ');
                    }
                }
                _ => {
                    let first = cluster.chars().next().unwrap_or(' ');
                    let sort = match cluster {
                        " " => Sort::Blank,
                        _ => Sort::Text,
                    };
                    self.push(number, start..at, cluster_width(cluster), sort, first);
                }
            }
        }
    }

    fn push(&mut self, piece: usize, range: Range<usize>, wide: usize, sort: Sort, first: char) {
        self.column += wide;
        self.units.push(Unit {
            piece,
            start: range.start,
            end: range.end,
            wide,
            sort,
            first,
        });
    }

    fn end_line(&mut self) {
        let units = std::mem::take(&mut self.units);
        self.break_line(&units);
        match std::mem::take(&mut self.beyond) {
            0 => {}
            beyond => self.say_beyond(beyond),
        }
        self.column = 0;
    }

    /// Says how much of a line is not shown, on the last row where it fits.
    fn say_beyond(&mut self, beyond: usize) {
        let style = self
            .pieces
            .last()
            .map_or_else(Style::new, |piece| piece.style);
        let note = crate::width::cut(&format!("… +{beyond}"), self.width).into_owned();
        if let Some(last) = self.rows.last_mut() {
            if last.width() + width(&note) <= self.width {
                last.spans.push(Span::styled(note, style));
                return;
            }
            last.end = RowEnd::Soft;
        }
        self.rows.push(Row::plain(note, style));
    }

    fn break_line(&mut self, units: &[Unit]) {
        let (mut start, mut at, mut column) = (0, 0, 0);
        let mut chance: Option<usize> = None;
        let mut room = self.width;
        let first = self.rows.len();
        while let Some(unit) = units.get(at) {
            if at > start && self.may_break(units, at) {
                chance = Some(at);
            }
            if column + unit.wide <= room || at == start {
                column += unit.wide;
                at += 1;
                continue;
            }
            let (end, next) = match (unit.sort, self.breaks) {
                (Sort::Blank, Breaks::Words) => (at, after_blanks(units, at)),
                (Sort::Text, Breaks::Words) => {
                    let end = chance.unwrap_or(at);
                    (end, end)
                }
                (Sort::Text | Sort::Blank, Breaks::Anywhere) => (at, at),
            };
            let last = next == units.len();
            let how = if last { RowEnd::Hard } else { RowEnd::Soft };
            self.emit(
                units,
                start..end,
                how,
                Place::of(self.rows.len() - first),
                next - end,
            );
            if last {
                return;
            }
            (start, at, column, chance) = (next, next, 0, None);
            room = self.width - self.indent;
        }
        let place = Place::of(self.rows.len() - first);
        self.emit(units, start..units.len(), RowEnd::Hard, place, 0);
    }

    fn may_break(&self, units: &[Unit], at: usize) -> bool {
        match self.breaks {
            Breaks::Anywhere => true,
            Breaks::Words => {
                let before = at
                    .checked_sub(2)
                    .and_then(|at| units.get(at))
                    .map(|unit| unit.first);
                let prior = units[at - 1].first;
                between(before, prior, units[at].first)
            }
        }
    }

    fn emit(
        &mut self,
        units: &[Unit],
        range: Range<usize>,
        end: RowEnd,
        place: Place,
        fallen: usize,
    ) {
        let mut row = Row {
            end,
            fallen: match end {
                RowEnd::Soft => columns(fallen),
                RowEnd::Hard => 0,
            },
            ..Row::default()
        };
        let mut column = 0;
        match place {
            Place::First => {}
            Place::Later => {
                row.spans.extend_from_slice(self.hanging);
                row.margin = columns(self.indent);
                column = self.indent;
            }
        }
        for run in units[range].chunk_by(|a, b| a.piece == b.piece) {
            let piece = &self.pieces[run[0].piece];
            let mut text = String::new();
            let mut wide = 0;
            for unit in run {
                match unit.sort {
                    Sort::Blank => text.push(' '),
                    Sort::Text => text.push_str(&piece.text[unit.start..unit.end]),
                }
                wide += unit.wide;
            }
            if let Some(link) = &piece.link {
                row.links.push(LinkSpan {
                    columns: columns(column)..columns(column + wide),
                    target: Arc::clone(&link.target),
                    id: link.id,
                });
            }
            column += wide;
            row.spans.push(Span::styled(text, piece.style));
        }
        self.rows.push(row);
    }
}

/// Which row of a logical line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Later,
}

impl Place {
    fn of(number: usize) -> Self {
        match number {
            0 => Self::First,
            1.. => Self::Later,
        }
    }
}

fn after_blanks(units: &[Unit], from: usize) -> usize {
    let rest = units.get(from..).unwrap_or_default();
    from + rest
        .iter()
        .take_while(|unit| unit.sort == Sort::Blank)
        .count()
}

/// Whether a line may be broken between two characters, the second of which begins the next row.
fn between(before: Option<char>, prior: char, next: char) -> bool {
    if next == ' ' {
        return false;
    }
    match prior {
        ' '
        | '\u{1680}'
        | '\u{2000}'..='\u{2006}'
        | '\u{2008}'..='\u{200a}'
        | '\u{205f}'
        | '\u{3000}' => true,
        '-' | '\u{2010}' => before.is_some_and(char::is_alphanumeric) && next.is_alphabetic(),
        '–' | '—' => next.is_alphanumeric(),
        _ => (stands_alone(prior) || stands_alone(next)) && !is_opening(prior) && !is_closing(next),
    }
}

/// Whether a character is of a script that is written without blanks.
fn stands_alone(c: char) -> bool {
    matches!(c,
        '\u{2e80}'..='\u{2fff}' | '\u{3001}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff01}'..='\u{ff60}'
        | '\u{20000}'..='\u{3ffff}')
}

/// Whether no row may end with a character.
fn is_opening(c: char) -> bool {
    matches!(
        c,
        '(' | '['
            | '{'
            | '"'
            | '\''
            | '「'
            | '『'
            | '（'
            | '【'
            | '〈'
            | '《'
            | '〔'
            | '［'
            | '｛'
            | '“'
            | '‘'
    )
}

/// Whether no row may begin with a character.
fn is_closing(c: char) -> bool {
    matches!(
        c,
        ')' | ']'
            | '}'
            | ','
            | '.'
            | ':'
            | ';'
            | '!'
            | '?'
            | '"'
            | '\''
            | '、'
            | '。'
            | '，'
            | '．'
            | '！'
            | '？'
            | '）'
            | '」'
            | '』'
            | '】'
            | '〉'
            | '》'
            | '〕'
            | '］'
            | '｝'
            | '：'
            | '；'
            | '・'
            | 'ー'
            | '々'
            | '”'
            | '’'
            | '…'
            | 'ぁ'
            | 'ぃ'
            | 'ぅ'
            | 'ぇ'
            | 'ぉ'
            | 'っ'
            | 'ゃ'
            | 'ゅ'
            | 'ょ'
            | 'ァ'
            | 'ィ'
            | 'ゥ'
            | 'ェ'
            | 'ォ'
            | 'ッ'
            | 'ャ'
            | 'ュ'
            | 'ョ'
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::copied;

    fn texts(rows: &[Row]) -> Vec<String> {
        rows.iter().map(Row::text).collect()
    }

    fn raw(text: &str) -> Vec<Span<'static>> {
        vec![Span::raw(text.to_owned())]
    }

    #[rstest]
    #[case("one two three", 8, &["one two ", "three"])]
    #[case("one two three", 7, &["one two", "three"])]
    #[case("one  two", 4, &["one ", "two"])]
    #[case("abcdefgh", 3, &["abc", "def", "gh"])]
    #[case("a abcdefgh", 3, &["a ", "abc", "def", "gh"])]
    #[case("well-known", 6, &["well-", "known"])]
    #[case("use --force now", 7, &["use ", "--force", "now"])]
    #[case("日本語、です", 6, &["日本", "語、で", "す"])]
    #[case("", 5, &[""])]
    #[case("a\n\nb", 5, &["a", "", "b"])]
    #[case("a\tb", 9, &["a   b"])]
    #[case("word   ", 4, &["word"])]
    #[case("日本", 1, &["日", "本"])]
    fn lines_are_broken(#[case] text: &str, #[case] width: u16, #[case] rows: &[&str]) {
        assert_eq!(texts(&wrap(raw(text), width, &[])), rows);
    }

    #[test]
    fn hanging_stands_before_later_rows_and_is_margin() {
        let rows = wrap(raw("- one two three\nfour"), 9, &[Span::raw("  ")]);
        assert_eq!(texts(&rows), ["- one two", "  three", "four"]);
        assert_eq!(
            rows.iter().map(|row| row.margin).collect::<Vec<_>>(),
            [0, 2, 0]
        );
        assert_eq!(copied(&rows), "- one two three\nfour");
    }

    #[test]
    fn hanging_yields_where_there_is_no_room() {
        let rows = wrap(raw("abcdefgh"), 5, &[Span::raw("    ")]);
        assert_eq!(texts(&rows), ["abcde", "fgh"]);
    }

    #[test]
    fn styles_and_links_keep_their_place() {
        let link = Link {
            target: "https://x".into(),
            id: 7,
        };
        let red = Style::new().fg(ratatui_core::style::Color::Red);
        let pieces = [
            Piece::new("see ", Style::new()),
            Piece {
                link: Some(link),
                ..Piece::new("the long page", red)
            },
        ];
        let rows = lay(&pieces, 8, &[], Breaks::Words);
        assert_eq!(texts(&rows), ["see the ", "long ", "page"]);
        assert_eq!(rows[0].links[0].columns, 4..8);
        assert!(
            rows.iter()
                .all(|row| row.links.iter().all(|link| link.id == 7))
        );
        assert_eq!(rows[1].spans[0].style, red);
    }

    #[test]
    fn endless_lines_are_laid_out_so_far_and_no_further() {
        let rows = wrap(raw(&"x".repeat(1_000_000)), 100, &[]);
        assert_eq!(rows.len(), 42);
        assert!(rows[41].text().ends_with("… +995904"));
    }

    proptest! {
        #[test]
        fn rows_are_the_text_and_fit(
            parts in prop::collection::vec("[a-c \\-日、é👍\u{301}\n]{0,20}", 0..6),
            width in 0_u16..300,
            hang in 0_usize..6,
        ) {
            let text = parts.concat();
            let hanging = [Span::raw(" ".repeat(hang))];
            let spans = parts.into_iter().map(Span::raw).collect();
            let rows = wrap(spans, width, &hanging);
            for row in &rows {
                let text = row.text();
                let lone = clusters(&text[usize::from(row.margin)..]).filter(|c| cluster_width(c) > 0).count() <= 1;
                prop_assert!(row.width() <= usize::from(width.max(1)) || lone, "{row:?}");
            }
            let lines: Vec<&str> = text.split('\n').map(|line| line.trim_end_matches(' ')).collect();
            prop_assert_eq!(copied(&rows), lines.join("\n"));
        }

        #[test]
        fn nothing_breaks_it(text in any::<String>(), width in 0_u16..300) {
            let _ = wrap(raw(&text), width, &[Span::raw("▎ ")]);
        }
    }
}
