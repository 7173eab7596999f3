//! Two terminals that were written by others, and what they show.

#![allow(clippy::unwrap_used)]

use std::num::NonZeroU16;

use alacritty_terminal::event::VoidListener;
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::cell::Flags;
use alacritty_terminal::term::test::TermSize;
use alacritty_terminal::term::{Config, Term, TermMode};
use alacritty_terminal::vte::ansi::{Color as Shade, NamedColor, Processor};
use ratatui_core::style::{Color, Modifier};

/// What stands in one cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shown {
    /// Empty if something before covers it.
    pub(crate) text: String,
    pub(crate) foreground: Color,
    pub(crate) background: Color,
    pub(crate) attributes: Modifier,
    pub(crate) link: Option<(String, String)>,
}

impl Shown {
    /// Without what nobody sees in a blank cell, and with the attributes that the emulator knows.
    pub(crate) fn visible(mut self, known: Modifier) -> Self {
        self.attributes &= known;
        if self.text.is_empty() {
            self.foreground = Color::Reset;
            self.background = Color::Reset;
            self.attributes = Modifier::empty();
            self.link = None;
        }
        let lines = Modifier::UNDERLINED | Modifier::REVERSED | Modifier::CROSSED_OUT;
        if self.text == " " && self.link.is_none() && !self.attributes.intersects(lines) {
            self.foreground = Color::Reset;
            self.attributes = Modifier::empty();
        }
        self
    }
}

pub(crate) trait Emulator {
    fn new(columns: u16, rows: u16) -> Self;
    fn feed(&mut self, bytes: &[u8]);
    fn shown(&self, column: u16, row: u16) -> Shown;
    /// The attributes that it tells apart.
    fn attributes() -> Modifier;
    fn knows_links() -> bool;
    /// Column and row, if it is shown.
    fn cursor(&self) -> Option<(u16, u16)>;
}

pub(crate) struct Vt100(vt100::Parser);

impl Emulator for Vt100 {
    fn new(columns: u16, rows: u16) -> Self {
        let size = |count| NonZeroU16::new(count).unwrap();
        Self(vt100::Parser::new(size(rows), size(columns), 100))
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.0.process(bytes);
    }

    fn shown(&self, column: u16, row: u16) -> Shown {
        let cell = self.0.screen().cell(row, column).unwrap();
        let colour = |colour: vt100::Color| match colour {
            vt100::Color::Default => Color::Reset,
            vt100::Color::Idx(index) => basic(index),
            vt100::Color::Rgb(r, g, b) => Color::Rgb(r, g, b),
        };
        let text = match (cell.is_wide_continuation(), cell.contents()) {
            (true, _) => String::new(),
            (false, "") => " ".to_owned(),
            (false, text) => text.to_owned(),
        };
        let attributes = [
            (cell.bold(), Modifier::BOLD),
            (cell.dim(), Modifier::DIM),
            (cell.italic(), Modifier::ITALIC),
            (cell.underline(), Modifier::UNDERLINED),
            (cell.inverse(), Modifier::REVERSED),
        ];
        Shown {
            text,
            foreground: colour(cell.fgcolor()),
            background: colour(cell.bgcolor()),
            attributes: set(&attributes),
            link: None,
        }
    }

    fn attributes() -> Modifier {
        // Of bold and dim it has one at a time.
        Modifier::ITALIC | Modifier::UNDERLINED | Modifier::REVERSED
    }

    fn knows_links() -> bool {
        false
    }

    fn cursor(&self) -> Option<(u16, u16)> {
        let (row, column) = self.0.screen().cursor_position();
        (!self.0.screen().hide_cursor()).then_some((column, row))
    }
}

pub(crate) struct Alacritty {
    pub(crate) term: Term<VoidListener>,
    processor: Processor,
}

