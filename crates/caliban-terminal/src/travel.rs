//! The shortest way of the cursor from one place to another.

use ratatui_core::layout::Position;

/// Appends what moves the cursor. Where it is may be unknown; where it goes is on the screen.
pub(crate) fn travel(from: Option<Position>, to: Position, out: &mut Vec<u8>) {
    if from == Some(to) {
        return;
    }
    let absolute = absolute(to);
    match from.and_then(|from| relative(from, to)) {
        Some(relative) if relative.len() < absolute.len() => out.extend_from_slice(&relative),
        Some(_) | None => out.extend_from_slice(&absolute),
    }
}

/// Appends what moves the cursor within rows of which nobody knows where on the screen they are.
pub(crate) fn travel_in_region(row: u16, column: Option<u16>, to: Position, out: &mut Vec<u8>) {
    let from = column.map(|x| Position { x, y: row });
    if from == Some(to) {
        return;
    }
    let direct = from.and_then(|from| relative(from, to)).unwrap_or_else(|| {
        let mut bytes = match to.y.checked_sub(row) {
            Some(down) => moved(down, 'B'),
            None => moved(row - to.y, 'A'),
        };
        match u32::from(to.x) + 1 {
            1 => bytes.push(b'\r'),
            column => bytes.extend_from_slice(format!("\x1b[{column}G").as_bytes()),
        }
        bytes
    });
    out.extend_from_slice(&direct);
}

fn absolute(to: Position) -> Vec<u8> {
    let row = u32::from(to.y) + 1;
    let column = u32::from(to.x) + 1;
    match (row, column) {
        (1, 1) => b"\x1b[H".to_vec(),
        (row, 1) => format!("\x1b[{row}H").into_bytes(),
        (1, column) => format!("\x1b[;{column}H").into_bytes(),
        (row, column) => format!("\x1b[{row};{column}H").into_bytes(),
    }
}

fn relative(from: Position, to: Position) -> Option<Vec<u8>> {
    /// So many single steps are shorter than one move with a number.
    const STEPS: u16 = 3;
    if from.y == to.y {
        let back = from.x.saturating_sub(to.x);
        return Some(match (to.x, back) {
            (0, _) => b"\r".to_vec(),
            (_, 0) => moved(to.x - from.x, 'C'),
            (_, 1..=STEPS) => vec![0x08; usize::from(back)],
            (_, _) => moved(back, 'D'),
        });
    }
    let down = to.y.saturating_sub(from.y);
    if to.x == 0 && (1..=STEPS).contains(&down) {
        let mut bytes = b"\r".to_vec();
        bytes.resize(1 + usize::from(down), b'\n');
        return Some(bytes);
    }
    (from.x == to.x).then(|| match down {
        0 => moved(from.y - to.y, 'A'),
        down => moved(down, 'B'),
    })
}

/// A move by so many cells.
pub(crate) fn moved(by: u16, letter: char) -> Vec<u8> {
    match by {
        0 => Vec::new(),
        1 => format!("\x1b[{letter}").into_bytes(),
        by => format!("\x1b[{by}{letter}").into_bytes(),
    }
}
