//! What is known of the terminal: at first what the environment says, then what it answers.

use std::time::Duration;

use crate::environment;
use crate::report::{Report, Rgb};

/// Whether the terminal has something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Support {
    /// It has not answered.
    Unknown,
    Yes,
    No,
}

/// Whether the terminal has answered the last of the probes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answered {
    No,
    Yes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    Light,
    Dark,
}

/// How pictures are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Graphics {
    None,
    Kitty,
    Iterm,
    Sixel,
}

/// What stands between the program and the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Multiplexer {
    None,
    Tmux,
    Screen,
    Zellij,
}

/// The colours that may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Colours {
    None,
    Ansi16,
    Indexed,
    True,
}

/// How the user is called from another window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Notifier {
    /// OSC 99, of kitty.
    Kitty,
    /// OSC 777, of Ghostty and foot.
    Titled,
    /// OSC 9, of `iTerm2` and `WezTerm`.
    Plain,
    Bell,
}

/// What the terminal can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Capabilities {
    /// Frames that are shown at once (mode 2026).
    pub synchronised: Support,
    /// Clusters of characters that are as wide as Unicode says (mode 2027).
    pub graphemes: Support,
    /// The kitty keyboard protocol.
    pub kitty_keys: Support,
    pub background: Option<Rgb>,
    pub foreground: Option<Rgb>,
    /// What the terminal calls itself, with its version.
    pub name: Option<String>,
    pub answered: Answered,
    pub multiplexer: Multiplexer,
    pub colours: Colours,
    pub hyperlinks: Support,
    pub over_ssh: bool,
    pub notifier: Notifier,
    pub(crate) graphics: Graphics,
    /// The scheme that was told since the background was.
    pub(crate) told_scheme: Option<Scheme>,
    /// The scheme that the environment claims.
    pub(crate) assumed_scheme: Option<Scheme>,
}

const SYNCHRONISED_MODE: u16 = 2026;
const GRAPHEME_MODE: u16 = 2027;
const GRAPHEMES_ON: &[u8] = b"\x1b[?2027h";
const OTHER_KEYS_ON: &[u8] = b"\x1b[>4;2m";
const OTHER_KEYS_OFF: &[u8] = b"\x1b[>4m";
const BACKGROUND_QUERY: &[u8] = b"\x1b]11;?\x1b\\";

impl Capabilities {
    /// What the environment says.
    pub fn from_environment(env: &dyn Fn(&str) -> Option<String>) -> Self {
        environment::read(env)
    }

    /// Takes an answer, and gives what is to be sent in turn.
    pub fn note(&mut self, report: &Report) -> Vec<u8> {
        match report {
            Report::Mode { mode, state } => self.note_mode(*mode, *state).to_vec(),
            Report::Foreground(colour) => {
                self.foreground = Some(*colour);
                Vec::new()
            }
            Report::Background(colour) => {
                self.background = Some(*colour);
                self.told_scheme = None;
                Vec::new()
            }
            Report::KeyboardFlags(_) => {
                let asked_otherwise = self.kitty_keys == Support::No;
                self.kitty_keys = Support::Yes;
                if asked_otherwise {
                    OTHER_KEYS_OFF.to_vec()
                } else {
                    Vec::new()
                }
            }
            Report::Name(name) => {
                environment::note_name(self, name);
                self.name = Some(name.clone());
                Vec::new()
            }
            Report::Attributes => self.note_end().to_vec(),
            Report::ColourScheme(scheme) => {
                self.told_scheme = Some(*scheme);
                BACKGROUND_QUERY.to_vec()
            }
            Report::Cursor { .. } | Report::Size { .. } => Vec::new(),
        }
    }

