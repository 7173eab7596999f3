//! How a difference looks.

use ratatui_core::style::Style;
use ratatui_core::text::Span;

use super::{Detail, DiffLine, DiffView, Hunk, LineEnd, LineKind, Mark};
use crate::highlight::{LexState, highlight};
use crate::palette::Palette;
use crate::row::{Row, RowEnd};
use crate::sanitise::{Strength, label, sanitise};
use crate::width::cut;
use crate::wrap::{Breaks, Piece, lay};

/// Columns that must be left for text; where there are fewer, lines have no numbers.
const LEAST: u16 = 20;

impl DiffView {
    pub fn rows(&self, width: u16, palette: &Palette) -> Vec<Row> {
        match self.detail {
            Detail::Counts => {
                let text = format!("+{} −{} lines, too many to show", self.added, self.removed);
                vec![Row::plain(cut(&text, usize::from(width)), palette.dim)]
            }
            Detail::Lines => {
                let page = Page::new(self, width, palette);
                let mut rows = Vec::new();
                for hunk in &self.hunks {
                    page.hunk(hunk, &mut rows);
                }
                page.fold(self.after, &mut rows);
                rows
            }
        }
    }
}

pub(super) struct Page<'a> {
    pub(super) width: u16,
    /// Columns of the numbers; none where there is no room for them.
    gutter: u16,
    pub(super) palette: &'a Palette,
    returns: Returns,
}

/// Whether a `\r` at the end of a line says anything.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Returns {
    Shown,
    /// All lines have one.
    Usual,
}

impl<'a> Page<'a> {
    pub(super) fn new(view: &DiffView, width: u16, palette: &'a Palette) -> Self {
        let lines = view.hunks.iter().flat_map(|hunk| &hunk.lines);
        let largest = lines.filter_map(|line| line.old.max(line.new)).max();
        let largest = largest.unwrap_or_default();
        let digits = largest.checked_ilog10().map_or(1, |digits| digits + 1);
        let gutter = u16::try_from(digits + 1).unwrap_or(u16::MAX);
        Self {
            width,
            gutter: if width.saturating_sub(gutter) < LEAST {
                0
            } else {
                gutter
            },
            palette,
            returns: returns(view),
        }
    }

    pub(super) fn fold(&self, lines: usize, rows: &mut Vec<Row>) {
        let text = match lines {
            0 => return,
            1 => "⋯ 1 unchanged line".to_owned(),
            _ => format!("⋯ {lines} unchanged lines"),
        };
        self.note(&text, self.palette.hunk, rows);
    }

    pub(super) fn note(&self, text: &str, style: Style, rows: &mut Vec<Row>) {
        let text = format!("{}{text}", " ".repeat(usize::from(self.gutter)));
        let text = cut(&text, usize::from(self.width)).into_owned();
        rows.push(Row::decoration(vec![Span::styled(text, style)]));
    }

    /// What is said above a hunk.
    pub(super) fn head(&self, hunk: &Hunk, rows: &mut Vec<Row>) {
        self.fold(hunk.skipped, rows);
        if let Some(heading) = &hunk.heading {
            self.note(
                &label(heading, usize::from(self.width)),
                self.palette.hunk,
                rows,
            );
        }
    }

    fn hunk(&self, hunk: &Hunk, rows: &mut Vec<Row>) {
        self.head(hunk, rows);
        let (mut old, mut new) = (hunk.old_state, hunk.new_state);
        for line in &hunk.lines {
            let text = match line.kind {
                LineKind::Context => {
                    let text = self.text(hunk, line, &mut new);
                    old = new;
                    text
                }
                LineKind::Added => self.text(hunk, line, &mut new),
                LineKind::Removed => self.text(hunk, line, &mut old),
            };
            let number = match line.kind {
                LineKind::Context | LineKind::Added => line.new,
                LineKind::Removed => line.old,
            };
            self.line(line, number, text, rows);
            match line.end {
                LineEnd::Newline => {}
                LineEnd::Nothing => self.note("\\ no newline at the end", self.palette.dim, rows),
            }
        }
    }

