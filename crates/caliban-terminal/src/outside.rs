//! What is asked of a terminal beside its cells: title, bell, notifications, clipboard.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::capabilities::{Capabilities, Multiplexer, Notifier};

/// Keeps the title until it is brought back. `enter` does this, and `LEAVE` the other.
pub const PUSH_TITLE: &[u8] = b"\x1b[22;2t";
/// Brings back the title that was kept.
pub const POP_TITLE: &[u8] = b"\x1b[23;2t";
pub const BELL: &[u8] = b"\x07";

const TITLE_LIMIT: usize = 200;
/// Terminals drop a longer clipboard sequence, and say nothing.
const CLIPBOARD_LIMIT: usize = 100_000;

/// Sets the title of the window.
pub fn title(text: &str) -> Vec<u8> {
    format!("\x1b]2;{}\x1b\\", harmless(text)).into_bytes()
}

pub fn bell() -> Vec<u8> {
    BELL.to_vec()
}

/// Calls the user, in the way that the terminal knows.
pub fn notify(text: &str, capabilities: &Capabilities) -> Vec<u8> {
    let text = harmless(text);
    let sequence = match capabilities.notifier {
        Notifier::Kitty => format!("\x1b]99;;{text}\x1b\\"),
        Notifier::Titled => {
            format!("\x1b]777;notify;caliban;{}\x1b\\", text.replace(';', ","))
        }
        // A text that begins with a number and a semicolon would be another command.
        Notifier::Plain => format!("\x1b]9;{}\x1b\\", text.replace(';', ",")),
        Notifier::Bell => return bell(),
    };
    passed_through(sequence, capabilities.multiplexer).unwrap_or_else(bell)
}

/// Puts text into the clipboard of the machine that the terminal is on; none if it cannot be sent.
pub fn copy(text: &str, capabilities: &Capabilities) -> Option<Vec<u8>> {
    let encoded = encoded_within(text.as_bytes(), CLIPBOARD_LIMIT)?;
    let sequence = format!("\x1b]52;c;{encoded}\x1b\\");
    passed_through(sequence, capabilities.multiplexer)
}

fn encoded_within(bytes: &[u8], limit: usize) -> Option<String> {
    (bytes.len() / 3 * 4 <= limit)
        .then(|| STANDARD.encode(bytes))
        .filter(|encoded| encoded.len() <= limit)
}

/// The sequence for the terminal behind the multiplexer, if it would come through.
fn passed_through(sequence: String, multiplexer: Multiplexer) -> Option<Vec<u8>> {
    match multiplexer {
        Multiplexer::None | Multiplexer::Zellij => Some(sequence.into_bytes()),
        Multiplexer::Tmux => {
            let doubled = sequence.replace('\x1b', "\x1b\x1b");
            Some(format!("\x1bPtmux;{doubled}\x1b\\").into_bytes())
        }
        Multiplexer::Screen => None,
    }
}

/// One short line without anything that could end a sequence.
fn harmless(text: &str) -> String {
    text.chars()
        .map(|c| if matches!(c, '\n' | '\t') { ' ' } else { c })
        .filter(|c| !c.is_control())
        .take(TITLE_LIMIT)
        .collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    fn inside(multiplexer: Multiplexer, notifier: Notifier) -> Capabilities {
        let mut capabilities = Capabilities::from_environment(&|_| None);
        capabilities.multiplexer = multiplexer;
        capabilities.notifier = notifier;
        capabilities
    }

    #[test]
    fn a_title_is_one_short_line() {
        assert_eq!(title("a\nb\x1b]2;c\x07\u{9c}"), b"\x1b]2;a b]2;c\x1b\\");
        assert_eq!(title(&"x".repeat(500)).len(), TITLE_LIMIT + 6);
    }

    #[rstest]
    #[case(Multiplexer::None, Notifier::Kitty, "\x1b]99;;Done; ok\x1b\\")]
    #[case(
        Multiplexer::None,
        Notifier::Titled,
        "\x1b]777;notify;caliban;Done, ok\x1b\\"
    )]
    #[case(Multiplexer::None, Notifier::Plain, "\x1b]9;Done, ok\x1b\\")]
    #[case(Multiplexer::None, Notifier::Bell, "\x07")]
    #[case(
        Multiplexer::Tmux,
        Notifier::Plain,
        "\x1bPtmux;\x1b\x1b]9;Done, ok\x1b\x1b\\\x1b\\"
    )]
    #[case(Multiplexer::Screen, Notifier::Plain, "\x07")]
    #[case(Multiplexer::Zellij, Notifier::Plain, "\x1b]9;Done, ok\x1b\\")]
    fn every_terminal_is_notified_in_its_way(
        #[case] multiplexer: Multiplexer,
        #[case] notifier: Notifier,
        #[case] bytes: &str,
    ) {
        let capabilities = inside(multiplexer, notifier);
        assert_eq!(notify("Done; ok", &capabilities), bytes.as_bytes());
    }

    #[test]
    fn the_clipboard_takes_what_terminals_take() {
        let plain = inside(Multiplexer::None, Notifier::Bell);
        let copied = copy("hi", &plain);
        assert_eq!(copied.as_deref(), Some(&b"\x1b]52;c;aGk=\x1b\\"[..]));
        assert!(copy(&"x".repeat(75_000), &plain).is_some());
        assert!(copy(&"x".repeat(75_001), &plain).is_none());
        assert!(copy("hi", &inside(Multiplexer::Screen, Notifier::Bell)).is_none());
    }

    proptest! {
        #[test]
        fn no_text_ends_its_sequence(text in ".{0,50}|[\\x00-\\x1f\\u{80}-\\u{9f}]{1,9}") {
            let titled = String::from_utf8(title(&text)).unwrap();
            let inner = titled.strip_prefix("\x1b]2;").and_then(|rest| rest.strip_suffix("\x1b\\")).unwrap();
            prop_assert!(!inner.chars().any(char::is_control));
        }
    }
}
