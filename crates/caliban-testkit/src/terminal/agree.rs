//! Three emulators show the same.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::num::NonZeroU16;

use alacritty_terminal::Term;
use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::Config;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::Processor;

/// An emulator of the smallest size that all of them can have.
const SMALLEST: (u16, u16) = (2, 1);

/// How many differences are told.
const TOLD: usize = 10;

/// Whether `vt100`, `avt` and `alacritty_terminal` show the same cells and cursor after an output.
/// Clusters on whose width terminals differ are excepted; what stands beside them is not.
pub fn agree(raw: &[u8], cols: u16, rows: u16) -> Result<(), String> {
    replay(raw, &[(0, (cols, rows))])
}

/// The same for an output during which the size changed, given by the byte from which on it was.
pub(super) fn replay(raw: &[u8], sizes: &[(usize, (u16, u16))]) -> Result<(), String> {
    let first = sizes.first().map_or(SMALLEST, |(_, size)| *size);
    let mut emulators = Emulators::new(at_least(first))?;
    let mut from = 0;
    for (at, next) in sizes {
        let at = before_character(raw, *at);
        emulators.feed(raw.get(from..at).unwrap_or_default());
        emulators.resize(at_least(*next));
        from = at;
    }
    emulators.feed(raw.get(from..).unwrap_or_default());
    compare(&emulators.grids())
}

fn at_least((cols, rows): (u16, u16)) -> (u16, u16) {
    (cols.max(SMALLEST.0), rows.max(SMALLEST.1))
}

/// A place at which no character is cut in two.
fn before_character(raw: &[u8], mut at: usize) -> usize {
    while at > 0 && raw.get(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
        at -= 1;
    }
    at
}

struct Emulators {
    vt100: vt100::Parser,
    avt: avt::Terminal,
    alacritty: Term<VoidListener>,
    processor: Processor,
}

/// The cells of a screen, one text each, empty in the second half of a wide one; and the cursor.
#[derive(Debug)]
struct Grid {
    name: &'static str,
    rows: Vec<Vec<String>>,
    cursor: (usize, usize),
}

struct Size(u16, u16);

impl Dimensions for Size {
    fn total_lines(&self) -> usize {
        self.screen_lines()
    }

    fn screen_lines(&self) -> usize {
        usize::from(self.1)
    }

    fn columns(&self) -> usize {
        usize::from(self.0)
    }
}

impl Emulators {
    fn new((cols, rows): (u16, u16)) -> Result<Self, String> {
        let avt = avt::Terminal::new(cols.into(), rows.into()).map_err(|e| e.to_string())?;
        Ok(Self {
            vt100: vt100::Parser::new(at_least_one(rows), at_least_one(cols), 0),
            avt,
            alacritty: Term::new(Config::default(), &Size(cols, rows), VoidListener),
            processor: Processor::new(),
        })
    }

    fn feed(&mut self, bytes: &[u8]) {
        // The character for what is none is dropped by `vt100`, so that all get another one.
        let text = String::from_utf8_lossy(bytes).replace(char::REPLACEMENT_CHARACTER, "?");
        self.vt100.process(text.as_bytes());
        self.avt.feed(text.as_str());
        self.processor.advance(&mut self.alacritty, text.as_bytes());
    }

    fn resize(&mut self, (cols, rows): (u16, u16)) {
        self.vt100.set_size(at_least_one(rows), at_least_one(cols));
        self.avt.resize(cols.into(), rows.into());
        self.alacritty.resize(Size(cols, rows));
    }

    fn grids(mut self) -> [Grid; 3] {
        // A frame that was begun is shown as far as it came.
        self.processor.stop_sync(&mut self.alacritty);
        [
            of_vt100(self.vt100.screen()),
            of_avt(&self.avt),
            of_alacritty(&self.alacritty),
        ]
    }
}

fn at_least_one(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).unwrap_or(NonZeroU16::MIN)
}

fn of_vt100(screen: &vt100::Screen) -> Grid {
    let (rows, cols) = screen.size();
    let text = |row, col| {
        let Some(cell) = screen.cell(row, col) else {
            return String::new();
        };
        if cell.is_wide_continuation() {
            String::new()
        } else {
            shown(cell.contents())
        }
    };
    let (row, col) = screen.cursor_position();
    Grid {
        name: "vt100",
        rows: (0..rows.get())
            .map(|row| (0..cols.get()).map(|col| text(row, col)).collect())
            .collect(),
        cursor: (row.into(), col.min(cols.get() - 1).into()),
    }
}

