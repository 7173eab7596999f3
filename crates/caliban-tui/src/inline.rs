//! Drawing below what is on the screen: what is finished is printed once and is the terminal's own
//! from then on; the rest is a region at the bottom.

use caliban_terminal::{Mark, StyledRow, Wrap};
use caliban_text::{Row, RowEnd};
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};

use crate::app::App;
use crate::canvas::Canvas;
use crate::transcript::{Cell, CellKind};
use crate::view;

/// A frame: what is to be printed, and the region below it.
pub(crate) struct InlineFrame {
    pub(crate) finished: Vec<StyledRow>,
    pub(crate) region: Buffer,
    pub(crate) cursor: Option<Position>,
}

/// Draws everything that is not printed yet; what is finished is, from here on.
pub(crate) fn draw(app: &mut App) -> InlineFrame {
    let finished = finished(app);
    let canvas = view::draw(app);
    let (region, cursor) = cropped(app, canvas);
    InlineFrame {
        finished,
        region,
        cursor,
    }
}

/// Cells that will not change any more, in order.
fn finished(app: &mut App) -> Vec<StyledRow> {
    let cells = app.feed.cells.get(app.printed..).unwrap_or_default();
    let count = cells.iter().take_while(|cell| cell.is_still()).count();
    let lay = app.lay();
    let rows: Vec<StyledRow> = cells[..count]
        .iter()
        .flat_map(|cell| {
            let rows = cell.rows(&lay);
            let mark = mark(cell);
            let styled = rows.iter().enumerate().map(|(place, row)| {
                let mark = if place == 0 { mark } else { Mark::None };
                styled(row, mark)
            });
            styled.collect::<Vec<_>>()
        })
        .collect();
    for cell in &cells[..count] {
        cell.forget_rows();
    }
    app.printed += count;
    rows
}

fn mark(cell: &Cell) -> Mark {
    match cell.kind {
        CellKind::Prompt(_) => Mark::Prompt,
        CellKind::Answer(_)
        | CellKind::Thinking(_)
        | CellKind::Redacted
        | CellKind::Call(_)
        | CellKind::Notice { .. }
        | CellKind::Report(_)
        | CellKind::Image(_) => Mark::None,
    }
}

fn styled(row: &Row, mark: Mark) -> StyledRow {
    let spans = row.spans.iter();
    StyledRow {
        spans: spans
            .map(|span| (span.content.to_string(), span.style))
            .collect(),
        wrap: match row.end {
            RowEnd::Hard => Wrap::Soft,
            RowEnd::Soft => Wrap::Hard,
        },
        mark,
    }
}

/// The rows that something is on; of what is still said at most a third of the screen.
fn cropped(app: &App, mut canvas: Canvas) -> (Buffer, Option<Position>) {
    let area = canvas.buffer.area;
    let (drawn, bottom) = (&app.drawn.0, app.drawn.1);
    let live = u16::try_from(drawn.len())
        .unwrap_or(u16::MAX)
        .min(area.height / 3);
    let first = bottom.saturating_sub(live);
    let height = area.height - first;
    let above = usize::from(first) * usize::from(area.width);
    let region = Buffer {
        area: Rect::new(0, 0, area.width, height),
        content: canvas.buffer.content.split_off(above),
    };
    let cursor = canvas.cursor;
    let cursor = cursor.map(|at| Position::new(at.x, at.y.saturating_sub(first)));
    (region, cursor)
}
