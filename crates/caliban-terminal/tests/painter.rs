//! What the painter writes makes a terminal show the buffer, and is short.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod emulators;

use std::ops::Range;

use caliban_terminal::{
    Capabilities, CellLink, LEAVE, MouseCapture, Painter, Support, Surface, enter,
};
use emulators::{Alacritty, Emulator, Shown, Vt100};
use proptest::prelude::*;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::{Position, Rect};
use ratatui_core::style::{Color, Modifier, Style};
use rstest::rstest;

const WIDTH: u16 = 14;
const HEIGHT: u16 = 8;

fn capabilities() -> Capabilities {
    let environment = |name: &str| match name {
        "TERM" => Some("alacritty".to_owned()),
        _ => None,
    };
    let mut capabilities = Capabilities::from_environment(&environment);
    capabilities.synchronised = Support::Yes;
    capabilities
}

fn area(width: u16, height: u16) -> Rect {
    Rect::new(0, 0, width, height)
}

/// Clusters with the width that all agree on.
const GLYPHS: [(&str, u16); 12] = [
    (" ", 1),
    (" ", 1),
    (" ", 1),
    ("a", 1),
    ("b", 1),
    ("~", 1),
    ("é", 1),
    ("─", 1),
    ("e\u{301}", 1),
    ("漢", 2),
    ("🎉", 2),
    ("ｗ", 2),
];

const LINES: [&str; 4] = [
    "漢漢漢漢漢漢漢",
    "a漢漢漢漢漢漢",
    "bbbbb",
    "ab     漢 e\u{301}",
];

fn width_of(symbol: &str) -> u16 {
    GLYPHS
        .iter()
        .find(|(glyph, _)| *glyph == symbol)
        .map_or(1, |(_, width)| *width)
}

/// What a terminal should show.
fn expected(buffer: &Buffer, links: &[CellLink], column: u16, row: u16) -> Shown {
    let mut x = 0;
    while x < column {
        let width = width_of(buffer[(x, row)].symbol());
        let fits = x + width <= buffer.area.width;
        x += if fits { width } else { 1 };
    }
    let cell = &buffer[(x.min(column), row)];
    let fits = column + width_of(cell.symbol()) <= buffer.area.width;
    let text = match (x > column, fits) {
        (true, _) => "",
        (false, true) => cell.symbol(),
        (false, false) => " ",
    };
    let link = links
        .iter()
        .rfind(|link| link.row == row && link.columns.contains(&column));
    Shown {
        text: text.to_owned(),
        foreground: cell.fg,
        background: cell.bg,
        attributes: cell.modifier,
        link: link.map(|link| (link.id.to_string(), link.target.to_string())),
    }
}

fn compare<E: Emulator>(
    emulator: &E,
    buffer: &Buffer,
    links: &[CellLink],
) -> Result<(), TestCaseError> {
    for row in 0..buffer.area.height {
        for column in 0..buffer.area.width {
            let mut expected = expected(buffer, links, column, row);
            if !E::knows_links() {
                expected.link = None;
            }
            let shown = emulator.shown(column, row).visible(E::attributes());
            prop_assert_eq!(
                shown,
                expected.visible(E::attributes()),
                "at {}, {}",
                column,
                row
            );
        }
    }
    Ok(())
}

/// One change of the screen between two frames.
#[derive(Debug, Clone)]
enum Step {
    Write {
        row: u16,
        column: u16,
        glyphs: Vec<(usize, usize)>,
    },
    Move {
        rows: Range<u16>,
        by: i32,
        told: i32,
    },
    /// Lines that come again, so that something is often where it was.
    Line {
        row: u16,
        line: usize,
    },
    Clear {
        rows: Range<u16>,
    },
    Link {
        row: u16,
        columns: Range<u16>,
        id: u32,
    },
    Forget,
}

/// What happens before a frame, and where its cursor is.
type Frame = (Vec<Step>, Option<(u16, u16)>);

fn rows() -> impl Strategy<Value = Range<u16>> {
    (0..HEIGHT, 1..=HEIGHT).prop_map(|(start, length)| start..(start + length).min(HEIGHT))
}

