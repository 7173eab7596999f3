//! Rows of cells as a terminal shows them: what stands where, how wide it is and where it leads.

use std::ops::Range;
use std::sync::Arc;

use ratatui_core::buffer::{Cell, CellDiffOption, CellWidth};

use crate::pen::Pen;

/// Cells of a row that lead somewhere. Those with the same number are one link, on whatever rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellLink {
    pub row: u16,
    pub columns: Range<u16>,
    pub target: Arc<str>,
    pub id: u32,
}

/// One row: its cells, and the links in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    pub(crate) links: Vec<CellLink>,
}

impl Row {
    pub(crate) fn blank(width: u16) -> Self {
        Self {
            cells: vec![Cell::EMPTY; usize::from(width)],
            links: Vec::new(),
        }
    }

    /// Whether another row looks the same; where it is does not matter.
    pub(crate) fn looks_like(&self, cells: &[Cell], links: &[CellLink]) -> bool {
        let same = |(one, other): (&CellLink, &CellLink)| {
            one.columns == other.columns && same_link(Some(one), Some(other))
        };
        self.cells == cells
            && self.links.len() == links.len()
            && self.links.iter().zip(links).all(same)
    }
}

/// What stands in one cell.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tile<'a> {
    pub(crate) cell: &'a Cell,
    pub(crate) symbol: &'a str,
    pub(crate) span: Span,
    pub(crate) agreement: Agreement,
    pub(crate) link: Option<&'a CellLink>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Span {
    /// It begins here and covers so many cells.
    Begins(u16),
    /// It is covered by what begins before.
    Covered,
    /// Something else draws it.
    Foreign,
}

/// Whether all terminals give a cluster the same width.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Agreement {
    Agreed,
    Disputed,
}

impl Tile<'_> {
    pub(crate) fn shows_the_same(&self, other: &Tile<'_>) -> bool {
        self.span == other.span
            && self.symbol == other.symbol
            && self.cell.fg == other.cell.fg
            && self.cell.bg == other.cell.bg
            && self.cell.underline_color == other.cell.underline_color
            && self.cell.modifier == other.cell.modifier
            && same_link(self.link, other.link)
    }

    /// Whether erasing the cell would show the same.
    pub(crate) fn is_blank(&self, pen: Pen) -> bool {
        self.span == Span::Begins(1)
            && self.symbol == " "
            && self.link.is_none()
            && pen.leaves_blank()
    }
}

pub(crate) fn same_link(one: Option<&CellLink>, other: Option<&CellLink>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => one.id == other.id && one.target == other.target,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// The tiles of a row, one for each cell.
pub(crate) fn tiles<'a>(cells: &'a [Cell], links: &'a [CellLink]) -> Vec<Tile<'a>> {
    let mut tiles: Vec<Tile<'a>> = Vec::with_capacity(cells.len());
    let mut covered = 0;
    for (x, cell) in cells.iter().enumerate() {
        let (symbol, width, agreement) = glyph(cell);
        let fits = x + usize::from(width) <= cells.len();
        let (symbol, width, agreement) = if fits {
            (symbol, width, agreement)
        } else {
            (" ", 1, Agreement::Agreed)
        };
        let span = match (covered, cell.diff_option) {
            (1.., _) => Span::Covered,
            (0, CellDiffOption::Skip) => Span::Foreign,
            (
                0,
                CellDiffOption::None
                | CellDiffOption::AlwaysUpdate
                | CellDiffOption::ForcedWidth(_),
            ) => Span::Begins(width),
        };
        let tile = match (span, tiles.last()) {
            // The same as what covers it, so that one changes with the other.
            (Span::Covered, Some(before)) => Tile { span, ..*before },
            (Span::Begins(_) | Span::Foreign | Span::Covered, _) => Tile {
                cell,
                symbol,
                span,
                agreement,
                link: None,
            },
        };
        covered = match span {
            Span::Begins(width) => width.saturating_sub(1),
            Span::Covered => covered - 1,
            Span::Foreign => 0,
        };
        tiles.push(tile);
    }
    for link in links {
        let columns =
            usize::from(link.columns.start)..usize::from(link.columns.end).min(tiles.len());
        for tile in tiles.get_mut(columns).unwrap_or_default() {
            tile.link = Some(link);
        }
    }
    tiles
}

/// What is written for a cell: never a control character, and never nothing.
fn glyph(cell: &Cell) -> (&str, u16, Agreement) {
    const BLANK: (&str, u16, Agreement) = (" ", 1, Agreement::Agreed);
    let symbol = cell.symbol();
    if let [byte] = symbol.as_bytes() {
        return match byte {
            b' '..=b'~' => (symbol, 1, Agreement::Agreed),
            _ => BLANK,
        };
    }
    if symbol.chars().any(char::is_control) {
        return BLANK;
    }
    match cell.cell_width() {
        0 => BLANK,
        width => (symbol, width, agreement(symbol, width)),
    }
}

fn agreement(symbol: &str, width: u16) -> Agreement {
    let mut characters = symbol.chars();
    match (characters.next(), characters.next()) {
        (Some('\u{1f1e6}'..='\u{1f1ff}'), None) => Agreement::Disputed,
        (Some(_), None) if width <= 2 => Agreement::Agreed,
        (Some(_) | None, Some(_) | None) => Agreement::Disputed,
    }
}
