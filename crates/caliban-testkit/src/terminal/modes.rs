//! What a program left switched on.

use rustix::termios::Termios;

use super::pty;
use super::watch::{ALTERNATE, AUTOWRAP, CURSOR, FOCUS, FRAME, MOUSE, PASTE, Watch};

/// The state of a terminal, apart from what it shows. The default is a terminal just opened.
#[expect(
    clippy::struct_excessive_bools,
    reason = "modes of a terminal are independent of each other"
)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Modes {
    /// The line discipline is not set as it was before the program ran.
    pub raw: bool,
    pub mouse: bool,
    pub paste: bool,
    pub focus: bool,
    /// Keys are reported in an enhanced way, whichever.
    pub kitty: bool,
    pub alternate: bool,
    pub cursor_hidden: bool,
    pub autowrap: bool,
    /// A synchronised frame was begun and not ended.
    pub frame_open: bool,
    /// Everything else that is not as a terminal has it when it opens, in words.
    pub others: Vec<String>,
}

impl Default for Modes {
    fn default() -> Self {
        Self {
            raw: false,
            mouse: false,
            paste: false,
            focus: false,
            kitty: false,
            alternate: false,
            cursor_hidden: false,
            autowrap: true,
            frame_open: false,
            others: Vec::new(),
        }
    }
}

impl Modes {
    /// Whether the terminal is as it was found.
    pub fn clean(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn of(
        watch: &Watch,
        screen: &vt100::Screen,
        settings: Option<(&Termios, &Termios)>,
    ) -> Self {
        let named = [AUTOWRAP, CURSOR, FOCUS, PASTE, FRAME];
        let named = [&named[..], &MOUSE, &ALTERNATE].concat();
        let mut others = watch.others(&named);
        let changed = settings.map_or_else(Vec::new, |(before, after)| pty::changed(before, after));
        let raw = !changed.is_empty();
        others.extend(changed);
        others.extend(pen(screen).map(str::to_owned));
        if watch.has_region(screen.size().0.get()) {
            others.push("scroll region".to_owned());
        }
        if screen.cursor_style() != vt100::CursorStyle::Default {
            others.push("cursor shape".to_owned());
        }
        Self {
            raw,
            mouse: watch.any_set(&MOUSE),
            paste: watch.is_set(PASTE),
            focus: watch.is_set(FOCUS),
            kitty: watch.keyboard_left(),
            alternate: watch.is_alternate(),
            cursor_hidden: !watch.is_set(CURSOR),
            autowrap: watch.is_set(AUTOWRAP),
            frame_open: watch.is_set(FRAME),
            others,
        }
    }
}

/// Says so if text written now would not be plain.
fn pen(screen: &vt100::Screen) -> Option<&'static str> {
    let is_plain = screen.fgcolor() == vt100::Color::Default
        && screen.bgcolor() == vt100::Color::Default
        && !screen.bold()
        && !screen.dim()
        && !screen.italic()
        && !screen.underline()
        && !screen.inverse();
    (!is_plain).then_some("text style")
}
