//! What variables of the environment and the names of terminals tell of them.

use crate::capabilities::{
    Answered, Capabilities, Colours, Graphics, Multiplexer, Notifier, Scheme, Support,
};

pub(crate) fn read(env: &dyn Fn(&str) -> Option<String>) -> Capabilities {
    let get = |name: &str| env(name).filter(|value| !value.is_empty());
    let has = |name: &str| get(name).is_some();
    let term = get("TERM").unwrap_or_default();
    let program = get("TERM_PROGRAM").unwrap_or_default();
    let multiplexer = multiplexer(&has, &term);
    let outer = outer(&has, &get, &term, &program);
    Capabilities {
        synchronised: Support::Unknown,
        graphemes: Support::Unknown,
        kitty_keys: Support::Unknown,
        background: None,
        foreground: None,
        name: None,
        answered: Answered::No,
        multiplexer,
        colours: colours(&get, &term, outer),
        hyperlinks: match (multiplexer, outer) {
            (Multiplexer::Screen, _) => Support::No,
            (Multiplexer::None | Multiplexer::Zellij, Some(kind)) => kind.hyperlinks(),
            // A newer tmux passes links on, and says by its name how new it is.
            (Multiplexer::Tmux, _) | (Multiplexer::None | Multiplexer::Zellij, None) => {
                Support::Unknown
            }
        },
        over_ssh: has("SSH_CONNECTION") || has("SSH_TTY") || has("SSH_CLIENT"),
        notifier: match multiplexer {
            // It passes nothing on.
            Multiplexer::Screen => Notifier::Bell,
            Multiplexer::None | Multiplexer::Tmux | Multiplexer::Zellij => {
                outer.map_or(Notifier::Bell, Kind::notifier)
            }
        },
        graphics: graphics(&get, &term, &program),
        told_scheme: None,
        assumed_scheme: get("COLORFGBG").and_then(|value| scheme(&value)),
    }
}

/// Terminals that are known by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Kitty,
    Ghostty,
    Foot,
    Iterm,
    WezTerm,
    Alacritty,
    Vte,
    Konsole,
    WindowsTerminal,
    VsCode,
    Apple,
}

impl Kind {
    fn notifier(self) -> Notifier {
        match self {
            Self::Kitty => Notifier::Kitty,
            Self::Ghostty | Self::Foot => Notifier::Titled,
            Self::Iterm | Self::WezTerm => Notifier::Plain,
            Self::Alacritty
            | Self::Vte
            | Self::Konsole
            | Self::WindowsTerminal
            | Self::VsCode
            | Self::Apple => Notifier::Bell,
        }
    }

    fn hyperlinks(self) -> Support {
        match self {
            Self::Apple => Support::No,
            Self::Kitty
            | Self::Ghostty
            | Self::Foot
            | Self::Iterm
            | Self::WezTerm
            | Self::Alacritty
            | Self::Vte
            | Self::Konsole
            | Self::WindowsTerminal
            | Self::VsCode => Support::Yes,
        }
    }

    fn colours(self) -> Colours {
        match self {
            Self::Apple => Colours::Indexed,
            Self::Kitty
            | Self::Ghostty
            | Self::Foot
            | Self::Iterm
            | Self::WezTerm
            | Self::Alacritty
            | Self::Vte
            | Self::Konsole
            | Self::WindowsTerminal
            | Self::VsCode => Colours::True,
        }
    }

    /// The terminal that has such a word in its name.
    fn named(name: &str) -> Option<Self> {
        const NAMES: [(&str, Kind); 8] = [
            ("kitty", Kind::Kitty),
            ("ghostty", Kind::Ghostty),
            ("foot", Kind::Foot),
            ("iterm", Kind::Iterm),
            ("wezterm", Kind::WezTerm),
            ("alacritty", Kind::Alacritty),
            ("konsole", Kind::Konsole),
            ("vte", Kind::Vte),
        ];
        let name = name.to_ascii_lowercase();
        NAMES
            .iter()
            .find(|(word, _)| name.contains(word))
            .map(|(_, kind)| *kind)
    }
}

/// The terminal itself, also behind a multiplexer that was started in it.
fn outer(
    has: &dyn Fn(&str) -> bool,
    get: &dyn Fn(&str) -> Option<String>,
    term: &str,
    program: &str,
) -> Option<Kind> {
    const VARIABLES: [(&str, Kind); 9] = [
        ("KITTY_WINDOW_ID", Kind::Kitty),
        ("GHOSTTY_RESOURCES_DIR", Kind::Ghostty),
        ("ITERM_SESSION_ID", Kind::Iterm),
        ("WEZTERM_PANE", Kind::WezTerm),
        ("ALACRITTY_WINDOW_ID", Kind::Alacritty),
        ("KONSOLE_VERSION", Kind::Konsole),
        ("WT_SESSION", Kind::WindowsTerminal),
        ("VTE_VERSION", Kind::Vte),
        ("VSCODE_INJECTION", Kind::VsCode),
    ];
    let by_program = match program {
        "vscode" => Some(Kind::VsCode),
        "Apple_Terminal" => Some(Kind::Apple),
        "tmux" | "screen" => None,
        other => Kind::named(other),
    };
    by_program
        .or_else(|| Kind::named(term))
        .or_else(|| get("LC_TERMINAL").and_then(|name| Kind::named(&name)))
        .or_else(|| {
            VARIABLES
                .iter()
                .find(|(variable, _)| has(variable))
                .map(|(_, kind)| *kind)
        })
}

