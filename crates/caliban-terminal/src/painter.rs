//! Cells become bytes: one frame at a time, and of each frame only what has changed.

use std::ops::Range;

use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Position;

use crate::capabilities::{Capabilities, Colours, Support};
use crate::pen::Pen;
use crate::tile::{Agreement, CellLink, Row, Span, Tile, same_link, tiles};
use crate::travel::{moved, travel, travel_in_region};

const SYNCHRONISED: (&[u8], &[u8]) = (b"\x1b[?2026h", b"\x1b[?2026l");
const HIDE: &[u8] = b"\x1b[?25l";
const SHOW: &[u8] = b"\x1b[?25h";
/// A frame up to this length comes out of the line in one piece: no terminal shows a part of it, so
/// that hiding the cursor for it would only double it.
const ONE_PIECE: usize = 48;
/// Regions that may have moved between two frames; of more, the rest is drawn.
const MAX_SCROLLS: usize = 8;
/// Targets of links that are longer are none.
const LINK_LIMIT: usize = 2083;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Visibility {
    Unknown,
    Shown,
    Hidden,
}

/// How places are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Addressing {
    /// By row and column of the screen.
    Screen,
    /// By rows from where the cursor is: the region is somewhere on the screen.
    Region,
}

/// Draws frames on a screen of which it knows every cell. Whatever else moves the cursor or changes
/// cells has to be followed by `invalidate`.
#[derive(Debug)]
pub struct Painter {
    synchronised: Support,
    colours: Colours,
    hyperlinks: Support,
    width: u16,
    /// What the terminal shows; none for rows of which that is unknown.
    screen: Vec<Option<Row>>,
    scrolls: Vec<(Range<u16>, i32)>,
    addressing: Addressing,
    cursor: Option<Position>,
    /// The row of the cursor, also where its column is unknown.
    row: u16,
    visibility: Visibility,
    pen: Option<Pen>,
    body: Vec<u8>,
    frame: Vec<u8>,
}

impl Painter {
    pub fn new(capabilities: &Capabilities) -> Self {
        Self {
            synchronised: capabilities.synchronised,
            colours: capabilities.colours,
            hyperlinks: capabilities.hyperlinks,
            width: 0,
            screen: Vec::new(),
            scrolls: Vec::new(),
            addressing: Addressing::Screen,
            cursor: None,
            row: 0,
            visibility: Visibility::Unknown,
            pen: None,
            body: Vec::new(),
            frame: Vec::new(),
        }
    }

    /// A painter for rows that are somewhere on the screen, which nobody else moves the cursor out of.
    pub(crate) fn in_region(capabilities: &Capabilities) -> Self {
        Self {
            addressing: Addressing::Region,
            ..Self::new(capabilities)
        }
    }

    /// What makes the terminal show what is between at once, if it can.
    pub(crate) fn brackets(&self) -> (&'static [u8], &'static [u8]) {
        match self.synchronised {
            Support::Yes => SYNCHRONISED,
            Support::Unknown | Support::No => (b"", b""),
        }
    }

    pub(crate) fn colours(&self) -> Colours {
        self.colours
    }

    /// The size of the last frame.
    pub(crate) fn size(&self) -> (u16, u16) {
        let height = u16::try_from(self.screen.len()).unwrap_or(u16::MAX);
        (self.width, height)
    }

    /// The row of the region in which the cursor is.
    pub(crate) fn cursor_row(&self) -> u16 {
        self.row
    }

    /// The cursor was brought to the beginning of the first row.
    pub(crate) fn returned(&mut self) {
        self.row = 0;
        self.cursor = Some(Position { x: 0, y: 0 });
    }

    /// Takes over what has become known of the terminal.
    pub fn adopt(&mut self, capabilities: &Capabilities) {
        self.synchronised = capabilities.synchronised;
        // Rows know their links: where these come or go, the next frame differs by itself.
        self.hyperlinks = capabilities.hyperlinks;
        let (old, new) = (self.colours, capabilities.colours);
        if old != new {
            self.colours = new;
            self.pen = None;
            let differs = |row: &Row| {
                let mut cells = row.cells.iter();
                cells.any(|cell| Pen::of(cell, old) != Pen::of(cell, new))
            };
            for slot in &mut self.screen {
                slot.take_if(|row| differs(row));
            }
        }
    }

