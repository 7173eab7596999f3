//! On the main screen finished rows are printed once, and the region stands below them.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod emulators;

use caliban_terminal::{
    Capabilities, InlinePainter, LEAVE, Mark, MouseCapture, StyledRow, Support, Surface, Wrap,
    enter,
};
use emulators::{Alacritty, Emulator};
use proptest::prelude::*;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Position;
use ratatui_core::style::{Color, Style};

const WIDTH: u16 = 20;
const HEIGHT: u16 = 10;

fn painter() -> InlinePainter {
    let mut capabilities = Capabilities::from_environment(&|_| None);
    capabilities.synchronised = Support::Yes;
    InlinePainter::new(&capabilities)
}

fn row(text: &str, wrap: Wrap) -> StyledRow {
    let (start, end) = text.split_at(text.len() / 2);
    StyledRow {
        spans: vec![
            (start.to_owned(), Style::new().fg(Color::Red)),
            (end.to_owned(), Style::new()),
        ],
        wrap,
        mark: Mark::Prompt,
    }
}

fn region(lines: &[String]) -> Buffer {
    let lines = lines.iter().map(|line| format!("{line:20}"));
    Buffer::with_lines(lines.collect::<Vec<_>>())
}

proptest! {
    #[test]
    fn rows_are_printed_once(
        shell in 0_usize..15,
        frames in prop::collection::vec((
            prop::collection::vec("[a-z]{1,20}", 0..6),
            prop::collection::vec("[A-Z]{1,20}", 1..4),
            0_u16..WIDTH,
        ), 1..12),
    ) {
        let mut emulator = Alacritty::new(WIDTH, HEIGHT);
        let mut printed: Vec<String> = (0..shell).map(|line| format!("$ {line}")).collect();
        for line in &printed {
            emulator.feed(format!("{line}\r\n").as_bytes());
        }
        emulator.feed(&enter(Surface::Inline, MouseCapture::Off));
        let mut painter = painter();
        for (finished, lines, column) in &frames {
            let rows: Vec<_> = finished.iter().map(|text| row(text, Wrap::Soft)).collect();
            printed.extend(finished.iter().cloned());
            painter.above(&rows);
            let caret = Position::new(*column, u16::try_from(lines.len()).unwrap() - 1);
            emulator.feed(painter.paint(&region(lines), Some(caret)));
            let expected: Vec<_> = printed.iter().chain(lines).cloned().collect();
            prop_assert_eq!(emulator.rows(), expected);
            prop_assert_eq!(emulator.cursor().map(|(column, _)| column), Some(*column));
            prop_assert_eq!(painter.paint(&region(lines), Some(caret)), b"");
        }
        emulator.feed(painter.leave());
        emulator.feed(LEAVE);
        prop_assert_eq!(emulator.rows(), printed.clone());
        emulator.feed(b"$ next");
        printed.push("$ next".to_owned());
        prop_assert_eq!(emulator.rows(), printed);
    }
}

#[test]
fn no_finished_row_is_lost_when_the_width_changes() {
    for width in [12_u16, 19, 21, 40] {
        let mut emulator = Alacritty::new(WIDTH, HEIGHT);
        let mut painter = painter();
        let finished: Vec<String> = (0..15).map(|line| format!("line {line}")).collect();
        let rows: Vec<_> = finished.iter().map(|text| row(text, Wrap::Hard)).collect();
        painter.above(&rows);
        let old = ["A".repeat(20), "B".repeat(20), "C".repeat(20)];
        emulator.feed(painter.paint(&region(&old), Some(Position::new(3, 1))));
        emulator.resize(width, HEIGHT);
        let lines = vec!["N".repeat(usize::from(width)); 3];
        let caret = Some(Position::new(3, 1));
        emulator.feed(painter.paint(&Buffer::with_lines(lines.clone()), caret));
        let rows = emulator.rows();
        assert_eq!(rows[..15], finished, "{width}");
        assert_eq!(rows[rows.len() - 3..], lines, "{width}");
    }
}

#[test]
fn prose_is_wrapped_by_the_terminal_and_the_rest_is_cut() {
    let mut emulator = Alacritty::new(WIDTH, HEIGHT);
    let mut painter = painter();
    painter.above(&[
        row(&"x".repeat(30), Wrap::Soft),
        row(&"y".repeat(30), Wrap::Hard),
    ]);
    emulator.feed(painter.paint(&region(&["R".repeat(20)]), None));
    let expected = [
        "x".repeat(20),
        "x".repeat(10),
        "y".repeat(20),
        "R".repeat(20),
    ];
    assert_eq!(emulator.rows(), expected);
}

#[test]
fn a_keystroke_is_short_here_too() {
    let mut painter = painter();
    painter.paint(&region(&["> a".to_owned()]), Some(Position::new(3, 0)));
    let bytes = painter.paint(&region(&["> ab".to_owned()]), Some(Position::new(4, 0)));
    assert_eq!(bytes, b"b");
}

#[test]
fn finished_text_carries_no_controls() {
    let mut painter = painter();
    let mut emulator = Alacritty::new(WIDTH, HEIGHT);
    painter.above(&[row("a\u{1b}[2Jb\r\nc\u{9b}d", Wrap::Hard)]);
    emulator.feed(painter.paint(&region(&["R".to_owned()]), None));
    assert_eq!(emulator.rows(), ["a[2Jbcd", "R"]);
}
