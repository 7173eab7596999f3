//! What a program printed, as rows. A terminal of bounded size that knows lines and styles: no
//! sequence moves the cursor anywhere else than back to the beginning of its line.

use std::collections::VecDeque;

use ratatui_core::style::{Modifier, Style};
use ratatui_core::text::Span;
use unicode_width::UnicodeWidthChar;

use crate::ansi::sgr::styled;
use crate::escape::{Scanner, Step};
use crate::row::{Row, RowEnd};
use crate::sanitise::clusters::{Guard, Limits, Sink};
use crate::sanitise::kind::{Kind, kind};
use crate::wrap::{Breaks, LINE, Piece, lay};

mod sgr;

/// Rows that are kept; how many lines are not is said in one more.
const ROWS: usize = 200;
/// Columns of a line that are kept; the rest is counted. What is said of the rest must fit.
const COLUMNS: usize = LINE - 32;
/// Changes of style within a line that are kept; after that it keeps the last.
const RUNS: usize = 1_024;
/// Columns from one tab stop to the next.
const TAB: usize = 8;

/// Which rows stay when there are too many.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Beginning,
    End,
}

/// The last rows of what a program printed.
pub fn ansi(text: &str, width: u16, base: Style) -> Vec<Row> {
    ansi_keeping(text, width, base, Keep::End)
}

/// At most two hundred rows of what a program printed, and one that says how much more there was.
pub fn ansi_keeping(text: &str, width: u16, base: Style, keep: Keep) -> Vec<Row> {
    let mut terminal = Terminal::new(keep);
    let mut scanner = Scanner::default();
    for c in text.chars() {
        match scanner.step(c) {
            Step::Plain(c) => terminal.take(c),
            Step::Style => terminal.line.style = styled(terminal.line.style, scanner.parameters()),
            Step::Within => {}
        }
    }
    if !terminal.line.is_empty() {
        terminal.end_line();
    }
    terminal.rows(width, base)
}

/// All of a report or a conversation, in rows that break between words. Lines of two columns keep
/// the second one below itself.
pub fn ansi_words(text: &str, width: u16, base: Style) -> Vec<Row> {
    let mut terminal = Terminal::new(Keep::Beginning);
    let mut scanner = Scanner::default();
    let mut rows = Vec::new();
    for c in text.chars() {
        match scanner.step(c) {
            Step::Plain(c) => terminal.take(c),
            Step::Style => terminal.line.style = styled(terminal.line.style, scanner.parameters()),
            Step::Within => {}
        }
        // A line that is over becomes rows at once, so that none is lost.
        for line in terminal.lines.drain(..) {
            rows.extend(line.words(width, base));
        }
    }
    if !terminal.line.is_empty() {
        rows.extend(terminal.line.words(width, base));
    }
    rows
}

/// Where the rows that follow the first of a line begin: below the second column where there is
/// one, else as deep as the first.
fn hanging(line: &str, width: u16) -> usize {
    let begin = line.len() - line.trim_start_matches(' ').len();
    let rest = &line[begin..];
    let gap = rest.find("  ").map(|at| {
        let behind = rest[at..].len() - rest[at..].trim_start_matches(' ').len();
        begin + at + behind
    });
    let columns = |bytes: usize| crate::width::width(&line[..bytes]);
    let most = usize::from(width) / 2;
    gap.map(columns)
        .filter(|column| *column <= most)
        .unwrap_or_else(|| begin.min(most))
}

/// A line with its styles.
#[derive(Debug, Clone, Default)]
struct Line {
    text: String,
    /// Where each style ends.
    runs: Vec<(usize, Style)>,
    columns: usize,
    /// Characters that found no room.
    beyond: usize,
    /// The style of what comes next.
    style: Style,
}

impl Line {
    fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    fn clear(&mut self) {
        self.text.clear();
        self.runs.clear();
        self.columns = 0;
        self.beyond = 0;
    }

    /// A line to follow this one.
    fn next(&self) -> Self {
        Self {
            style: self.style,
            ..Self::default()
        }
    }

    fn erase(&mut self, guard: &mut Guard) {
        if self.beyond > 0 {
            self.beyond -= 1;
            return;
        }
        let gone = guard.erase(&mut self.text, 0);
        self.columns = self.columns.saturating_sub(gone);
        let length = self.text.len();
        while self.runs.last().is_some_and(|(end, _)| *end > length) {
            let before = self.runs.iter().rev().nth(1).map_or(0, |(end, _)| *end);
            if before >= length {
                self.runs.pop();
            } else if let Some((end, _)) = self.runs.last_mut() {
                *end = length;
            }
        }
    }

    fn words(&self, width: u16, base: Style) -> Vec<Row> {
        let below = Span::raw(" ".repeat(hanging(&self.text, width)));
        lay(&self.pieces(base), width, &[below], Breaks::Words)
    }

