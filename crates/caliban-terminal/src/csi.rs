//! What control sequences mean that come from a terminal.

use crate::capabilities::Scheme;
use crate::input::{Button, Focus, Input, Mouse, MouseKind};
use crate::key::{Key, KeyCode, Modifiers};
use crate::report::Report;

/// What a sequence means.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// It is unknown, or of no use.
    Nothing,
    Key(Key),
    /// Text that no key stands for, as an input method gives it.
    Typed(String),
    /// What is no key.
    Other(Input),
    PasteBegins,
}

/// Whether the terminal was asked where the cursor is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CursorReply {
    Expected,
    Unexpected,
}

/// A control sequence, taken apart.
#[derive(Debug)]
pub(crate) struct Csi<'a> {
    /// The byte before the parameters that makes them private.
    marker: Option<u8>,
    parameters: &'a str,
    intermediate: Option<u8>,
    last: u8,
}

impl<'a> Csi<'a> {
    pub(crate) fn new(sequence: &'a [u8], last: u8) -> Option<Self> {
        let text = std::str::from_utf8(sequence).ok()?;
        let marker = sequence
            .first()
            .copied()
            .filter(|byte| matches!(byte, b'<'..=b'?'));
        let text = &text[marker.iter().len()..];
        let parameters = text.trim_end_matches(|c| matches!(c, ' '..='/'));
        let intermediate = text.as_bytes().get(parameters.len()).copied();
        Some(Self {
            marker,
            parameters,
            intermediate,
            last,
        })
    }

    /// A parameter and, behind colons, its parts; what is empty or no number is absent.
    fn part(&self, parameter: usize, part: usize) -> Option<u32> {
        let parameter = self.parameters.split(';').nth(parameter)?;
        parameter.split(':').nth(part)?.parse().ok()
    }

    fn parameter(&self, index: usize) -> Option<u32> {
        self.part(index, 0)
    }

    fn small(&self, index: usize) -> Option<u16> {
        u16::try_from(self.parameter(index)?).ok()
    }

    /// The modifiers, unless the key was released: that it goes down is enough.
    fn modifiers(&self) -> Option<Modifiers> {
        const RELEASED: u32 = 3;
        (self.part(1, 1) != Some(RELEASED))
            .then(|| Modifiers::from_parameter(self.parameter(1).unwrap_or(1)))
    }

    pub(crate) fn meaning(&self, replies: CursorReply) -> Meaning {
        let report = |report: Option<Report>| {
            report.map_or(Meaning::Nothing, |report| {
                Meaning::Other(Input::Report(report))
            })
        };
        let key = |key: Option<Key>| key.map_or(Meaning::Nothing, Meaning::Key);
        match (self.marker, self.intermediate, self.last) {
            (Some(b'<'), None, b'M' | b'm') => self.mouse().map_or(Meaning::Nothing, |mouse| {
                Meaning::Other(Input::Mouse(mouse))
            }),
            (Some(b'?'), Some(b'$'), b'y') => report(self.mode()),
            (Some(b'?'), None, b'u') => report(self.flags()),
            (Some(b'?'), None, b'c') => report(Some(Report::Attributes)),
            (Some(b'?'), None, b'n') => report(self.scheme()),
            (Some(b'?'), None, b'R') => report(self.cursor()),
            (Some(_), _, _) | (None, Some(_), _) => Meaning::Nothing,
            (None, None, b'I') => Meaning::Other(Input::Focus(Focus::Gained)),
            (None, None, b'O') => Meaning::Other(Input::Focus(Focus::Lost)),
            (None, None, b't') => report(self.size()),
            (None, None, b'R') if self.is_cursor(replies) => report(self.cursor()),
            (None, None, b'u') => self.unicode(),
            (None, None, b'~' | b'^' | b'@') => self.numbered(),
            (None, None, last) => key(self.lettered(last)),
        }
    }

    fn mode(&self) -> Option<Report> {
        Some(Report::Mode {
            mode: self.small(0)?,
            state: u8::try_from(self.parameter(1)?).ok()?,
        })
    }

    fn flags(&self) -> Option<Report> {
        let flags = self.parameter(0).unwrap_or(0);
        u8::try_from(flags).ok().map(Report::KeyboardFlags)
    }

    fn scheme(&self) -> Option<Report> {
        match (self.parameter(0)?, self.parameter(1)?) {
            (997, 1) => Some(Report::ColourScheme(Scheme::Dark)),
            (997, 2) => Some(Report::ColourScheme(Scheme::Light)),
            _ => None,
        }
    }

