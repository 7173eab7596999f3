//! What everything looks like: colours by meaning, and the signs that stand for things.

use caliban_terminal::{Colours, Scheme};
use caliban_text::{Ground, Palette};
use ratatui_core::style::{Modifier, Style};

use crate::custom_theme::CustomTheme;
use crate::preferences::{Glyphs, ThemeChoice};

/// Colours and signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Theme {
    pub(crate) palette: Palette,
    pub(crate) signs: Signs,
    /// Counts changes, for what was laid out with an older one.
    pub(crate) version: u32,
}

/// Signs that stand for things; never by colour alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Signs {
    pub(crate) tool: &'static str,
    pub(crate) result: &'static str,
    pub(crate) good: &'static str,
    pub(crate) bad: &'static str,
    pub(crate) denied: &'static str,
    pub(crate) waiting: &'static str,
    pub(crate) prompt: &'static str,
    pub(crate) selected: &'static str,
    pub(crate) rule: &'static str,
    pub(crate) separator: &'static str,
    pub(crate) more: &'static str,
    pub(crate) folded: &'static str,
    pub(crate) unfolded: &'static str,
    pub(crate) corners: [&'static str; 4],
    pub(crate) side: &'static str,
    pub(crate) spinner: &'static [&'static str],
    pub(crate) notice: &'static str,
    pub(crate) todo: [&'static str; 3],
}

const UNICODE: Signs = Signs {
    tool: "🔧",
    result: "→",
    good: "✓",
    bad: "✗",
    denied: "⊘",
    waiting: "…",
    prompt: ">",
    selected: "❯",
    rule: "─",
    separator: " · ",
    more: "…",
    folded: "▸",
    unfolded: "▾",
    corners: ["┌", "┐", "└", "┘"],
    side: "│",
    spinner: &["◐", "◓", "◑", "◒"],
    notice: "!",
    todo: ["☐", "◧", "☑"],
};

const ASCII: Signs = Signs {
    tool: "*",
    result: "->",
    good: "ok",
    bad: "x",
    denied: "denied",
    waiting: "...",
    prompt: ">",
    selected: ">",
    rule: "-",
    separator: " - ",
    more: "...",
    folded: "+",
    unfolded: "-",
    corners: ["+", "+", "+", "+"],
    side: "|",
    spinner: &["-", "\\", "|", "/"],
    notice: "!",
    todo: ["[ ]", "[-]", "[x]"],
};

impl Theme {
    pub(crate) fn new(
        choice: ThemeChoice,
        custom: Option<&CustomTheme>,
        scheme: Scheme,
        colours: Colours,
        glyphs: Glyphs,
        version: u32,
    ) -> Self {
        let choice = custom.map_or(choice, |custom| custom.base);
        let mut palette = match (colours, choice, scheme) {
            (Colours::None, ..) | (_, ThemeChoice::Colourless, _) => Palette::colourless(),
            (_, ThemeChoice::Dark, _) | (_, ThemeChoice::Auto, Scheme::Dark) => Palette::dark(),
            (_, ThemeChoice::Light, _) | (_, ThemeChoice::Auto, Scheme::Light) => Palette::light(),
            (_, ThemeChoice::ColourBlind, Scheme::Dark) => {
                Palette::dark().without_red_and_green(Ground::Dark)
            }
            (_, ThemeChoice::ColourBlind, Scheme::Light) => {
                Palette::light().without_red_and_green(Ground::Light)
            }
        };
        match (custom, colours) {
            // Without colours there are none of the operator's either.
            (None, _) | (Some(_), Colours::None) => {}
            (Some(custom), Colours::Ansi16 | Colours::Indexed | Colours::True) => {
                custom.paint(&mut palette);
            }
        }
        let signs = match glyphs {
            Glyphs::Unicode => UNICODE,
            Glyphs::Ascii => ASCII,
        };
        Self {
            palette,
            signs,
            version,
        }
    }

    /// A text cut to so many columns, which says so with the sign for more.
    pub(crate) fn cut(&self, text: &str, columns: usize) -> String {
        const MARK: char = '…';
        let less = caliban_text::width(self.signs.more).saturating_sub(1);
        if less == 0 || caliban_text::width(text) <= columns {
            return caliban_text::cut(text, columns).into_owned();
        }
        let short = caliban_text::cut(text, columns.saturating_sub(less));
        short.replace(MARK, self.signs.more)
    }

    /// What is chosen in a list.
    pub(crate) fn chosen(&self) -> Style {
        self.palette.accent.add_modifier(Modifier::REVERSED)
    }
}