fn multiplexer(has: &dyn Fn(&str) -> bool, term: &str) -> Multiplexer {
    if has("ZELLIJ") {
        Multiplexer::Zellij
    } else if has("TMUX") || term.starts_with("tmux") {
        Multiplexer::Tmux
    } else if has("STY") || term.starts_with("screen") {
        Multiplexer::Screen
    } else {
        Multiplexer::None
    }
}

fn colours(get: &dyn Fn(&str) -> Option<String>, term: &str, kind: Option<Kind>) -> Colours {
    let refused = get("NO_COLOR").is_some() || get("CLICOLOR").as_deref() == Some("0");
    if refused || term == "dumb" {
        return Colours::None;
    }
    let claimed = get("COLORTERM");
    let claims_all = matches!(claimed.as_deref(), Some("truecolor" | "24bit"));
    if claims_all || term.ends_with("direct") {
        Colours::True
    } else if term.starts_with("tmux") || term.starts_with("screen") {
        // A multiplexer draws itself, whatever the terminal behind it could.
        if term.contains("256") {
            Colours::Indexed
        } else {
            Colours::Ansi16
        }
    } else if let Some(kind) = kind {
        kind.colours()
    } else if term.contains("256") {
        Colours::Indexed
    } else {
        Colours::Ansi16
    }
}

fn graphics(get: &dyn Fn(&str) -> Option<String>, term: &str, program: &str) -> Graphics {
    match get("CALIBAN_GRAPHICS").as_deref() {
        Some("kitty") => return Graphics::Kitty,
        Some("iterm") => return Graphics::Iterm,
        Some("sixel") => return Graphics::Sixel,
        Some("none") => return Graphics::None,
        Some(_) | None => {}
    }
    match program {
        "iTerm.app" | "WezTerm" => Graphics::Iterm,
        _ if term.contains("kitty") => Graphics::Kitty,
        _ if term.contains("sixel") => Graphics::Sixel,
        _ => Graphics::None,
    }
}

/// `COLORFGBG` ends with the number of the background among the sixteen colours.
fn scheme(value: &str) -> Option<Scheme> {
    match value.rsplit(';').next()?.parse::<u8>().ok()? {
        0..=6 | 8 => Some(Scheme::Dark),
        7 | 9..=15 => Some(Scheme::Light),
        16.. => None,
    }
}

