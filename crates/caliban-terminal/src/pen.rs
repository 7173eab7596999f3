//! The style in which the terminal writes, and the shortest way to another.

use ratatui_core::buffer::Cell;
use ratatui_core::style::{Color, Modifier};

use crate::capabilities::Colours;

/// How a cell is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pen {
    foreground: Color,
    background: Color,
    underline: Color,
    attributes: Modifier,
}

/// The attributes with what sets and what ends each.
const ATTRIBUTES: [(Modifier, &str, &str); 9] = [
    (Modifier::BOLD, "1", "22"),
    (Modifier::DIM, "2", "22"),
    (Modifier::ITALIC, "3", "23"),
    (Modifier::UNDERLINED, "4", "24"),
    (Modifier::SLOW_BLINK, "5", "25"),
    (Modifier::RAPID_BLINK, "6", "25"),
    (Modifier::REVERSED, "7", "27"),
    (Modifier::HIDDEN, "8", "28"),
    (Modifier::CROSSED_OUT, "9", "29"),
];

impl Pen {
    pub(crate) const DEFAULT: Self = Self {
        foreground: Color::Reset,
        background: Color::Reset,
        underline: Color::Reset,
        attributes: Modifier::empty(),
    };

    /// The pen of a cell in a terminal that has such colours. Without any, attributes stay.
    pub(crate) fn of(cell: &Cell, colours: Colours) -> Self {
        Self {
            foreground: within(cell.fg, colours),
            background: within(cell.bg, colours),
            underline: match colours {
                Colours::None | Colours::Ansi16 => Color::Reset,
                Colours::Indexed | Colours::True => within(cell.underline_color, colours),
            },
            attributes: cell.modifier,
        }
    }

    /// Whether a space in this pen looks as if it were erased.
    pub(crate) fn leaves_blank(self) -> bool {
        let visible = Modifier::UNDERLINED | Modifier::REVERSED | Modifier::CROSSED_OUT;
        self.background == Color::Reset && !self.attributes.intersects(visible)
    }

    /// Appends what changes the terminal's pen from this one to another.
    pub(crate) fn change(self, to: Self, out: &mut Vec<u8>) {
        if self == to {
            return;
        }
        let mut codes = Codes::default();
        if to != Self::DEFAULT {
            let mut anew = Codes::default();
            anew.push("0");
            Self::DEFAULT.codes(to, &mut anew);
            self.codes(to, &mut codes);
            if anew.0.len() < codes.0.len() {
                codes = anew;
            }
        }
        out.extend_from_slice(b"\x1b[");
        out.extend_from_slice(codes.0.as_bytes());
        out.push(b'm');
    }

    fn codes(self, to: Self, codes: &mut Codes) {
        let mut ended = "";
        let mut kept = self.attributes;
        for (attribute, _, end) in ATTRIBUTES {
            if kept.contains(attribute) && !to.attributes.contains(attribute) && ended != end {
                codes.push(end);
                ended = end;
            }
        }
        // Two attributes that share an end go together.
        for (attribute, _, end) in ATTRIBUTES {
            let shared = ATTRIBUTES.iter().any(|(other, _, others)| {
                *others == end
                    && self.attributes.contains(*other)
                    && !to.attributes.contains(*other)
            });
            if shared {
                kept.remove(attribute);
            }
        }
        for (attribute, start, _) in ATTRIBUTES {
            if to.attributes.contains(attribute) && !kept.contains(attribute) {
                codes.push(start);
            }
        }
        if self.foreground != to.foreground {
            codes.colour(to.foreground, 30);
        }
        if self.background != to.background {
            codes.colour(to.background, 40);
        }
        if self.underline != to.underline {
            codes.underline(to.underline);
        }
    }
}

/// The parameters of one change.
#[derive(Debug, Default)]
struct Codes(String);

impl Codes {
    fn push(&mut self, code: &str) {
        if !self.0.is_empty() {
            self.0.push(';');
        }
        self.0.push_str(code);
    }

    /// The colour of the foreground (30) or the background (40).
    fn colour(&mut self, colour: Color, base: u8) {
        match (Paint::of(colour), base) {
            (Paint::Default, _) => self.push(&(base + 9).to_string()),
            (Paint::Basic(index @ 0..=7), _) => self.push(&(base + index).to_string()),
            (Paint::Basic(index), _) => self.push(&(base + 52 + index).to_string()),
            (Paint::Indexed(index), _) => self.push(&format!("{};5;{index}", base + 8)),
            (Paint::Rgb(r, g, b), _) => self.push(&format!("{};2;{r};{g};{b}", base + 8)),
        }
    }

