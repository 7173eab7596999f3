//! Text of servers, which may be hostile: what cannot be seen is taken out, and everything has
//! a longest length.

use caliban_context::is_invisible;
use serde_json::Value;

/// Text without escape sequences, control characters and characters that only models see. Line
/// ends become `\n`.
pub(crate) fn clean(text: &str) -> String {
    let mut result = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        match character {
            '\u{1b}' => skip_sequence(&mut rest),
            // The same controls in one character.
            '\u{9b}' => skip_parameters(&mut rest),
            '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}' => skip_string(&mut rest),
            '\r' => {
                if !rest.as_str().starts_with('\n') {
                    result.push('\n');
                }
            }
            other if is_invisible(other) => {}
            other => result.push(other),
        }
    }
    result
}

/// Cleaned text in one line, at most so many characters long.
pub(crate) fn line(text: &str, longest: usize) -> String {
    let cleaned = clean(text);
    let words: Vec<&str> = cleaned.split_whitespace().collect();
    cut(&words.join(" "), longest)
}

/// Cleaned text, at most so many characters long.
pub(crate) fn paragraph(text: &str, longest: usize) -> String {
    cut(clean(text).trim(), longest)
}

/// JSON with all its texts and names cleaned. Parsing has bounded how deep it is.
pub(crate) fn clean_json(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(clean(text)),
        Value::Array(items) => items.iter().map(clean_json).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (clean(name), clean_json(value)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn cut(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
    }
}

/// Skips the rest of an escape sequence; one that is not well-formed never hides the next line.
fn skip_sequence(rest: &mut std::str::Chars<'_>) {
    let mut ahead = rest.clone();
    match ahead.next() {
        Some('[') => {
            *rest = ahead;
            skip_parameters(rest);
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            *rest = ahead;
            skip_string(rest);
        }
        Some(' '..='/') => {
            *rest = ahead;
            skip_while(rest, |character| matches!(character, ' '..='/'));
            skip_one(rest, |character| matches!(character, '0'..='~'));
        }
        Some('0'..='~') => *rest = ahead,
        Some(_) | None => {}
    }
}

fn skip_parameters(rest: &mut std::str::Chars<'_>) {
    skip_while(rest, |character| matches!(character, ' '..='?'));
    skip_one(rest, |character| matches!(character, '@'..='~'));
}

/// The escape of a two-character terminator is met next, with its `\`.
fn skip_string(rest: &mut std::str::Chars<'_>) {
    skip_while(rest, |character| {
        !matches!(character, '\n' | '\u{7}' | '\u{1b}' | '\u{9c}')
    });
    skip_one(rest, |character| matches!(character, '\u{7}' | '\u{9c}'));
}

fn skip_while(rest: &mut std::str::Chars<'_>, matching: impl Fn(char) -> bool) {
    *rest = rest.as_str().trim_start_matches(matching).chars();
}

fn skip_one(rest: &mut std::str::Chars<'_>, matching: impl Fn(char) -> bool) {
    let mut ahead = rest.clone();
    if ahead.next().is_some_and(matching) {
        *rest = ahead;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case("plain ✔\u{fe0f}\ttext\n", "plain ✔\u{fe0f}\ttext\n")]
    #[case("dos\r\nold mac\rend", "dos\nold mac\nend")]
    #[case("\u{1b}[2J\u{1b}[1;31mred\u{1b}[0m", "red")]
    #[case("\u{1b}]0;title\u{7}text", "text")]
    #[case("\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link")]
    #[case("\u{9b}31mred \u{9d}0;title\u{9c}text", "red text")]
    #[case("\u{1b}]0;unfinished\nnext", "\nnext")]
    #[case("zero\u{200b}width \u{202e}evil\u{e0041}\u{e0042}", "zerowidth evil")]
    #[case("bell\u{7} and null\0", "bell and null")]
    fn what_cannot_be_seen_is_taken_out(#[case] text: &str, #[case] expected: &str) {
        assert_eq!(clean(text), expected);
    }

    #[test]
    fn lines_and_paragraphs_have_a_longest_length() {
        assert_eq!(line(" a\n\n b\tc ", 100), "a b c");
        assert_eq!(line("äöüß", 3), "äöü…");
        assert_eq!(paragraph("\n a\n b \n", 100), "a\n b");
    }

    proptest! {
        #[test]
        fn cleaning_is_complete_and_ends(text in "[\\x00-\\x20a\\[\\]\u{80}-\u{9f}\u{200b}\u{e0041}é\\x1b]{0,80}") {
            let cleaned = clean(&text);
            prop_assert!(!cleaned.chars().any(is_invisible), "{:?}", cleaned);
            prop_assert_eq!(clean(&cleaned), cleaned);
        }
    }
}
