//! What the tests of the two readers have in common.

#![allow(dead_code, reason = "each test uses a part")]

use caliban_permissions::shell::{Command, Completeness, Script, Word, lenient, strict};
use serde_json::Value;

/// The lines of the cases.
pub(crate) fn corpus() -> Vec<String> {
    let cases: Vec<Value> = serde_json::from_str(include_str!("../data/shell-cases.json")).unwrap();
    cases
        .iter()
        .map(|case| case["line"].as_str().unwrap().to_owned())
        .collect()
}

/// Whether these are the arguments that the words become; what is not literal becomes any.
pub(crate) fn become_arguments(words: &[Word], arguments: &[String]) -> bool {
    match (words.split_first(), arguments.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((word, words)), Some((argument, rest))) if word.is_literal() => {
            word.text == *argument && become_arguments(words, rest)
        }
        (Some((word, _)), None) if word.is_literal() => false,
        (Some((_, words)), _) => {
            (0..=arguments.len()).any(|taken| become_arguments(words, &arguments[taken..]))
        }
    }
}

pub(crate) fn all(script: &Script) -> Vec<&Command> {
    script.commands.iter().flat_map(Command::all).collect()
}

/// Every command that is proven is also found for a denial. Gives whether the line is proven.
pub(crate) fn assert_denial_sees_what_is_proven(line: &str) -> bool {
    let found = lenient(line);
    let Ok(script) = strict(line) else {
        return false;
    };
    for command in all(&script) {
        let seen = command.words.is_empty()
            || found
                .candidates
                .iter()
                .any(|candidate| become_arguments(&command.words, &candidate.words));
        assert!(
            seen || found.complete == Completeness::Cut,
            "{:?} of {line:?} is not in {:#?}",
            command.words,
            found.candidates
        );
    }
    true
}

/// A longer line runs at least what its beginning runs, or is refused.
pub(crate) fn assert_chaining_keeps_commands(line: &str) {
    let Ok(before) = strict(line) else {
        return;
    };
    for tail in [
        " && added x",
        "; added x",
        " | added x",
        "\nadded x",
        " & added x",
    ] {
        let longer = format!("{line}{tail}");
        let Ok(after) = strict(&longer) else {
            continue;
        };
        for command in &before.commands {
            assert!(
                after.commands.contains(command),
                "{command:?} of {line:?} is not in {longer:?}: {after:?}"
            );
        }
    }
}
