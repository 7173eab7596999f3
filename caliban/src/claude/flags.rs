//! The command line of this dialect, as typed. Every flag may be written with its value behind
//! `=` or as the next word; lists take all words up to the next flag.

use std::collections::BTreeMap;

use crate::args::{FlagTakes, shared_flag};

/// What a flag takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    Nothing,
    /// One word.
    Value,
    /// The next word, unless it is a flag.
    Optional,
    /// All words up to the next flag.
    Many,
}

/// Every flag with its other spellings.
const FLAGS: &[(&str, &[&str], Takes)] = &[
    ("add-dir", &[], Takes::Many),
    ("agent", &[], Takes::Value),
    ("agents", &[], Takes::Value),
    ("allow-dangerously-skip-permissions", &[], Takes::Nothing),
    ("allowed-tools", &["allowedTools"], Takes::Many),
    ("append-system-prompt", &[], Takes::Value),
    ("append-system-prompt-file", &[], Takes::Value),
    ("await-initialize", &[], Takes::Nothing),
    ("betas", &[], Takes::Many),
    ("channels", &[], Takes::Value),
    ("continue", &["c"], Takes::Nothing),
    ("dangerously-skip-permissions", &[], Takes::Nothing),
    ("debug", &["d"], Takes::Optional),
    ("debug-file", &[], Takes::Value),
    ("debug-to-stderr", &["d2e"], Takes::Nothing),
    ("dialect", &[], Takes::Value),
    ("disallowed-tools", &["disallowedTools"], Takes::Many),
    ("effort", &[], Takes::Value),
    ("fallback-model", &[], Takes::Value),
    ("fork-session", &[], Takes::Nothing),
    ("forward-subagent-text", &[], Takes::Nothing),
    ("help", &["h"], Takes::Nothing),
    ("include-hook-events", &[], Takes::Nothing),
    ("include-partial-messages", &[], Takes::Nothing),
    ("input-format", &[], Takes::Value),
    ("json-schema", &[], Takes::Value),
    ("managed-settings", &[], Takes::Value),
    ("max-budget-usd", &[], Takes::Value),
    ("max-thinking-tokens", &[], Takes::Value),
    ("max-turns", &[], Takes::Value),
    ("mcp-config", &[], Takes::Many),
    ("model", &[], Takes::Value),
    ("no-session-persistence", &[], Takes::Nothing),
    ("output-format", &[], Takes::Value),
    ("permission-mode", &[], Takes::Value),
    ("permission-prompt-tool", &[], Takes::Value),
    ("permission-prompts", &[], Takes::Value),
    ("plugin-dir", &[], Takes::Value),
    ("plugin-dir-no-mcp", &[], Takes::Value),
    ("print", &["p"], Takes::Nothing),
    ("project-config-root", &[], Takes::Value),
    ("replay-user-messages", &[], Takes::Nothing),
    ("resume", &["r"], Takes::Optional),
    ("resume-drops-turn", &[], Takes::Value),
    ("resume-session-at", &[], Takes::Value),
    ("session-id", &[], Takes::Value),
    ("session-mirror", &[], Takes::Nothing),
    ("setting-sources", &[], Takes::Value),
    ("settings", &[], Takes::Value),
    ("strict-mcp-config", &[], Takes::Nothing),
    ("system-prompt", &[], Takes::Value),
    ("system-prompt-file", &[], Takes::Value),
    ("task-budget", &[], Takes::Value),
    ("thinking", &[], Takes::Value),
    ("thinking-display", &[], Takes::Value),
    ("tools", &[], Takes::Many),
    ("verbose", &[], Takes::Nothing),
    ("version", &["v"], Takes::Nothing),
    ("workload", &[], Takes::Value),
];

/// What was typed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags {
    given: BTreeMap<&'static str, Vec<String>>,
    /// The flags of ours that this dialect has no word for, as they were typed.
    pub(crate) native: Vec<String>,
    /// The words that belong to no flag; empty ones say nothing.
    pub(crate) words: Vec<String>,
}

/// A command line that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FlagError {
    #[error("error: unknown option '{0}'")]
    Unknown(String),
    #[error("error: option '{0}' needs a value")]
    Missing(String),
    #[error("error: option '{0}' takes no value")]
    Surplus(String),
}