    fn pieces(&self, base: Style) -> Vec<Piece> {
        let mut start = 0;
        let mut pieces = Vec::with_capacity(self.runs.len() + 1);
        for (end, style) in &self.runs {
            pieces.push(Piece::new(&self.text[start..*end], base.patch(*style)));
            start = *end;
        }
        if self.beyond > 0 {
            pieces.push(Piece::new(format!("… +{}", self.beyond), dim(base)));
        }
        pieces
    }
}

impl Sink for Line {
    fn put(&mut self, c: char) {
        let wide = c.width().unwrap_or(0);
        if self.columns + wide > COLUMNS {
            self.beyond += 1;
            return;
        }
        self.columns += wide;
        self.text.push(c);
        let full = self.runs.len() >= RUNS;
        match self.runs.last_mut() {
            Some((end, style)) if *style == self.style || full => *end = self.text.len(),
            Some(_) | None => self.runs.push((self.text.len(), self.style)),
        }
    }
}

/// Whether what is written next begins the line anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carriage {
    Stays,
    Returned,
}

struct Terminal {
    keep: Keep,
    lines: VecDeque<Line>,
    line: Line,
    guard: Guard,
    carriage: Carriage,
    /// Lines that were not kept.
    lost: usize,
}

impl Terminal {
    fn new(keep: Keep) -> Self {
        Self {
            keep,
            lines: VecDeque::new(),
            line: Line::default(),
            guard: Guard::new(Limits::Usual),
            carriage: Carriage::Stays,
            lost: 0,
        }
    }

    fn take(&mut self, c: char) {
        match kind(c) {
            Kind::Break => self.end_line(),
            Kind::Control => match c {
                '\r' => self.carriage = Carriage::Returned,
                '\u{8}' if self.carriage == Carriage::Stays => self.line.erase(&mut self.guard),
                _ => {}
            },
            Kind::Tab => {
                self.return_if_asked();
                self.guard.reset();
                for _ in 0..TAB - self.line.columns % TAB {
                    self.line.put(' ');
                }
            }
            Kind::Override | Kind::Isolate | Kind::Closing | Kind::Invisible => {}
            Kind::Joiner | Kind::Selector | Kind::Tag | Kind::Mark | Kind::Tone | Kind::Visible => {
                self.return_if_asked();
                // What may not stand here is left out.
                let _ = self.guard.place(c, &mut self.line);
            }
        }
    }

    fn return_if_asked(&mut self) {
        if self.carriage == Carriage::Returned {
            self.carriage = Carriage::Stays;
            self.line.clear();
            self.guard.reset();
        }
    }

    fn end_line(&mut self) {
        let next = self.line.next();
        let line = std::mem::replace(&mut self.line, next);
        self.guard.reset();
        self.carriage = Carriage::Stays;
        match self.keep {
            Keep::Beginning if self.lines.len() >= ROWS => self.lost += 1,
            Keep::End if self.lines.len() >= ROWS => {
                self.lines.pop_front();
                self.lines.push_back(line);
                self.lost += 1;
            }
            Keep::Beginning | Keep::End => self.lines.push_back(line),
        }
    }

    fn rows(mut self, width: u16, base: Style) -> Vec<Row> {
        let mut rows: VecDeque<Row> = VecDeque::new();
        match self.keep {
            Keep::Beginning => {
                for line in &self.lines {
                    if rows.len() >= ROWS {
                        self.lost += 1;
                    } else {
                        rows.extend(lay(&line.pieces(base), width, &[], Breaks::Anywhere));
                    }
                }
                self.lost += usize::from(rows.len() > ROWS);
                rows.truncate(ROWS);
            }
            Keep::End => {
                for line in self.lines.iter().rev() {
                    if rows.len() >= ROWS {
                        self.lost += 1;
                    } else {
                        let laid = lay(&line.pieces(base), width, &[], Breaks::Anywhere);
                        for row in laid.into_iter().rev() {
                            rows.push_front(row);
                        }
                    }
                }
                self.lost += usize::from(rows.len() > ROWS);
                rows.drain(..rows.len().saturating_sub(ROWS));
            }
        }
        if self.lost > 0 {
            let lines = if self.lost == 1 { "line" } else { "lines" };
            let note = Row::plain(format!("… +{} {lines}", self.lost), dim(base));
            match self.keep {
                Keep::Beginning => {
                    if let Some(last) = rows.back_mut() {
                        last.end = RowEnd::Hard;
                    }
                    rows.push_back(note);
                }
                Keep::End => rows.push_front(note),
            }
        }
        rows.into()
    }
}

