//! What a person sees: rows of cells, their styles, and the cursor.

use std::fmt::Write;
use std::ops::Range;

use super::stand_in;

/// A picture of the screen at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screen {
    rows: Vec<Row>,
    pub cursor: Cursor,
    /// Whether this is the alternate screen, which leaves no trace.
    pub alternate: bool,
}

/// Where the cursor stands, counted from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    pub col: u16,
    pub row: u16,
    pub visible: bool,
}

/// How a cell looks.
#[expect(
    clippy::struct_excessive_bools,
    reason = "attributes of a cell are independent of each other"
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CellStyle {
    pub fg: Color,
    pub bg: Color,
    pub bold: bool,
    pub dim: bool,
    pub italic: bool,
    pub underline: bool,
    pub inverse: bool,
}

/// A colour as the program named it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Color {
    #[default]
    Default,
    Indexed(u8),
    Rgb(u8, u8, u8),
}

/// The text of a row once, and where in it each column begins: a snapshot is taken for every look,
/// so a cell owns nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Row {
    text: String,
    starts: Vec<usize>,
    styles: Vec<CellStyle>,
}

impl Screen {
    pub(super) fn of(screen: &vt100::Screen) -> Self {
        let (rows, cols) = screen.size();
        let (row, col) = screen.cursor_position();
        Self {
            rows: (0..rows.get())
                .map(|row| Row::of(screen, row, cols.get()))
                .collect(),
            cursor: Cursor {
                // Past the last column means: the next character wraps.
                col: col.min(cols.get() - 1),
                row,
                visible: !screen.hide_cursor(),
            },
            alternate: screen.alternate_screen(),
        }
    }

    /// All rows, trimmed at the right.
    pub fn text(&self) -> String {
        let rows: Vec<_> = self.rows.iter().map(Row::trimmed).collect();
        rows.join("\n")
    }

    /// One row, trimmed at the right; empty where there is none.
    pub fn row(&self, n: usize) -> String {
        self.rows
            .get(n)
            .map_or_else(String::new, |row| row.trimmed().to_owned())
    }

    /// How many columns and rows there are.
    pub fn size(&self) -> (usize, usize) {
        let cols = self.rows.first().map_or(0, |row| row.styles.len());
        (cols, self.rows.len())
    }

    /// Whether one of the rows contains this text.
    pub fn contains(&self, needle: &str) -> bool {
        self.find(needle).is_some()
    }

    /// The row and column at which this text first stands.
    pub fn find(&self, needle: &str) -> Option<(usize, usize)> {
        self.rows.iter().enumerate().find_map(|(number, row)| {
            let byte = row.text.find(needle)?;
            Some((number, row.column_of(byte)))
        })
    }

    /// The style of a cell; the default one outside of the screen.
    pub fn style_at(&self, row: usize, col: usize) -> CellStyle {
        self.rows
            .get(row)
            .and_then(|row| row.styles.get(col))
            .copied()
            .unwrap_or_default()
    }

    /// The text of a cell; empty in the second half of a wide one.
    pub fn cell(&self, row: usize, col: usize) -> &str {
        self.rows.get(row).map_or("", |row| row.cell(col))
    }

    /// The text, and below it a line for each run of cells that is not plain, for snapshots.
    pub fn styled(&self) -> String {
        let mut out = self.text();
        out.push_str("\n---\n");
        for (number, row) in self.rows.iter().enumerate() {
            for (columns, style) in row.runs() {
                let text = row.slice(columns.clone());
                let Range { start, end } = columns;
                let _ = writeln!(out, "{number}:{start}-{end} {} {text:?}", style.named());
            }
        }
        out
    }

    /// The screen in a frame, for the reader of a failed test.
    pub fn drawn(&self) -> String {
        let (cols, _) = self.size();
        let Cursor { col, row, visible } = self.cursor;
        let shown = if visible { "" } else { " (hidden)" };
        let which = if self.alternate { "alternate" } else { "main" };
        let edge = "─".repeat(cols);
        let mut out =
            format!("{which} screen, cursor at row {row}, column {col}{shown}\n┌{edge}┐\n");
        for row in &self.rows {
            let _ = writeln!(out, "│{}│", row.text);
        }
        let _ = writeln!(out, "└{edge}┘");
        out
    }
}

impl Row {
    fn of(screen: &vt100::Screen, row: u16, cols: u16) -> Self {
        let mut text = String::with_capacity(usize::from(cols));
        let mut starts = Vec::with_capacity(usize::from(cols));
        let mut styles = Vec::with_capacity(usize::from(cols));
        for col in 0..cols {
            starts.push(text.len());
            let Some(cell) = screen.cell(row, col) else {
                text.push(' ');
                styles.push(CellStyle::default());
                continue;
            };
            if cell.has_contents() {
                text.extend(cell.contents().chars().map(stand_in::restore));
            } else if !cell.is_wide_continuation() {
                text.push(' ');
            }
            styles.push(CellStyle::of(cell));
        }
        Self {
            text,
            starts,
            styles,
        }
    }

    fn trimmed(&self) -> &str {
        self.text.trim_end()
    }

    fn column_of(&self, byte: usize) -> usize {
        self.starts.partition_point(|start| *start <= byte).max(1) - 1
    }

    fn cell(&self, col: usize) -> &str {
        self.slice(col..col + 1)
    }

    fn slice(&self, columns: Range<usize>) -> &str {
        let edge = |col: usize| self.starts.get(col).copied().unwrap_or(self.text.len());
        self.text
            .get(edge(columns.start)..edge(columns.end))
            .unwrap_or_default()
    }

    /// Neighbouring cells of one style, the plain ones left out.
    fn runs(&self) -> Vec<(Range<usize>, CellStyle)> {
        let mut runs: Vec<(Range<usize>, CellStyle)> = Vec::new();
        for (col, style) in self.styles.iter().enumerate() {
            match runs.last_mut() {
                Some((columns, last)) if last == style => columns.end = col + 1,
                Some(_) | None => runs.push((col..col + 1, *style)),
            }
        }
        runs.retain(|(_, style)| *style != CellStyle::default());
        runs
    }
}

impl CellStyle {
    fn of(cell: &vt100::Cell) -> Self {
        Self {
            fg: Color::of(cell.fgcolor()),
            bg: Color::of(cell.bgcolor()),
            bold: cell.bold(),
            dim: cell.dim(),
            italic: cell.italic(),
            underline: cell.underline(),
            inverse: cell.inverse(),
        }
    }

    /// The style in words, such as `bold fg=2`.
    fn named(self) -> String {
        let attributes = [
            (self.bold, "bold"),
            (self.dim, "dim"),
            (self.italic, "italic"),
            (self.underline, "underline"),
            (self.inverse, "inverse"),
        ];
        let mut words: Vec<String> = attributes
            .into_iter()
            .filter(|(has, _)| *has)
            .map(|(_, name)| name.to_owned())
            .collect();
        words.extend(self.fg.named().map(|color| format!("fg={color}")));
        words.extend(self.bg.named().map(|color| format!("bg={color}")));
        words.join(" ")
    }
}

impl Color {
    fn of(color: vt100::Color) -> Self {
        match color {
            vt100::Color::Default => Self::Default,
            vt100::Color::Idx(index) => Self::Indexed(index),
            vt100::Color::Rgb(red, green, blue) => Self::Rgb(red, green, blue),
        }
    }

    fn named(self) -> Option<String> {
        match self {
            Self::Default => None,
            Self::Indexed(index) => Some(index.to_string()),
            Self::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
        }
    }
}
