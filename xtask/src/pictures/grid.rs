//! A screen as cells, without what differs from one run to the next.

use caliban_testkit::terminal::{CellStyle, Screen};

/// What turns while something works; a picture shows the first.
const SPINNER: [&str; 4] = ["◐", "◓", "◑", "◒"];

/// One cell: its text, empty in the second half of a wide one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) text: String,
    pub(super) style: CellStyle,
}

/// The cells of a screen, row by row, and where the cursor is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Grid {
    pub(super) rows: Vec<Vec<Cell>>,
    /// Its row and column.
    pub(super) cursor: Option<(usize, usize)>,
}

impl Grid {
    pub(super) fn of(screen: &Screen) -> Self {
        let (columns, rows) = screen.size();
        let cell = |row, column| Cell {
            text: screen.cell(row, column).to_owned(),
            style: screen.style_at(row, column),
        };
        let cursor = screen.cursor;
        let is_seen = cursor.visible;
        Self {
            rows: (0..rows)
                .map(|row| steady((0..columns).map(|column| cell(row, column)).collect()))
                .collect(),
            cursor: is_seen.then(|| (cursor.row.into(), cursor.col.into())),
        }
    }

    pub(super) fn columns(&self) -> usize {
        self.rows.first().map_or(0, Vec::len)
    }
}

/// The same row at any speed of the machine: every time that is told is a tenth of a second or
/// none, and what turns stands still.
fn steady(mut row: Vec<Cell>) -> Vec<Cell> {
    let columns = row.len();
    let mut at = 0;
    while at < row.len() {
        if SPINNER.contains(&row[at].text.as_str()) {
            SPINNER[0].clone_into(&mut row[at].text);
        }
        let length = number(&row, at);
        if length > 0 && is_time(&row[at + length..]) {
            let has_tenths = row[at..at + length].iter().any(|cell| cell.text == ".");
            let told = if has_tenths { "0.1" } else { "0" };
            let style = row[at].style;
            let told = told.chars().map(|letter| Cell {
                text: letter.to_string(),
                style,
            });
            row.splice(at..at + length, told);
            at += 1;
        }
        at += length.max(1);
    }
    row.resize(columns, blank());
    row
}

/// How many cells from here on are a number; none in the middle of a word.
fn number(row: &[Cell], at: usize) -> usize {
    let is_word = |cell: &Cell| cell.text.chars().any(char::is_alphanumeric);
    if at > 0 && (is_word(&row[at - 1]) || row[at - 1].text == ".") {
        return 0;
    }
    let is_digit = |cell: &&Cell| cell.text.chars().all(|letter| letter.is_ascii_digit());
    let is_part = |cell: &&Cell| !cell.text.is_empty() && (is_digit(cell) || cell.text == ".");
    if row.get(at).is_none_or(|cell| cell.text == ".") {
        return 0;
    }
    row[at..].iter().take_while(is_part).count()
}

/// Whether what follows a number makes it a time: ` s` or ` ms`, and nothing after that.
fn is_time(rest: &[Cell]) -> bool {
    let text: String = rest.iter().take(4).map(|cell| cell.text.as_str()).collect();
    let unit = text.strip_prefix(' ').unwrap_or_default();
    let after = unit.strip_prefix("ms").or_else(|| unit.strip_prefix('s'));
    after.is_some_and(|after| !after.starts_with(char::is_alphanumeric))
}

fn blank() -> Cell {
    Cell {
        text: " ".to_owned(),
        style: CellStyle::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(text: &str) -> Vec<Cell> {
        let cells = text.chars().map(|letter| Cell {
            text: letter.to_string(),
            style: CellStyle::default(),
        });
        cells.collect()
    }

    fn text(cells: &[Cell]) -> String {
        cells.iter().map(|cell| cell.text.as_str()).collect()
    }

    #[test]
    fn times_are_the_same_however_long_it_took() {
        for (slow, fast) in [
            ("a (1) · 12.4 s", "a (1) · 0.1 s "),
            ("◑ Working 13 s · Esc", "◐ Working 0 s · Esc "),
            ("took 3 ms, 4 sheep", "took 0 ms, 4 sheep"),
            ("v1.2 s of 3 steps", "v1.2 s of 3 steps"),
            ("ends with 12", "ends with 12"),
        ] {
            assert_eq!(text(&steady(row(slow))), fast);
        }
    }
}
