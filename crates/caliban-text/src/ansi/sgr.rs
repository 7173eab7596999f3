//! What the parameters of a style sequence mean.

use ratatui_core::style::{Color, Modifier, Style};

const COLOURS: [Color; 8] = [
    Color::Black,
    Color::Red,
    Color::Green,
    Color::Yellow,
    Color::Blue,
    Color::Magenta,
    Color::Cyan,
    Color::Gray,
];
const BRIGHT: [Color; 8] = [
    Color::DarkGray,
    Color::LightRed,
    Color::LightGreen,
    Color::LightYellow,
    Color::LightBlue,
    Color::LightMagenta,
    Color::LightCyan,
    Color::White,
];

/// A style after a sequence. What blinks or hides does neither.
pub(super) fn styled(mut style: Style, parameters: &str) -> Style {
    let mut groups = parameters.split(';');
    while let Some(group) = groups.next() {
        let mut parts = group.split(':');
        let first = number(parts.next());
        match first {
            38 | 48 | 58 => {
                let colour = if group.contains(':') {
                    let parts: Vec<u16> = parts.map(|part| number(Some(part))).collect();
                    of_parts(&parts)
                } else {
                    of_groups(&mut groups)
                };
                match first {
                    38 => style.fg = colour.or(style.fg),
                    48 => style.bg = colour.or(style.bg),
                    _ => {}
                }
            }
            4 if group == "4:0" => style.add_modifier.remove(Modifier::UNDERLINED),
            code => one(&mut style, code),
        }
    }
    style
}

fn number(text: Option<&str>) -> u16 {
    text.map_or(0, |text| text.parse().unwrap_or_default())
}

fn one(style: &mut Style, code: u16) {
    let add = &mut style.add_modifier;
    match code {
        0 => *style = Style::new(),
        1 => add.insert(Modifier::BOLD),
        2 => add.insert(Modifier::DIM),
        3 => add.insert(Modifier::ITALIC),
        4 | 21 => add.insert(Modifier::UNDERLINED),
        7 => add.insert(Modifier::REVERSED),
        9 => add.insert(Modifier::CROSSED_OUT),
        22 => add.remove(Modifier::BOLD | Modifier::DIM),
        23 => add.remove(Modifier::ITALIC),
        24 => add.remove(Modifier::UNDERLINED),
        27 => add.remove(Modifier::REVERSED),
        29 => add.remove(Modifier::CROSSED_OUT),
        30..=37 => style.fg = Some(COLOURS[usize::from(code - 30)]),
        39 => style.fg = None,
        40..=47 => style.bg = Some(COLOURS[usize::from(code - 40)]),
        49 => style.bg = None,
        90..=97 => style.fg = Some(BRIGHT[usize::from(code - 90)]),
        100..=107 => style.bg = Some(BRIGHT[usize::from(code - 100)]),
        _ => {}
    }
}

/// A colour as `5:n` or `2:r:g:b`, the latter also with a colour space before it.
fn of_parts(parts: &[u16]) -> Option<Color> {
    match parts {
        [5, index, ..] => indexed(*index),
        [2, red, green, blue] | [2, _, red, green, blue, ..] => rgb(*red, *green, *blue),
        _ => None,
    }
}

/// A colour whose parts are parameters of their own.
fn of_groups<'a>(groups: &mut impl Iterator<Item = &'a str>) -> Option<Color> {
    match number(groups.next()) {
        5 => indexed(number(groups.next())),
        2 => {
            let (red, green, blue) = (groups.next(), groups.next(), groups.next());
            rgb(number(red), number(green), number(blue))
        }
        _ => None,
    }
}

fn indexed(index: u16) -> Option<Color> {
    let index = u8::try_from(index).ok()?;
    let at = usize::from(index);
    let named = COLOURS.get(at).or_else(|| BRIGHT.get(at.wrapping_sub(8)));
    Some(named.copied().unwrap_or(Color::Indexed(index)))
}

fn rgb(red: u16, green: u16, blue: u16) -> Option<Color> {
    let part = |value| u8::try_from(value).ok();
    Some(Color::Rgb(part(red)?, part(green)?, part(blue)?))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("31", Style::new().fg(Color::Red))]
    #[case("1;4;95", Style::new().fg(Color::LightMagenta).add_modifier(Modifier::BOLD | Modifier::UNDERLINED))]
    #[case("38;5;200", Style::new().fg(Color::Indexed(200)))]
    #[case("38;5;9", Style::new().fg(Color::LightRed))]
    #[case("48;2;1;2;3;1", Style::new().bg(Color::Rgb(1, 2, 3)).add_modifier(Modifier::BOLD))]
    #[case("38:2::1:2:3", Style::new().fg(Color::Rgb(1, 2, 3)))]
    #[case("38:2:1:2:3", Style::new().fg(Color::Rgb(1, 2, 3)))]
    #[case("58;5;3;31", Style::new().fg(Color::Red))]
    #[case("31;", Style::new())]
    #[case("", Style::new())]
    #[case("38;5", Style::new().fg(Color::Black))]
    #[case("38;2;999;0;0", Style::new())]
    #[case("8;5", Style::new())]
    #[case("31;39;1;22;7;27", Style::new())]
    fn parameters_are_read(#[case] parameters: &str, #[case] style: Style) {
        assert_eq!(styled(Style::new(), parameters), style);
    }
}
