//! Colours of the operator's own: styles by what they are for, over a theme that is built in.

use caliban_text::Palette;
use ratatui_core::style::{Color, Modifier, Style};
use serde_json::{Map, Value};

use crate::preferences::ThemeChoice;

/// Styles that take the place of the usual ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CustomTheme {
    pub base: ThemeChoice,
    styles: Vec<(Role, Style)>,
}

/// What a style is for, and where it stands in a palette.
#[derive(Clone, Copy)]
struct Role {
    name: &'static str,
    slot: fn(&mut Palette) -> &mut Style,
}

impl PartialEq for Role {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Role {}

impl std::fmt::Debug for Role {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name)
    }
}

macro_rules! roles {
    ($($name:ident),* $(,)?) => {
        const ROLES: &[Role] = &[$(Role {
            name: stringify!($name),
            slot: |palette| &mut palette.$name,
        }),*];
    };
}

roles!(
    text,
    strong,
    emphasis,
    strike,
    heading,
    quote,
    code,
    code_block,
    link,
    rule,
    list_mark,
    dim,
    added,
    added_mark,
    removed,
    removed_mark,
    line_number,
    hunk,
    keyword,
    type_name,
    function,
    string,
    number,
    comment,
    accent,
    warning,
    error,
    success,
    prompt,
);

impl CustomTheme {
    /// Reads a theme: `base`, and a style for each role. What cannot be used is left out and told,
    /// each with the key it stands at, which begins with `place`.
    pub fn read(values: &Map<String, Value>, place: &str) -> (Self, Vec<String>) {
        let mut theme = Self {
            base: ThemeChoice::Auto,
            styles: Vec::new(),
        };
        let mut faults = Vec::new();
        for (key, value) in values {
            let told = match value.as_str() {
                None => Err("it is not a text".to_owned()),
                Some(text) if key == "base" => ThemeChoice::named(text)
                    .map(|base| theme.base = base)
                    .ok_or_else(|| {
                        format!("`{text}` is no theme; use auto, dark, light, colour-blind or none")
                    }),
                Some(text) => theme.take(key, text),
            };
            if let Err(problem) = told {
                faults.push(format!("`{place}.{key}`: {problem}"));
            }
        }
        (theme, faults)
    }

    fn take(&mut self, key: &str, text: &str) -> Result<(), String> {
        let role = ROLES.iter().find(|role| role.name == key).ok_or_else(|| {
            let names: Vec<&str> = ROLES.iter().map(|role| role.name).collect();
            format!("there is no such part; there are {}", names.join(", "))
        })?;
        self.styles.push((*role, style(text)?));
        Ok(())
    }

    /// Puts its styles into a palette.
    pub(crate) fn paint(&self, palette: &mut Palette) {
        for (role, style) in &self.styles {
            *(role.slot)(palette) = *style;
        }
    }
}

/// A style in words: `bold #ff8800 on 236 underline`.
fn style(text: &str) -> Result<Style, String> {
    let mut style = Style::new();
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        style = match word {
            "bold" => style.add_modifier(Modifier::BOLD),
            "dim" => style.add_modifier(Modifier::DIM),
            "italic" => style.add_modifier(Modifier::ITALIC),
            "underline" => style.add_modifier(Modifier::UNDERLINED),
            "reverse" => style.add_modifier(Modifier::REVERSED),
            "strike" => style.add_modifier(Modifier::CROSSED_OUT),
            "on" => style.bg(colour(words.next().unwrap_or_default())?),
            word => style.fg(colour(word)?),
        };
    }
    Ok(style)
}

fn colour(word: &str) -> Result<Color, String> {
    let unknown = || {
        format!(
            "`{word}` is no colour; use a name such as red or bright-red, a number up to 255, or \
             #rrggbb"
        )
    };
    if let Some(digits) = word.strip_prefix('#') {
        let is_hex = digits.len() == 6 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = u32::from_str_radix(digits, 16).ok().filter(|_| is_hex);
        let [_, red, green, blue] = number.ok_or_else(unknown)?.to_be_bytes();
        return Ok(Color::Rgb(red, green, blue));
    }
    if let Ok(number) = word.parse() {
        return Ok(Color::Indexed(number));
    }
    Ok(match word {
        "default" => Color::Reset,
        "black" => Color::Black,
        "red" => Color::Red,
        "green" => Color::Green,
        "yellow" => Color::Yellow,
        "blue" => Color::Blue,
        "magenta" => Color::Magenta,
        "cyan" => Color::Cyan,
        "white" => Color::Gray,
        "bright-black" => Color::DarkGray,
        "bright-red" => Color::LightRed,
        "bright-green" => Color::LightGreen,
        "bright-yellow" => Color::LightYellow,
        "bright-blue" => Color::LightBlue,
        "bright-magenta" => Color::LightMagenta,
        "bright-cyan" => Color::LightCyan,
        "bright-white" => Color::White,
        _ => return Err(unknown()),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> (CustomTheme, Vec<String>) {
        let Value::Object(values) = value else {
            panic!("no table");
        };
        CustomTheme::read(&values, "tui.theme")
    }

    #[test]
    fn styles_take_the_place_of_the_usual_ones() {
        let (theme, faults) = read(json!({
            "base": "light",
            "heading": "bold #ff8800 on 236 underline",
            "error": "bright-red",
        }));
        assert_eq!(faults, Vec::<String>::new());
        assert_eq!(theme.base, ThemeChoice::Light);
        let mut palette = Palette::light();
        theme.paint(&mut palette);
        let heading = Style::new()
            .fg(Color::Rgb(255, 136, 0))
            .bg(Color::Indexed(236))
            .add_modifier(Modifier::BOLD | Modifier::UNDERLINED);
        assert_eq!(palette.heading, heading);
        assert_eq!(palette.error, Style::new().fg(Color::LightRed));
        assert_eq!(palette.warning, Palette::light().warning);
    }

    #[rstest]
    #[case(json!({"heading": "blurple"}), "`tui.theme.heading`: `blurple` is no colour")]
    #[case(json!({"heading": "red on"}), "`tui.theme.heading`: `` is no colour")]
    #[case(json!({"heading": "#12345"}), "`tui.theme.heading`: `#12345` is no colour")]
    #[case(json!({"heading": "256"}), "`tui.theme.heading`: `256` is no colour")]
    #[case(json!({"heading": 3}), "`tui.theme.heading`: it is not a text")]
    #[case(json!({"title": "red"}), "`tui.theme.title`: there is no such part")]
    #[case(json!({"base": "pink"}), "`tui.theme.base`: `pink` is no theme")]
    fn what_cannot_be_used_is_told_with_its_key(#[case] value: Value, #[case] begins: &str) {
        let (_, faults) = read(value);
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with(begins), "{}", faults[0]);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,40}") {
            let _ = style(&text);
        }
    }
}
