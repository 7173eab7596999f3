//! Puts the arguments of a command into its text.

/// The longest result, in bytes.
pub(super) const MAX_RESULT: usize = 1024 * 1024;

/// The texts with `$ARGUMENTS` and `$1` to `$9` replaced, once: what arguments hold is not looked
/// at again. Arguments that no text has a place for are what follows them all. `None` if it becomes
/// too long.
pub(super) fn substitute(texts: &[&str], arguments: &str) -> Option<(Vec<String>, String)> {
    let mut words: Vec<Word> = words(arguments).into_iter().map(Word::new).collect();
    let mut places = Places::None;
    let mut results = Vec::with_capacity(texts.len());
    let mut length = 0;
    for text in texts {
        let mut result = String::with_capacity(text.len());
        let mut rest = *text;
        while let Some(start) = rest.find('$') {
            result.push_str(&rest[..start]);
            rest = &rest[start + 1..];
            if let Some(after) = rest.strip_prefix("ARGUMENTS") {
                result.push_str(arguments);
                places = Places::ForAll;
                rest = after;
            } else if let Some(position) = position(rest) {
                if let Some(word) = words.get_mut(position - 1) {
                    result.push_str(&word.text);
                    word.has_place = true;
                }
                if places == Places::None {
                    places = Places::ForSome;
                }
                rest = &rest[1..];
            } else {
                result.push('$');
            }
            if length + result.len() > MAX_RESULT {
                return None;
            }
        }
        result.push_str(rest);
        length += result.len();
        results.push(result);
    }
    let left = match places {
        Places::None => arguments.to_owned(),
        Places::ForAll => String::new(),
        Places::ForSome => {
            let left = words.iter().filter(|word| !word.has_place);
            let left: Vec<&str> = left.map(|word| word.text.as_str()).collect();
            left.join(" ")
        }
    };
    let left = if left.is_empty() {
        left
    } else {
        format!("\n\n{left}")
    };
    (length + left.len() <= MAX_RESULT).then_some((results, left))
}

/// Which arguments a text has places for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Places {
    None,
    ForSome,
    ForAll,
}

struct Word {
    text: String,
    has_place: bool,
}

impl Word {
    fn new(text: String) -> Self {
        Self {
            text,
            has_place: false,
        }
    }
}

/// The digit of `$1`; `$10` and `$100` are amounts of money.
fn position(rest: &str) -> Option<usize> {
    let mut characters = rest.chars();
    let digit = characters.next()?.to_digit(10).filter(|digit| *digit > 0)?;
    let follows = characters.next();
    (!follows.is_some_and(|next| next.is_ascii_digit())).then_some(digit as usize)
}

/// The words of the arguments; quotes hold words together. An open quote ends with the text.
fn words(arguments: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for character in arguments.chars() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '"' | '\'') => {
                quote = Some(character);
                word.get_or_insert_default();
            }
            (None, _) if character.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(character),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn substitute(text: &str, arguments: &str) -> Option<String> {
        let (texts, left) = super::substitute(&[text], arguments)?;
        Some(texts.concat() + &left)
    }

    #[test]
    fn places_of_all_texts_count() {
        let (texts, left) = super::substitute(&["a $1", "b $2 $$1"], "x y z").unwrap();
        assert_eq!(
            (texts.join("|"), left.as_str()),
            ("a x|b y $x".to_owned(), "\n\nz")
        );
    }

    #[rstest]
    #[case("fix $ARGUMENTS now", "a b", "fix a b now")]
    #[case("$1/$2/$3", "a \"b c\"", "a/b c/")]
    #[case("$1 costs $10 or $0 or $x $", "a", "a costs $10 or $0 or $x $")]
    #[case("$ARGUMENTS", "$1 $ARGUMENTS", "$1 $ARGUMENTS")]
    #[case("no place", "for these", "no place\n\nfor these")]
    #[case("no place", "", "no place")]
    #[case("review $1", "a.txt b c", "review a.txt\n\nb c")]
    #[case("$2", "a b", "b\n\na")]
    #[case("$1 $ARGUMENTS", "a b", "a a b")]
    #[case("$1", "it's", "its")]
    #[case("[$1][$2]", "'' x", "[][x]")]
    fn arguments_are_put_in_place(
        #[case] text: &str,
        #[case] arguments: &str,
        #[case] expected: &str,
    ) {
        assert_eq!(substitute(text, arguments).as_deref(), Some(expected));
    }

    #[test]
    fn a_result_cannot_explode() {
        let arguments = "x".repeat(MAX_RESULT / 4);
        assert!(substitute(&"$ARGUMENTS ".repeat(3), &arguments).is_some());
        assert_eq!(substitute(&"$ARGUMENTS ".repeat(4), &arguments), None);
        assert_eq!(substitute("", &"x".repeat(MAX_RESULT)), None);
    }

    proptest! {
        #[test]
        fn text_without_a_dollar_stays(text in "[^$]{0,40}", arguments in ".{0,20}") {
            let result = substitute(&text, &arguments).unwrap();
            prop_assert!(result.starts_with(&text) && result.ends_with(&arguments));
        }
    }
}
