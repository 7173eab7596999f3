//! A hundred command lines with the programs bash starts for each: proven exactly, or refused.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

use caliban_permissions::shell::{lenient, strict};
use serde_json::Value;

struct Case {
    line: String,
    programs: Programs,
}

enum Programs {
    Known(Vec<String>),
    /// Only the run tells.
    Unknown,
    /// The shell does not accept the line.
    Invalid,
}

fn cases() -> Vec<Case> {
    let cases: Vec<Value> = serde_json::from_str(include_str!("data/shell-cases.json")).unwrap();
    cases
        .into_iter()
        .map(|case| Case {
            line: case["line"].as_str().unwrap().to_owned(),
            programs: match &case["programs"] {
                Value::Null => Programs::Invalid,
                Value::Array(names) => Programs::Known(
                    names
                        .iter()
                        .map(|name| name.as_str().unwrap().to_owned())
                        .collect(),
                ),
                _ => Programs::Unknown,
            },
        })
        .collect()
}

/// The refused ones are those whose program, input or arithmetic only the run tells, and
/// constructs that are not worth the risk.
const MOST_REFUSED: usize = 16;

#[test]
fn no_command_is_missed_and_none_is_invented() {
    let mut refused = Vec::new();
    for Case { line, programs } in cases() {
        let script = match strict(&line) {
            Ok(script) => script,
            Err(refusal) => {
                if let Programs::Known(_) = programs {
                    refused.push(format!("{line:?}: {refusal}"));
                }
                continue;
            }
        };
        let Programs::Known(mut programs) = programs else {
            panic!("{line:?} was accepted: {script:?}");
        };
        let mut found: Vec<String> = script
            .commands
            .iter()
            .filter_map(|command| command.words.first())
            .map(|word| word.text.clone())
            .collect();
        programs.sort();
        found.sort();
        assert_eq!(found, programs, "{line:?}");
    }
    assert!(
        refused.len() <= MOST_REFUSED,
        "{} were refused:\n{}",
        refused.len(),
        refused.join("\n")
    );
}

#[test]
fn a_denial_finds_every_program_that_is_spelled() {
    for Case { line, programs } in cases() {
        let Programs::Known(programs) = programs else {
            continue;
        };
        let found = lenient(&line).candidates;
        for program in programs {
            assert!(
                found
                    .iter()
                    .any(|candidate| candidate.words.first() == Some(&program)),
                "`{program}` of {line:?} is not among {found:?}"
            );
        }
    }
}