    /// The size in cells: as it was asked for, or as a terminal tells of its changes.
    fn size(&self) -> Option<Report> {
        matches!(self.parameter(0)?, 8 | 48).then_some(Report::Size {
            rows: self.small(1)?,
            columns: self.small(2)?,
        })
    }

    /// F3 with modifiers has the same form as a cursor in the first row.
    fn is_cursor(&self, replies: CursorReply) -> bool {
        let like_a_key = match self.parameter(1) {
            None => true,
            Some(modifiers) => self.parameter(0) == Some(1) && (2..=16).contains(&modifiers),
        };
        match replies {
            CursorReply::Expected => self.parameter(1).is_some(),
            CursorReply::Unexpected => !like_a_key,
        }
    }

    fn cursor(&self) -> Option<Report> {
        Some(Report::Cursor {
            row: self.small(0)?.saturating_sub(1),
            column: self.small(1)?.saturating_sub(1),
        })
    }

    fn mouse(&self) -> Option<Mouse> {
        const SHIFT: u32 = 4;
        const ALT: u32 = 8;
        const CTRL: u32 = 16;
        const MOTION: u32 = 32;
        let bits = self.parameter(0)?;
        let held = [
            (SHIFT, Modifiers::SHIFT),
            (ALT, Modifiers::ALT),
            (CTRL, Modifiers::CTRL),
        ];
        let modifiers = held
            .iter()
            .filter(|(bit, _)| bits & bit != 0)
            .fold(Modifiers::NONE, |all, (_, one)| all | *one);
        let button = match bits & !(SHIFT | ALT | CTRL | MOTION) {
            0 => Some(Button::Left),
            1 => Some(Button::Middle),
            2 => Some(Button::Right),
            _ => None,
        };
        let kind = match (bits & !(SHIFT | ALT | CTRL), button, self.last) {
            (64, _, b'M') => MouseKind::WheelUp,
            (65, _, b'M') => MouseKind::WheelDown,
            (MOTION.., Some(button), b'M') => MouseKind::Drag(button),
            (_, Some(button), b'M') => MouseKind::Down(button),
            (_, Some(button), _) => MouseKind::Up(button),
            // Moving without a button, turning sideways, the fourth button and on.
            (_, None, _) => return None,
        };
        Some(Mouse {
            kind,
            column: self.small(1)?.saturating_sub(1),
            row: self.small(2)?.saturating_sub(1),
            modifiers,
        })
    }

    /// `CSI 1 ; modifiers letter`; the small letters are rxvt's arrows with Shift.
    fn lettered(&self, last: u8) -> Option<Key> {
        let modifiers = self.modifiers()?;
        if let b'a'..=b'd' = last {
            let code = cursor_key(last.to_ascii_uppercase())?;
            return Some(Key::new(code, Modifiers::SHIFT));
        }
        let code = match last {
            b'Z' => KeyCode::BackTab,
            b'P'..=b'S' => KeyCode::F(last - b'P' + 1),
            _ => cursor_key(last)?,
        };
        Some(Key::new(code, modifiers))
    }

    /// `CSI number ; modifiers ~`, or with rxvt's ends for Ctrl.
    fn numbered(&self) -> Meaning {
        let (Some(number), Some(modifiers)) = (self.parameter(0), self.modifiers()) else {
            return Meaning::Nothing;
        };
        let modifiers = match self.last {
            b'^' => Modifiers::CTRL,
            b'@' => Modifiers::CTRL | Modifiers::SHIFT,
            _ => modifiers,
        };
        let code = match number {
            1 | 7 => KeyCode::Home,
            2 => KeyCode::Insert,
            3 => KeyCode::Delete,
            4 | 8 => KeyCode::End,
            5 => KeyCode::PageUp,
            6 => KeyCode::PageDown,
            11..=15 => function(number - 10),
            17..=21 => function(number - 11),
            23..=26 => function(number - 12),
            28..=29 => function(number - 13),
            31..=34 => function(number - 14),
            27 => return self.other_key(modifiers),
            200 => return Meaning::PasteBegins,
            _ => return Meaning::Nothing,
        };
        Meaning::Key(Key::new(code, modifiers))
    }

    /// `CSI 27 ; modifiers ; code ~`, as xterm and tmux write keys that have no form of their own.
    /// The character has had its Shift already.
    fn other_key(&self, modifiers: Modifiers) -> Meaning {
        let Some(code) = self.parameter(2).and_then(key_code) else {
            return Meaning::Nothing;
        };
        let modifiers = match code {
            KeyCode::Char(c) if !c.is_alphabetic() => modifiers.without(Modifiers::SHIFT),
            _ => modifiers,
        };
        Meaning::Key(Key::new(code, modifiers))
    }