fn dim(base: Style) -> Style {
    base.add_modifier(Modifier::DIM)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;
    use ratatui_core::style::Color;
    use rstest::rstest;

    use super::*;
    use crate::copied;

    fn texts(rows: &[Row]) -> Vec<String> {
        rows.iter().map(Row::text).collect()
    }

    #[rstest]
    #[case("", &[])]
    #[case("a\nb\n", &["a", "b"])]
    #[case("a\n\nb", &["a", "", "b"])]
    #[case("10%\r20%\r\ndone", &["20%", "done"])]
    #[case("ab\x08c", &["ac"])]
    #[case("a\tb", &["a       b"])]
    #[case("\x1b]0;t\x07\x1b[2Jx\x1b[5;5Hy", &["xy"])]
    #[case("a\u{202e}b\u{200b}c\x00d", &["abcd"])]
    #[case("abcdefgh\x08\x08\x08", &["abcde"])]
    fn output_is_lines(#[case] text: &str, #[case] rows: &[&str]) {
        assert_eq!(texts(&ansi(text, 40, Style::new())), rows);
    }

    #[test]
    fn styles_stay_and_the_rest_goes() {
        let base = Style::new().fg(Color::Blue);
        let rows = ansi("a\x1b[31mb\x1b[0mc\n\x1b[1md\ne", 40, base);
        let red = Style::new().fg(Color::Red);
        let styles: Vec<Style> = rows[0].spans.iter().map(|span| span.style).collect();
        assert_eq!(styles, [base, red, base]);
        let bold = base.add_modifier(Modifier::BOLD);
        assert_eq!(
            (rows[1].spans[0].style, rows[2].spans[0].style),
            (bold, bold)
        );
    }

    #[test]
    fn erasing_keeps_styles_in_step() {
        let rows = ansi("\x1b[31mab\x1b[32mc\x08\x08\x1b[33md", 40, Style::new());
        let shown: Vec<_> = rows[0]
            .spans
            .iter()
            .map(|span| (&*span.content, span.style.fg))
            .collect();
        assert_eq!(shown, [("a", Some(Color::Red)), ("d", Some(Color::Yellow))]);
    }

    #[test]
    fn rows_are_bounded_at_either_end() {
        let lines: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
        let text = lines.join("\n");
        let end = ansi(&text, 40, Style::new());
        assert_eq!(
            (end.len(), end[0].text(), end[200].text()),
            (201, "… +800 lines".into(), "999".into())
        );
        let beginning = ansi_keeping(&text, 40, Style::new(), Keep::Beginning);
        assert_eq!(
            (beginning[0].text(), beginning[200].text()),
            ("0".into(), "… +800 lines".into())
        );
        // One line that is many rows.
        for keep in [Keep::Beginning, Keep::End] {
            let rows = ansi_keeping(&"x".repeat(4_000), 10, Style::new(), keep);
            assert_eq!(rows.len(), 201);
        }
    }

    #[test]
    fn words_stay_whole_and_no_row_is_lost() {
        let text = "  name  what it says of itself\nplain words go on\n\nxxxxxxxxxxxxxxxxxxxxxxxxx";
        let rows = ansi_words(text, 20, Style::new());
        let shown: Vec<String> = rows.iter().map(Row::text).collect();
        assert_eq!(
            shown,
            [
                "  name  what it says",
                "        of itself",
                "plain words go on",
                "",
                "xxxxxxxxxxxxxxxxxxxx",
                "xxxxx"
            ]
        );
        let long = "word ".repeat(100);
        let many = [long.trim_end()].repeat(1_000).join("\n");
        let rows = ansi_words(&many, 20, Style::new());
        assert_eq!(rows.len(), 25_000);
    }

    #[test]
    fn columns_are_bounded() {
        let rows = ansi(&"x".repeat(1_000_000), 300, Style::new());
        assert!(copied(&rows).ends_with("x… +995936"), "{:?}", rows.last());
    }

    #[rstest]
    #[case("\r")]
    #[case("x\r")]
    #[case("ab\x08")]
    #[case("\x1b[31mx\x1b[32my\x08\x08")]
    #[case("\x1b[31mx")]
    #[case("\n")]
    #[case("\u{301}")]
    fn time_is_linear(#[case] unit: &str) {
        let long_line = "y".repeat(4_000);
        let bytes = if unit == "\r" { 4_000_000 } else { 400_000 };
        let text = long_line + &unit.repeat(bytes / unit.len());
        let began = Instant::now();
        let rows = ansi(&text, 80, Style::new());
        assert!(rows.len() <= ROWS + 1);
        assert!(began.elapsed() < Duration::from_secs(20));
    }

    proptest! {
        #[test]
        fn rows_hold_nothing_that_a_terminal_obeys(text in crate::sanitise::tests::hostile(), width in 0_u16..50) {
            for row in ansi(&text, width, Style::new()) {
                prop_assert!(!row.text().chars().any(char::is_control));
            }
        }
    }
}
