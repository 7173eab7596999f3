//! Text patterns with `*` (any characters), `?` (one character) and `[a-z]`, `[!a-z]` (one of
//! these, one of the others). Everything else stands for itself; a backslash takes the meaning of
//! these away. `{a,b}` is written out before, see `alternatives`.

use std::iter::Peekable;
use std::str::Chars;

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wildcard {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    One,
    OneOf(Class),
    Any,
}

/// The characters between brackets.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Class {
    sense: Sense,
    /// From and to, both included.
    ranges: Vec<(char, char)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sense {
    Listed,
    NotListed,
}

/// What a backslash takes the meaning of.
const SPECIAL: [char; 8] = ['*', '?', '[', ']', '{', '}', ',', '\\'];

/// Which characters have a meaning in a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Syntax {
    Glob,
    /// Brackets stand for themselves, as in addresses of hosts.
    WithoutClasses,
}

impl Wildcard {
    pub fn new(pattern: &str) -> Self {
        Self::parse(pattern, Syntax::Glob)
    }

    /// A pattern in which brackets stand for themselves.
    pub(crate) fn without_classes(pattern: &str) -> Self {
        Self::parse(pattern, Syntax::WithoutClasses)
    }

    fn parse(pattern: &str, syntax: Syntax) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        let mut rest = pattern.chars().peekable();
        while let Some(letter) = rest.next() {
            let letter = match letter {
                // Two in a row mean what one means.
                '*' if parts.last() == Some(&Part::Any) => continue,
                '*' => {
                    parts.push(Part::Any);
                    continue;
                }
                '?' => {
                    parts.push(Part::One);
                    continue;
                }
                '[' if syntax == Syntax::Glob => {
                    if let Some((class, after)) = Class::parse(rest.clone()) {
                        parts.push(Part::OneOf(class));
                        rest = after;
                        continue;
                    }
                    '['
                }
                '\\' => rest.next_if(|next| SPECIAL.contains(next)).unwrap_or('\\'),
                letter => letter,
            };
            match parts.last_mut() {
                Some(Part::Text(text)) => text.push(letter),
                Some(Part::One | Part::OneOf(_) | Part::Any) | None => {
                    parts.push(Part::Text(letter.into()));
                }
            }
        }
        Self { parts }
    }

    /// A pattern that matches this text and nothing else.
    pub fn escape(text: &str) -> String {
        let mut escaped = String::with_capacity(text.len());
        let mut rest = text.chars().peekable();
        while let Some(letter) = rest.next() {
            let special = match letter {
                '*' | '?' | '[' | '{' => true,
                '\\' => rest.peek().is_some_and(|next| SPECIAL.contains(next)),
                _ => false,
            };
            if special {
                escaped.push('\\');
            }
            escaped.push(letter);
        }
        escaped
    }

    /// Whether it matches the whole text. Takes time proportional to the product of the lengths
    /// at worst, never more.
    pub fn matches(&self, text: &str) -> bool {
        let (mut at, mut part) = (0, 0);
        // Where to go back to: behind the last `*`, and up to where it had taken.
        let mut retry: Option<(usize, usize)> = None;
        loop {
            let rest = &text[at..];
            let taken = match self.parts.get(part) {
                Some(Part::Any) => {
                    part += 1;
                    retry = Some((part, at));
                    continue;
                }
                Some(Part::One) => rest.chars().next().map(char::len_utf8),
                Some(Part::OneOf(class)) => rest
                    .chars()
                    .next()
                    .filter(|letter| class.has(*letter))
                    .map(char::len_utf8),
                Some(Part::Text(literal)) => rest.starts_with(literal).then_some(literal.len()),
                None if rest.is_empty() => return true,
                None => None,
            };
            if let Some(taken) = taken {
                at += taken;
                part += 1;
                continue;
            }
            let Some((after_star, from)) = retry else {
                return false;
            };
            let Some(skipped) = text[from..].chars().next() else {
                return false;
            };
            at = from + skipped.len_utf8();
            part = after_star;
            retry = Some((part, at));
        }
    }

    /// Whether it matches everything.
    pub fn is_any(&self) -> bool {
        self.parts == [Part::Any]
    }

    /// Whether it matches exactly one text.
    pub fn is_literal(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// Whether every text that `other` matches is matched by this one too, as far as that is easy
    /// to see: used for advice only.
    pub fn covers(&self, other: &Self) -> bool {
        match self.parts.as_slice() {
            [Part::Any] => true,
            [Part::Text(prefix), Part::Any] => matches!(
                other.parts.first(),
                Some(Part::Text(text)) if text.starts_with(prefix)
            ),
            _ => self == other,
        }
    }

    /// The first word, where the pattern spells it to its end.
    pub fn first_word(&self) -> Option<&str> {
        let Some(Part::Text(text)) = self.parts.first() else {
            return None;
        };
        match text.split_once(' ') {
            Some((word, _)) => Some(word),
            None if self.parts.len() == 1 => Some(text),
            None => None,
        }
    }

    /// Whether one of these characters stands in it.
    pub fn spells_any(&self, characters: &[char]) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, Part::Text(text) if text.contains(characters)))
    }

    /// The words that the pattern spells, each up to the wildcard that ends it.
    pub fn spelled_words(&self) -> Vec<&str> {
        let mut words = Vec::new();
        let mut after_wildcard = false;
        for part in &self.parts {
            match part {
                Part::One | Part::OneOf(_) | Part::Any => after_wildcard = true,
                Part::Text(text) => {
                    let mut pieces = text.split(' ');
                    if after_wildcard {
                        // The rest of a word that a wildcard began.
                        pieces.next();
                    }
                    words.extend(pieces.filter(|word| !word.is_empty()));
                    after_wildcard = false;
                }
            }
        }
        words
    }
}

