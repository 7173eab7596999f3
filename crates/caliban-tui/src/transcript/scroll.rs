//! Where one looks in the conversation. A place is a cell and a row in it, so that it survives
//! growth, folding and other widths; only what is on the screen is ever laid out.

use std::sync::Arc;

use caliban_text::Row;

use crate::transcript::cell::{Cell, Lay};

/// What is at the top of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Anchor {
    /// The end is at the bottom, and stays there.
    #[default]
    Follow,
    At {
        cell: usize,
        row: usize,
    },
}

/// A place in the conversation.
#[derive(Debug, Default)]
pub(crate) struct Scroll {
    pub(crate) anchor: Anchor,
}

/// A row on the screen, and of which cell it is.
#[derive(Debug, Clone)]
pub(crate) struct Shown {
    pub(crate) cell: usize,
    pub(crate) row: usize,
    rows: Arc<[Row]>,
}

impl Shown {
    pub(crate) fn row(&self) -> &Row {
        &self.rows[self.row]
    }
}

impl Scroll {
    /// The rows on a screen of this height, from the top.
    pub(crate) fn shown(&self, cells: &[Cell], height: usize, lay: &Lay<'_>) -> Vec<Shown> {
        let (cell, row) = match self.anchor {
            Anchor::Follow => from_end(cells, height, lay),
            Anchor::At { cell, row } => (cell, row),
        };
        forward(cells, cell, row, height, lay)
    }

    pub(crate) fn up(&mut self, by: usize, cells: &[Cell], height: usize, lay: &Lay<'_>) {
        let (mut cell, mut row) = match self.anchor {
            Anchor::Follow => from_end(cells, height, lay),
            Anchor::At { cell, row } => (cell, row),
        };
        let mut left = by;
        while left > row && cell > 0 {
            left -= row;
            cell -= 1;
            row = cells.get(cell).map_or(0, |cell| cell.rows(lay).len());
        }
        row = row.saturating_sub(left);
        if (cell, row) != from_end(cells, height, lay) {
            self.anchor = Anchor::At { cell, row };
        }
    }

    pub(crate) fn down(&mut self, by: usize, cells: &[Cell], height: usize, lay: &Lay<'_>) {
        let Anchor::At { mut cell, mut row } = self.anchor else {
            return;
        };
        let mut left = by;
        while let Some(rows) = cells.get(cell).map(|cell| cell.rows(lay).len()) {
            if row + left < rows {
                break;
            }
            left -= rows.saturating_sub(row).min(left);
            cell += 1;
            row = 0;
        }
        row += left;
        self.anchor = if (cell, row) >= from_end(cells, height, lay) {
            Anchor::Follow
        } else {
            Anchor::At { cell, row }
        };
    }

    pub(crate) fn go_to_top(&mut self) {
        self.anchor = Anchor::At { cell: 0, row: 0 };
    }

    pub(crate) fn go_to_end(&mut self) {
        self.anchor = Anchor::Follow;
    }

    /// Brings a cell to the top of the screen, as far as there is enough below it.
    pub(crate) fn go_to_cell(&mut self, cell: usize, cells: &[Cell], height: usize, lay: &Lay<'_>) {
        self.go_to(cell, 0, cells, height, lay);
    }

    /// The same for a row of it.
    pub(crate) fn go_to(
        &mut self,
        cell: usize,
        row: usize,
        cells: &[Cell],
        height: usize,
        lay: &Lay<'_>,
    ) {
        self.anchor = if (cell, row) >= from_end(cells, height, lay) {
            Anchor::Follow
        } else {
            Anchor::At { cell, row }
        };
    }

    /// The cell at the top of the screen.
    pub(crate) fn top_cell(&self, cells: &[Cell], height: usize, lay: &Lay<'_>) -> usize {
        match self.anchor {
            Anchor::Follow => from_end(cells, height, lay).0,
            Anchor::At { cell, .. } => cell,
        }
    }
}

/// The place from which the last rows fill the screen.
fn from_end(cells: &[Cell], height: usize, lay: &Lay<'_>) -> (usize, usize) {
    let mut left = height;
    for (place, cell) in cells.iter().enumerate().rev() {
        let rows = cell.rows(lay).len();
        if rows >= left {
            return (place, rows - left);
        }
        left -= rows;
    }
    (0, 0)
}

fn forward(cells: &[Cell], cell: usize, row: usize, height: usize, lay: &Lay<'_>) -> Vec<Shown> {
    let mut shown = Vec::with_capacity(height);
    let mut first = row;
    for (place, cell) in cells.iter().enumerate().skip(cell) {
        let rows = cell.rows(lay);
        for row in first..rows.len() {
            if shown.len() == height {
                return shown;
            }
            shown.push(Shown {
                cell: place,
                row,
                rows: Arc::clone(&rows),
            });
        }
        first = 0;
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preferences::{Diffs, Glyphs, ThemeChoice, View};
    use crate::theme::Theme;
    use caliban_terminal::{Colours, Scheme};
    use proptest::prelude::*;

    proptest! {
        /// Wherever one goes, the screen is full where there is enough to fill it, its rows follow
        /// each other, and at the end one follows what is said.
        #[test]
        fn rows_follow_each_other(
            lengths in prop::collection::vec(0usize..12, 1..30),
            moves in prop::collection::vec((any::<bool>(), 1usize..40), 0..20),
            height in 1usize..30,
        ) {
            let theme = Theme::new(ThemeChoice::Dark, None, Scheme::Dark, Colours::Ansi16, Glyphs::Ascii, 0);
            let lay = Lay {
                width: 40,
                theme: &theme,
                view: View::Compact,
                diffs: Diffs::BelowEachOther,
                beat: 0,
                now: std::time::Instant::now(),
                began: std::time::Instant::now(),
                dots: None,
                cwd: std::path::Path::new("/"),
            };
            let cells: Vec<Cell> = lengths
                .iter()
                .map(|lines| Cell::prompt(&"line\n".repeat(*lines)))
                .collect();
            let all: Vec<(usize, usize)> = cells
                .iter()
                .enumerate()
                .flat_map(|(cell, kept)| (0..kept.rows(&lay).len()).map(move |row| (cell, row)))
                .collect();
            let mut scroll = Scroll::default();
            for (is_up, by) in moves {
                if is_up {
                    scroll.up(by, &cells, height, &lay);
                } else {
                    scroll.down(by, &cells, height, &lay);
                }
                let shown: Vec<(usize, usize)> = scroll
                    .shown(&cells, height, &lay)
                    .iter()
                    .map(|shown| (shown.cell, shown.row))
                    .collect();
                prop_assert_eq!(shown.len(), height.min(all.len()));
                let first = all.iter().position(|row| Some(row) == shown.first());
                let first = first.expect("it is one of them");
                prop_assert_eq!(&all[first..first + shown.len()], &shown[..]);
            }
            scroll.down(10_000, &cells, height, &lay);
            prop_assert_eq!(scroll.anchor, Anchor::Follow);
        }
    }
}