impl Flags {
    pub(crate) fn parse(words: impl IntoIterator<Item = String>) -> Result<Self, FlagError> {
        let mut flags = Self::default();
        let mut words = words.into_iter().peekable();
        while let Some(word) = words.next() {
            if word == "--" {
                flags.words.extend(words);
                break;
            }
            if !word.starts_with('-') || word == "-" {
                flags.words.push(word);
                continue;
            }
            let (typed, value) = match word.split_once('=') {
                Some((typed, value)) if word.starts_with("--") => (typed, Some(value.to_owned())),
                _ => (word.as_str(), None),
            };
            let Some((name, takes)) = find(typed) else {
                match typed.strip_prefix("--").and_then(shared_flag) {
                    Some(takes) => {
                        let native = native(typed, takes, value, &mut words)?;
                        flags.native.push(native);
                    }
                    None => flags.switches(typed)?,
                }
                continue;
            };
            let values = flags.given.entry(name).or_default();
            let is_word = |next: &String| !next.starts_with('-') || next == "-";
            match (takes, value) {
                (Takes::Nothing, None) => {}
                (Takes::Nothing, Some(_)) => return Err(FlagError::Surplus(typed.to_owned())),
                (_, Some(value)) => values.push(value),
                (Takes::Value, None) => {
                    let missing = || FlagError::Missing(typed.to_owned());
                    values.push(words.next().ok_or_else(missing)?);
                }
                (Takes::Optional, None) => values.extend(words.next_if(is_word)),
                (Takes::Many, None) => {
                    let before = values.len();
                    while let Some(word) = words.next_if(is_word) {
                        values.push(word);
                    }
                    if values.len() == before {
                        return Err(FlagError::Missing(typed.to_owned()));
                    }
                }
            }
        }
        flags.words.retain(|word| !word.is_empty());
        Ok(flags)
    }

    /// Several short switches in one word.
    fn switches(&mut self, typed: &str) -> Result<(), FlagError> {
        let unknown = || FlagError::Unknown(typed.to_owned());
        let letters = typed.strip_prefix('-').ok_or_else(unknown)?;
        for letter in letters.chars() {
            match find(&format!("-{letter}")) {
                Some((name, Takes::Nothing)) if letters.chars().count() > 1 => {
                    self.given.entry(name).or_default();
                }
                Some(_) | None => return Err(unknown()),
            }
        }
        Ok(())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.given.contains_key(name)
    }

    /// The value that was typed last.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        self.given.get(name)?.last().map(String::as_str)
    }

    /// All values in the order they were typed.
    pub(crate) fn values(&self, name: &str) -> &[String] {
        self.given.get(name).map_or(&[], Vec::as_slice)
    }

    /// The items of a list flag: split at commas, and at blanks outside parentheses.
    pub(crate) fn items(&self, name: &str) -> Vec<String> {
        self.values(name)
            .iter()
            .flat_map(|value| items(value))
            .collect()
    }
}

/// A flag of ours as one word.
fn native(
    typed: &str,
    takes: FlagTakes,
    value: Option<String>,
    words: &mut impl Iterator<Item = String>,
) -> Result<String, FlagError> {
    match (takes, value) {
        (FlagTakes::Nothing, None) => Ok(typed.to_owned()),
        (FlagTakes::Nothing, Some(_)) => Err(FlagError::Surplus(typed.to_owned())),
        (FlagTakes::Value, Some(value)) => Ok(format!("{typed}={value}")),
        (FlagTakes::Value, None) => match words.next() {
            Some(value) => Ok(format!("{typed}={value}")),
            None => Err(FlagError::Missing(typed.to_owned())),
        },
    }
}

fn find(typed: &str) -> Option<(&'static str, Takes)> {
    FLAGS
        .iter()
        .find(|(name, others, _)| {
            let others = others.iter().copied();
            typed.strip_prefix("--").is_some_and(|long| {
                long == *name || others.clone().any(|other| other == long && other.len() > 1)
            }) || typed.strip_prefix('-').is_some_and(|short| {
                others
                    .clone()
                    .any(|other| other == short && other.len() <= 3)
            })
        })
        .map(|(name, _, takes)| (*name, *takes))
}

