//! Words in a text. Small letters find capitals too; a word with a capital is meant as it is.

use std::ops::Range;

/// Every place of a word in a text, in order and apart from each other.
pub(crate) fn all(text: &str, word: &str) -> Vec<Range<usize>> {
    if word.is_empty() {
        return Vec::new();
    }
    let ranges = |text: &str| -> Vec<Range<usize>> {
        let found = text.match_indices(word);
        found.map(|(at, word)| at..at + word.len()).collect()
    };
    if word.chars().any(char::is_uppercase) {
        ranges(text)
    } else {
        ranges(&text.chars().map(small).collect::<String>())
    }
}

/// A letter in its small form, where that has as many bytes: offsets are to stay what they are.
fn small(c: char) -> char {
    let mut small = c.to_lowercase();
    match (small.next(), small.next()) {
        (Some(small), None) if small.len_utf8() == c.len_utf8() => small,
        _ => c,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("Abc abc", "abc", &[(0, 3), (4, 7)])]
    #[case("Abc abc", "Abc", &[(0, 3)])]
    #[case("aaa", "aa", &[(0, 2)])]
    #[case("Äpfel İ x", "äpfel", &[(0, 6)])]
    #[case("İ x", "x", &[(3, 4)])]
    #[case("abc", "", &[])]
    fn words_are_found(
        #[case] text: &str,
        #[case] word: &str,
        #[case] expected: &[(usize, usize)],
    ) {
        let found = all(text, word);
        let found: Vec<_> = found.iter().map(|range| (range.start, range.end)).collect();
        assert_eq!(found, expected);
    }
}