    /// The content of these rows has moved up by so many, or down if negative. It is a hint: the
    /// next frame is right without it, but longer.
    pub fn scrolled(&mut self, region: Range<u16>, by: i32) {
        let known = self.scrolls.iter_mut().find(|(known, _)| *known == region);
        if let Some((_, sum)) = known {
            *sum = sum.saturating_add(by);
        } else if self.scrolls.len() < MAX_SCROLLS {
            self.scrolls.push((region, by));
        }
    }

    /// Nothing is known of the screen any more: the next frame draws all of it, row by row.
    pub fn invalidate(&mut self) {
        self.screen.fill(None);
        self.scrolls.clear();
        self.cursor = None;
        self.visibility = Visibility::Unknown;
        self.pen = None;
    }

    /// Nothing is known of these rows any more: the next frame draws them.
    pub fn forget(&mut self, rows: Range<u16>) {
        let rows = usize::from(rows.start)..usize::from(rows.end).min(self.screen.len());
        self.screen.get_mut(rows).unwrap_or_default().fill(None);
    }

    /// The terminal has another size, and may show anything.
    pub fn resize(&mut self, width: u16, height: u16) {
        self.width = width;
        self.screen.clear();
        self.screen.resize(usize::from(height), None);
        self.invalidate();
    }

    /// The bytes that make the terminal show this, with the cursor there; none if it does already.
    pub fn paint(&mut self, next: &Buffer, links: &[CellLink], cursor: Option<Position>) -> &[u8] {
        let (width, height) = (next.area.width, next.area.height);
        if (width, usize::from(height)) != (self.width, self.screen.len()) {
            self.resize(width, height);
        }
        self.body.clear();
        self.frame.clear();
        let links = self.by_row(links);
        self.scroll(next, &links);
        for (y, links) in (0..height).zip(&links) {
            self.row(y, cells_of(next, y), links);
        }
        let cursor = cursor.map(|at| Position {
            x: at.x.min(width.saturating_sub(1)),
            y: at.y.min(height.saturating_sub(1)),
        });
        self.compose(cursor);
        &self.frame
    }

    /// Puts the frame around what has changed.
    fn compose(&mut self, cursor: Option<Position>) {
        if let Some(cursor) = cursor {
            self.go(cursor);
        }
        let wanted = match cursor {
            Some(_) => Visibility::Shown,
            None => Visibility::Hidden,
        };
        let whole = self.body.len() > ONE_PIECE;
        let (begin, end) = if whole {
            self.brackets()
        } else {
            (&b""[..], &b""[..])
        };
        self.frame.extend_from_slice(begin);
        let hides =
            self.visibility != Visibility::Hidden && (whole || wanted == Visibility::Hidden);
        if hides {
            self.frame.extend_from_slice(HIDE);
            self.visibility = Visibility::Hidden;
        }
        self.frame.extend_from_slice(&self.body);
        if wanted == Visibility::Shown && self.visibility != Visibility::Shown {
            self.frame.extend_from_slice(SHOW);
        }
        self.visibility = wanted;
        self.frame.extend_from_slice(end);
    }

    /// The links of each row, without those that no terminal should have.
    fn by_row(&self, links: &[CellLink]) -> Vec<Vec<CellLink>> {
        let mut rows = vec![Vec::new(); self.screen.len()];
        if self.hyperlinks != Support::Yes {
            return rows;
        }
        for link in links.iter().filter(|link| is_safe(&link.target)) {
            if let Some(row) = rows.get_mut(usize::from(link.row)) {
                row.push(link.clone());
            }
        }
        rows
    }