/// The items of a list.
fn items(list: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let mut depth = 0_usize;
    for letter in list.chars() {
        match letter {
            ',' | ' ' if depth == 0 => {
                items.push(String::new());
                continue;
            }
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if let Some(item) = items.last_mut() {
            item.push(letter);
        }
    }
    items.retain(|item| !item.is_empty());
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn parse(words: &[&str]) -> Result<Flags, FlagError> {
        Flags::parse(words.iter().map(|word| (*word).to_owned()))
    }

    #[test]
    fn both_forms_mean_the_same() {
        let one = parse(&["--model=opus", "--output-format=json", "-p", "hi"]).unwrap();
        let two = parse(&[
            "--model",
            "opus",
            "--output-format",
            "json",
            "--print",
            "hi",
        ])
        .unwrap();
        assert_eq!(one, two);
        assert_eq!(one.value("model"), Some("opus"));
        assert_eq!(one.words, ["hi"]);
        let empty = parse(&["--setting-sources=", "--system-prompt", ""]).unwrap();
        assert_eq!(empty.value("setting-sources"), Some(""));
        assert_eq!(empty.value("system-prompt"), Some(""));
    }

    #[test]
    fn lists_take_the_words_that_follow() {
        let swallowed = parse(&["-p", "--allowedTools", "Read", "Bash", "PROMPT"]).unwrap();
        assert_eq!(swallowed.items("allowed-tools"), ["Read", "Bash", "PROMPT"]);
        assert!(swallowed.words.is_empty());
        let ended = parse(&["--print", "--", "-x", "--model"]).unwrap();
        assert_eq!(ended.words, ["-x", "--model"]);
        let split = parse(&[
            "--allowed-tools",
            "Bash(git log:*),Read Edit",
            "--add-dir",
            "a",
            "--add-dir",
            "b",
        ])
        .unwrap();
        assert_eq!(
            split.items("allowed-tools"),
            ["Bash(git log:*)", "Read", "Edit"]
        );
        assert_eq!(split.values("add-dir"), ["a", "b"]);
    }

    #[test]
    fn an_empty_word_at_the_end_is_tolerated() {
        let flags = parse(&["--replay-user-messages", ""]).unwrap();
        assert!(flags.has("replay-user-messages") && flags.words.is_empty());
    }

    #[test]
    fn switches_may_stand_together_and_optional_values_are_optional() {
        let flags = parse(&["-pc", "-r", "--verbose", "-d2e"]).unwrap();
        assert!(flags.has("print") && flags.has("continue") && flags.has("debug-to-stderr"));
        assert!(flags.has("resume") && flags.value("resume").is_none());
        assert_eq!(parse(&["-r", "x"]).unwrap().value("resume"), Some("x"));
    }

    #[test]
    fn our_own_flags_are_kept_as_they_were_typed() {
        let flags = parse(&[
            "--provider",
            "openai",
            "--auto-allow",
            "--record=/c",
            "-p",
            "hi",
        ])
        .unwrap();
        assert_eq!(
            flags.native,
            ["--provider=openai", "--auto-allow", "--record=/c"]
        );
        assert_eq!(flags.words, ["hi"]);
        let missing = parse(&["--provider"]).unwrap_err().to_string();
        assert_eq!(missing, "error: option '--provider' needs a value");
    }

    #[rstest]
    #[case(&["--auto-allow=1"], "error: option '--auto-allow' takes no value")]
    #[case(&["--quiet"], "error: unknown option '--quiet'")]
    #[case(&["--banana"], "error: unknown option '--banana'")]
    #[case(&["--banana=3"], "error: unknown option '--banana'")]
    #[case(&["-x"], "error: unknown option '-x'")]
    #[case(&["--allowedtools"], "error: unknown option '--allowedtools'")]
    #[case(&["--model"], "error: option '--model' needs a value")]
    #[case(&["--tools", "--verbose"], "error: option '--tools' needs a value")]
    #[case(&["--verbose=yes"], "error: option '--verbose' takes no value")]
    fn what_makes_no_sense_is_named(#[case] words: &[&str], #[case] expected: &str) {
        assert_eq!(parse(words).unwrap_err().to_string(), expected);
    }
}
