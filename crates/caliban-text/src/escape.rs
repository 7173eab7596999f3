//! Where escape sequences begin and end. One machine for everything that reads foreign text, so
//! that no two parts disagree on what a sequence is. It works on characters: the controls of
//! ISO 6429 count in both their forms, `ESC [` and U+009B.

/// What the payload of a string sequence may have; after that the rest is text again. Else an
/// opening that is never closed would hide everything after it.
const PAYLOAD: usize = 65_536;
/// The parameters of a sequence that are kept; a longer one changes no style.
const PARAMETERS: usize = 64;

/// What a character turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Text or a lone control.
    Plain(char),
    /// Part of a sequence.
    Within,
    /// The end of a sequence that sets style; its parameters are in [`Scanner::parameters`].
    Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum State {
    #[default]
    Ground,
    /// After ESC.
    Escape,
    /// After ESC and something between space and `/`.
    Intermediate,
    Csi(Shape),
    /// Within OSC, DCS, APC, PM or SOS.
    Payload {
        kind: Payload,
        length: usize,
    },
}

/// Whether a control sequence may still turn out to set style.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Simple,
    Private,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Payload {
    /// Ends with BEL too, and with its line: no command of the kind spans lines.
    Command,
    Other,
}

/// Takes text apart, one character at a time; what is half read waits for the next.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scanner {
    state: State,
    parameters: String,
}

impl Scanner {
    /// The parameters of the sequence that [`Step::Style`] ended.
    pub(crate) fn parameters(&self) -> &str {
        &self.parameters
    }

    pub(crate) fn step(&mut self, c: char) -> Step {
        match c {
            '\u{1b}' => {
                self.state = State::Escape;
                return Step::Within;
            }
            // CAN and SUB end whatever is going on.
            '\u{18}' | '\u{1a}' if self.state != State::Ground => {
                self.state = State::Ground;
                return Step::Within;
            }
            '\u{80}'..='\u{9f}' => {
                self.state = opened_by(c);
                self.parameters.clear();
                return Step::Within;
            }
            _ => {}
        }
        match self.state {
            State::Ground => Step::Plain(c),
            State::Escape => self.after_escape(c),
            State::Intermediate => match c {
                ' '..='/' => Step::Within,
                '0'..='~' => self.end(Step::Within),
                _ => self.end(Step::Plain(c)),
            },
            State::Csi(shape) => self.in_csi(c, shape),
            State::Payload { kind, length } => self.in_payload(c, kind, length),
        }
    }

    fn end(&mut self, step: Step) -> Step {
        self.state = State::Ground;
        step
    }

    fn after_escape(&mut self, c: char) -> Step {
        match c {
            ' '..='/' => {
                self.state = State::Intermediate;
                Step::Within
            }
            '@'..='_' => {
                self.parameters.clear();
                self.state = char::from_u32(u32::from(c) + 0x40).map_or(State::Ground, opened_by);
                Step::Within
            }
            '0'..='~' => self.end(Step::Within),
            _ => self.end(Step::Plain(c)),
        }
    }

    fn in_csi(&mut self, c: char, shape: Shape) -> Step {
        match (c, shape) {
            ('0'..='9' | ';' | ':', Shape::Simple) if self.parameters.len() < PARAMETERS => {
                self.parameters.push(c);
                Step::Within
            }
            ('0'..='?' | ' '..='/', Shape::Simple | Shape::Private) => {
                self.state = State::Csi(Shape::Private);
                Step::Within
            }
            ('m', Shape::Simple) => self.end(Step::Style),
            ('@'..='~', Shape::Simple | Shape::Private) => self.end(Step::Within),
            (_, Shape::Simple | Shape::Private) => self.end(Step::Plain(c)),
        }
    }

    fn in_payload(&mut self, c: char, kind: Payload, length: usize) -> Step {
        match (c, kind) {
            ('\u{7}', Payload::Command) => return self.end(Step::Within),
            ('\n', Payload::Command) => return self.end(Step::Plain(c)),
            (_, Payload::Command | Payload::Other) => {}
        }
        if length >= PAYLOAD {
            return self.end(Step::Plain(c));
        }
        self.state = State::Payload {
            kind,
            length: length + 1,
        };
        Step::Within
    }
}

/// What a control of the C1 set begins.
fn opened_by(control: char) -> State {
    let payload = |kind| State::Payload { kind, length: 0 };
    match control {
        '\u{9b}' => State::Csi(Shape::Simple),
        '\u{9d}' => payload(Payload::Command),
        '\u{90}' | '\u{98}' | '\u{9e}' | '\u{9f}' => payload(Payload::Other),
        _ => State::Ground,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn left(text: &str) -> String {
        let mut scanner = Scanner::default();
        let of = |c| match scanner.step(c) {
            Step::Plain(c) => Some(c),
            Step::Within | Step::Style => None,
        };
        text.chars().filter_map(of).collect()
    }

    #[rstest]
    #[case::style("\x1b[31mred\x1b[0m", "red")]
    #[case::c1("\u{9b}31mred", "red")]
    #[case::private("\x1b[?1049hx", "x")]
    #[case::intermediate("\x1b[ qx\x1b[!px", "xx")]
    #[case::osc_bel("a\x1b]0;title\x07b", "ab")]
    #[case::osc_st("a\x1b]52;c;AAAA\x1b\\b", "ab")]
    #[case::osc_c1("a\u{9d}0;t\u{9c}b", "ab")]
    #[case::dcs("a\x1bPq#0\nmore\x1b\\b", "ab")]
    #[case::apc("a\x1b_Gf=100;AAAA\x1b\\b", "ab")]
    #[case::pm("a\x1b^x\x1b\\b", "ab")]
    #[case::sos("a\x1bXx\x1b\\b", "ab")]
    #[case::charset("\x1b(0x", "x")]
    #[case::reset("\x1bcx", "x")]
    #[case::keypad("\x1b=x\x1b7y", "xy")]
    #[case::cancelled("a\x1b[3\x18b", "ab")]
    #[case::restarted("a\x1b[3\x1b[4mb", "ab")]
    #[case::not_one("\x1bé", "é")]
    #[case::broken("\x1b[3é", "é")]
    #[case::open_command_ends_with_its_line("a\x1b]0;x\nb", "a\nb")]
    #[case::at_the_end("a\x1b", "a")]
    fn sequences_are_found(#[case] text: &str, #[case] rest: &str) {
        assert_eq!(left(text), rest);
    }

    #[test]
    fn an_open_payload_does_not_hide_the_rest_for_ever() {
        let text = format!("\x1bP{}shown", "x".repeat(PAYLOAD));
        assert_eq!(left(&text), "shown");
    }
}
