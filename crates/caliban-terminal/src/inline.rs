//! Drawing on the main screen: finished rows are printed once and belong to the terminal from then
//! on; below them is a region that is drawn anew.

use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Position;
use ratatui_core::style::Style;

use crate::capabilities::Capabilities;
use crate::painter::Painter;
use crate::pen::Pen;
use crate::travel::moved;

/// Who breaks a line that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wrap {
    /// The terminal, which then also reflows and copies it as one line.
    Soft,
    /// Nobody: it was laid out, and what does not fit is cut.
    Hard,
}

/// What a row is for the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mark {
    None,
    /// What was asked: terminals can jump from one to the next.
    Prompt,
}

/// A finished row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StyledRow {
    pub spans: Vec<(String, Style)>,
    pub wrap: Wrap,
    pub mark: Mark,
}

const WRAP_ON: &[u8] = b"\x1b[?7h";
const WRAP_OFF: &[u8] = b"\x1b[?7l";
const HIDE: &[u8] = b"\x1b[?25l";

/// Whether the region has its rows on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    None,
    Made,
}

/// Whether the region has as many rows on the screen as were drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Known,
    /// The width has changed: some terminals have cut the rows, and some have made more of them.
    Unknown,
}

/// Draws a region below rows that are finished. A row that was printed is never touched again.
#[derive(Debug)]
pub struct InlinePainter {
    painter: Painter,
    place: Place,
    extent: Extent,
    /// Rows that wait for the next frame, which takes all of them.
    finished: Vec<u8>,
    frame: Vec<u8>,
}

impl InlinePainter {
    pub fn new(capabilities: &Capabilities) -> Self {
        Self {
            painter: Painter::in_region(capabilities),
            place: Place::None,
            extent: Extent::Known,
            finished: Vec::new(),
            frame: Vec::new(),
        }
    }

    /// Takes over what has become known of the terminal.
    pub fn adopt(&mut self, capabilities: &Capabilities) {
        self.painter.adopt(capabilities);
    }

    /// Rows that are finished: the next frame prints them above the region.
    pub fn above(&mut self, rows: &[StyledRow]) {
        for row in rows {
            self.print(row);
        }
    }

    fn print(&mut self, row: &StyledRow) {
        let out = &mut self.finished;
        match row.wrap {
            Wrap::Soft => out.extend_from_slice(WRAP_ON),
            Wrap::Hard => out.extend_from_slice(WRAP_OFF),
        }
        match row.mark {
            Mark::Prompt => out.extend_from_slice(b"\x1b]133;A\x1b\\"),
            Mark::None => {}
        }
        let mut pen = Pen::DEFAULT;
        for (text, style) in &row.spans {
            let mut cell = Cell::EMPTY;
            cell.set_style(*style);
            let next = Pen::of(&cell, self.painter.colours());
            pen.change(next, out);
            pen = next;
            let mut buffer = [0; 4];
            for character in text.chars().filter(|c| !c.is_control()) {
                out.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
            }
        }
        pen.change(Pen::DEFAULT, out);
        match row.mark {
            Mark::Prompt => out.extend_from_slice(b"\x1b]133;B\x1b\\"),
            Mark::None => {}
        }
        out.extend_from_slice(b"\r\n");
    }

    /// The bytes that print what is finished and make the region show this, with the cursor there.
    pub fn paint(&mut self, region: &Buffer, cursor: Option<Position>) -> &[u8] {
        let size = (region.area.width, region.area.height);
        self.frame.clear();
        let anew =
            self.place == Place::None || !self.finished.is_empty() || self.painter.size() != size;
        let (begin, end) = self.painter.brackets();
        if self.painter.size().0 != size.0 {
            self.extent = Extent::Unknown;
        }
        if anew {
            self.frame.extend_from_slice(begin);
            self.make_place(region.area.height);
        }
        let body = self.painter.paint(region, &[], cursor);
        self.frame.extend_from_slice(body);
        if anew {
            self.frame.extend_from_slice(end);
        }
        &self.frame
    }

    /// Clears the region, prints what is finished from its top on, and makes room for the region
    /// below that.
    fn make_place(&mut self, height: u16) {
        self.frame.extend_from_slice(HIDE);
        self.clear();
        self.frame.append(&mut self.finished);
        // Nothing that is drawn in the region may run into the next row.
        self.frame.extend_from_slice(WRAP_OFF);
        let below = height.saturating_sub(1);
        let room = self.frame.len() + usize::from(below);
        self.frame.resize(room, b'\n');
        self.frame.extend_from_slice(&moved(below, 'A'));
        self.frame.push(b'\r');
        self.painter.invalidate();
        self.painter.returned();
        self.place = Place::Made;
    }

    /// Clears the rows of the region, and goes to the beginning of the first. Where the width has
    /// changed it goes up by no more rows than were drawn: if the terminal has made more of them, a
    /// remnant stays, but never is a finished row taken away.
    fn clear(&mut self) {
        self.frame.extend_from_slice(b"\x1b[m\r");
        if self.place == Place::None {
            return;
        }
        let up = moved(self.painter.cursor_row(), 'A');
        self.frame.extend_from_slice(&up);
        match self.extent {
            Extent::Known => {
                let (_, rows) = self.painter.size();
                for row in 0..rows {
                    if row > 0 {
                        self.frame.extend_from_slice(b"\r\n");
                    }
                    self.frame.extend_from_slice(b"\x1b[K");
                }
                let up = moved(rows.saturating_sub(1), 'A');
                self.frame.extend_from_slice(&up);
                self.frame.push(b'\r');
            }
            // There is nothing below the region, however many rows it has become.
            Extent::Unknown => self.frame.extend_from_slice(b"\x1b[J"),
        }
        self.extent = Extent::Known;
    }

    /// The terminal shows something else by now, and the cursor is at the beginning of a row that is
    /// free: as after another program had the terminal.
    pub fn invalidate(&mut self) {
        self.place = Place::None;
        self.painter.invalidate();
    }

    /// Prints what is finished and takes the region away: what is written next comes below.
    pub fn leave(&mut self) -> &[u8] {
        self.frame.clear();
        self.clear();
        self.frame.append(&mut self.finished);
        self.frame.extend_from_slice(WRAP_ON);
        self.invalidate();
        &self.frame
    }
}
