//! The first place where two JSON values differ, for people.

use serde_json::Value;

/// The most of a value that is quoted.
const QUOTE: usize = 160;

/// Says where and how `actual` differs from `expected`; nothing if they are equal.
pub(super) fn difference(expected: &Value, actual: &Value) -> Option<String> {
    differ("", expected, actual)
}

fn differ(path: &str, expected: &Value, actual: &Value) -> Option<String> {
    if expected == actual {
        return None;
    }
    match (expected, actual) {
        (Value::Object(left), Value::Object(right)) => {
            let keys = left
                .keys()
                .chain(right.keys().filter(|key| !left.contains_key(*key)));
            keys.into_iter().find_map(|key| {
                let path = if path.is_empty() {
                    key.clone()
                } else {
                    format!("{path}.{key}")
                };
                differ(
                    &path,
                    left.get(key).unwrap_or(&Value::Null),
                    right.get(key).unwrap_or(&Value::Null),
                )
            })
        }
        (Value::Array(left), Value::Array(right)) => left
            .iter()
            .zip(right)
            .enumerate()
            .find_map(|(index, (left, right))| differ(&format!("{path}[{index}]"), left, right))
            .or_else(|| {
                Some(format!(
                    "`{path}` has {} items instead of {}",
                    right.len(),
                    left.len()
                ))
            }),
        _ => Some(format!(
            "`{path}` is {} instead of {}",
            quote(actual, expected),
            quote(expected, actual)
        )),
    }
}

/// A value, shortened around the place where it begins to differ from `other`.
fn quote(value: &Value, other: &Value) -> String {
    let (text, other) = (value.to_string(), other.to_string());
    let chars: Vec<char> = text.chars().collect();
    if chars.len() <= QUOTE {
        return text;
    }
    let common = chars
        .iter()
        .zip(other.chars())
        .take_while(|(a, b)| **a == *b)
        .count();
    let start = common.saturating_sub(QUOTE / 4).min(chars.len() - QUOTE);
    let middle: String = chars[start..start + QUOTE].iter().collect();
    format!("…{middle}…")
}

#[cfg(test)]
mod tests {
    use super::difference;
    use serde_json::json;

    #[test]
    fn the_first_difference_is_named_with_both_sides() {
        assert_eq!(
            difference(&json!({"a": [1, 2]}), &json!({"a": [1, 2]})),
            None
        );
        assert_eq!(
            difference(
                &json!({"a": [1, {"b": "x"}]}),
                &json!({"a": [1, {"b": "y"}]})
            )
            .unwrap(),
            "`a[1].b` is \"y\" instead of \"x\""
        );
        assert_eq!(
            difference(&json!({"a": [1]}), &json!({"a": [1, 2]})).unwrap(),
            "`a` has 2 items instead of 1"
        );
        assert_eq!(
            difference(&json!({}), &json!({"n": 1})).unwrap(),
            "`n` is 1 instead of null"
        );
    }

    #[test]
    fn long_values_are_quoted_around_the_difference() {
        let long = "x".repeat(500);
        let text = difference(&json!(format!("{long}a")), &json!(format!("{long}b"))).unwrap();
        assert!(text.len() < 500 && text.contains("xb") && text.contains("xa"));
    }
}
