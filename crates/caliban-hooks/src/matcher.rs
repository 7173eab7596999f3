//! Which names a handler is for.

use caliban_settings::mcp_names::with_plugin_servers;
use fancy_regex::{Regex, RegexBuilder};

/// The longest matcher that is read, in bytes.
const LONGEST: usize = 4096;
/// How many steps back a regular expression may take before it counts as matching.
const BACKTRACKS: usize = 100_000;

/// A set of names. Nothing, an empty text and `*` are all names. Text made of names, `|`, `,`,
/// blanks and `*` is a list of exact names in which a star stands for any letters. Anything else
/// is a regular expression for the whole name, unless it says itself where it begins (`^`) or
/// ends (`$`). A server of a plugin may be written as it is called, `mcp__plugin:server__tool`.
#[derive(Debug, Clone)]
pub struct Matcher {
    text: String,
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    All,
    Names(Vec<String>),
    Regex(Box<Regex>),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadMatcher {
    #[error("it names nothing; write `*` for everything")]
    Empty,
    #[error("it is longer than {LONGEST} bytes; split it into several entries")]
    TooLong,
    #[error(
        "it is not a valid regular expression ({0}); write names such as `Edit|Write`, or correct it"
    )]
    Regex(String),
}

impl Matcher {
    pub fn all() -> Self {
        Self {
            text: "*".to_owned(),
            form: Form::All,
        }
    }

    pub fn parse(text: &str) -> Result<Self, BadMatcher> {
        if text.len() > LONGEST {
            return Err(BadMatcher::TooLong);
        }
        let form = match with_plugin_servers(text).trim() {
            "" | "*" => return Ok(Self::all()),
            list if list.chars().all(is_of_a_list) => Form::Names(names(list)?),
            regex => Form::Regex(Box::new(compile(regex)?)),
        };
        Ok(Self {
            text: text.to_owned(),
            form,
        })
    }

    /// As it is written; `*` where nothing is.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn is_all(&self) -> bool {
        matches!(self.form, Form::All)
    }

    pub fn matches(&self, name: &str) -> bool {
        match &self.form {
            Form::All => true,
            Form::Names(names) => names.iter().any(|pattern| glob(pattern, name)),
            // One that gives up has not shown that the handler does not apply.
            Form::Regex(regex) => regex.is_match(name).unwrap_or(true),
        }
    }
}

fn is_of_a_list(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | ':' | '*' | '|' | ',' | ' ')
}

fn names(list: &str) -> Result<Vec<String>, BadMatcher> {
    let names: Vec<String> = list
        .split(['|', ',', ' '])
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect();
    if names.is_empty() {
        return Err(BadMatcher::Empty);
    }
    Ok(names)
}

fn compile(text: &str) -> Result<Regex, BadMatcher> {
    let regex = if text.starts_with('^') || text.ends_with('$') {
        text.to_owned()
    } else {
        format!("^(?:{text})$")
    };
    RegexBuilder::new(&regex)
        .backtrack_limit(BACKTRACKS)
        .build()
        .map_err(|error| BadMatcher::Regex(error.to_string()))
}

/// Whether a text is what a pattern says, in which `*` stands for any letters.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else {
        return false;
    };
    let Some(last) = pieces.next_back() else {
        return rest.is_empty();
    };
    // Taking the earliest place of each piece leaves the most room for the next.
    for piece in pieces {
        match rest.find(piece) {
            Some(start) => rest = &rest[start + piece.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", "Bash", true)]
    #[case(" ", "Bash", true)]
    #[case("*", "mcp__a__b", true)]
    #[case("Bash", "Bash", true)]
    #[case("Bash", "BashOutput", false)]
    #[case("bash", "Bash", false)]
    #[case("Rea", "Read", false)]
    #[case("Edit|Write", "Write", true)]
    #[case("Edit, Write", "Write", true)]
    #[case("Edit|Write", "MultiEdit", false)]
    #[case("mcp__*", "mcp__github__get", true)]
    #[case("mcp__*__get", "mcp__github__get", true)]
    #[case("mcp__*__get", "mcp__github__set", false)]
    #[case("mcp__.*", "mcp__github__get", true)]
    #[case("mcp__.*", "xmcp__github__get", false)]
    #[case("Notebook.*", "NotebookEdit", true)]
    #[case("^(Bash|Edit|Write|MultiEdit|mcp__.*)$", "Bash", true)]
    #[case("^(Bash|Edit|Write|MultiEdit|mcp__.*)$", "mcp__a__b", true)]
    #[case("^(Bash|Edit|Write|MultiEdit|mcp__.*)$", "BashOutput", false)]
    #[case("(Bash|Edit)", "BashOutput", false)]
    #[case("^mcp__", "mcp__a__b", true)]
    #[case("mcp__tools:db__get", "mcp__plugin_tools_db__get", true)]
    #[case("Bash|mcp__tools:db__*", "mcp__plugin_tools_db__set", true)]
    #[case("mcp__tools:db__(get|set)", "mcp__plugin_tools_db__set", true)]
    #[case("mcp__tools:db__get", "mcp__plugin_tools_db__set", false)]
    #[case("__get$", "mcp__a__get", true)]
    #[case("^(?!(Glob|Grep|Read)$).*", "Bash", true)]
    #[case("^(?!(Glob|Grep|Read)$).*", "Grep", false)]
    fn matchers(#[case] matcher: &str, #[case] name: &str, #[case] expected: bool) {
        assert_eq!(Matcher::parse(matcher).unwrap().matches(name), expected);
    }

    #[rstest]
    #[case("(Bash")]
    #[case("|")]
    #[case("[")]
    fn what_cannot_match_is_an_error(#[case] matcher: &str) {
        assert!(Matcher::parse(matcher).is_err());
    }

    #[test]
    fn a_matcher_that_gives_up_applies() {
        let matcher = Matcher::parse(r"^(?:(a|aa)(?!c))+\1b$").unwrap();
        assert!(matcher.matches(&"a".repeat(200)));
    }

    #[test]
    fn the_length_is_bounded() {
        let long = "a".repeat(LONGEST + 1);
        assert_eq!(Matcher::parse(&long).unwrap_err(), BadMatcher::TooLong);
    }

    proptest! {
        #[test]
        fn a_list_matches_its_names_and_no_others(
            names in prop::collection::vec("[A-Za-z_]{1,6}", 1..5),
            other in "[A-Za-z_]{1,6}",
        ) {
            let matcher = Matcher::parse(&names.join("|")).unwrap();
            for name in &names {
                prop_assert!(matcher.matches(name));
            }
            prop_assert_eq!(matcher.matches(&other), names.contains(&other));
        }

        #[test]
        fn globs_agree_with_regular_expressions(pattern in "[ab*]{0,7}", text in "[ab]{0,9}") {
            let regex = format!("^(?:{})$", pattern.replace('*', ".*"));
            let expected = Regex::new(&regex).unwrap().is_match(&text).unwrap();
            prop_assert_eq!(glob(&pattern, &text), expected);
        }

        #[test]
        fn no_text_is_too_strange(text in ".{0,40}", name in ".{0,40}") {
            if let Ok(matcher) = Matcher::parse(&text) {
                matcher.matches(&name);
            }
        }
    }
}
