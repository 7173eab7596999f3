//! Keys by name, as the terminal would send them in its present state.

use std::fmt::Write;

use super::profile::Profile;
use super::watch::{APPLICATION_CURSOR, Watch};

/// How a terminal writes keys that the oldest encoding cannot tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// As ever: many keys look alike.
    Legacy(Arrows),
    /// kitty, with its first flag.
    Kitty,
    /// `modifyOtherKeys` as xterm writes it.
    OtherKeys,
    /// `modifyOtherKeys` as tmux writes it.
    OtherKeysAsKitty,
}

/// Whether arrows are sent for an application.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrows {
    Ordinary,
    Application,
}

impl Encoding {
    /// What the program asked for, if the terminal can do it.
    pub(super) fn of(profile: Profile, watch: &Watch) -> Self {
        let legacy = if watch.is_set(APPLICATION_CURSOR) {
            Self::Legacy(Arrows::Application)
        } else {
            Self::Legacy(Arrows::Ordinary)
        };
        let wants_other_keys = watch.other_keys() > 0;
        match profile {
            Profile::Kitty | Profile::Late if watch.keyboard() & 1 == 1 => Self::Kitty,
            Profile::Xterm if wants_other_keys => Self::OtherKeys,
            Profile::Tmux if wants_other_keys => Self::OtherKeysAsKitty,
            Profile::Silent
            | Profile::Xterm
            | Profile::Kitty
            | Profile::Tmux
            | Profile::Late
            | Profile::Lying => legacy,
        }
    }
}

const SHIFT: u8 = 1;
const ALT: u8 = 2;
const CTRL: u8 = 4;
const SUPER: u8 = 8;

/// A key without its modifiers.
#[derive(Debug, Clone, Copy)]
enum Base {
    /// A character, or one of those keys that send one.
    Char(char),
    /// `CSI 1 ; modifiers letter`.
    Letter(char),
    /// `CSI number ; modifiers ~`.
    Tilde(u8),
}

/// The bytes of a key such as `ctrl+c`, `shift+tab` or `f1`; nothing if there is no such key.
pub(super) fn encode(name: &str, encoding: Encoding) -> Option<Vec<u8>> {
    let (modifiers, base) = parse(name)?;
    let text = match base {
        Base::Char(c) => character(c, modifiers, encoding),
        Base::Letter(letter) => lettered(letter, modifiers, encoding),
        Base::Tilde(number) if modifiers == 0 => format!("\x1b[{number}~"),
        Base::Tilde(number) => format!("\x1b[{number};{}~", modifiers + 1),
    };
    Some(text.into_bytes())
}

fn parse(name: &str) -> Option<(u8, Base)> {
    // The plus key is itself.
    let (prefix, key) = match name.strip_suffix("++") {
        Some(prefix) => (prefix, "+"),
        None if name == "+" => ("", "+"),
        None => name.rsplit_once('+').unwrap_or(("", name)),
    };
    let mut modifiers = 0;
    for modifier in prefix.split('+').filter(|modifier| !modifier.is_empty()) {
        modifiers |= match modifier {
            "shift" => SHIFT,
            "alt" => ALT,
            "ctrl" => CTRL,
            "super" => SUPER,
            _ => return None,
        };
    }
    Some((modifiers, base(key)?))
}

fn base(key: &str) -> Option<Base> {
    let mut chars = key.chars();
    if let (Some(c), None) = (chars.next(), chars.next()) {
        return Some(Base::Char(c));
    }
    let base = match key {
        "enter" => Base::Char('\r'),
        "tab" => Base::Char('\t'),
        "esc" => Base::Char('\x1b'),
        "backspace" => Base::Char('\x7f'),
        "space" => Base::Char(' '),
        "up" => Base::Letter('A'),
        "down" => Base::Letter('B'),
        "right" => Base::Letter('C'),
        "left" => Base::Letter('D'),
        "end" => Base::Letter('F'),
        "home" => Base::Letter('H'),
        "f1" => Base::Letter('P'),
        "f2" => Base::Letter('Q'),
        "f3" => Base::Letter('R'),
        "f4" => Base::Letter('S'),
        "insert" => Base::Tilde(2),
        "delete" => Base::Tilde(3),
        "pageup" => Base::Tilde(5),
        "pagedown" => Base::Tilde(6),
        "f5" => Base::Tilde(15),
        "f6" => Base::Tilde(17),
        "f7" => Base::Tilde(18),
        "f8" => Base::Tilde(19),
        "f9" => Base::Tilde(20),
        "f10" => Base::Tilde(21),
        "f11" => Base::Tilde(23),
        "f12" => Base::Tilde(24),
        _ => return None,
    };
    Some(base)
}

fn lettered(letter: char, modifiers: u8, encoding: Encoding) -> String {
    let is_function_key = ('P'..='S').contains(&letter);
    let is_for_application = match encoding {
        Encoding::Legacy(Arrows::Application) => true,
        // `CSI R` is also the answer to where the cursor is.
        Encoding::Kitty if letter == 'R' => {
            return if modifiers == 0 {
                "\x1b[13~".to_owned()
            } else {
                format!("\x1b[13;{}~", modifiers + 1)
            };
        }
        Encoding::Kitty => false,
        Encoding::Legacy(Arrows::Ordinary) | Encoding::OtherKeys | Encoding::OtherKeysAsKitty => {
            is_function_key
        }
    };
    match modifiers {
        0 if is_for_application => format!("\x1bO{letter}"),
        0 => format!("\x1b[{letter}"),
        modifiers => format!("\x1b[1;{}{letter}", modifiers + 1),
    }
}

