//! Bytes of a terminal become inputs. A machine that goes byte by byte, so that it does not matter
//! where reads end; time alone tells a lone Esc from the beginning of a sequence, and the caller
//! keeps the time. Nothing that is not understood is ever taken for typing.

use std::time::{Duration, Instant};

use crate::csi::{self, Csi, CursorReply, Meaning};
use crate::input::Input;
use crate::key::{Key, KeyCode, Modifiers};
use crate::paste::Paste;
use crate::report;

const ESC: u8 = 0x1b;
/// What is kept of one sequence; the rest of a longer one is passed over, and so is its meaning.
const SEQUENCE_LIMIT: usize = 4096;
/// A sequence or a paste that stands still for so long has lost its end.
const PATIENCE: Duration = Duration::from_secs(1);

/// Where in the stream the next byte stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    /// Behind an Esc which was given away as a key since nothing followed in time. If what follows
    /// now could not be typed so fast, it is the rest of its sequence.
    AfterEsc,
    /// The introducer without its Esc: what is next tells whether it was typed.
    Late(u8),
    Escape,
    EscapeTwice,
    Ss3,
    Csi,
    /// The function keys of the Linux console: `CSI [ A`.
    Console,
    /// The old mouse report has so many bytes more.
    OldMouse(u8),
    /// A string that ends with ST.
    Text(Kind),
    /// A string, and an Esc within it.
    TextEscape(Kind),
    Paste,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Osc,
    Dcs,
    /// APC, PM and SOS: of no use here. The byte that introduced it.
    Other(u8),
}

impl Kind {
    fn introduced_by(byte: u8) -> Option<Self> {
        match byte {
            b']' => Some(Self::Osc),
            b'P' => Some(Self::Dcs),
            b'_' | b'^' | b'X' => Some(Self::Other(byte)),
            _ => None,
        }
    }

    fn introducer(self) -> u8 {
        match self {
            Self::Osc => b']',
            Self::Dcs => b'P',
            Self::Other(byte) => byte,
        }
    }
}

/// Whether an Esc stands before the sequence, which is Alt in some terminals, and a key of its own
/// before what cannot have Alt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Prefix {
    None,
    Esc,
}

/// A character whose bytes have not all come.
#[derive(Debug, Default)]
struct Partial {
    bytes: [u8; 4],
    have: usize,
    need: usize,
    modifiers: Modifiers,
}

/// The bytes of a terminal, taken apart.
#[derive(Debug)]
pub struct Decoder {
    esc_delay: Duration,
    state: State,
    prefix: Prefix,
    /// The bytes of the sequence behind its introducer, at most `SEQUENCE_LIMIT`.
    sequence: Vec<u8>,
    /// How many bytes it has had in all.
    length: usize,
    character: Partial,
    paste: Paste,
    deadline: Option<Instant>,
    cursor_replies: u8,
}

impl Decoder {
    /// A decoder that takes an Esc for the key when nothing follows it for so long.
    pub fn new(esc_delay: Duration) -> Self {
        Self {
            esc_delay,
            state: State::Ground,
            prefix: Prefix::None,
            sequence: Vec::new(),
            length: 0,
            character: Partial::default(),
            paste: Paste::default(),
            deadline: None,
            cursor_replies: 0,
        }
    }

    /// The terminal was asked where the cursor is. Its answer can look like F3 with modifiers, and
    /// is taken for that unless it was announced.
    pub fn expect_cursor(&mut self) {
        self.cursor_replies = self.cursor_replies.saturating_add(1);
    }

    /// Takes what one read gave. It does not look whether the deadline has passed: what waited in
    /// the kernel while the program was busy came in time.
    pub fn push(&mut self, bytes: &[u8], now: Instant, out: &mut Vec<Input>) {
        if bytes.is_empty() {
            return;
        }
        let mut rest = bytes;
        while let Some((&byte, behind)) = rest.split_first() {
            if self.state == State::Paste {
                let taken = self.paste.take(rest);
                rest = &rest[taken.min(rest.len())..];
                if self.paste.is_complete() {
                    self.finish_paste(out);
                }
            } else {
                self.byte(byte, out);
                rest = behind;
            }
        }
        self.deadline = self.patience().map(|patience| now + patience);
    }

