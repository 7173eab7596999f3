//! Terminals, as a program that asks them sees them.

use std::time::Duration;

use super::watch::{Probe, Watch};

/// How long the late one takes.
const LATE: Duration = Duration::from_millis(300);
/// tmux asks the terminal around it for colours, and answers the rest meanwhile.
const RELAYED: Duration = Duration::from_millis(20);

/// Which terminal a program is made to believe it runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    /// Answers nothing.
    #[default]
    Silent,
    /// Light, without synchronised frames.
    Xterm,
    /// Dark, with synchronised frames and the enhanced keyboard.
    Kitty,
    /// Says what it is before it says its colours.
    Tmux,
    /// As kitty, after 300 ms.
    Late,
    /// Answers with nonsense and with what was never asked.
    Lying,
}

/// What a terminal answers, and how long after the question.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) after: Duration,
}

/// What a profile knows of the screen when it answers.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) watch: &'a Watch,
    pub(super) screen: &'a vt100::Screen,
}

impl Profile {
    pub(super) fn answer(self, probe: Probe, scene: &Scene<'_>) -> Option<Answer> {
        let (text, after) = match self {
            Self::Silent => return None,
            Self::Xterm => (xterm(probe, scene)?, Duration::ZERO),
            Self::Kitty => (kitty(probe, scene)?, Duration::ZERO),
            Self::Late => (kitty(probe, scene)?, LATE),
            Self::Tmux => (tmux(probe, scene)?, delay_in_tmux(probe)),
            Self::Lying => (lie(probe), Duration::ZERO),
        };
        Some(Answer { text, after })
    }
}

fn xterm(probe: Probe, scene: &Scene<'_>) -> Option<String> {
    match probe {
        Probe::Attributes => Some("\x1b[?64;1;2;6;9;15;16;17;18;21;22;28c".to_owned()),
        Probe::SecondaryAttributes => Some("\x1b[>41;388;0c".to_owned()),
        Probe::Version => Some("\x1bP>|XTerm(388)\x1b\\".to_owned()),
        Probe::Mode(2026 | 2027 | 2031) => Some(unknown_mode(probe)),
        Probe::Foreground => Some("\x1b]10;rgb:0000/0000/0000\x1b\\".to_owned()),
        Probe::Background => Some("\x1b]11;rgb:ffff/ffff/ffff\x1b\\".to_owned()),
        Probe::KeyboardFlags | Probe::Scheme => None,
        Probe::Mode(_)
        | Probe::Status
        | Probe::CursorPosition
        | Probe::SizeInCells
        | Probe::SizeInPixels => any(probe, scene),
    }
}

fn kitty(probe: Probe, scene: &Scene<'_>) -> Option<String> {
    match probe {
        Probe::Attributes => Some("\x1b[?62;52;c".to_owned()),
        Probe::SecondaryAttributes => Some("\x1b[>1;4000;42c".to_owned()),
        Probe::Version => Some("\x1bP>|kitty(0.42.1)\x1b\\".to_owned()),
        Probe::KeyboardFlags => Some(format!("\x1b[?{}u", scene.watch.keyboard())),
        Probe::Mode(2027) => Some(unknown_mode(probe)),
        Probe::Foreground => Some("\x1b]10;rgb:dddd/dddd/dddd\x1b\\".to_owned()),
        Probe::Background => Some("\x1b]11;rgb:0000/0000/0000\x1b\\".to_owned()),
        Probe::Scheme => Some("\x1b[?997;1n".to_owned()),
        Probe::Mode(_)
        | Probe::Status
        | Probe::CursorPosition
        | Probe::SizeInCells
        | Probe::SizeInPixels => any(probe, scene),
    }
}

fn tmux(probe: Probe, scene: &Scene<'_>) -> Option<String> {
    match probe {
        Probe::Attributes => Some("\x1b[?1;2c".to_owned()),
        Probe::SecondaryAttributes => Some("\x1b[>84;0;0c".to_owned()),
        Probe::Version => Some("\x1bP>|tmux 3.3a\x1b\\".to_owned()),
        Probe::Foreground => Some("\x1b]10;rgb:dddd/dddd/dddd\x1b\\".to_owned()),
        Probe::Background => Some("\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\".to_owned()),
        Probe::Mode(_) | Probe::KeyboardFlags | Probe::Scheme | Probe::SizeInPixels => None,
        Probe::Status | Probe::CursorPosition | Probe::SizeInCells => any(probe, scene),
    }
}

fn delay_in_tmux(probe: Probe) -> Duration {
    if matches!(probe, Probe::Foreground | Probe::Background) {
        RELAYED
    } else {
        Duration::ZERO
    }
}

/// What every terminal answers alike.
fn any(probe: Probe, Scene { watch, screen }: &Scene<'_>) -> Option<String> {
    let (rows, cols) = screen.size();
    match probe {
        Probe::Mode(mode) => {
            let state = if watch.is_set(mode) { 1 } else { 2 };
            Some(format!("\x1b[?{mode};{state}$y"))
        }
        Probe::Status => Some("\x1b[0n".to_owned()),
        Probe::CursorPosition => {
            let (row, col) = screen.cursor_position();
            let col = col.min(cols.get() - 1);
            Some(format!("\x1b[{};{}R", row + 1, col + 1))
        }
        Probe::SizeInCells => Some(format!("\x1b[8;{rows};{cols}t")),
        Probe::SizeInPixels => {
            let (height, width) = (u32::from(rows.get()) * 16, u32::from(cols.get()) * 8);
            Some(format!("\x1b[4;{height};{width}t"))
        }
        Probe::Attributes
        | Probe::SecondaryAttributes
        | Probe::Version
        | Probe::KeyboardFlags
        | Probe::Foreground
        | Probe::Background
        | Probe::Scheme => None,
    }
}

fn unknown_mode(probe: Probe) -> String {
    let Probe::Mode(mode) = probe else {
        return String::new();
    };
    format!("\x1b[?{mode};0$y")
}

fn lie(probe: Probe) -> String {
    match probe {
        Probe::Attributes => "\x1b[?c\x1b[?1;2;3;99999;c\x1b[?62c".to_owned(),
        Probe::SecondaryAttributes => "\x1b[>c".to_owned(),
        Probe::Version => "\x1bP>|\u{202e}\x07\x01évil\x1b\\".to_owned(),
        Probe::KeyboardFlags => "\x1b[?99999999u\x1b[?u".to_owned(),
        Probe::Mode(mode) => format!("\x1b[?{mode};9$y\x1b[?99999;1$y\x1b[?;$y"),
        Probe::Status => "\x1b[3n".to_owned(),
        Probe::CursorPosition => "\x1b[0;0R\x1b[99999;99999R".to_owned(),
        Probe::Foreground => "\x1b]10;rgb:zz/qq/\x1b\\".to_owned(),
        Probe::Background => "\x1b]11;not a colour at all\x07\x1b]11;?\x07\x1b]4;1;\x07".to_owned(),
        Probe::Scheme => "\x1b[?997;7n".to_owned(),
        Probe::SizeInCells => "\x1b[8;0;0t".to_owned(),
        Probe::SizeInPixels => "\x1b[4;99999;99999t".to_owned(),
    }
}