impl Class {
    /// What follows an opening bracket, and the rest. It is none where the bracket is not closed,
    /// or a blank comes before: then it is the program `[`.
    fn parse(mut rest: Peekable<Chars<'_>>) -> Option<(Self, Peekable<Chars<'_>>)> {
        let sense = match rest.next_if(|letter| matches!(letter, '!' | '^')) {
            Some(_) => Sense::NotListed,
            None => Sense::Listed,
        };
        let mut ranges = Vec::new();
        loop {
            let from = match rest.next()? {
                // First, it is one of the characters.
                ']' if !ranges.is_empty() => return Some((Self { sense, ranges }, rest)),
                letter if letter.is_whitespace() => return None,
                letter => letter,
            };
            let mut ahead = rest.clone();
            let to = match (ahead.next(), ahead.next()) {
                (Some('-'), Some(to)) if to != ']' && !to.is_whitespace() => {
                    rest = ahead;
                    to
                }
                _ => from,
            };
            if from > to {
                return None;
            }
            ranges.push((from, to));
        }
    }

    fn has(&self, letter: char) -> bool {
        let is_listed = self
            .ranges
            .iter()
            .any(|(from, to)| (*from..=*to).contains(&letter));
        match self.sense {
            Sense::Listed => is_listed,
            Sense::NotListed => !is_listed,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::alternatives::AnyOf;

    const PIECES: &[&str] = &[
        "a",
        "b",
        "/",
        "*",
        "?",
        r"\*",
        "[ab]",
        "[!a]",
        "[a-c]",
        "{a,b}",
        "{,c}",
        "{a*,{b,[ac]}}",
    ];

    #[test]
    fn stars_cross_everything_and_question_marks_take_one() {
        let matches = |pattern: &str, text: &str| Wildcard::new(pattern).matches(text);
        assert!(matches("git *", "git push /a/b"));
        assert!(!matches("git *", "git"));
        assert!(!matches("git *", "gitk x"));
        assert!(matches("**", ""));
        assert!(matches("a?c*", "abc"));
        assert!(!matches("a?c", "ac"));
        assert!(matches(r"ls \*.txt", "ls *.txt"));
        assert!(!matches(r"ls \*.txt", "ls a.txt"));
        assert!(matches(r"grep a\.b", r"grep a\.b"));
        assert!(matches("*a*b*c", "xxaxxbxxc"));
        assert!(!matches("*a*b*c", "xxbxxaxxc"));
    }

    #[test]
    fn brackets_take_one_of_their_characters() {
        let matches = |pattern: &str, text: &str| Wildcard::new(pattern).matches(text);
        assert!(matches("[rd]m *", "rm x") && matches("[rd]m *", "dm x"));
        assert!(!matches("[rd]m *", "xm x"));
        assert!(matches("x[!0-9]", "xa") && !matches("x[!0-9]", "x7"));
        assert!(matches("x[^a]", "xb") && !matches("x[^a]", "xa"));
        assert!(matches("[]a]", "]") && matches("[a-]", "-"));
        assert!(matches(r"\[rd]m", "[rd]m") && !matches(r"\[rd]m", "rm"));
        // The program of this name, and what is not closed.
        assert!(matches("[ -f * ]", "[ -f x ]") && matches("a[b", "a[b"));
        assert!(Wildcard::without_classes("[::1]").matches("[::1]"));
    }

    #[test]
    fn spelled_words_end_at_a_wildcard() {
        let words = |pattern: &str| Wildcard::new(pattern).spelled_words().join("|");
        assert_eq!(words("sudo apt *"), "sudo|apt");
        assert_eq!(words("find * -exec ls*"), "find|-exec|ls");
        assert_eq!(words("git pu?h x"), "git|pu|x");
        assert_eq!(words("*"), "");
        assert_eq!(Wildcard::new("git *").first_word(), Some("git"));
        assert_eq!(Wildcard::new("git*").first_word(), None);
    }

    proptest! {
        #[test]
        fn an_escaped_text_matches_itself_only(text in ".{0,12}", other in ".{0,12}") {
            let pattern = Wildcard::new(&Wildcard::escape(&text));
            prop_assert!(pattern.matches(&text));
            prop_assert!(pattern.is_literal());
            prop_assert_eq!(pattern.matches(&other), text == other);
        }

        /// As the crate that matches paths understands them, which has a meaning of its own for
        /// two stars.
        #[test]
        fn patterns_mean_what_globs_mean(
            pieces in proptest::collection::vec(prop::sample::select(PIECES), 0..6),
            text in "[abc/*]{0,6}",
        ) {
            let pattern = pieces.concat();
            prop_assume!(!pattern.contains("**"));
            let glob = globset::GlobBuilder::new(&pattern).empty_alternates(true).build().unwrap();
            let alternatives = AnyOf::spelled_out(&pattern).unwrap();
            let ours = alternatives.any(|one| Wildcard::new(one).matches(&text));
            prop_assert_eq!(ours, glob.compile_matcher().is_match(&text), "{}", pattern);
        }

        #[test]
        fn a_pattern_matches_what_it_was_made_from(text in "[a-c ]{0,10}", cuts in proptest::collection::vec(0usize..10, 0..4)) {
            let mut letters: Vec<char> = text.chars().collect();
            for cut in cuts {
                if cut < letters.len() {
                    letters[cut] = '*';
                }
            }
            let pattern: String = letters.into_iter().collect();
            prop_assert!(Wildcard::new(&pattern).matches(&text));
        }
    }
}
