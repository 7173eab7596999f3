//! Marking with the mouse, where the mouse is the face's: what is marked is copied when the button
//! is let go.

use std::ops::Range;

use caliban_terminal::{Button, Mouse, MouseKind};
use caliban_text::{Row, copied};
use ratatui_core::style::Modifier;

use crate::app::effect::Effect;
use crate::app::state::App;
use crate::canvas::Canvas;

/// A place in the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spot {
    cell: usize,
    row: usize,
    column: usize,
}

/// What is marked: from where the button was pressed to where the mouse is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Selection {
    from: Spot,
    to: Spot,
}

impl Selection {
    /// The columns of a row that are marked.
    fn columns(self, cell: usize, row: usize) -> Option<Range<usize>> {
        let (first, last) = (self.from.min(self.to), self.from.max(self.to));
        let here = (cell, row);
        let (begin, end) = ((first.cell, first.row), (last.cell, last.row));
        if here < begin || here > end {
            return None;
        }
        let from = if here == begin { first.column } else { 0 };
        let to = if here == end {
            last.column + 1
        } else {
            usize::MAX
        };
        Some(from..to)
    }
}

impl App {
    /// A button of the mouse, over the conversation.
    pub(crate) fn hear_mouse(&mut self, mouse: Mouse) {
        match mouse.kind {
            MouseKind::Down(Button::Left) => {
                let spot = self.spot(mouse);
                self.selection = spot.map(|spot| Selection {
                    from: spot,
                    to: spot,
                });
            }
            MouseKind::Down(Button::Middle | Button::Right) => {
                self.effect(Effect::ReadClipboard);
            }
            MouseKind::Drag(Button::Left) => {
                if let (Some(spot), Some(selection)) = (self.spot(mouse), &mut self.selection) {
                    selection.to = spot;
                }
            }
            MouseKind::Up(Button::Left) => match self.selection {
                Some(selection) if selection.from != selection.to => {
                    let text = self.marked(selection);
                    self.copy(text);
                }
                Some(selection) => {
                    self.selection = None;
                    self.fold(selection.from.cell);
                }
                None => {}
            },
            MouseKind::Up(_) | MouseKind::Drag(_) | MouseKind::WheelUp | MouseKind::WheelDown => {}
        }
    }

    /// What lies under the mouse.
    fn spot(&self, mouse: Mouse) -> Option<Spot> {
        let (drawn, bottom) = &self.drawn;
        let top = usize::from(*bottom).saturating_sub(drawn.len());
        let place = usize::from(mouse.row).checked_sub(top)?;
        let (cell, row) = *drawn.get(place)?;
        Some(Spot {
            cell,
            row,
            column: usize::from(mouse.column),
        })
    }

    /// The text that is marked, in logical lines.
    fn marked(&self, selection: Selection) -> String {
        let cells = self.feed.cells.get(self.printed..).unwrap_or_default();
        let lay = self.lay();
        let mut parts: Vec<Row> = Vec::new();
        let (first, last) = (selection.from.cell, selection.to.cell);
        let marked = cells.iter().enumerate().take(first.max(last) + 1);
        for (place, cell) in marked.skip(first.min(last)) {
            for (row, laid) in cell.rows(&lay).iter().enumerate() {
                let columns = selection.columns(place, row);
                parts.extend(columns.map(|columns| laid.part(columns)));
            }
        }
        copied(&parts)
    }
}

/// Shows what is marked.
pub(crate) fn draw(app: &App, canvas: &mut Canvas) {
    let Some(selection) = app.selection else {
        return;
    };
    let (drawn, bottom) = &app.drawn;
    let top = usize::from(*bottom).saturating_sub(drawn.len());
    for (place, (cell, row)) in drawn.iter().enumerate() {
        let Some(columns) = selection.columns(*cell, *row) else {
            continue;
        };
        let y = u16::try_from(top + place).unwrap_or(u16::MAX);
        let end = columns.end.min(usize::from(app.width));
        for x in columns.start..end {
            let x = u16::try_from(x).unwrap_or(u16::MAX);
            if let Some(cell) = canvas.buffer.cell_mut((x, y)) {
                cell.modifier.toggle(Modifier::REVERSED);
            }
        }
    }
}
