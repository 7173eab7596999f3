//! A frame as one line.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The first byte of both Unicode line separators.
const SEPARATOR: u8 = 0xE2;

/// One line of valid UTF-8 with exactly one newline, at its end. The Unicode line separators,
/// which some readers break lines at, are escaped.
pub fn line(frame: &Value) -> String {
    written(frame)
}

/// The same for a frame that is not a value yet.
pub(crate) fn written(frame: &impl Serialize) -> String {
    // Only a map with keys that are no texts could fail, and there is none.
    let mut line = serde_json::to_string(frame).unwrap_or_default();
    if line.as_bytes().contains(&SEPARATOR) && line.contains(['\u{2028}', '\u{2029}']) {
        line = line
            .replace('\u{2028}', "\\u2028")
            .replace('\u{2029}', "\\u2029");
    }
    line.push('\n');
    line
}

/// What a client's line says. Clients in JavaScript may cut texts between the halves of a character;
/// such a half is read as the sign for what cannot be shown, and the line with it.
pub(crate) fn parsed<T: DeserializeOwned>(line: &str) -> serde_json::Result<T> {
    serde_json::from_str(line).or_else(|error| match without_halves(line) {
        Some(line) => serde_json::from_str(&line).map_err(|_| error),
        None => Err(error),
    })
}

/// The line with `\ufffd` for every escape that is half a character; nothing where there is none.
fn without_halves(line: &str) -> Option<String> {
    let mut whole = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = line.get(at..).and_then(|rest| rest.find('\\')) {
        at += found;
        match escaped_unit(line, at) {
            Some(0xD800..=0xDBFF) if is_second_half(escaped_unit(line, at + 6)) => at += 12,
            Some(0xD800..=0xDFFF) => {
                whole.push_str(line.get(copied..at)?);
                whole.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            // Behind any other escape; behind an escaped backslash no escape begins.
            Some(_) | None => at += 2,
        }
    }
    if copied == 0 {
        return None;
    }
    whole.push_str(line.get(copied..)?);
    Some(whole)
}

/// The number of the escape that begins here, if it is one with a number.
fn escaped_unit(line: &str, at: usize) -> Option<u16> {
    let digits = line.get(at..at + 6)?.strip_prefix("\\u")?;
    u16::from_str_radix(digits, 16).ok()
}

fn is_second_half(unit: Option<u16>) -> bool {
    matches!(unit, Some(0xDC00..=0xDFFF))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::{line, parsed};
    use serde_json::{Value, json};

    #[test]
    fn a_frame_is_one_line_for_every_reader() {
        let frame = json!({"text": "a\nb\u{2028}c\u{2029}d\r"});
        let line = line(&frame);
        assert_eq!(line, "{\"text\":\"a\\nb\\u2028c\\u2029d\\r\"}\n");
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), frame);
    }

    #[rstest]
    #[case(r#""a\ud83d""#, Some("a\u{fffd}"))]
    #[case(r#""\ude00\ud83d\ude00\ud83dx""#, Some("\u{fffd}\u{1f600}\u{fffd}x"))]
    #[case(r#""\\ud83d \n\ud83d""#, Some("\\ud83d \n\u{fffd}"))]
    #[case(r#""é\uD83Dé""#, Some("é\u{fffd}é"))]
    #[case(r#""\ud83"#, None)]
    #[case(r#""\u""#, None)]
    #[case(r#""\"#, None)]
    fn half_a_character_is_no_reason_to_hear_nothing(
        #[case] line: &str,
        #[case] text: Option<&str>,
    ) {
        assert_eq!(parsed::<String>(line).ok().as_deref(), text);
    }

    proptest! {
        #[test]
        fn no_line_is_too_strange(line in r#"("|\\|u|d83d|de00|é|[a-f0-9]|\\ud83d|\\ude00){0,12}"#) {
            let _ = parsed::<Value>(&line);
        }
    }
}
