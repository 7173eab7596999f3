//! What each part of a text looks like.

use ratatui_core::style::{Color, Modifier, Style};

/// Styles by meaning. Text itself has the terminal's own foreground, meaning is one of the sixteen
/// ANSI colours, and exact colours are backgrounds only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Palette {
    pub text: Style,
    pub strong: Style,
    pub emphasis: Style,
    pub strike: Style,
    pub heading: Style,
    pub quote: Style,
    /// Code within a line.
    pub code: Style,
    pub code_block: Style,
    pub link: Style,
    pub rule: Style,
    pub list_mark: Style,
    pub dim: Style,
    pub added: Style,
    /// What is new within an added line.
    pub added_mark: Style,
    pub removed: Style,
    /// What is gone within a removed line.
    pub removed_mark: Style,
    pub line_number: Style,
    pub hunk: Style,
    pub keyword: Style,
    pub type_name: Style,
    pub function: Style,
    pub string: Style,
    pub number: Style,
    pub comment: Style,
    pub accent: Style,
    pub warning: Style,
    pub error: Style,
    pub success: Style,
    pub prompt: Style,
}

/// What texts stand on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ground {
    Dark,
    Light,
}

impl Palette {
    pub fn dark() -> Self {
        Self {
            added: Style::new().bg(Color::Rgb(18, 50, 28)),
            added_mark: Style::new().bg(Color::Rgb(28, 96, 48)),
            removed: Style::new().bg(Color::Rgb(60, 22, 24)),
            removed_mark: Style::new().bg(Color::Rgb(118, 34, 38)),
            ..Self::coloured()
        }
    }

    pub fn light() -> Self {
        Self {
            added: Style::new().bg(Color::Rgb(221, 247, 226)),
            added_mark: Style::new().bg(Color::Rgb(160, 228, 174)),
            removed: Style::new().bg(Color::Rgb(253, 228, 228)),
            removed_mark: Style::new().bg(Color::Rgb(248, 180, 180)),
            ..Self::coloured()
        }
    }

    /// The same where red and green cannot be told apart: blue and orange take their places.
    #[must_use]
    pub fn without_red_and_green(self, ground: Ground) -> Self {
        let plain = Style::new();
        let on = |red, green, blue| plain.bg(Color::Rgb(red, green, blue));
        let [added, added_mark, removed, removed_mark] = match ground {
            Ground::Dark => [
                on(14, 38, 78),
                on(26, 70, 142),
                on(72, 44, 10),
                on(140, 84, 16),
            ],
            Ground::Light => [
                on(218, 234, 255),
                on(156, 198, 255),
                on(255, 234, 206),
                on(255, 202, 136),
            ],
        };
        Self {
            added,
            added_mark,
            removed,
            removed_mark,
            string: plain.fg(Color::Blue),
            function: plain.fg(Color::Cyan),
            success: plain.fg(Color::Blue),
            error: plain.fg(Color::Magenta).add_modifier(Modifier::BOLD),
            ..self
        }
    }

    /// Attributes alone: what is left where colours are not wanted.
    pub fn colourless() -> Self {
        let plain = Style::new();
        let bold = plain.add_modifier(Modifier::BOLD);
        let dim = plain.add_modifier(Modifier::DIM);
        let underlined = plain.add_modifier(Modifier::UNDERLINED);
        let reversed = plain.add_modifier(Modifier::REVERSED);
        Self {
            text: plain,
            strong: bold,
            emphasis: plain.add_modifier(Modifier::ITALIC),
            strike: plain.add_modifier(Modifier::CROSSED_OUT),
            heading: bold.add_modifier(Modifier::UNDERLINED),
            quote: dim,
            code: bold,
            code_block: plain,
            link: underlined,
            rule: dim,
            list_mark: bold,
            dim,
            added: plain,
            added_mark: underlined.add_modifier(Modifier::BOLD),
            removed: dim,
            removed_mark: underlined,
            line_number: dim,
            hunk: dim,
            keyword: bold,
            type_name: plain,
            function: plain,
            string: plain,
            number: plain,
            comment: dim,
            accent: bold,
            warning: reversed,
            error: bold.add_modifier(Modifier::REVERSED),
            success: bold,
            prompt: bold,
        }
    }

    /// What dark and light have in common; the rows of a difference have no background yet.
    fn coloured() -> Self {
        let plain = Style::new();
        let grey = plain.fg(Color::DarkGray);
        Self {
            heading: plain.fg(Color::Magenta).add_modifier(Modifier::BOLD),
            code: plain.fg(Color::Cyan),
            link: plain.fg(Color::Blue).add_modifier(Modifier::UNDERLINED),
            rule: grey,
            list_mark: plain.fg(Color::Cyan),
            line_number: grey,
            hunk: plain.fg(Color::Cyan),
            keyword: plain.fg(Color::Magenta),
            type_name: plain.fg(Color::Cyan),
            function: plain.fg(Color::Blue),
            string: plain.fg(Color::Green),
            number: plain.fg(Color::Yellow),
            comment: grey.add_modifier(Modifier::ITALIC),
            accent: plain.fg(Color::Cyan),
            warning: plain.fg(Color::Yellow),
            error: plain.fg(Color::Red),
            success: plain.fg(Color::Green),
            prompt: plain.fg(Color::Cyan).add_modifier(Modifier::BOLD),
            ..Self::colourless()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn styles(palette: &Palette) -> Vec<Style> {
        let Palette {
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
        } = palette.clone();
        vec![
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
        ]
    }

    #[test]
    fn exact_colours_are_backgrounds_and_the_colourless_have_none() {
        for palette in [Palette::dark(), Palette::light()] {
            for style in styles(&palette) {
                assert!(!matches!(
                    style.fg,
                    Some(Color::Rgb(..) | Color::Indexed(_))
                ));
                // Black or white text is unreadable on some terminal.
                assert!(!matches!(
                    style.fg,
                    Some(Color::Black | Color::White | Color::Gray)
                ));
            }
        }
        for style in styles(&Palette::colourless()) {
            assert_eq!((style.fg, style.bg), (None, None));
        }
    }
}
