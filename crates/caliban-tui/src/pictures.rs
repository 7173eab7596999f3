//! Pictures on the screen: where each is, and which have to be made first.

use caliban_terminal::{Multiplexer, Placement, Raster};
use ratatui_core::layout::Position;

use crate::app::{App, Effect};
use crate::preferences::Screen;
use crate::transcript::{CellKind, INDENT, Picture};

/// What a cell measures in dots where the terminal does not tell.
const USUAL: (u16, u16) = (10, 20);

impl App {
    /// What a cell measures in dots where pictures are drawn: on a screen of our own, by a terminal
    /// that can, with nothing in between.
    pub(crate) fn picture_dots(&self) -> Option<(u16, u16)> {
        use caliban_terminal::Graphics;
        let can = match self.capabilities.graphics() {
            Graphics::Kitty | Graphics::Iterm | Graphics::Sixel => true,
            Graphics::None => false,
        };
        let is_direct = self.capabilities.multiplexer == Multiplexer::None;
        let is_ours = self.screen == Screen::Fullscreen;
        (can && is_direct && is_ours).then(|| self.cell_dots.unwrap_or(USUAL))
    }

    /// The pictures on the rows that were drawn last, and which of them nobody has made yet.
    pub(crate) fn hang_pictures(&mut self) {
        self.pictures.clear();
        // Terminals draw pictures over text: none may shine through what lies above it.
        if self.picture_dots().is_none() || !self.layers.is_empty() {
            return;
        }
        let lay = self.lay();
        let (mut placements, mut wanted) = (Vec::new(), Vec::new());
        let (drawn, bottom) = &self.drawn;
        let top = usize::from(*bottom).saturating_sub(drawn.len());
        for (place, run) in runs(drawn) {
            let cell = self.feed.cells.get(self.printed + run.cell);
            let Some(CellKind::Image(picture)) = cell.map(|cell| &cell.kind) else {
                continue;
            };
            let Some((columns, rows)) = picture.cells(&lay) else {
                continue;
            };
            // The first row of the cell is words, and the last one is empty.
            let first = run.first.max(1);
            let seen = cut(first - 1)..cut(run.end.saturating_sub(1)).min(rows);
            if seen.is_empty() {
                continue;
            }
            let y = top + place + (first - run.first);
            match picture.raster((columns, rows)) {
                Some(raster) => placements.push(Placement {
                    id: picture.id,
                    raster,
                    at: Position::new(INDENT, cut(y)),
                    columns,
                    rows,
                    seen,
                }),
                None if picture.ask((columns, rows)) => {
                    let (across, down) = lay.dots.unwrap_or(USUAL);
                    let dots = (
                        u32::from(columns) * u32::from(across),
                        u32::from(rows) * u32::from(down),
                    );
                    let image = picture.image().cloned();
                    wanted.extend(image.map(|image| (picture.id, image, dots)));
                }
                None => {}
            }
        }
        self.pictures = placements;
        for (id, image, dots) in wanted {
            self.effect(Effect::Picture { id, image, dots });
        }
    }

    /// What a picture looks like is known.
    pub(crate) fn pictured(&mut self, id: u32, drawn: Result<Raster, String>) {
        let lay = self.lay();
        let found = self.feed.cells.iter().rev().find_map(|cell| {
            let picture: &Picture = match &cell.kind {
                CellKind::Image(picture) if picture.id == id => picture,
                _ => return None,
            };
            Some((cell, picture))
        });
        if let Some((cell, picture)) = found {
            if let Some(cells) = picture.cells(&lay) {
                picture.answer(cells, drawn);
            }
            cell.forget_rows();
        }
    }
}

/// Rows of one cell that stand below each other.
struct Run {
    cell: usize,
    first: usize,
    end: usize,
}

/// The rows on the screen cell by cell, each with its place.
fn runs(drawn: &[(usize, usize)]) -> Vec<(usize, Run)> {
    let mut place = 0;
    let of_one_cell = drawn.chunk_by(|one, other| one.0 == other.0);
    let runs = of_one_cell.filter_map(|rows| {
        let at = place;
        place += rows.len();
        let ((cell, first), (_, last)) = rows.first().copied().zip(rows.last().copied())?;
        let end = last + 1;
        Some((at, Run { cell, first, end }))
    });
    runs.collect()
}

fn cut(number: usize) -> u16 {
    u16::try_from(number).unwrap_or(u16::MAX)
}