impl Alacritty {
    /// Every row that there is, those that have left the screen too; without blanks behind them.
    pub(crate) fn rows(&self) -> Vec<String> {
        let grid = self.term.grid();
        let lines = grid.topmost_line().0..=grid.bottommost_line().0;
        let text = |line: i32| -> String {
            let cells = grid[Line(line)].into_iter();
            let cells = cells.filter(|cell| !cell.flags.contains(Flags::WIDE_CHAR_SPACER));
            cells.map(|cell| cell.c).collect()
        };
        let mut rows: Vec<_> = lines.map(|line| text(line).trim_end().to_owned()).collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows
    }

    pub(crate) fn resize(&mut self, columns: u16, rows: u16) {
        self.term.resize(TermSize::new(columns.into(), rows.into()));
    }

    pub(crate) fn mode(&self) -> TermMode {
        *self.term.mode()
    }
}

impl Emulator for Alacritty {
    fn new(columns: u16, rows: u16) -> Self {
        let size = TermSize::new(columns.into(), rows.into());
        let config = Config {
            kitty_keyboard: true,
            ..Config::default()
        };
        Self {
            term: Term::new(config, &size, VoidListener),
            processor: Processor::new(),
        }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.processor.advance(&mut self.term, bytes);
    }

    fn shown(&self, column: u16, row: u16) -> Shown {
        let cell = &self.term.grid()[Line(i32::from(row))][Column(column.into())];
        let mut text = cell.c.to_string();
        text.extend(cell.zerowidth().unwrap_or_default());
        if cell.flags.contains(Flags::WIDE_CHAR_SPACER) {
            text.clear();
        }
        let has = |flag| cell.flags.contains(flag);
        let attributes = [
            (has(Flags::BOLD), Modifier::BOLD),
            (has(Flags::DIM), Modifier::DIM),
            (has(Flags::ITALIC), Modifier::ITALIC),
            (has(Flags::UNDERLINE), Modifier::UNDERLINED),
            (has(Flags::INVERSE), Modifier::REVERSED),
            (has(Flags::HIDDEN), Modifier::HIDDEN),
            (has(Flags::STRIKEOUT), Modifier::CROSSED_OUT),
        ];
        Shown {
            text,
            foreground: shade(cell.fg),
            background: shade(cell.bg),
            attributes: set(&attributes),
            link: cell
                .hyperlink()
                .map(|link| (link.id().to_owned(), link.uri().to_owned())),
        }
    }

    fn attributes() -> Modifier {
        let blinking = Modifier::SLOW_BLINK | Modifier::RAPID_BLINK;
        Modifier::all().difference(blinking)
    }

    fn knows_links() -> bool {
        true
    }

    fn cursor(&self) -> Option<(u16, u16)> {
        let at = self.term.grid().cursor.point;
        let column = u16::try_from(at.column.0).unwrap();
        let row = u16::try_from(at.line.0).unwrap();
        self.mode()
            .contains(TermMode::SHOW_CURSOR)
            .then_some((column, row))
    }
}

fn set(attributes: &[(bool, Modifier)]) -> Modifier {
    let held = attributes.iter().filter(|(held, _)| *held);
    held.map(|(_, attribute)| *attribute).collect()
}

/// The sixteen colours by their names, the others by their numbers.
pub(crate) fn basic(index: u8) -> Color {
    const NAMED: [Color; 16] = [
        Color::Black,
        Color::Red,
        Color::Green,
        Color::Yellow,
        Color::Blue,
        Color::Magenta,
        Color::Cyan,
        Color::Gray,
        Color::DarkGray,
        Color::LightRed,
        Color::LightGreen,
        Color::LightYellow,
        Color::LightBlue,
        Color::LightMagenta,
        Color::LightCyan,
        Color::White,
    ];
    let named = NAMED.get(usize::from(index)).copied();
    named.unwrap_or(Color::Indexed(index))
}

fn shade(shade: Shade) -> Color {
    match shade {
        Shade::Named(NamedColor::Foreground | NamedColor::Background) => Color::Reset,
        Shade::Named(name) => basic(u8::try_from(name as usize).unwrap()),
        Shade::Indexed(index) => Color::Indexed(index),
        Shade::Spec(rgb) => Color::Rgb(rgb.r, rgb.g, rgb.b),
    }
}
