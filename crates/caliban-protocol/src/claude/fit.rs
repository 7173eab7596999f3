//! Lines that readers can take: the longest texts of a frame are cut where it would not fit.

use serde_json::Value;

/// The longest line that is written, in characters: readers give up on longer ones.
pub const LONGEST_LINE: usize = 1024 * 1024 - 1024;

/// How much of each long text is kept, tried in this order.
const KEPT: [usize; 5] = [256 * 1024, 64 * 1024, 16 * 1024, 2 * 1024, 256];

/// The line of a frame, cut where it must be.
pub fn fit(frame: &Value) -> String {
    let line = crate::line(frame);
    if !is_too_long(&line) {
        return line;
    }
    let mut frame = frame.clone();
    for kept in KEPT {
        shorten(&mut frame, kept);
        let line = crate::line(&frame);
        if !is_too_long(&line) {
            return line;
        }
    }
    // So many short texts are no message that anybody could read.
    crate::line(&serde_json::json!({
        "type": "system",
        "subtype": "informational",
        "content": "a frame was too large to be sent",
        "session_id": frame.get("session_id"),
        "uuid": frame.get("uuid"),
    }))
}

fn is_too_long(line: &str) -> bool {
    line.len() > LONGEST_LINE && line.chars().count() > LONGEST_LINE
}

fn shorten(value: &mut Value, kept: usize) {
    match value {
        Value::String(text) if text.len() > kept => {
            let total = text.chars().count();
            let head: String = text.chars().take(kept / 2).collect();
            *text = format!(
                "{head}\n[… {} more characters are not shown here]",
                total.saturating_sub(kept / 2)
            );
        }
        Value::Array(items) => items.iter_mut().for_each(|item| shorten(item, kept)),
        Value::Object(fields) => fields.values_mut().for_each(|item| shorten(item, kept)),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn long_texts_are_cut_with_a_note_and_the_rest_stays() {
        let frame = json!({"type": "user", "uuid": "u", "text": "x".repeat(3_000_000)});
        let line = fit(&frame);
        assert!(line.len() < LONGEST_LINE && line.starts_with("{\"type\":\"user\",\"uuid\":\"u\""));
        assert!(line.contains("more characters are not shown here"));
        let small = json!({"type": "user", "text": "x".repeat(300_000)});
        assert_eq!(fit(&small), crate::line(&small));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn every_line_fits(
            texts in prop::collection::vec((0usize..900_000, any::<char>()), 0..3),
        ) {
            let texts: Vec<String> = texts
                .into_iter()
                .map(|(times, letter)| letter.to_string().repeat(times))
                .collect();
            let line = fit(&json!({"type": "user", "texts": texts}));
            prop_assert!(line.chars().count() <= LONGEST_LINE + 1);
            prop_assert!(serde_json::from_str::<Value>(&line).is_ok());
        }

        #[test]
        fn many_short_texts_fit_too(count in 1usize..60_000) {
            let texts = vec!["twenty characters ok"; count];
            let line = fit(&json!({"type": "user", "texts": texts}));
            prop_assert!(line.len() <= LONGEST_LINE + 1);
        }
    }
}