fn of_avt(terminal: &avt::Terminal) -> Grid {
    let (cols, _) = terminal.size();
    let text = |cell: &avt::Cell| match cell.width() {
        0 => String::new(),
        _ => shown(cell.char().encode_utf8(&mut [0; 4])),
    };
    let cursor = terminal.cursor();
    Grid {
        name: "avt",
        rows: terminal
            .screen()
            .visible_lines()
            .map(|line| line.cells().iter().map(text).collect())
            .collect(),
        cursor: (cursor.row, cursor.col.min(cols - 1)),
    }
}

fn of_alacritty(term: &Term<VoidListener>) -> Grid {
    let grid = term.grid();
    let text = |cell: &Cell| {
        if cell.flags.contains(Flags::WIDE_CHAR_SPACER) {
            return String::new();
        }
        let mut text = String::from(cell.c);
        text.extend(cell.zerowidth().unwrap_or_default());
        shown(&text)
    };
    let lines = 0..i32::try_from(grid.screen_lines()).unwrap_or_default();
    let columns = || (0..grid.columns()).map(Column);
    let point = grid.cursor.point;
    Grid {
        name: "alacritty",
        rows: lines
            .map(|line| columns().map(|col| text(&grid[Line(line)][col])).collect())
            .collect(),
        cursor: (
            usize::try_from(point.line.0).unwrap_or_default(),
            point.column.0,
        ),
    }
}

/// A cell without text, and one over which a tab went, look like a space.
fn shown(text: &str) -> String {
    if text.is_empty() || text.starts_with(char::is_control) {
        " ".to_owned()
    } else {
        text.to_owned()
    }
}

fn compare(grids: &[Grid; 3]) -> Result<(), String> {
    let [first, others @ ..] = grids;
    let mut differences = Vec::new();
    for (row, cells) in first.rows.iter().enumerate() {
        let all: Vec<&[String]> = grids
            .iter()
            .map(|grid| grid.rows.get(row).map_or(&[][..], Vec::as_slice))
            .collect();
        let disputed = disputed(&all);
        for (col, cell) in cells.iter().enumerate() {
            let is_same = all.iter().all(|cells| cells.get(col) == Some(cell));
            if !is_same && !disputed.contains(&col) {
                let seen: Vec<_> = grids
                    .iter()
                    .zip(&all)
                    .map(|(grid, cells)| format!("{} {:?}", grid.name, cells.get(col)))
                    .collect();
                differences.push(format!("row {row}, column {col}: {}", seen.join(", ")));
            }
        }
        let is_at_cursor = grids.iter().any(|grid| grid.cursor.0 == row);
        if is_at_cursor && disputed.is_empty() && others.iter().any(|o| o.cursor != first.cursor) {
            let seen: Vec<_> = grids
                .iter()
                .map(|grid| format!("{} {:?}", grid.name, grid.cursor))
                .collect();
            differences.push(format!("cursor: {}", seen.join(", ")));
        }
    }
    differences.dedup();
    if differences.is_empty() {
        return Ok(());
    }
    let more = differences.len().saturating_sub(TOLD);
    differences.truncate(TOLD);
    let mut told = differences.join("\n");
    if more > 0 {
        let _ = write!(told, "\nand {more} more");
    }
    Err(told)
}

/// The columns of a row in which emulators may differ. Where a cluster is one on whose width they do
/// not agree, each may show its parts elsewhere; but text without such parts stays where it is.
fn disputed(all: &[&[String]]) -> BTreeSet<usize> {
    let is_any_cluster = all
        .iter()
        .any(|cells| cells.iter().any(|cell| cell.chars().any(joins)));
    if !is_any_cluster {
        return BTreeSet::new();
    }
    let mut columns = BTreeSet::new();
    for cells in all {
        for (col, cell) in cells.iter().enumerate() {
            let is_part = !cell.is_ascii();
            let is_half = cell.is_empty();
            if is_part || is_half {
                columns.insert(col);
            }
        }
    }
    columns
}

/// Whether a character makes a cluster of what stands before it, or of two of its kind: joiners and
/// selectors, marks, skin tones, the letters of flags, and scripts whose syllables join.
fn joins(c: char) -> bool {
    matches!(
        c,
        '\u{300}'..='\u{36f}'
            | '\u{900}'..='\u{109f}'
            | '\u{1160}'..='\u{11ff}'
            | '\u{1780}'..='\u{17ff}'
            | '\u{1ab0}'..='\u{1aff}'
            | '\u{1dc0}'..='\u{1dff}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2060}'..='\u{2064}'
            | '\u{20d0}'..='\u{20ff}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{fe20}'..='\u{fe2f}'
            | '\u{1f1e6}'..='\u{1f1ff}'
            | '\u{1f3fb}'..='\u{1f3ff}'
            | '\u{e0000}'..='\u{e01ef}'
    )
}
