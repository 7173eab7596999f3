//! Which tools a hook of a client is about.

use fancy_regex::{Regex, RegexBuilder};

/// How many steps back an expression may take before it counts as matching.
const BACKTRACKS: usize = 100_000;

/// Nothing, an empty text and `*` are all names. Names, `|`, `,` and blanks are a list of exact
/// names. Anything else is a regular expression that may match anywhere; one that is none matches
/// nothing.
#[derive(Debug, Clone)]
pub enum Matcher {
    All,
    Names(Vec<String>),
    Regex(Box<Regex>),
    Nothing,
}

impl Matcher {
    pub fn new(text: Option<&str>) -> Self {
        match text {
            None | Some("" | "*") => Self::All,
            Some(list) if list.chars().all(is_of_a_list) => Self::Names(
                list.split(['|', ',', ' '])
                    .filter(|name| !name.is_empty())
                    .map(str::to_owned)
                    .collect(),
            ),
            Some(expression) => RegexBuilder::new(expression)
                .backtrack_limit(BACKTRACKS)
                .build()
                .map_or(Self::Nothing, |regex| Self::Regex(Box::new(regex))),
        }
    }

    pub fn matches(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|known| known == name),
            // One that gives up has not shown that the hook does not apply.
            Self::Regex(regex) => regex.is_match(name).unwrap_or(true),
            Self::Nothing => false,
        }
    }
}

fn is_of_a_list(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '|' | ',' | ' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    #[rstest]
    #[case(None, "Read", true)]
    #[case(Some(""), "Read", true)]
    #[case(Some("*"), "Read", true)]
    #[case(Some("Rea"), "Read", false)]
    #[case(Some("read"), "Read", false)]
    #[case(Some("Read|Write"), "Write", true)]
    #[case(Some("Read, Write"), "Write", true)]
    #[case(Some(".ea"), "Read", true)]
    #[case(Some("^Re"), "Read", true)]
    #[case(Some("(Read"), "Read", false)]
    #[case(Some("^(?!(Glob|Grep|Read|Task)$).*"), "Bash", true)]
    #[case(Some("^(?!(Glob|Grep|Read|Task)$).*"), "Read", false)]
    fn matchers(#[case] text: Option<&str>, #[case] name: &str, #[case] expected: bool) {
        assert_eq!(Matcher::new(text).matches(name), expected);
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in ".{0,30}", name in ".{0,30}") {
            Matcher::new(Some(&text)).matches(&name);
        }
    }
}