/// What follows from the name that the terminal gives itself.
pub(crate) fn note_name(capabilities: &mut Capabilities, name: &str) {
    /// The first version that passes links on.
    const TMUX_WITH_LINKS: (u32, u32) = (3, 4);
    if let Some(version) = name.strip_prefix("tmux ") {
        // One that is not released yet has a word before its number.
        let mut numbers = version
            .trim_start_matches(|c: char| !c.is_ascii_digit())
            .split(|c: char| !c.is_ascii_digit())
            .map(|number| number.parse().unwrap_or(0));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        capabilities.hyperlinks = if version >= TMUX_WITH_LINKS {
            Support::Yes
        } else {
            Support::No
        };
        return;
    }
    if let (Some(kind), Multiplexer::None) = (Kind::named(name), capabilities.multiplexer) {
        capabilities.hyperlinks = kind.hyperlinks();
        capabilities.notifier = kind.notifier();
        if capabilities.colours != Colours::None {
            capabilities.colours = capabilities.colours.max(kind.colours());
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn with(variables: &[(&str, &str)]) -> Capabilities {
        read(&|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[rstest]
    #[case(&[("TERM", "xterm")], Colours::Ansi16)]
    #[case(&[("TERM", "xterm-256color")], Colours::Indexed)]
    #[case(&[("TERM", "xterm-256color"), ("COLORTERM", "truecolor")], Colours::True)]
    #[case(&[("TERM", "xterm-kitty")], Colours::True)]
    #[case(&[("TERM", "tmux-256color"), ("KITTY_WINDOW_ID", "1")], Colours::Indexed)]
    #[case(&[("TERM", "xterm-256color"), ("TERM_PROGRAM", "Apple_Terminal")], Colours::Indexed)]
    #[case(&[("TERM", "dumb")], Colours::None)]
    #[case(&[("TERM", "xterm-kitty"), ("NO_COLOR", "1")], Colours::None)]
    #[case(&[("TERM", "xterm-kitty"), ("NO_COLOR", "")], Colours::True)]
    #[case(&[("TERM", "xterm-kitty"), ("CLICOLOR", "0")], Colours::None)]
    fn colours_of(#[case] variables: &[(&str, &str)], #[case] colours: Colours) {
        assert_eq!(with(variables).colours, colours);
    }

    #[rstest]
    #[case(&[("TERM", "xterm-kitty")], Graphics::Kitty)]
    #[case(&[("TERM_PROGRAM", "iTerm.app")], Graphics::Iterm)]
    #[case(&[("TERM_PROGRAM", "WezTerm")], Graphics::Iterm)]
    #[case(&[("TERM", "mlterm-sixel")], Graphics::Sixel)]
    #[case(&[("TERM", "xterm-kitty"), ("CALIBAN_GRAPHICS", "none")], Graphics::None)]
    #[case(&[("CALIBAN_GRAPHICS", "sixel")], Graphics::Sixel)]
    #[case(&[("TERM", "xterm-kitty"), ("CALIBAN_GRAPHICS", "?")], Graphics::Kitty)]
    #[case(&[], Graphics::None)]
    fn graphics_of(#[case] variables: &[(&str, &str)], #[case] graphics: Graphics) {
        assert_eq!(with(variables).graphics(), graphics);
    }

    #[rstest]
    #[case(&[("TERM", "screen-256color"), ("TMUX", "/tmp/x")], Multiplexer::Tmux)]
    #[case(&[("TERM", "tmux-256color")], Multiplexer::Tmux)]
    #[case(&[("TERM", "screen")], Multiplexer::Screen)]
    #[case(&[("ZELLIJ", "0")], Multiplexer::Zellij)]
    #[case(&[("TERM", "xterm")], Multiplexer::None)]
    fn multiplexers_of(#[case] variables: &[(&str, &str)], #[case] multiplexer: Multiplexer) {
        assert_eq!(with(variables).multiplexer, multiplexer);
    }

    #[rstest]
    #[case(&[("TERM", "xterm-kitty")], Notifier::Kitty, Support::Yes)]
    #[case(&[("TERM", "xterm-ghostty")], Notifier::Titled, Support::Yes)]
    #[case(&[("TERM", "foot")], Notifier::Titled, Support::Yes)]
    #[case(&[("TERM_PROGRAM", "iTerm.app")], Notifier::Plain, Support::Yes)]
    #[case(&[("TERM_PROGRAM", "Apple_Terminal")], Notifier::Bell, Support::No)]
    #[case(&[("TMUX", "x"), ("TERM_PROGRAM", "tmux"), ("WEZTERM_PANE", "0")], Notifier::Plain, Support::Unknown)]
    #[case(&[("TERM", "screen"), ("KITTY_WINDOW_ID", "1")], Notifier::Bell, Support::No)]
    #[case(&[("TERM", "xterm")], Notifier::Bell, Support::Unknown)]
    fn what_the_name_tells(
        #[case] variables: &[(&str, &str)],
        #[case] notifier: Notifier,
        #[case] hyperlinks: Support,
    ) {
        let capabilities = with(variables);
        assert_eq!(
            (capabilities.notifier, capabilities.hyperlinks),
            (notifier, hyperlinks)
        );
    }

    #[rstest]
    #[case("tmux 3.4", Support::Yes)]
    #[case("tmux 3.3a", Support::No)]
    #[case("tmux next-3.6", Support::Yes)]
    #[case("tmux", Support::Unknown)]
    fn a_new_tmux_passes_links_on(#[case] name: &str, #[case] hyperlinks: Support) {
        let mut capabilities = with(&[("TMUX", "x")]);
        note_name(&mut capabilities, name);
        assert_eq!(capabilities.hyperlinks, hyperlinks);
    }

    #[test]
    fn a_terminal_says_who_it_is() {
        let mut capabilities = with(&[("TERM", "xterm-256color")]);
        note_name(&mut capabilities, "WezTerm 20240203-110809");
        assert_eq!(capabilities.notifier, Notifier::Plain);
        assert_eq!(capabilities.colours, Colours::True);
        let mut plain = with(&[("NO_COLOR", "1")]);
        note_name(&mut plain, "kitty(0.35)");
        assert_eq!(plain.colours, Colours::None);
    }

    #[rstest]
    #[case("15;0", Some(Scheme::Dark))]
    #[case("0;15", Some(Scheme::Light))]
    #[case("0;default;7", Some(Scheme::Light))]
    #[case("x", None)]
    #[case("0;99", None)]
    fn backgrounds_of_the_environment(#[case] value: &str, #[case] expected: Option<Scheme>) {
        assert_eq!(scheme(value), expected);
        let scheme = with(&[("COLORFGBG", value)]).scheme();
        assert_eq!(scheme, expected.unwrap_or(Scheme::Dark));
    }

    #[test]
    fn over_a_network_an_escape_waits_longer() {
        let near = with(&[]).esc_delay();
        assert!(with(&[("SSH_TTY", "/dev/pts/1")]).esc_delay() > near);
    }
}