    /// When `expire` is to be called, unless bytes come before.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Decides what waits for bytes that have not come.
    pub fn expire(&mut self, now: Instant, out: &mut Vec<Input>) {
        if self.deadline.is_none_or(|deadline| now < deadline) {
            return;
        }
        self.deadline = None;
        match self.state {
            State::Escape => {
                out.push(esc());
                self.state = State::AfterEsc;
            }
            State::EscapeTwice => {
                out.extend([esc(), esc()]);
                self.state = State::AfterEsc;
            }
            State::Late(introducer) => self.type_out(introducer, Modifiers::NONE, out),
            State::Ss3 if self.length == 0 => self.alt(b'O', out),
            State::Csi if self.length == 0 => self.alt(b'[', out),
            State::Text(kind) if self.length == 0 => self.alt(kind.introducer(), out),
            State::Paste => self.finish_paste(out),
            State::Ground
            | State::AfterEsc
            | State::Ss3
            | State::Csi
            | State::Console
            | State::OldMouse(_)
            | State::Text(_)
            | State::TextEscape(_) => self.state = State::Ground,
        }
    }

    /// How long the state may last.
    fn patience(&self) -> Option<Duration> {
        match self.state {
            State::Ground | State::AfterEsc => None,
            State::Escape | State::EscapeTwice | State::Late(_) => Some(self.esc_delay),
            State::Ss3 | State::Csi | State::Text(_) if self.length == 0 => Some(self.esc_delay),
            State::Ss3
            | State::Csi
            | State::Console
            | State::OldMouse(_)
            | State::Text(_)
            | State::TextEscape(_)
            | State::Paste => Some(PATIENCE),
        }
    }

    fn byte(&mut self, byte: u8, out: &mut Vec<Input>) {
        match self.state {
            // A paste takes its bytes itself.
            State::Ground | State::Paste => self.ground(byte, Modifiers::NONE, out),
            State::AfterEsc => match byte {
                b'[' | b']' | b'P' => self.state = State::Late(byte),
                _ => self.ground(byte, Modifiers::NONE, out),
            },
            State::Late(introducer) => self.late(introducer, byte, out),
            State::Escape => self.escape(byte, out),
            State::EscapeTwice => match byte {
                b'[' | b'O' => {
                    self.prefix = Prefix::Esc;
                    self.introduced(byte);
                }
                _ => {
                    out.push(esc());
                    self.escape(byte, out);
                }
            },
            State::Ss3 => match byte {
                b'0'..=b'9' | b';' => self.keep(byte),
                0x20..=0x7e => self.ss3(byte, out),
                _ => self.abandon(byte, out),
            },
            State::Csi => match byte {
                b'[' if self.length == 0 => self.state = State::Console,
                b'M' if self.length == 0 => self.state = State::OldMouse(3),
                0x20..=0x3f => self.keep(byte),
                0x40..=0x7e => self.csi(byte, out),
                _ => self.abandon(byte, out),
            },
            State::Console => match byte {
                b'A'..=b'E' => self.key(Key::plain(KeyCode::F(byte - b'A' + 1)), out),
                0x20..=0x7e => self.state = State::Ground,
                _ => self.abandon(byte, out),
            },
            State::OldMouse(left) => match byte {
                0x20.. if left > 1 => self.state = State::OldMouse(left - 1),
                0x20.. => self.state = State::Ground,
                _ => self.abandon(byte, out),
            },
            State::Text(kind) => match (byte, kind) {
                (ESC, _) => self.state = State::TextEscape(kind),
                (0x07, Kind::Osc) => self.text(kind, out),
                // Cancel and substitute end any sequence.
                (0x18 | 0x1a, _) => self.state = State::Ground,
                (_, Kind::Osc | Kind::Dcs | Kind::Other(_)) => self.keep(byte),
            },
            State::TextEscape(kind) => match byte {
                b'\\' => self.text(kind, out),
                // The string was cut off, and another sequence follows.
                _ => self.escape(byte, out),
            },
        }
    }

