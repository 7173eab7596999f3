//! Keys and how they are written: `ctrl+shift+b`, `esc`, `alt+enter`, `f5`.

use std::fmt;
use std::ops::BitOr;

/// A key with what was held down beside it.
///
/// One key has one form, however the terminal encodes it: `Ctrl` and a letter is the small letter
/// with `CTRL`; a capital is that character without `SHIFT`; `Shift+Tab` is `BackTab`; `Ctrl+J` is a
/// letter and never `Enter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Key {
    pub code: KeyCode,
    pub modifiers: Modifiers,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyCode {
    Char(char),
    Enter,
    Tab,
    BackTab,
    Backspace,
    Delete,
    Insert,
    Esc,
    Up,
    Down,
    Left,
    Right,
    Home,
    End,
    PageUp,
    PageDown,
    F(u8),
}

/// A set of keys that change others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Modifiers(u8);

impl Modifiers {
    pub const NONE: Self = Self(0);
    pub const SHIFT: Self = Self(1);
    pub const ALT: Self = Self(2);
    pub const CTRL: Self = Self(4);
    pub const SUPER: Self = Self(8);

    pub const fn none() -> Self {
        Self::NONE
    }

    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether all of these are in the set.
    pub const fn contains(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    #[must_use]
    pub const fn without(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// The parameter in which xterm and all after it encode modifiers: one more than a set of bits.
    /// Locks are none of ours, and the old Meta is Alt.
    pub(crate) const fn from_parameter(parameter: u32) -> Self {
        const OURS: u32 = 0b1111;
        const META: u32 = 32;
        let bits = parameter.saturating_sub(1);
        let alt = if bits & META == 0 { 0 } else { Self::ALT.0 };
        Self((bits & OURS) as u8 | alt)
    }
}

impl BitOr for Modifiers {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// How modifiers are written, in the order in which they are.
const MODIFIERS: [(&str, Modifiers); 4] = [
    ("ctrl", Modifiers::CTRL),
    ("alt", Modifiers::ALT),
    ("shift", Modifiers::SHIFT),
    ("super", Modifiers::SUPER),
];

/// How else they may be written.
const MODIFIER_ALIASES: [(&str, Modifiers); 6] = [
    ("control", Modifiers::CTRL),
    ("option", Modifiers::ALT),
    ("opt", Modifiers::ALT),
    ("meta", Modifiers::ALT),
    ("cmd", Modifiers::SUPER),
    ("win", Modifiers::SUPER),
];

/// The names of keys; the first of a key is how it is written.
const NAMES: [(&str, KeyCode); 26] = [
    ("enter", KeyCode::Enter),
    ("return", KeyCode::Enter),
    ("tab", KeyCode::Tab),
    ("backtab", KeyCode::BackTab),
    ("backspace", KeyCode::Backspace),
    ("delete", KeyCode::Delete),
    ("del", KeyCode::Delete),
    ("insert", KeyCode::Insert),
    ("ins", KeyCode::Insert),
    ("esc", KeyCode::Esc),
    ("escape", KeyCode::Esc),
    ("up", KeyCode::Up),
    ("down", KeyCode::Down),
    ("left", KeyCode::Left),
    ("right", KeyCode::Right),
    ("home", KeyCode::Home),
    ("end", KeyCode::End),
    ("pageup", KeyCode::PageUp),
    ("pgup", KeyCode::PageUp),
    ("pagedown", KeyCode::PageDown),
    ("pgdn", KeyCode::PageDown),
    ("space", KeyCode::Char(' ')),
    ("plus", KeyCode::Char('+')),
    ("minus", KeyCode::Char('-')),
    ("comma", KeyCode::Char(',')),
    ("backslash", KeyCode::Char('\\')),
];

/// The highest function key that any terminal has.
const MAX_FUNCTION: u8 = 35;

impl Key {
    pub const fn plain(code: KeyCode) -> Self {
        Self {
            code,
            modifiers: Modifiers::NONE,
        }
    }

    pub fn ctrl(letter: char) -> Self {
        Self::new(KeyCode::Char(letter), Modifiers::CTRL)
    }

    pub fn alt(character: char) -> Self {
        Self::new(KeyCode::Char(character), Modifiers::ALT)
    }

    /// The one form of a key.
    pub fn new(code: KeyCode, modifiers: Modifiers) -> Self {
        let shifted = modifiers.contains(Modifiers::SHIFT);
        let unshifted = modifiers.without(Modifiers::SHIFT);
        let (code, modifiers) = match code {
            KeyCode::Tab if shifted => (KeyCode::BackTab, unshifted),
            KeyCode::BackTab => (KeyCode::BackTab, unshifted),
            KeyCode::Char(c) if modifiers.contains(Modifiers::CTRL) => {
                (KeyCode::Char(lower(c)), modifiers)
            }
            KeyCode::Char(c) if shifted && (c == ' ' || c.is_uppercase() || upper(c) != c) => {
                (KeyCode::Char(upper(c)), unshifted)
            }
            KeyCode::Char(_)
            | KeyCode::Enter
            | KeyCode::Tab
            | KeyCode::Backspace
            | KeyCode::Delete
            | KeyCode::Insert
            | KeyCode::Esc
            | KeyCode::Up
            | KeyCode::Down
            | KeyCode::Left
            | KeyCode::Right
            | KeyCode::Home
            | KeyCode::End
            | KeyCode::PageUp
            | KeyCode::PageDown
            | KeyCode::F(_) => (code, modifiers),
        };
        Self { code, modifiers }
    }

    /// The same key with more held down.
    #[must_use]
    pub fn with(self, modifiers: Modifiers) -> Self {
        Self::new(self.code, self.modifiers | modifiers)
    }

    /// Reads a key as it is written. Case matters for a character alone, as in `G`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut rest = text.trim();
        let mut modifiers = Modifiers::NONE;
        // A plus behind a plus is the key itself.
        while let Some((name, after)) = rest
            .split_once('+')
            .filter(|(name, after)| !name.is_empty() && !after.is_empty())
        {
            modifiers = modifiers | modifier(name).ok_or_else(|| unknown(text, name))?;
            rest = after;
        }
        let code = code(rest).ok_or_else(|| unknown(text, rest))?;
        Ok(Self::new(code, modifiers))
    }
}

fn unknown(text: &str, part: &str) -> String {
    format!("`{text}` is no key: `{part}` is not known")
}

fn modifier(name: &str) -> Option<Modifiers> {
    MODIFIERS
        .iter()
        .chain(&MODIFIER_ALIASES)
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, modifier)| *modifier)
}

