//! What terminals answer when they are asked about themselves.

use crate::capabilities::Scheme;

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// The state of a mode: 0 unknown, 1 set, 2 reset, 3 always set, 4 always reset.
    Mode {
        mode: u16,
        state: u8,
    },
    Foreground(Rgb),
    Background(Rgb),
    /// The flags of the kitty keyboard protocol that are in force.
    KeyboardFlags(u8),
    /// Name and version, as the terminal writes them.
    Name(String),
    /// The device attributes: every terminal answers this, and most do so in order.
    Attributes,
    /// Where the cursor is, counted from zero.
    Cursor {
        row: u16,
        column: u16,
    },
    ColourScheme(Scheme),
    Size {
        columns: u16,
        rows: u16,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rgb {
    pub red: u8,
    pub green: u8,
    pub blue: u8,
}

impl Rgb {
    pub const fn new(red: u8, green: u8, blue: u8) -> Self {
        Self { red, green, blue }
    }

    /// How bright a colour looks, of 255 000.
    pub fn luminance(self) -> u32 {
        u32::from(self.red) * 299 + u32::from(self.green) * 587 + u32::from(self.blue) * 114
    }

    /// Reads `rgb:RRRR/GGGG/BBBB` with one to four digits each, the same with alpha, or `#RRGGBB`.
    fn parse(text: &str) -> Option<Self> {
        if let Some(digits) = text.strip_prefix('#') {
            let width = digits.len() / 3;
            if !digits.is_ascii() || digits.len() % 3 != 0 {
                return None;
            }
            let part = |index: usize| channel(digits.get(index * width..(index + 1) * width)?);
            return Some(Self::new(part(0)?, part(1)?, part(2)?));
        }
        let (space, values) = text.split_once(':')?;
        if !matches!(space, "rgb" | "rgba") {
            return None;
        }
        let mut values = values.split('/').map(channel);
        Some(Self::new(values.next()??, values.next()??, values.next()??))
    }
}

/// One to four hexadecimal digits as a share of 255.
fn channel(digits: &str) -> Option<u8> {
    const FULL: [u32; 4] = [0xf, 0xff, 0xfff, 0xffff];
    let full = FULL.get(digits.len().checked_sub(1)?)?;
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let value = u32::from_str_radix(digits, 16).ok()?;
    u8::try_from(value * 255 / full).ok()
}

/// The report in an operating system command, without its introducer and its end.
pub(crate) fn from_osc(text: &[u8]) -> Option<Report> {
    let text = std::str::from_utf8(text).ok()?;
    let (command, value) = text.split_once(';')?;
    match command {
        "10" => Rgb::parse(value).map(Report::Foreground),
        "11" => Rgb::parse(value).map(Report::Background),
        _ => None,
    }
}

/// A name is shown to the user, so it is short and printable.
const NAME_LIMIT: usize = 64;

/// The report in a device control string: of those there are, only the name is of use.
pub(crate) fn from_dcs(text: &[u8]) -> Option<Report> {
    let name = text.strip_prefix(b">|")?;
    let name = String::from_utf8_lossy(name);
    let name = name.chars().filter(|c| !c.is_control()).take(NAME_LIMIT);
    Some(Report::Name(name.collect()))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        "11;rgb:ffff/8080/0000",
        Some(Report::Background(Rgb::new(255, 128, 0)))
    )]
    #[case("11;rgb:f/8/0", Some(Report::Background(Rgb::new(255, 136, 0))))]
    #[case("10;rgba:ff/80/00/cc", Some(Report::Foreground(Rgb::new(255, 128, 0))))]
    #[case("11;#102030", Some(Report::Background(Rgb::new(16, 32, 48))))]
    #[case("11;?", None)]
    #[case("11;rgb:ff/80", None)]
    #[case("11;rgb:fffff/0/0", None)]
    #[case("11;rgb:+f/0/0", None)]
    #[case("11;#é1", None)]
    #[case("52;c;aGk=", None)]
    #[case("11", None)]
    fn colours_are_read(#[case] text: &str, #[case] report: Option<Report>) {
        assert_eq!(from_osc(text.as_bytes()), report);
    }

    #[test]
    fn names_are_short_and_printable() {
        let long = format!(">|a\u{7}b{}", "x".repeat(1000));
        let Some(Report::Name(name)) = from_dcs(long.as_bytes()) else {
            panic!("no name");
        };
        assert!(name.starts_with("abx"));
        assert_eq!(name.len(), NAME_LIMIT);
        assert_eq!(from_dcs(b"1$r0m"), None);
    }

    proptest! {
        #[test]
        fn any_string_can_be_read(text in prop::collection::vec(any::<u8>(), 0..40), colour in "(rgb:|#)?[0-9a-fA-Fé/+-]{0,20}") {
            let _ = (from_osc(&text), from_dcs(&text), Rgb::parse(&colour));
        }
    }
}
