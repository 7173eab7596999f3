//! Cells on the way to the screen: a buffer, the links on it, and where the cursor stands.

use caliban_terminal::CellLink;
use caliban_text::{Row, cluster_width, clusters};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::Style;

use crate::theme::Theme;

/// What is drawn on.
#[derive(Debug)]
pub(crate) struct Canvas {
    pub(crate) buffer: Buffer,
    pub(crate) links: Vec<CellLink>,
    pub(crate) cursor: Option<Position>,
}

impl Canvas {
    pub(crate) fn new(width: u16, height: u16) -> Self {
        Self {
            buffer: Buffer::empty(Rect::new(0, 0, width, height)),
            links: Vec::new(),
            cursor: None,
        }
    }

    /// Draws a text and returns the column after it. What does not fit is cut.
    pub(crate) fn text(&mut self, x: u16, y: u16, end: u16, text: &str, style: Style) -> u16 {
        let area = self.buffer.area;
        let end = end.min(area.right());
        if y >= area.bottom() {
            return x;
        }
        let mut column = x;
        for cluster in clusters(text) {
            let columns = u16::try_from(cluster_width(cluster)).unwrap_or(u16::MAX);
            if columns == 0 {
                continue;
            }
            if column.saturating_add(columns) > end {
                break;
            }
            let cell = &mut self.buffer[(column, y)];
            cell.set_symbol(cluster);
            cell.set_style(style);
            for covered in column + 1..column + columns {
                let cell = &mut self.buffer[(covered, y)];
                cell.reset();
                cell.set_symbol("");
                cell.set_style(style);
            }
            column += columns;
        }
        column
    }

    pub(crate) fn row(&mut self, area: Rect, y: u16, row: &Row) {
        let mut column = area.x;
        for span in &row.spans {
            column = self.text(column, y, area.right(), &span.content, span.style);
        }
        for link in &row.links {
            self.links.push(CellLink {
                row: y,
                columns: area.x + link.columns.start..area.x + link.columns.end,
                target: std::sync::Arc::clone(&link.target),
                id: link.id,
            });
        }
    }

    /// Rows from the top of an area, as many as fit.
    pub(crate) fn rows<'a>(&mut self, area: Rect, rows: impl IntoIterator<Item = &'a Row>) {
        for (y, row) in (area.y..area.bottom()).zip(rows) {
            self.row(area, y, row);
        }
    }

    pub(crate) fn clear(&mut self, area: Rect) {
        let area = area.intersection(self.buffer.area);
        for y in area.y..area.bottom() {
            for x in area.x..area.right() {
                self.buffer[(x, y)].reset();
            }
        }
        self.links.retain(|link| {
            !(area.y..area.bottom()).contains(&link.row)
                || link.columns.end <= area.x
                || link.columns.start >= area.right()
        });
    }

    /// A box with a title; returns what is inside.
    pub(crate) fn frame(&mut self, area: Rect, title: &str, theme: &Theme) -> Rect {
        let area = area.intersection(self.buffer.area);
        self.clear(area);
        if area.width < 4 || area.height < 3 {
            return area;
        }
        let (signs, style) = (&theme.signs, theme.palette.rule);
        let [top_left, top_right, bottom_left, bottom_right] = signs.corners;
        let (right, bottom) = (area.right() - 1, area.bottom() - 1);
        for x in area.x + 1..right {
            self.text(x, area.y, right, signs.rule, style);
            self.text(x, bottom, right, signs.rule, style);
        }
        for y in area.y + 1..bottom {
            self.text(area.x, y, area.right(), signs.side, style);
            self.text(right, y, area.right(), signs.side, style);
        }
        self.text(area.x, area.y, area.right(), top_left, style);
        self.text(right, area.y, area.right(), top_right, style);
        self.text(area.x, bottom, area.right(), bottom_left, style);
        self.text(right, bottom, area.right(), bottom_right, style);
        if !title.is_empty() {
            let title = format!(" {title} ");
            self.text(area.x + 2, area.y, right, &title, theme.palette.strong);
        }
        Rect::new(area.x + 2, area.y + 1, area.width - 4, area.height - 2)
    }
}

/// The middle of the screen that an overlay takes: about four fifths of both, all of a small one.
pub(crate) fn overlay(screen: Rect) -> Rect {
    let part = |length: u16, least: u16| (length - length / 5).max(least.min(length));
    let (width, height) = (part(screen.width, 60), part(screen.height, 16));
    Rect::new(
        (screen.width - width) / 2,
        (screen.height - height) / 2,
        width,
        height,
    )
}