fn step() -> impl Strategy<Value = Step> {
    let glyphs = prop::collection::vec((0..GLYPHS.len(), 0..styles().len()), 1..20);
    let written = (0..HEIGHT, 0..WIDTH, glyphs).prop_map(|(row, column, glyphs)| Step::Write {
        row,
        column,
        glyphs,
    });
    let by = -4_i32..5;
    let moved =
        (rows(), by.clone(), prop::option::weighted(0.2, by)).prop_map(|(rows, by, told)| {
            Step::Move {
                rows,
                by,
                told: told.unwrap_or(by),
            }
        });
    let link =
        (0..HEIGHT, 0..WIDTH, 1..8_u16, 1..4_u32).prop_map(|(row, start, length, id)| Step::Link {
            row,
            columns: start..start + length,
            id,
        });
    prop_oneof![
        5 => written,
        4 => (0..HEIGHT, 0..LINES.len()).prop_map(|(row, line)| Step::Line { row, line }),
        3 => moved,
        1 => rows().prop_map(|rows| Step::Clear { rows }),
        1 => link,
        1 => Just(Step::Forget),
    ]
}

fn styles() -> Vec<Style> {
    vec![
        Style::new(),
        Style::new(),
        Style::new().fg(Color::Red),
        Style::new().fg(Color::LightBlue).bg(Color::DarkGray),
        Style::new().bg(Color::Rgb(1, 2, 3)),
        Style::new().fg(Color::Indexed(200)),
        Style::new().add_modifier(Modifier::BOLD),
        Style::new().add_modifier(Modifier::DIM | Modifier::ITALIC),
        Style::new().add_modifier(Modifier::BOLD | Modifier::DIM),
        Style::new().add_modifier(Modifier::REVERSED),
        Style::new()
            .fg(Color::Green)
            .add_modifier(Modifier::UNDERLINED | Modifier::CROSSED_OUT),
        Style::new().add_modifier(Modifier::HIDDEN | Modifier::SLOW_BLINK),
    ]
}

/// A program that draws: its screen, and the painter.
struct Program {
    buffer: Buffer,
    links: Vec<CellLink>,
    painter: Painter,
}

impl Program {
    fn new() -> Self {
        Self {
            buffer: Buffer::empty(area(WIDTH, HEIGHT)),
            links: Vec::new(),
            painter: Painter::new(&capabilities()),
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Write {
                row,
                column,
                glyphs,
            } => {
                for ((glyph, style), x) in glyphs.iter().zip(*column..WIDTH) {
                    let cell = &mut self.buffer[(x, *row)];
                    cell.reset();
                    cell.set_symbol(GLYPHS[*glyph].0)
                        .set_style(styles()[*style]);
                }
            }
            Step::Move { rows, by, told } => {
                let before = self.buffer.clone();
                for y in rows.clone() {
                    let from = i32::from(y) + by;
                    let from = u16::try_from(from).ok().filter(|from| rows.contains(from));
                    for x in 0..WIDTH {
                        self.buffer[(x, y)] = from
                            .map(|from| before[(x, from)].clone())
                            .unwrap_or_default();
                    }
                }
                self.links.retain(|link| !rows.contains(&link.row));
                self.painter.scrolled(rows.clone(), *told);
            }
            Step::Line { row, line } => {
                for x in 0..WIDTH {
                    self.buffer[(x, *row)].reset();
                }
                self.buffer.set_string(0, *row, LINES[*line], Style::new());
            }
            Step::Clear { rows } => {
                for y in rows.clone() {
                    for x in 0..WIDTH {
                        self.buffer[(x, y)].reset();
                    }
                }
            }
            Step::Link { row, columns, id } => self.links.push(CellLink {
                row: *row,
                columns: columns.clone(),
                target: format!("https://example.org/{id}").into(),
                id: *id,
            }),
            Step::Forget => self.painter.invalidate(),
        }
    }
}