fn character(c: char, modifiers: u8, encoding: Encoding) -> String {
    let is_control = matches!(c, '\r' | '\t' | '\x1b' | '\x7f');
    let is_ambiguous = match encoding {
        Encoding::Legacy(_) => false,
        Encoding::Kitty if c == '\x1b' => true,
        Encoding::Kitty | Encoding::OtherKeys | Encoding::OtherKeysAsKitty => {
            modifiers & !SHIFT != 0 || (is_control && modifiers != 0)
        }
    };
    if !is_ambiguous {
        return legacy(c, modifiers);
    }
    let code = u32::from(c);
    match encoding {
        Encoding::OtherKeys => format!("\x1b[27;{};{code}~", modifiers + 1),
        Encoding::Kitty if modifiers == 0 => format!("\x1b[{code}u"),
        Encoding::Kitty | Encoding::OtherKeysAsKitty | Encoding::Legacy(_) => {
            format!("\x1b[{code};{}u", modifiers + 1)
        }
    }
}

fn legacy(c: char, modifiers: u8) -> String {
    let mut out = String::new();
    if modifiers & ALT != 0 {
        out.push('\x1b');
    }
    if modifiers & SHIFT != 0 && c == '\t' {
        out.push_str("\x1b[Z");
        return out;
    }
    let c = if modifiers & CTRL == 0 {
        c
    } else {
        controlled(c)
    };
    if modifiers & SHIFT != 0 {
        let _ = write!(out, "{}", c.to_uppercase());
    } else {
        out.push(c);
    }
    out
}

/// The control character that a key sends with Ctrl; itself if there is none.
fn controlled(c: char) -> char {
    match c {
        'a'..='z' | 'A'..='Z' => char::from(c as u8 & 0x1f),
        ' ' | '@' | '2' => '\0',
        '[' | '3' => '\x1b',
        '\\' | '4' => '\x1c',
        ']' | '5' => '\x1d',
        '^' | '6' => '\x1e',
        '_' | '/' | '7' => '\x1f',
        '?' | '8' => '\x7f',
        '\x7f' => '\x08',
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const LEGACY: Encoding = Encoding::Legacy(Arrows::Ordinary);

    #[rstest]
    #[case("a", LEGACY, "a")]
    #[case("shift+a", LEGACY, "A")]
    #[case("+", LEGACY, "+")]
    #[case("alt++", LEGACY, "\x1b+")]
    #[case("ctrl+c", LEGACY, "\x03")]
    #[case("ctrl+alt+c", LEGACY, "\x1b\x03")]
    #[case("ctrl+space", LEGACY, "\0")]
    #[case("ctrl+/", LEGACY, "\x1f")]
    #[case("backspace", LEGACY, "\x7f")]
    #[case("ctrl+backspace", LEGACY, "\x08")]
    #[case("é", LEGACY, "é")]
    #[case("up", LEGACY, "\x1b[A")]
    #[case("up", Encoding::Legacy(Arrows::Application), "\x1bOA")]
    #[case("shift+up", Encoding::Legacy(Arrows::Application), "\x1b[1;2A")]
    #[case("f3", LEGACY, "\x1bOR")]
    #[case("f3", Encoding::Kitty, "\x1b[13~")]
    #[case("f1", Encoding::Kitty, "\x1b[P")]
    #[case("f12", LEGACY, "\x1b[24~")]
    #[case("ctrl+delete", LEGACY, "\x1b[3;5~")]
    #[case("a", Encoding::Kitty, "a")]
    #[case("shift+a", Encoding::Kitty, "A")]
    #[case("ctrl+c", Encoding::Kitty, "\x1b[99;5u")]
    #[case("ctrl+shift+c", Encoding::Kitty, "\x1b[99;6u")]
    #[case("alt+enter", Encoding::Kitty, "\x1b[13;3u")]
    #[case("shift+tab", Encoding::Kitty, "\x1b[9;2u")]
    #[case("tab", Encoding::Kitty, "\t")]
    #[case("esc", Encoding::OtherKeys, "\x1b")]
    #[case("ctrl+c", Encoding::OtherKeys, "\x1b[27;5;99~")]
    #[case("alt+enter", Encoding::OtherKeysAsKitty, "\x1b[13;3u")]
    fn a_key_is_these_bytes(#[case] name: &str, #[case] encoding: Encoding, #[case] bytes: &str) {
        let encoded = encode(name, encoding).unwrap();
        assert_eq!(String::from_utf8(encoded).unwrap(), bytes);
    }

    #[rstest]
    #[case("")]
    #[case("hyper+x")]
    #[case("Enter")]
    #[case("f13")]
    #[case("ctrl+")]
    fn there_is_no_such_key(#[case] name: &str) {
        assert_eq!(encode(name, LEGACY), None);
    }
}
