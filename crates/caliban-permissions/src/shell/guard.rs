//! What no line may contain, checked before anything is parsed, in linear time.

use super::refusal::excerpt;
use super::{MAX_LENGTH, Refusal};

pub(super) fn check(line: &str) -> Result<(), Refusal> {
    if line.len() > MAX_LENGTH {
        return Err(Refusal::TooLong);
    }
    if line.starts_with(['-', '+']) {
        // `bash -c` would take the line for its own options.
        return Err(Refusal::Construct {
            what: "a line that begins like an option",
            at: excerpt(line),
        });
    }
    match line.chars().find(|c| is_deceptive(*c)) {
        Some(character) => Err(Refusal::Character { character }),
        None => Ok(()),
    }
}

/// Characters that a terminal, a reader or the shell may take for something else: controls,
/// blanks that are no separators, and format characters, which are invisible or reorder text.
pub(super) fn is_deceptive(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control() && c != '\n' && c != '\t';
    }
    c.is_control()
        || c.is_whitespace()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}'
            | '\u{890}' | '\u{891}' | '\u{8e2}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{e000}'..='\u{f8ff}'
            | '\u{fe00}'..='\u{fe0d}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everyday_text_passes() {
        for line in ["ls -l", "a\tb\nc", "echo größe ✓ 日本語 🎉"] {
            assert_eq!(check(line), Ok(()), "{line:?}");
        }
    }

    #[test]
    fn characters_that_deceive_are_refused() {
        for character in [
            '\0',
            '\r',
            '\x0b',
            '\x0c',
            '\x1b',
            '\x7f',
            '\u{85}',
            '\u{a0}',
            '\u{200b}',
            '\u{202e}',
            '\u{2028}',
            '\u{2066}',
            '\u{3000}',
            '\u{feff}',
            '\u{e0041}',
        ] {
            let line = format!("ls{character}x");
            assert_eq!(check(&line), Err(Refusal::Character { character }));
        }
    }

    #[test]
    fn a_line_of_the_longest_length_passes_and_one_more_byte_does_not() {
        assert_eq!(check(&"a".repeat(MAX_LENGTH)), Ok(()));
        assert_eq!(check(&"a".repeat(MAX_LENGTH + 1)), Err(Refusal::TooLong));
    }
}