fn draws_what_is_asked<E: Emulator>(frames: &[Frame]) -> Result<(), TestCaseError> {
    let mut program = Program::new();
    let mut emulator = E::new(WIDTH, HEIGHT);
    emulator.feed(&enter(Surface::Fullscreen, MouseCapture::Off));
    for (steps, cursor) in frames {
        for step in steps {
            program.take(step);
            if matches!(step, Step::Forget) {
                emulator.feed(b"\x1b[3;3H\x1b[1;31;42mgarbage\x1b[?25l");
            }
        }
        let cursor = cursor.map(Position::from);
        let bytes = program
            .painter
            .paint(&program.buffer, &program.links, cursor);
        prop_assert!(
            !bytes
                .windows(4)
                .any(|part| matches!(part, b"\x1b[2J" | b"\x1b[3J"))
        );
        emulator.feed(bytes);
        compare(&emulator, &program.buffer, &program.links)?;
        prop_assert_eq!(emulator.cursor().map(Position::from), cursor);
        let again = program
            .painter
            .paint(&program.buffer, &program.links, cursor);
        prop_assert_eq!(again, b"", "nothing has changed");
    }
    Ok(())
}

fn frames() -> impl Strategy<Value = Vec<Frame>> {
    let cursor = prop::option::of((0..WIDTH, 0..HEIGHT));
    prop::collection::vec((prop::collection::vec(step(), 0..6), cursor), 1..8)
}

proptest! {
    #[test]
    fn alacritty_shows_the_buffer(frames in frames()) {
        draws_what_is_asked::<Alacritty>(&frames)?;
    }

    #[test]
    fn vt100_shows_the_buffer(frames in frames()) {
        draws_what_is_asked::<Vt100>(&frames)?;
    }

    /// Whatever a terminal makes of such a cluster, everything else stands where it should.
    #[test]
    fn disputed_clusters_harm_nothing_else(
        text in "[a-z ]{30}",
        cluster in prop::sample::select(vec!["👨\u{200d}👩\u{200d}👧", "❤\u{fe0f}", "🇩🇪", "क्षि", "1\u{fe0f}\u{20e3}"]),
        start in 0_u16..28,
    ) {
        let mut painter = Painter::new(&capabilities());
        let mut emulator = Alacritty::new(30, 2);
        emulator.feed(&enter(Surface::Fullscreen, MouseCapture::Off));
        let plain = Buffer::with_lines([text, "y".repeat(30)]);
        emulator.feed(painter.paint(&plain, &[], None));
        let mut buffer = plain.clone();
        let (end, _) = buffer.set_stringn(start, 0, cluster, 30, Style::new());
        emulator.feed(painter.paint(&buffer, &[], None));
        for x in (0..start).chain(end..30) {
            prop_assert_eq!(&emulator.shown(x, 0).text, buffer[(x, 0)].symbol(), "{}", x);
        }
        emulator.feed(painter.paint(&plain, &[], None));
        compare(&emulator, &plain, &[])?;
    }

    #[test]
    fn any_symbol_can_be_painted(symbols in prop::collection::vec("\\PC{0,3}|[\\x00-\\x1f\\x7f-\\u{9f}]{1,2}", 1..20)) {
        let mut painter = Painter::new(&capabilities());
        let mut buffer = Buffer::empty(area(7, 3));
        for (cell, symbol) in buffer.content.iter_mut().zip(&symbols) {
            cell.set_symbol(symbol);
        }
        let bytes = painter.paint(&buffer, &[], None).to_vec();
        let text = String::from_utf8(bytes).unwrap();
        let allowed = |c: char| !c.is_control() || matches!(c, '\x1b' | '\r' | '\n' | '\x08');
        prop_assert!(text.chars().all(allowed), "{:?}", text);
        prop_assert_eq!(painter.paint(&buffer, &[], None), b"");
    }
}

