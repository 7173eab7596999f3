//! A frame as one line.

use serde_json::Value;

/// One line of valid UTF-8 with exactly one newline, at its end. The Unicode line separators,
/// which some readers break lines at, are escaped.
pub fn line(frame: &Value) -> String {
    let mut line = frame.to_string();
    if line.contains(['\u{2028}', '\u{2029}']) {
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