fn code(name: &str) -> Option<KeyCode> {
    let mut characters = name.chars();
    if let (Some(character), None) = (characters.next(), characters.next()) {
        return (!character.is_control()).then_some(KeyCode::Char(character));
    }
    if let Some(number) = name.strip_prefix(['f', 'F'])
        && let Ok(number) = number.parse::<u8>()
    {
        return (1..=MAX_FUNCTION)
            .contains(&number)
            .then_some(KeyCode::F(number));
    }
    NAMES
        .iter()
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, code)| *code)
}

/// The capital of a letter that has a single one.
fn upper(c: char) -> char {
    let mut upper = c.to_uppercase();
    match (upper.next(), upper.next()) {
        (Some(single), None) => single,
        _ => c,
    }
}

fn lower(c: char) -> char {
    let mut lower = c.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(single), None) => single,
        _ => c,
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (code, modifiers) = match self.code {
            KeyCode::BackTab => (KeyCode::Tab, self.modifiers | Modifiers::SHIFT),
            other => (other, self.modifiers),
        };
        for (name, modifier) in MODIFIERS {
            if modifiers.contains(modifier) {
                write!(formatter, "{name}+")?;
            }
        }
        match (code, NAMES.iter().find(|(_, named)| *named == code)) {
            (_, Some((name, _))) => formatter.write_str(name),
            (KeyCode::Char(c), None) => write!(formatter, "{c}"),
            (KeyCode::F(number), None) => write!(formatter, "f{number}"),
            (other, None) => write!(formatter, "{other:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    const CTRL: Modifiers = Modifiers::CTRL;
    const ALT: Modifiers = Modifiers::ALT;
    const SHIFT: Modifiers = Modifiers::SHIFT;
    const NONE: Modifiers = Modifiers::NONE;

    #[rstest]
    #[case("esc", KeyCode::Esc, NONE, "esc")]
    #[case("Escape", KeyCode::Esc, NONE, "esc")]
    #[case("alt+enter", KeyCode::Enter, ALT, "alt+enter")]
    #[case("shift+enter", KeyCode::Enter, SHIFT, "shift+enter")]
    #[case("ctrl+shift+b", KeyCode::Char('b'), CTRL | SHIFT, "ctrl+shift+b")]
    #[case("Shift+Ctrl+B", KeyCode::Char('b'), CTRL | SHIFT, "ctrl+shift+b")]
    #[case("ctrl+B", KeyCode::Char('b'), CTRL, "ctrl+b")]
    #[case("f5", KeyCode::F(5), NONE, "f5")]
    #[case("F12", KeyCode::F(12), NONE, "f12")]
    #[case("f", KeyCode::Char('f'), NONE, "f")]
    #[case("G", KeyCode::Char('G'), NONE, "G")]
    #[case("shift+g", KeyCode::Char('G'), NONE, "G")]
    #[case("alt+shift+ä", KeyCode::Char('Ä'), ALT, "alt+Ä")]
    #[case("shift+tab", KeyCode::BackTab, NONE, "shift+tab")]
    #[case("backtab", KeyCode::BackTab, NONE, "shift+tab")]
    #[case("ctrl+shift+tab", KeyCode::BackTab, CTRL, "ctrl+shift+tab")]
    #[case("ctrl+space", KeyCode::Char(' '), CTRL, "ctrl+space")]
    #[case("ctrl++", KeyCode::Char('+'), CTRL, "ctrl+plus")]
    #[case("+", KeyCode::Char('+'), NONE, "plus")]
    #[case("cmd+k", KeyCode::Char('k'), Modifiers::SUPER, "super+k")]
    #[case("ctrl+/", KeyCode::Char('/'), CTRL, "ctrl+/")]
    fn keys_are_read_and_written(
        #[case] text: &str,
        #[case] code: KeyCode,
        #[case] modifiers: Modifiers,
        #[case] written: &str,
    ) {
        let key = Key::parse(text).unwrap();
        assert_eq!(key, Key { code, modifiers });
        assert_eq!(key.to_string(), written);
    }

    #[rstest]
    #[case("")]
    #[case("ctrl+")]
    #[case("hyper+x")]
    #[case("f0")]
    #[case("f36")]
    #[case("f256")]
    #[case("enterr")]
    #[case("ctrl+ctrl")]
    #[case("\u{1b}")]
    fn what_is_no_key_is_refused(#[case] text: &str) {
        assert!(Key::parse(text).is_err(), "{text:?}");
    }

    fn any_code() -> impl Strategy<Value = KeyCode> {
        let named = (0..NAMES.len()).prop_map(|index| NAMES[index].1);
        let typed = any::<char>()
            .prop_filter("no control characters", |c| {
                !c.is_control() && !c.is_whitespace()
            })
            .prop_map(KeyCode::Char);
        prop_oneof![named, typed, (1..=MAX_FUNCTION).prop_map(KeyCode::F)]
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_again(code in any_code(), bits in 0_u8..16) {
            let key = Key::new(code, Modifiers(bits));
            prop_assert_eq!(Key::new(key.code, key.modifiers), key);
            prop_assert_eq!(Key::parse(&key.to_string()), Ok(key));
        }

        #[test]
        fn any_text_can_be_read(text in "\\PC{0,20}") {
            let _ = Key::parse(&text);
        }
    }
}