/// A screen of a usual size: text above, a status line and the prompt below.
fn screen(lines: &[String], prompt: &str) -> (Buffer, Option<Position>) {
    let mut buffer = Buffer::empty(area(120, 40));
    for (y, line) in (0..36).zip(lines.iter().skip(lines.len().saturating_sub(36))) {
        buffer.set_string(2, y, line, Style::new());
    }
    let dim = Style::new().add_modifier(Modifier::DIM);
    buffer.set_string(0, 37, "─".repeat(120), dim);
    buffer.set_string(0, 38, "> ", Style::new().fg(Color::Cyan));
    buffer.set_string(2, 38, prompt, Style::new());
    buffer.set_string(0, 39, "model · 12 % · /home/somebody/project", dim);
    let caret = 2 + u16::try_from(prompt.len()).unwrap();
    (buffer, Some(Position::new(caret, 38)))
}

#[test]
fn a_keystroke_is_short() {
    let lines = vec!["some text".to_owned(); 20];
    let mut painter = Painter::new(&capabilities());
    let (buffer, cursor) = screen(&lines, "");
    painter.paint(&buffer, &[], cursor);
    for length in 1..40 {
        let (buffer, cursor) = screen(&lines, &"abcdefghij".repeat(5)[..length]);
        let bytes = painter.paint(&buffer, &[], cursor);
        assert!(bytes.len() <= 60, "{}", String::from_utf8_lossy(bytes));
    }
    let (buffer, cursor) = screen(&lines, "");
    let cleared = painter.paint(&buffer, &[], cursor);
    assert!(cleared.len() <= 60, "{}", String::from_utf8_lossy(cleared));
}

/// A thousand deltas of five bytes, each a frame of its own, scrolling included.
#[rstest]
#[case(Support::Yes)]
#[case(Support::No)]
fn a_streamed_delta_is_short(#[case] synchronised: Support) {
    let mut capabilities = capabilities();
    capabilities.synchronised = synchronised;
    let mut painter = Painter::new(&capabilities);
    let mut emulator = Alacritty::new(120, 40);
    emulator.feed(&enter(Surface::Fullscreen, MouseCapture::Off));
    let mut lines = vec![String::new()];
    let (buffer, cursor) = screen(&lines, "draft");
    emulator.feed(painter.paint(&buffer, &[], cursor));
    let mut total = 0;
    for delta in 0..1000 {
        if lines.last().unwrap().len() + 5 > 100 {
            lines.push(String::new());
            if lines.len() > 36 {
                painter.scrolled(0..36, 1);
            }
        }
        lines.last_mut().unwrap().push_str("word ");
        let (buffer, cursor) = screen(&lines, "draft");
        let bytes = painter.paint(&buffer, &[], cursor);
        total += bytes.len();
        emulator.feed(bytes);
        if delta % 100 == 99 {
            compare(&emulator, &buffer, &[]).unwrap();
        }
    }
    assert!(total / 1000 <= 30, "{total} bytes");
}

#[test]
fn a_scrolled_row_is_not_the_whole_pane() {
    let lines: Vec<String> = (0..60)
        .map(|n| format!("{n}: {}", "text ".repeat(15)))
        .collect();
    let mut painter = Painter::new(&capabilities());
    let (buffer, cursor) = screen(&lines[..50], "");
    painter.paint(&buffer, &[], cursor);
    painter.scrolled(0..36, 2);
    let (buffer, cursor) = screen(&lines[..52], "");
    let bytes = painter.paint(&buffer, &[], cursor);
    assert!(bytes.len() < 300, "{}", bytes.len());
    // Half a pane is drawn, not scrolled.
    painter.scrolled(0..36, -18);
    let (buffer, cursor) = screen(&lines[..34], "");
    let bytes = String::from_utf8_lossy(painter.paint(&buffer, &[], cursor)).into_owned();
    assert!(!bytes.contains("\x1b[18T"));
}

#[test]
fn a_row_that_comes_back_is_drawn() {
    for by in [1, -1] {
        let mut rows = ["aaa", "bbb", "ccc", "ddd", "eee", "fff"];
        let mut painter = Painter::new(&capabilities());
        let mut emulator = Vt100::new(3, 6);
        emulator.feed(painter.paint(&Buffer::with_lines(rows), &[], None));
        rows.rotate_left(if by > 0 { 1 } else { 5 });
        painter.scrolled(0..6, by);
        emulator.feed(painter.paint(&Buffer::with_lines(rows), &[], None));
        compare(&emulator, &Buffer::with_lines(rows), &[]).unwrap();
    }
}

