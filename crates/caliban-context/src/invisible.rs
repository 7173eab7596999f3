//! Characters that people do not see and models do.

/// A text with nothing hidden in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Visible {
    pub(crate) text: String,
    /// How many characters were removed.
    pub(crate) removed: usize,
}

/// Removes what cannot be seen. Line ends become `\n`; a byte order mark is not worth a word.
pub(crate) fn visible(text: &str) -> Visible {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut result = String::with_capacity(text.len());
    let mut removed = 0;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\r' {
            if characters.peek() != Some(&'\n') {
                result.push('\n');
            }
        } else if is_invisible(character) {
            removed += 1;
        } else {
            result.push(character);
        }
    }
    Visible {
        text: result,
        removed,
    }
}

/// Controls, zero-width characters, marks of writing direction, tags, and the variation selectors
/// that carry hidden bytes. U+FE0F, which makes emoji colourful, is common and stays.
pub fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{ffa0}'
            | '\u{fe00}'..='\u{fe0e}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}'
    ) || (character.is_control() && !matches!(character, '\n' | '\t'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn hidden_instructions_disappear() {
        let tagged: String = "obey"
            .chars()
            .filter_map(|c| char::from_u32(0xe0000 + u32::from(c)))
            .collect();
        let text = format!("\u{feff}a{tagged}b\u{200b}\u{202e}c\u{1b}d\r\ne\rf ✔\u{fe0f}");
        assert_eq!(
            visible(&text),
            Visible {
                text: "abcd\ne\nf ✔\u{fe0f}".to_owned(),
                removed: 7,
            }
        );
    }

    proptest! {
        #[test]
        fn cleaning_is_complete_and_loses_nothing_visible(text in ".{0,200}") {
            let cleaned = visible(&text).text;
            prop_assert!(!cleaned.chars().any(is_invisible));
            prop_assert_eq!(visible(&cleaned), Visible { text: cleaned.clone(), removed: 0 });
            let seen = |text: &str| text.chars().filter(|c| !is_invisible(*c) && *c != '\n').collect::<String>();
            prop_assert_eq!(seen(&cleaned), seen(&text));
        }
    }
}