    /// The text of a line in its colours, changed words marked.
    pub(super) fn text(&self, hunk: &Hunk, line: &DiffLine, state: &mut LexState) -> Vec<Piece> {
        let palette = self.palette;
        let (row, mark) = match line.kind {
            LineKind::Context => (Style::new(), Style::new()),
            LineKind::Added => (palette.added, palette.added_mark),
            LineKind::Removed => (palette.removed, palette.removed_mark),
        };
        // A difference is what a permission is given for: nothing in it is hidden.
        let parts: Vec<(Mark, String)> = line
            .parts
            .iter()
            .map(|(mark, text)| {
                let text = match self.returns {
                    Returns::Shown => text,
                    Returns::Usual => text.strip_suffix('\r').unwrap_or(text),
                };
                (*mark, sanitise(text, Strength::Name).into_owned())
            })
            .filter(|(_, text)| !text.is_empty())
            .collect();
        let text: String = parts.iter().map(|(_, text)| text.as_str()).collect();
        let spans = match hunk.language {
            Some(language) => highlight(&text, state, language, palette),
            None => vec![Span::styled(text, palette.text)],
        };
        let mut pieces = Vec::new();
        let mut parts = parts.iter().map(|(mark, text)| (*mark, text.len()));
        let mut part = parts.next();
        for span in spans {
            let mut left: &str = &span.content;
            while !left.is_empty() {
                let (kind, length) = match &mut part {
                    Some((kind, length)) => (*kind, length),
                    None => break,
                };
                let taken = left.len().min(*length);
                let (now, later) = left.split_at_checked(taken).unwrap_or((left, ""));
                let style = span.style.patch(row);
                pieces.push(Piece::new(
                    now,
                    match kind {
                        Mark::Same => style,
                        Mark::Changed => style.patch(mark),
                    },
                ));
                *length -= taken;
                if *length == 0 {
                    part = parts.next();
                }
                left = later;
            }
        }
        pieces
    }

    pub(super) fn line(
        &self,
        line: &DiffLine,
        number: Option<usize>,
        text: Vec<Piece>,
        rows: &mut Vec<Row>,
    ) {
        let palette = self.palette;
        let (mark, style, row_style) = match line.kind {
            LineKind::Context => (" ", palette.text, Style::new()),
            LineKind::Added => ("+", palette.success.patch(palette.added), palette.added),
            LineKind::Removed => ("-", palette.error.patch(palette.removed), palette.removed),
        };
        let mut pieces = vec![Piece::new(mark, style)];
        pieces.extend(text);
        let hanging = [Span::styled(" ", row_style)];
        let inner = self.width.saturating_sub(self.gutter);
        let mut number = number.map_or_else(String::new, |number| number.to_string());
        for mut row in lay(&pieces, inner, &hanging, Breaks::Anywhere) {
            let free = usize::from(inner).saturating_sub(row.width());
            // The colour goes on to the edge; rows that go on in the next are full anyway.
            if row_style.bg.is_some() && row.end == RowEnd::Hard && free > 0 {
                row.spans.push(Span::styled(" ".repeat(free), row_style));
            }
            if self.gutter > 0 {
                let digits = usize::from(self.gutter) - 1;
                let gutter = format!("{:>digits$} ", std::mem::take(&mut number));
                row = row.prefixed(Span::styled(gutter, palette.line_number));
            }
            rows.push(row);
        }
    }
}

fn returns(view: &DiffView) -> Returns {
    let mut lines = view.hunks.iter().flat_map(|hunk| &hunk.lines);
    let has_one = |line: &DiffLine| {
        line.parts
            .last()
            .is_some_and(|(_, text)| text.ends_with('\r'))
    };
    if lines.all(has_one) {
        Returns::Usual
    } else {
        Returns::Shown
    }
}