    fn ground(&mut self, byte: u8, modifiers: Modifiers, out: &mut Vec<Input>) {
        self.state = State::Ground;
        if byte < 0x80 {
            self.character.need = 0;
        }
        match byte {
            ESC => {
                self.prefix = Prefix::None;
                self.state = State::Escape;
            }
            0x00..=0x7f => out.push(Input::Key(typed(byte).with(modifiers))),
            0x80.. => {
                if let Some((character, modifiers)) = self.character.take(byte, modifiers)
                    && !character.is_control()
                {
                    out.push(Input::Key(Key::new(KeyCode::Char(character), modifiers)));
                }
            }
        }
    }

    /// Behind an Esc: a sequence, or a key with Alt.
    fn escape(&mut self, byte: u8, out: &mut Vec<Input>) {
        self.prefix = Prefix::None;
        match byte {
            ESC => self.state = State::EscapeTwice,
            b'[' | b'O' => self.introduced(byte),
            _ => match Kind::introduced_by(byte) {
                Some(_) => self.introduced(byte),
                None => self.ground(byte, Modifiers::ALT, out),
            },
        }
    }

    fn introduced(&mut self, byte: u8) {
        self.sequence.clear();
        self.length = 0;
        self.state = match (byte, Kind::introduced_by(byte)) {
            (b'[', _) => State::Csi,
            (_, Some(kind)) => State::Text(kind),
            (_, None) => State::Ss3,
        };
    }

    fn late(&mut self, introducer: u8, byte: u8, out: &mut Vec<Input>) {
        let goes_on = match introducer {
            b'[' => {
                matches!(byte, b'<' | b'>' | b'?' | b'0'..=b'9' | b'A'..=b'D' | b'F' | b'H' | b'I' | b'O' | b'Z')
            }
            b']' => byte == b'1',
            _ => byte == b'>',
        };
        if goes_on {
            self.prefix = Prefix::None;
            self.introduced(introducer);
        } else {
            self.type_out(introducer, Modifiers::NONE, out);
        }
        self.byte(byte, out);
    }

    /// What looked like the beginning of a sequence was a key.
    fn type_out(&mut self, byte: u8, modifiers: Modifiers, out: &mut Vec<Input>) {
        self.state = State::Ground;
        out.push(Input::Key(typed(byte).with(modifiers)));
    }

    fn alt(&mut self, byte: u8, out: &mut Vec<Input>) {
        if self.prefix == Prefix::Esc {
            out.push(esc());
        }
        self.type_out(byte, Modifiers::ALT, out);
    }

    /// The sequence is broken off by a byte that cannot be of it.
    fn abandon(&mut self, byte: u8, out: &mut Vec<Input>) {
        self.state = State::Ground;
        // Cancel and substitute do nothing else.
        if !matches!(byte, 0x18 | 0x1a) {
            self.ground(byte, Modifiers::NONE, out);
        }
    }

    fn keep(&mut self, byte: u8) {
        self.length = self.length.saturating_add(1);
        if self.sequence.len() < SEQUENCE_LIMIT {
            self.sequence.push(byte);
        }
    }

    /// The sequence, unless it was too long to be kept.
    fn kept(&self) -> Option<&[u8]> {
        (self.length == self.sequence.len()).then_some(&self.sequence)
    }

    fn ss3(&mut self, last: u8, out: &mut Vec<Input>) {
        let key = self.kept().and_then(|kept| csi::ss3(kept, last));
        self.state = State::Ground;
        if let Some(key) = key {
            self.key(key, out);
        }
    }

