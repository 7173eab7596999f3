//! The answers below a question, each with its letter.

use ratatui_core::layout::{Position, Rect};

use crate::canvas::Canvas;
use crate::theme::Theme;

/// An answer and the letter that gives it.
pub(crate) type Labelled = (char, &'static str);

/// Columns between two answers.
const GAP: u16 = 2;

/// Which answers stand on which row.
fn rows(answers: &[Labelled], width: u16) -> Vec<std::ops::Range<usize>> {
    let mut rows = Vec::new();
    let (mut first, mut taken) = (0, 0);
    for (place, (_, label)) in answers.iter().enumerate() {
        let columns = u16::try_from("[y] ".len() + label.len()).unwrap_or(u16::MAX);
        if place > first && taken + columns > width {
            rows.push(first..place);
            (first, taken) = (place, 0);
        }
        taken += columns + GAP;
    }
    rows.push(first..answers.len());
    rows
}

/// Rows of the answers and of the hint below them.
pub(crate) fn foot(answers: &[Labelled], width: u16) -> u16 {
    u16::try_from(rows(answers, width).len()).unwrap_or(u16::MAX) + 1
}

/// Draws them at the foot of what is inside a frame.
pub(crate) fn draw(
    canvas: &mut Canvas,
    inside: Rect,
    answers: &[Labelled],
    selected: Option<usize>,
    hint: &str,
    theme: &Theme,
) {
    let height = foot(answers, inside.width);
    let mut y = inside.bottom().saturating_sub(height).max(inside.y);
    for row in rows(answers, inside.width) {
        let mut x = inside.x;
        for place in row {
            let Some((letter, label)) = answers.get(place) else {
                continue;
            };
            let style = if selected == Some(place) {
                canvas.cursor = Some(Position::new(x, y));
                theme.chosen()
            } else {
                theme.palette.text
            };
            let text = format!("[{letter}] {label}");
            x = canvas.text(x, y, inside.right(), &text, style) + GAP;
        }
        y += 1;
    }
    if y < inside.bottom() {
        canvas.text(inside.x, y, inside.right(), hint, theme.palette.dim);
    }
}

/// The answer behind the one that is chosen, or before it; all around.
pub(crate) fn step(answers: &[Labelled], selected: Option<usize>, way: Way) -> usize {
    let count = answers.len().max(1);
    match (way, selected) {
        (Way::On, None) => 0,
        (Way::On, Some(at)) => (at + 1) % count,
        (Way::Back, None | Some(0)) => count - 1,
        (Way::Back, Some(at)) => at - 1,
    }
}

/// To which side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    On,
    Back,
}