    /// `CSI code : shifted : base ; modifiers : event ; text u`.
    fn unicode(&self) -> Meaning {
        let (Some(number), Some(modifiers)) = (self.parameter(0), self.modifiers()) else {
            return Meaning::Nothing;
        };
        if number == 0 {
            return self.text();
        }
        let Some(code) = key_code(number) else {
            return Meaning::Nothing;
        };
        let KeyCode::Char(character) = code else {
            return Meaning::Key(Key::new(code, modifiers));
        };
        let as_character = |number: u32| char::from_u32(number).filter(|c| !c.is_control());
        let shifted = self.part(0, 1).and_then(as_character);
        let base = self.part(0, 2).and_then(as_character);
        let ctrl = modifiers.contains(Modifiers::CTRL);
        match (shifted, base) {
            // What Ctrl means does not depend on the alphabet.
            (_, Some(base)) if ctrl && !character.is_ascii() => {
                Meaning::Key(Key::new(KeyCode::Char(base), modifiers))
            }
            (Some(shifted), _) if !ctrl && modifiers.contains(Modifiers::SHIFT) => {
                let modifiers = modifiers.without(Modifiers::SHIFT);
                Meaning::Key(Key::new(KeyCode::Char(shifted), modifiers))
            }
            _ => Meaning::Key(Key::new(code, modifiers)),
        }
    }

    fn text(&self) -> Meaning {
        let codes = self.parameters.split(';').nth(2).unwrap_or("").split(':');
        let text = codes
            .filter_map(|code| char::from_u32(code.parse().ok()?))
            .filter(|c| !c.is_control());
        Meaning::Typed(text.collect())
    }
}

/// The key of `SS3`, with the modifiers that some terminals put before the letter.
pub(crate) fn ss3(parameters: &[u8], last: u8) -> Option<Key> {
    let parameters = std::str::from_utf8(parameters).ok()?;
    let modifiers = parameters.rsplit(';').next()?.parse().unwrap_or(1);
    let modifiers = Modifiers::from_parameter(modifiers);
    let code = match last {
        b'M' => KeyCode::Enter,
        b'I' => KeyCode::Tab,
        b'P'..=b'S' => KeyCode::F(last - b'P' + 1),
        b'X' => KeyCode::Char('='),
        b' ' => KeyCode::Char(' '),
        // The digits and signs of the keypad stand 64 behind themselves.
        b'j'..=b'y' => KeyCode::Char(char::from(last - 64)),
        // rxvt's arrows with Ctrl.
        b'a'..=b'd' => {
            return Some(Key::new(
                cursor_key(last.to_ascii_uppercase())?,
                Modifiers::CTRL,
            ));
        }
        _ => cursor_key(last)?,
    };
    Some(Key::new(code, modifiers))
}

fn cursor_key(letter: u8) -> Option<KeyCode> {
    match letter {
        b'A' => Some(KeyCode::Up),
        b'B' => Some(KeyCode::Down),
        b'C' => Some(KeyCode::Right),
        b'D' => Some(KeyCode::Left),
        b'F' => Some(KeyCode::End),
        b'H' => Some(KeyCode::Home),
        _ => None,
    }
}

fn function(number: u32) -> KeyCode {
    KeyCode::F(u8::try_from(number).unwrap_or(u8::MAX))
}

/// The key of a code point. The private ones are those of the kitty keyboard protocol.
fn key_code(number: u32) -> Option<KeyCode> {
    let code = match number {
        9 => KeyCode::Tab,
        13 | 57414 => KeyCode::Enter,
        27 => KeyCode::Esc,
        8 | 127 => KeyCode::Backspace,
        57376..=57398 => function(number - 57376 + 13),
        57399..=57408 => KeyCode::Char(char::from_digit(number - 57399, 10)?),
        57409 => KeyCode::Char('.'),
        57410 => KeyCode::Char('/'),
        57411 => KeyCode::Char('*'),
        57412 => KeyCode::Char('-'),
        57413 => KeyCode::Char('+'),
        57415 => KeyCode::Char('='),
        57416 => KeyCode::Char(','),
        57417 => KeyCode::Left,
        57418 => KeyCode::Right,
        57419 => KeyCode::Up,
        57420 => KeyCode::Down,
        57421 => KeyCode::PageUp,
        57422 => KeyCode::PageDown,
        57423 => KeyCode::Home,
        57424 => KeyCode::End,
        57425 => KeyCode::Insert,
        57426 => KeyCode::Delete,
        // Locks, media keys and modifiers by themselves.
        57344..=63743 => return None,
        _ => KeyCode::Char(char::from_u32(number).filter(|c| !c.is_control())?),
    };
    Some(code)
}
