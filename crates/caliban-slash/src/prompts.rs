//! Commands that are prompts which we have written. A command of the user's own takes the place of
//! one of the same name.

use crate::entry::Entry;
use crate::reading::called;

const REVIEW: &str = "\
Review the changes of this repository as a careful colleague would. Look at what differs from the \
last commit (`git diff HEAD`, and files that are new) unless something else is named below. Read \
enough of the code around a change to judge it. Name what is wrong or risky first: faults, broken \
guarantees, missing tests, what a reader would misunderstand; for each the file and line, why it \
matters, and what to do. Then what could be simpler. Do not list what is fine, and change \
nothing.";

/// The prompt of a line that calls such a command, with what is written after the name.
pub fn prompt_of(line: &str) -> Option<String> {
    let (name, arguments) = called(line)?;
    let prompt = written(name)?;
    Some(if arguments.is_empty() {
        prompt.to_owned()
    } else {
        format!("{prompt}\n\nTo be reviewed: {arguments}")
    })
}

fn written(name: &str) -> Option<&'static str> {
    match name {
        "review" => Some(REVIEW),
        _ => None,
    }
}

/// Whether a command of the user's own may have its name.
pub(crate) fn yields(entry: &Entry) -> bool {
    written(entry.name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_says_what_it_is_about() {
        assert_eq!(prompt_of("/review").as_deref(), Some(REVIEW));
        let about = prompt_of(" /review  src/a.rs ").unwrap();
        assert!(about.starts_with(REVIEW) && about.ends_with("src/a.rs"));
        assert_eq!(prompt_of("/help"), None);
        assert_eq!(prompt_of("review"), None);
    }
}