    /// Moves what has moved, where that leaves less to draw.
    fn scroll(&mut self, next: &Buffer, links: &[Vec<CellLink>]) {
        for (region, by) in std::mem::take(&mut self.scrolls) {
            let height = u16::try_from(self.screen.len()).unwrap_or(u16::MAX);
            let region = region.start.min(height)..region.end.min(height);
            let rows = usize::from(region.start)..usize::from(region.end);
            let distance = usize::try_from(by.unsigned_abs()).unwrap_or(usize::MAX);
            let few = distance > 0 && distance.saturating_mul(2) < rows.len();
            if !few {
                continue;
            }
            let kept = |from: usize, to: usize| {
                self.screen
                    .get(from)
                    .and_then(Option::as_ref)
                    .is_some_and(|row| {
                        let y = u16::try_from(to).unwrap_or(u16::MAX);
                        row.looks_like(cells_of(next, y), &links[to])
                    })
            };
            let stays = rows.clone().filter(|y| kept(*y, *y)).count();
            let moves = rows.clone().take(rows.len() - distance);
            let moves = match by {
                0.. => moves.filter(|y| kept(y + distance, *y)).count(),
                _ => moves.filter(|y| kept(*y, y + distance)).count(),
            };
            if moves > stays {
                self.shift(region, rows, by, distance);
            }
        }
    }

    fn shift(&mut self, region: Range<u16>, rows: Range<usize>, by: i32, distance: usize) {
        // The rows that come in have the background of the pen.
        self.set_pen(Pen::DEFAULT);
        let whole = rows.len() == self.screen.len();
        if !whole {
            let region = format!("\x1b[{};{}r", u32::from(region.start) + 1, region.end);
            self.body.extend_from_slice(region.as_bytes());
        }
        let letter = if by > 0 { 'S' } else { 'T' };
        let count = u16::try_from(distance).unwrap_or(u16::MAX);
        self.body.extend_from_slice(&moved(count, letter));
        if !whole {
            self.body.extend_from_slice(b"\x1b[r");
        }
        self.cursor = None;
        let blank = Some(Row::blank(self.width));
        let region = &mut self.screen[rows];
        if by > 0 {
            region.rotate_left(distance);
            let from = region.len() - distance;
            region[from..].fill(blank);
        } else {
            region.rotate_right(distance);
            region[..distance].fill(blank);
        }
    }

    fn row(&mut self, y: u16, cells: &[ratatui_core::buffer::Cell], links: &[CellLink]) {
        let Some(slot) = self.screen.get_mut(usize::from(y)) else {
            return;
        };
        let old = slot.take();
        match old {
            Some(old) if old.looks_like(cells, links) => {
                self.screen[usize::from(y)] = Some(old);
                return;
            }
            Some(old) => {
                self.differences(
                    y,
                    Some(&tiles(&old.cells, &old.links)),
                    &tiles(cells, links),
                );
            }
            None => self.differences(y, None, &tiles(cells, links)),
        }
        self.screen[usize::from(y)] = Some(Row {
            cells: cells.to_vec(),
            links: links.to_vec(),
        });
    }

    /// Draws the tiles of a row that are not what they were.
    fn differences(&mut self, y: u16, old: Option<&[Tile<'_>]>, new: &[Tile<'_>]) {
        let changed: Vec<bool> = changes(old, new);
        let pen = |tile: &Tile<'_>, colours| Pen::of(tile.cell, colours);
        let colours = self.colours;
        let tail = new
            .iter()
            .rposition(|tile| !tile.is_blank(pen(tile, colours)))
            .map_or(0, |last| last + 1);
        let erased = changed[tail..].iter().filter(|changed| **changed).count();
        let mut open: Option<&CellLink> = None;
        for (x, tile) in new.iter().enumerate() {
            let Span::Begins(width) = tile.span else {
                continue;
            };
            if !changed[x] {
                continue;
            }
            let column = u16::try_from(x).unwrap_or(u16::MAX);
            let to_the_end = x >= tail && (erased > 3 || old.is_none());
            if open.is_some() && (to_the_end || !same_link(open, tile.link)) {
                self.body.extend_from_slice(b"\x1b]8;;\x1b\\");
                open = None;
            }
            self.approach(Position { x: column, y }, new, open);
            if to_the_end {
                if self.pen.is_none_or(|pen| !pen.leaves_blank()) {
                    self.set_pen(Pen::DEFAULT);
                }
                self.body.extend_from_slice(b"\x1b[K");
                return;
            }
            self.set_pen(pen(tile, colours));
            if let (None, Some(link)) = (open, tile.link) {
                let start = format!("\x1b]8;id={};{}\x1b\\", link.id, link.target);
                self.body.extend_from_slice(start.as_bytes());
                open = Some(link);
            }
            self.write(tile, width, Position { x: column, y });
        }
        if open.is_some() {
            self.body.extend_from_slice(b"\x1b]8;;\x1b\\");
        }
    }

