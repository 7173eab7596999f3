//! Tables: columns where there is room for them, lists where there is not.

use pulldown_cmark::Alignment;
use ratatui_core::text::Span;

use crate::palette::Palette;
use crate::row::{LinkSpan, Row, columns};
use crate::width::width;
use crate::wrap::{Breaks, Piece, lay};

/// Columns between cells.
const BETWEEN: usize = 2;
/// Columns that a cell must have; where there are fewer a table becomes a list.
const LEAST: usize = 6;
/// Columns of a table that are set side by side.
const SIDE_BY_SIDE: usize = 32;

type Cell = Vec<Piece>;

#[derive(Debug)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    /// The first row is the header.
    rows: Vec<Vec<Cell>>,
    row: Vec<Cell>,
}

impl Table {
    pub(super) fn new(alignments: Vec<Alignment>) -> Self {
        Self {
            alignments,
            rows: Vec::new(),
            row: Vec::new(),
        }
    }

    pub(super) fn cell(&mut self, cell: Cell) {
        self.row.push(cell);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    pub(super) fn rows(&self, room: u16, palette: &Palette) -> Vec<Row> {
        match self.widths(usize::from(room)) {
            Some(widths) => self.side_by_side(&widths, palette),
            None => self.listed(room, palette),
        }
    }

    /// The width of each column, if there is room for all of them. Narrow ones have what they
    /// need, the others share what is left.
    fn widths(&self, room: usize) -> Option<Vec<usize>> {
        let count = self.alignments.len();
        let mut natural = vec![1; count];
        for row in &self.rows {
            for (wide, cell) in natural.iter_mut().zip(row) {
                *wide = cell_width(cell).max(*wide);
            }
        }
        let between = BETWEEN * count.saturating_sub(1);
        if natural.iter().sum::<usize>() + between <= room {
            return Some(natural);
        }
        if count == 0 || count > SIDE_BY_SIDE {
            return None;
        }
        let mut left = room.checked_sub(between)?;
        let mut order: Vec<usize> = (0..count).collect();
        order.sort_by_key(|column| natural[*column]);
        let mut widths = vec![0; count];
        for (done, column) in order.into_iter().enumerate() {
            let share = left / (count - done);
            let wide = natural[column].min(share);
            if wide < natural[column].min(LEAST) {
                return None;
            }
            widths[column] = wide;
            left -= wide;
        }
        Some(widths)
    }

    fn side_by_side(&self, widths: &[usize], palette: &Palette) -> Vec<Row> {
        let mut rows = Vec::new();
        for (number, cells) in self.rows.iter().enumerate() {
            let is_header = number == 0;
            let laid: Vec<Vec<Row>> = widths
                .iter()
                .enumerate()
                .map(|(column, wide)| {
                    let mut cell = cells.get(column).cloned().unwrap_or_default();
                    if is_header {
                        for piece in &mut cell {
                            piece.style = piece.style.patch(palette.strong);
                        }
                    }
                    lay(&cell, columns(*wide), &[], Breaks::Words)
                })
                .collect();
            let height = laid.iter().map(Vec::len).max().unwrap_or(0);
            rows.extend((0..height).map(|line| self.beside(&laid, line, widths, palette)));
            if is_header {
                let total = widths.iter().sum::<usize>() + BETWEEN * widths.len().saturating_sub(1);
                rows.push(Row::decoration(vec![Span::styled(
                    "─".repeat(total),
                    palette.rule,
                )]));
            }
        }
        rows
    }

    /// One row of cells next to each other.
    fn beside(&self, laid: &[Vec<Row>], line: usize, widths: &[usize], palette: &Palette) -> Row {
        let mut row = Row::default();
        let mut at = 0;
        for (column, (cell, wide)) in laid.iter().zip(widths).enumerate() {
            let Some(part) = cell.get(line) else {
                at += pad(&mut row, *wide + BETWEEN, palette);
                continue;
            };
            let free = wide.saturating_sub(part.width());
            let left = match self.alignments.get(column) {
                Some(Alignment::Right) => free,
                Some(Alignment::Center) => free / 2,
                Some(Alignment::Left | Alignment::None) | None => 0,
            };
            at += pad(&mut row, left, palette);
            let shift = |column: u16| columns(usize::from(column) + at);
            row.links.extend(part.links.iter().map(|link| LinkSpan {
                columns: shift(link.columns.start)..shift(link.columns.end),
                ..link.clone()
            }));
            row.spans.extend_from_slice(&part.spans);
            at += part.width();
            at += pad(&mut row, free - left + BETWEEN, palette);
        }
        // Nothing stands behind the last cell.
        while row
            .spans
            .last()
            .is_some_and(|span| span.content.trim_end_matches(' ').is_empty())
        {
            row.spans.pop();
        }
        row
    }

    /// Every row as lines of `header: value`.
    fn listed(&self, room: u16, palette: &Palette) -> Vec<Row> {
        let mut rows = Vec::new();
        let Some((header, body)) = self.rows.split_first() else {
            return rows;
        };
        for (number, cells) in body.iter().enumerate() {
            if number > 0 {
                rows.push(Row::default());
            }
            for (name, cell) in header.iter().zip(cells) {
                let mut pieces: Vec<Piece> = name.clone();
                for piece in &mut pieces {
                    piece.style = piece.style.patch(palette.strong);
                }
                pieces.push(Piece::new(": ", palette.strong));
                pieces.extend_from_slice(cell);
                rows.extend(lay(&pieces, room, &[Span::raw("  ")], Breaks::Words));
            }
        }
        if body.is_empty() {
            rows.extend(
                header
                    .iter()
                    .flat_map(|name| lay(name, room, &[], Breaks::Words)),
            );
        }
        rows
    }
}

fn cell_width(cell: &[Piece]) -> usize {
    cell.iter().map(|piece| width(&piece.text)).sum()
}

fn pad(row: &mut Row, blanks: usize, palette: &Palette) -> usize {
    if blanks > 0 {
        row.spans
            .push(Span::styled(" ".repeat(blanks), palette.text));
    }
    blanks
}
