//! Programs whose output is an id, a path or a number: where it stands for a word, that word is no
//! option. Only calls whose every argument is known to lead to that count: `git rev-parse` also
//! repeats what it is given, and names of branches may begin with a dash.

use super::Command;
use super::programs::listed;

/// What a call prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Printed {
    /// One word that does not begin with a dash, or nothing.
    Word,
    /// A path from the root, which may have blanks in it.
    Path,
}

const PROGRAMS: &str = "date git id mktemp nproc pwd uname wc";

/// Whether a function of this name would change what is known here.
pub(super) fn is_known(name: &str) -> bool {
    listed(PROGRAMS, name)
}

/// What the only command of a substitution prints, where that is a value.
pub(super) fn printed(command: &Command) -> Option<Printed> {
    let is_plain = command.redirections.is_empty()
        && command.assignments.is_empty()
        && command.inner.is_empty()
        && command.words.iter().all(super::Word::is_literal);
    let words: Vec<&str> = command
        .words
        .iter()
        .map(|word| word.text.as_str())
        .collect();
    let (program, args) = words.split_first()?;
    if !is_plain {
        return None;
    }
    let is_form = |arg: &&str| matches!(*arg, "--short" | "--verify" | "--quiet" | "-q");
    match (*program, args) {
        ("pwd", [] | ["-P" | "-L"])
        | ("mktemp", [] | ["-d"])
        | ("git", ["rev-parse", "--show-toplevel"]) => Some(Printed::Path),
        ("nproc", [])
        | ("id", ["-u" | "-g"])
        | ("wc", ["-l" | "-w" | "-c"])
        | ("uname", ["-s" | "-m" | "-r"]) => Some(Printed::Word),
        ("date", ["-u", format] | [format]) => is_plain_format(format).then_some(Printed::Word),
        ("git", ["rev-parse", args @ ..]) => {
            let revisions: Vec<&str> = args.iter().copied().filter(|arg| !is_form(arg)).collect();
            is_revisions(&revisions).then_some(Printed::Word)
        }
        ("git", ["merge-base", args @ ..] | ["rev-list", "--count", args @ ..]) => {
            is_revisions(args).then_some(Printed::Word)
        }
        _ => None,
    }
}

/// Whether these are revisions and nothing else.
fn is_revisions(args: &[&str]) -> bool {
    let is_revision = |arg: &&str| {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_./~^@{}-".contains(letter);
        !arg.is_empty() && !arg.starts_with('-') && arg.chars().all(is_part)
    };
    !args.is_empty() && args.iter().all(is_revision)
}

/// Whether a format of `date` comes to digits, letters and signs between them.
fn is_plain_format(format: &str) -> bool {
    let Some(format) = format.strip_prefix('+').filter(|text| !text.is_empty()) else {
        return false;
    };
    let mut letters = format.chars();
    let mut is_first = true;
    while let Some(letter) = letters.next() {
        let is_plain = match letter {
            '%' => letters
                .next()
                .is_some_and(|letter| "YmdHMSsjFTyIN".contains(letter)),
            '-' => !is_first,
            letter => letter.is_ascii_alphanumeric() || "_:.".contains(letter),
        };
        if !is_plain {
            return false;
        }
        is_first = false;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::strict;

    fn printed_by(line: &str) -> Option<Printed> {
        let script = strict(line).unwrap();
        printed(&script.commands[0])
    }

    #[test]
    fn ids_paths_and_numbers_are_values() {
        for line in [
            "git rev-parse HEAD",
            "git rev-parse --short HEAD~2",
            "git merge-base main HEAD",
            "git merge-base origin/main feature/x",
            "git rev-list --count HEAD",
            "date +%s",
            "date -u +%Y-%m-%d_%H",
            "nproc",
            "id -u",
            "wc -l",
        ] {
            assert_eq!(printed_by(line), Some(Printed::Word), "{line}");
        }
        for line in ["pwd", "git rev-parse --show-toplevel", "mktemp -d"] {
            assert_eq!(printed_by(line), Some(Printed::Path), "{line}");
        }
    }

    #[test]
    fn what_repeats_its_arguments_or_prints_names_is_none() {
        for line in [
            "git rev-parse --output=x",
            "git rev-parse -- --output=x",
            "git rev-parse --abbrev-ref HEAD",
            "git rev-parse 'a b'",
            "git rev-parse",
            "git branch --show-current",
            "git describe",
            "git merge-base \"$x\" HEAD",
            "date",
            "date '+--output=x'",
            "date +%z",
            "date +%Z",
            "date '+a --output=x'",
            "date -d x +%s",
            "echo x",
            "./nproc",
            "wc -l a",
            "pwd > x",
        ] {
            assert_eq!(printed_by(line), None, "{line}");
        }
    }
}