    /// With colons: a terminal that does not know this passes over all of it.
    fn underline(&mut self, colour: Color) {
        match Paint::of(colour) {
            Paint::Default => self.push("59"),
            Paint::Basic(index) | Paint::Indexed(index) => self.push(&format!("58:5:{index}")),
            Paint::Rgb(r, g, b) => self.push(&format!("58:2::{r}:{g}:{b}")),
        }
    }
}

/// A colour as terminals count them.
enum Paint {
    Default,
    Basic(u8),
    Indexed(u8),
    Rgb(u8, u8, u8),
}

impl Paint {
    fn of(colour: Color) -> Self {
        match colour {
            Color::Reset => Self::Default,
            Color::Black => Self::Basic(0),
            Color::Red => Self::Basic(1),
            Color::Green => Self::Basic(2),
            Color::Yellow => Self::Basic(3),
            Color::Blue => Self::Basic(4),
            Color::Magenta => Self::Basic(5),
            Color::Cyan => Self::Basic(6),
            Color::Gray => Self::Basic(7),
            Color::DarkGray => Self::Basic(8),
            Color::LightRed => Self::Basic(9),
            Color::LightGreen => Self::Basic(10),
            Color::LightYellow => Self::Basic(11),
            Color::LightBlue => Self::Basic(12),
            Color::LightMagenta => Self::Basic(13),
            Color::LightCyan => Self::Basic(14),
            Color::White => Self::Basic(15),
            Color::Indexed(index) => Self::Indexed(index),
            Color::Rgb(r, g, b) => Self::Rgb(r, g, b),
        }
    }
}

const BASIC: [Color; 16] = [
    Color::Black,
    Color::Red,
    Color::Green,
    Color::Yellow,
    Color::Blue,
    Color::Magenta,
    Color::Cyan,
    Color::Gray,
    Color::DarkGray,
    Color::LightRed,
    Color::LightGreen,
    Color::LightYellow,
    Color::LightBlue,
    Color::LightMagenta,
    Color::LightCyan,
    Color::White,
];

/// The nearest colour that may be sent.
fn within(colour: Color, colours: Colours) -> Color {
    match (colours, Paint::of(colour)) {
        (Colours::None, _) | (_, Paint::Default) => Color::Reset,
        (_, Paint::Basic(_)) | (Colours::True, _) | (Colours::Indexed, Paint::Indexed(_)) => colour,
        (Colours::Indexed, Paint::Rgb(r, g, b)) => Color::Indexed(indexed(r, g, b)),
        (Colours::Ansi16, Paint::Indexed(index)) => {
            let (r, g, b) = of_index(index);
            BASIC
                .get(usize::from(index))
                .copied()
                .unwrap_or_else(|| basic(r, g, b))
        }
        (Colours::Ansi16, Paint::Rgb(r, g, b)) => basic(r, g, b),
    }
}

/// The levels of a channel in the cube of 216 colours.
const LEVELS: [u8; 6] = [0, 95, 135, 175, 215, 255];

fn of_index(index: u8) -> (u8, u8, u8) {
    if index >= 232 {
        let grey = 8 + (index - 232) * 10;
        return (grey, grey, grey);
    }
    let index = usize::from(index.saturating_sub(16));
    (
        LEVELS[index / 36 % 6],
        LEVELS[index / 6 % 6],
        LEVELS[index % 6],
    )
}

fn distance(one: (u8, u8, u8), other: (u8, u8, u8)) -> u32 {
    let square = |a: u8, b: u8| u32::from(a.abs_diff(b)).pow(2);
    square(one.0, other.0) + square(one.1, other.1) + square(one.2, other.2)
}

fn indexed(r: u8, g: u8, b: u8) -> u8 {
    (16..=255)
        .min_by_key(|index| distance(of_index(*index), (r, g, b)))
        .unwrap_or(16)
}

fn basic(r: u8, g: u8, b: u8) -> Color {
    /// How xterm shows them; every user has others, but not in another order.
    const SHOWN: [(u8, u8, u8); 16] = [
        (0, 0, 0),
        (205, 0, 0),
        (0, 205, 0),
        (205, 205, 0),
        (0, 0, 238),
        (205, 0, 205),
        (0, 205, 205),
        (229, 229, 229),
        (127, 127, 127),
        (255, 0, 0),
        (0, 255, 0),
        (255, 255, 0),
        (92, 92, 255),
        (255, 0, 255),
        (0, 255, 255),
        (255, 255, 255),
    ];
    BASIC
        .into_iter()
        .zip(SHOWN)
        .min_by_key(|(_, shown)| distance(*shown, (r, g, b)))
        .map_or(Color::Reset, |(colour, _)| colour)
}