#[test]
fn frames_are_whole() {
    let (buffer, cursor) = screen(&["text".to_owned()], "");
    let mut painter = Painter::new(&capabilities());
    let frame = String::from_utf8_lossy(painter.paint(&buffer, &[], cursor)).into_owned();
    assert!(frame.starts_with("\x1b[?2026h\x1b[?25l"), "{frame:?}");
    assert!(frame.ends_with("\x1b[?25h\x1b[?2026l"), "{frame:?}");
    let mut unknown = capabilities();
    unknown.synchronised = Support::Unknown;
    let mut painter = Painter::new(&unknown);
    let frame = String::from_utf8_lossy(painter.paint(&buffer, &[], cursor)).into_owned();
    assert!(!frame.contains("2026"), "{frame:?}");
}

#[test]
fn without_colours_attributes_stay() {
    let environment = |name: &str| matches!(name, "NO_COLOR").then(|| "1".to_owned());
    let mut painter = Painter::new(&Capabilities::from_environment(&environment));
    let mut buffer = Buffer::empty(area(4, 1));
    let style = Style::new().fg(Color::Red).bg(Color::Rgb(1, 2, 3));
    buffer.set_string(
        0,
        0,
        "ab",
        style.add_modifier(Modifier::BOLD | Modifier::REVERSED),
    );
    let mut emulator = Alacritty::new(4, 1);
    emulator.feed(painter.paint(&buffer, &[], None));
    let shown = emulator.shown(0, 0);
    assert_eq!(shown.foreground, Color::Reset);
    assert_eq!(shown.background, Color::Reset);
    assert_eq!(shown.attributes, Modifier::BOLD | Modifier::REVERSED);
}

#[rstest]
#[case("javascript:alert(1)")]
#[case("https://a\x1b\\b")]
#[case("https://a b")]
#[case("https://é")]
fn targets_that_could_do_harm_are_no_links(#[case] target: &str) {
    let buffer = Buffer::with_lines(["text"]);
    let link = CellLink {
        row: 0,
        columns: 0..4,
        target: target.into(),
        id: 1,
    };
    let mut painter = Painter::new(&capabilities());
    let frame = String::from_utf8_lossy(painter.paint(&buffer, &[link], None)).into_owned();
    assert!(!frame.contains("]8;"), "{frame:?}");
}

#[rstest]
fn leaving_undoes_all(
    #[values(Surface::Fullscreen, Surface::Inline)] surface: Surface,
    #[values(MouseCapture::On, MouseCapture::Off)] mouse: MouseCapture,
    #[values(
        "",
        "\x1b[?2026h\x1b[?25l\x1b[3;5r\x1b[1;31m\x1b]8;;https://a.b\x1b\\x",
        "\x1b]8;id=1;htt",
        "\x1b[38;2"
    )]
    unfinished: &str,
) {
    let mut emulator = Alacritty::new(20, 6);
    let fresh = emulator.mode();
    emulator.feed(b"$ one\r\n$ two");
    let cursor = emulator.cursor();
    emulator.feed(&enter(surface, mouse));
    assert_ne!(emulator.mode(), fresh);
    emulator.feed(unfinished.as_bytes());
    emulator.feed(LEAVE);
    assert_eq!(emulator.mode(), fresh);
    if surface == Surface::Fullscreen || unfinished.is_empty() {
        assert_eq!(emulator.cursor(), cursor);
    }
    assert_eq!(emulator.shown(2, 0).text, "o");
    // What is written now is plain, leads nowhere, and scrolls the whole screen.
    emulator.feed(b"\r\n\n\n\n\n\n\n\n\n\rz");
    let shown = emulator.shown(0, 5);
    assert_eq!((shown.text.as_str(), shown.link), ("z", None));
    assert_eq!(
        (shown.foreground, shown.attributes),
        (Color::Reset, Modifier::empty())
    );
}