    fn write(&mut self, tile: &Tile<'_>, width: u16, at: Position) {
        let behind = at.x.saturating_add(width);
        match tile.agreement {
            Agreement::Agreed => {
                self.body.extend_from_slice(tile.symbol.as_bytes());
                // Behind the last column the cursor is nowhere in particular.
                self.cursor = (behind < self.width).then_some(Position { x: behind, y: at.y });
            }
            Agreement::Disputed => {
                // Where the terminal shows less than was reserved, nothing old may remain.
                if width > 1 {
                    let blank = usize::from(width);
                    self.body.resize(self.body.len() + blank, b' ');
                    self.cursor = None;
                    self.go(at);
                }
                self.body.extend_from_slice(tile.symbol.as_bytes());
                self.cursor = None;
            }
        }
    }

    /// Goes to a cell of a row. A short gap is closed by writing again what stands in it.
    fn approach(&mut self, to: Position, row: &[Tile<'_>], open: Option<&CellLink>) {
        const GAP: u16 = 3;
        if let (Some(from), Some(pen)) = (self.cursor, self.pen)
            && from.y == to.y
            && from.x < to.x
            && to.x - from.x <= GAP
        {
            let gap = &row[usize::from(from.x)..usize::from(to.x)];
            let plain = |tile: &Tile<'_>| {
                tile.symbol.len() == 1
                    && tile.span == Span::Begins(1)
                    && Pen::of(tile.cell, self.colours) == pen
                    && same_link(tile.link, open)
            };
            if gap.iter().all(plain) {
                for tile in gap {
                    self.body.extend_from_slice(tile.symbol.as_bytes());
                }
                self.cursor = Some(to);
                return;
            }
        }
        self.go(to);
    }

    fn go(&mut self, to: Position) {
        match self.addressing {
            Addressing::Screen => travel(self.cursor, to, &mut self.body),
            Addressing::Region => {
                let column = self.cursor.map(|at| at.x);
                travel_in_region(self.row, column, to, &mut self.body);
            }
        }
        self.cursor = Some(to);
        self.row = to.y;
    }

    fn set_pen(&mut self, pen: Pen) {
        let old = self.pen.unwrap_or_else(|| {
            self.body.extend_from_slice(b"\x1b[m");
            Pen::DEFAULT
        });
        old.change(pen, &mut self.body);
        self.pen = Some(pen);
    }
}

/// Which tiles have to be drawn. Where a cluster of disputed width comes or goes, nobody knows what
/// it covers, so that the rest of its row is drawn anew.
fn changes(old: Option<&[Tile<'_>]>, new: &[Tile<'_>]) -> Vec<bool> {
    let Some(old) = old else {
        return vec![true; new.len()];
    };
    let mut dispute = false;
    new.iter()
        .zip(old)
        .map(|(new, old)| {
            let differs = !new.shows_the_same(old);
            let disputed = [new.agreement, old.agreement].contains(&Agreement::Disputed);
            dispute |= differs && disputed;
            dispute || differs
        })
        .collect()
}

fn cells_of(buffer: &Buffer, y: u16) -> &[ratatui_core::buffer::Cell] {
    let width = usize::from(buffer.area.width);
    let start = usize::from(y) * width;
    buffer.content.get(start..start + width).unwrap_or_default()
}

/// Whether a target may be sent: a kind that terminals open, and nothing that ends the sequence.
fn is_safe(target: &str) -> bool {
    const SCHEMES: [&str; 4] = ["http://", "https://", "mailto:", "file://"];
    target.len() <= LINK_LIMIT
        && target.bytes().all(|byte| matches!(byte, 0x21..=0x7e))
        && SCHEMES.iter().any(|scheme| target.starts_with(scheme))
}
