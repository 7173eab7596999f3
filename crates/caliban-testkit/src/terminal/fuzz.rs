//! What nobody would think of typing: keys, pastes and sizes drawn from a seed.

use super::Terminal;

/// One thing that a person, or a cat, does to a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// Characters, as typed.
    Keys(String),
    /// A key by its name.
    Key(String),
    Paste(String),
    /// Bytes that no keyboard sends: mouse and focus reports, answers to nothing, broken sequences.
    Bytes(Vec<u8>),
    /// Columns and rows.
    Resize(u16, u16),
}

impl Terminal {
    /// Does these things one after the other, without waiting.
    #[track_caller]
    pub fn play(&self, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Keys(text) => self.keys(text),
                Step::Key(name) => self.key(name),
                Step::Paste(text) => self.paste(text),
                Step::Bytes(bytes) => self.bytes(bytes),
                Step::Resize(cols, rows) => self.resize(*cols, *rows),
            }
        }
    }
}

/// So many steps, the same ones for the same seed.
pub fn steps(seed: u64, count: usize) -> Vec<Step> {
    let mut dice = Dice(seed);
    (0..count).map(|_| step(&mut dice)).collect()
}

const KEYS: [&str; 40] = [
    "enter",
    "shift+enter",
    "alt+enter",
    "ctrl+j",
    "esc",
    "tab",
    "shift+tab",
    "backspace",
    "alt+backspace",
    "delete",
    "space",
    "up",
    "down",
    "left",
    "right",
    "shift+up",
    "ctrl+left",
    "ctrl+right",
    "alt+b",
    "alt+f",
    "home",
    "end",
    "pageup",
    "pagedown",
    "f1",
    "f5",
    "ctrl+a",
    "ctrl+e",
    "ctrl+k",
    "ctrl+u",
    "ctrl+w",
    "ctrl+y",
    "ctrl+l",
    "ctrl+o",
    "ctrl+r",
    "ctrl+t",
    "ctrl+g",
    "ctrl+b",
    "ctrl+p",
    "ctrl+n",
];

/// Text that is easily laid out wrongly.
const TEXTS: [&str; 16] = [
    "a",
    "hello ",
    "y",
    "N",
    "/help",
    "@src",
    "!ls",
    "?",
    "é",
    "漢字",
    "e\u{301}",
    "👨‍👩‍👧",
    "🇩🇪",
    "क्षि",
    "\u{200b}",
    "\u{202e}abc",
];

const BYTES: [&[u8]; 16] = [
    b"\x1b[I",
    b"\x1b[O",
    b"\x1b[<0;10;5M\x1b[<0;10;5m",
    b"\x1b[<64;10;5M",
    b"\x1b[<65;10;5M\x1b[<65;10;5M\x1b[<65;10;5M",
    b"\x1b[<35;150;7M",
    b"\x1b[5;5R",
    b"\x1b[?62;52;c",
    b"\x1b]11;rgb:0000/0000/0000\x1b\\",
    b"\x1b]11;rgb:ff",
    b"\x1b[?2026;2$y",
    b"\x1b[27;5;99999999999999~",
    b"\x1b[201~",
    b"\xff\xfe\xc3",
    b"\x1bP>|what\x1b\\",
    b"\x1b[1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;17;18;19;20;21;22;23;24;25;26;27;28;29;30;31;32;33;34u",
];

fn step(dice: &mut Dice) -> Step {
    match dice.below(100) {
        0..=44 => Step::Keys(dice.one_of(&TEXTS).to_owned()),
        45..=79 => Step::Key(dice.one_of(&KEYS).to_owned()),
        80..=86 => Step::Paste(paste(dice)),
        87..=93 => Step::Bytes(dice.one_of(&BYTES).to_vec()),
        _ => Step::Resize(size(dice, 200), size(dice, 60)),
    }
}

/// A few pieces, now and then very many.
fn paste(dice: &mut Dice) -> String {
    let pieces = if dice.below(20) == 0 {
        2_000
    } else {
        dice.below(30)
    };
    let mut text = String::new();
    for _ in 0..pieces {
        text.push_str(dice.one_of(&TEXTS));
        text.push_str(dice.one_of(&["", "", " ", "\n", "\r\n", "\t"]));
    }
    text
}

/// From one on, as windows are sometimes made.
fn size(dice: &mut Dice, most: u64) -> u16 {
    u16::try_from(dice.below(most) + 1).unwrap_or(1)
}

/// A stream of numbers by a seed (splitmix64).
struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.roll() % end.max(1)
    }

    fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        let end = u64::try_from(all.len()).unwrap_or(1);
        let index = usize::try_from(self.below(end)).unwrap_or_default();
        all[index]
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::{Arrows, Encoding, encode};
    use super::*;

    #[test]
    fn every_key_exists() {
        for key in KEYS {
            let encoding = Encoding::Legacy(Arrows::Ordinary);
            assert!(encode(key, encoding).is_some(), "{key}");
        }
    }

    #[test]
    fn every_kind_of_step_is_drawn_and_sizes_are_real() {
        let drawn = steps(7, 2_000);
        for kind in [
            |step: &Step| matches!(step, Step::Keys(_)),
            |step: &Step| matches!(step, Step::Key(_)),
            |step: &Step| matches!(step, Step::Paste(text) if text.len() > 2_000),
            |step: &Step| matches!(step, Step::Bytes(_)),
            |step: &Step| matches!(step, Step::Resize(1..=200, 1..=60)),
        ] {
            assert!(drawn.iter().any(kind));
        }
        let is_none = |step: &Step| matches!(step, Step::Resize(0, _) | Step::Resize(_, 0));
        assert!(!drawn.iter().any(is_none));
    }
}