    fn csi(&mut self, last: u8, out: &mut Vec<Input>) {
        self.state = State::Ground;
        let replies = match self.cursor_replies {
            0 => CursorReply::Unexpected,
            _ => CursorReply::Expected,
        };
        let meaning = match self.kept().and_then(|kept| Csi::new(kept, last)) {
            Some(sequence) => sequence.meaning(replies),
            None => Meaning::Nothing,
        };
        match meaning {
            Meaning::Nothing => {}
            Meaning::Key(key) => self.key(key, out),
            Meaning::Typed(characters) => {
                let keys = characters.chars().map(|c| Key::plain(KeyCode::Char(c)));
                out.extend(keys.map(Input::Key));
            }
            Meaning::Other(input) => {
                self.separate(out);
                if matches!(input, Input::Report(report::Report::Cursor { .. })) {
                    self.cursor_replies = self.cursor_replies.saturating_sub(1);
                }
                out.push(input);
            }
            Meaning::PasteBegins => {
                self.separate(out);
                self.paste = Paste::default();
                self.state = State::Paste;
            }
        }
    }

    fn key(&mut self, key: Key, out: &mut Vec<Input>) {
        self.state = State::Ground;
        let modifiers = match self.prefix {
            Prefix::None => Modifiers::NONE,
            Prefix::Esc => Modifiers::ALT,
        };
        self.prefix = Prefix::None;
        out.push(Input::Key(key.with(modifiers)));
    }

    /// An Esc before something that is no key was a key.
    fn separate(&mut self, out: &mut Vec<Input>) {
        if self.prefix == Prefix::Esc {
            out.push(esc());
        }
        self.prefix = Prefix::None;
    }

    fn text(&mut self, kind: Kind, out: &mut Vec<Input>) {
        self.state = State::Ground;
        let report = self.kept().and_then(|kept| match kind {
            Kind::Osc => report::from_osc(kept),
            Kind::Dcs => report::from_dcs(kept),
            Kind::Other(_) => None,
        });
        out.extend(report.map(Input::Report));
    }

    fn finish_paste(&mut self, out: &mut Vec<Input>) {
        self.state = State::Ground;
        std::mem::take(&mut self.paste).finish(out);
    }
}

impl Partial {
    /// Takes a byte beyond ASCII, and gives the character that it completes. Bytes that belong to
    /// none are dropped.
    fn take(&mut self, byte: u8, modifiers: Modifiers) -> Option<(char, Modifiers)> {
        let need = match byte {
            0x80..=0xbf => 0,
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            _ => {
                self.need = 0;
                return None;
            }
        };
        if need > 0 {
            *self = Self {
                bytes: [byte, 0, 0, 0],
                have: 1,
                need,
                modifiers,
            };
            return None;
        }
        if self.need == 0 {
            return None;
        }
        *self.bytes.get_mut(self.have)? = byte;
        self.have += 1;
        if self.have < self.need {
            return None;
        }
        self.need = 0;
        let text = std::str::from_utf8(self.bytes.get(..self.have)?).ok()?;
        Some((text.chars().next()?, self.modifiers))
    }
}

fn esc() -> Input {
    Input::Key(Key::plain(KeyCode::Esc))
}

/// The key of a byte of ASCII.
fn typed(byte: u8) -> Key {
    match byte {
        b'\r' => Key::plain(KeyCode::Enter),
        b'\t' => Key::plain(KeyCode::Tab),
        0x7f => Key::plain(KeyCode::Backspace),
        ESC => Key::plain(KeyCode::Esc),
        0x00 => Key::ctrl(' '),
        0x01..=0x1a => Key::ctrl(char::from(byte - 1 + b'a')),
        0x1c..=0x1f => Key::ctrl(char::from(byte - 0x1c + b'\\')),
        0x20.. => Key::plain(KeyCode::Char(char::from(byte))),
    }
}
