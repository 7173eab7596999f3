//! A frame as one line.

use serde::Serialize;
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

#[cfg(test)]
mod tests {
    use super::line;
    use serde_json::{Value, json};

    #[test]
    fn a_frame_is_one_line_for_every_reader() {
        let frame = json!({"text": "a\nb\u{2028}c\u{2029}d\r"});
        let line = line(&frame);
        assert_eq!(line, "{\"text\":\"a\\nb\\u2028c\\u2029d\\r\"}\n");
        assert_eq!(serde_json::from_str::<Value>(&line).unwrap(), frame);
    }
}