    fn note_mode(&mut self, mode: u16, state: u8) -> &'static [u8] {
        match (mode, state) {
            (SYNCHRONISED_MODE, 1 | 2) => self.synchronised = Support::Yes,
            (SYNCHRONISED_MODE, _) => self.synchronised = Support::No,
            (GRAPHEME_MODE, 1 | 3) => self.graphemes = Support::Yes,
            (GRAPHEME_MODE, 2) => {
                self.graphemes = Support::Yes;
                return GRAPHEMES_ON;
            }
            (GRAPHEME_MODE, _) => self.graphemes = Support::No,
            (_, _) => {}
        }
        b""
    }

    /// What has not been answered by now is mostly not known to the terminal; an answer that comes
    /// yet, as multiplexers give it, still counts.
    fn note_end(&mut self) -> &'static [u8] {
        self.answered = Answered::Yes;
        for support in [&mut self.synchronised, &mut self.graphemes] {
            if *support == Support::Unknown {
                *support = Support::No;
            }
        }
        match self.kitty_keys {
            Support::Unknown => {
                self.kitty_keys = Support::No;
                OTHER_KEYS_ON
            }
            Support::Yes | Support::No => b"",
        }
    }

    /// Whether the background is light: as reported, or as the environment says, or dark.
    pub fn scheme(&self) -> Scheme {
        const HALF: u32 = 255_000 / 2;
        let seen = self.background.map(|colour| {
            if colour.luminance() > HALF {
                Scheme::Light
            } else {
                Scheme::Dark
            }
        });
        self.told_scheme
            .or(seen)
            .or(self.assumed_scheme)
            .unwrap_or(Scheme::Dark)
    }

    pub fn graphics(&self) -> Graphics {
        self.graphics
    }

    /// How long an Esc waits for the rest of a sequence.
    pub fn esc_delay(&self) -> Duration {
        Duration::from_millis(if self.over_ssh { 100 } else { 30 })
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn fresh() -> Capabilities {
        Capabilities::from_environment(&|_| None)
    }

    fn mode(mode: u16, state: u8) -> Report {
        Report::Mode { mode, state }
    }

    #[rstest]
    #[case(0, Support::No)]
    #[case(1, Support::Yes)]
    #[case(2, Support::Yes)]
    #[case(3, Support::No)]
    #[case(4, Support::No)]
    fn frames_are_synchronised_where_that_was_said(#[case] state: u8, #[case] support: Support) {
        let mut capabilities = fresh();
        assert_eq!(capabilities.note(&mode(2026, state)), b"");
        assert_eq!(capabilities.synchronised, support);
    }

    #[test]
    fn clusters_are_asked_for_where_they_are_off() {
        assert_eq!(fresh().note(&mode(2027, 2)), GRAPHEMES_ON);
        assert_eq!(fresh().note(&mode(2027, 1)), b"");
        assert_eq!(fresh().note(&mode(2027, 0)), b"");
    }

    #[test]
    fn keys_are_asked_for_in_the_other_way_where_the_one_is_unknown() {
        let mut capabilities = fresh();
        assert_eq!(capabilities.note(&Report::Attributes), OTHER_KEYS_ON);
        assert_eq!(capabilities.answered, Answered::Yes);
        assert_eq!(capabilities.kitty_keys, Support::No);
        assert_eq!(capabilities.synchronised, Support::No);
        assert_eq!(capabilities.note(&Report::Attributes), b"");
        // A multiplexer may have answered in another order.
        assert_eq!(capabilities.note(&Report::KeyboardFlags(1)), OTHER_KEYS_OFF);
        assert_eq!(capabilities.note(&mode(2026, 2)), b"");
        assert_eq!(capabilities.synchronised, Support::Yes);

        let mut capabilities = fresh();
        assert_eq!(capabilities.note(&Report::KeyboardFlags(1)), b"");
        assert_eq!(capabilities.note(&Report::Attributes), b"");
        assert_eq!(capabilities.kitty_keys, Support::Yes);
    }

    #[test]
    fn the_newest_word_on_the_background_counts() {
        let mut capabilities = fresh();
        assert_eq!(capabilities.scheme(), Scheme::Dark);
        capabilities.note(&Report::Background(Rgb::new(250, 250, 240)));
        assert_eq!(capabilities.scheme(), Scheme::Light);
        let asked = capabilities.note(&Report::ColourScheme(Scheme::Dark));
        assert_eq!(asked, BACKGROUND_QUERY);
        assert_eq!(capabilities.scheme(), Scheme::Dark);
        capabilities.note(&Report::Background(Rgb::new(0, 0, 238)));
        assert_eq!(capabilities.scheme(), Scheme::Dark);
    }
}
