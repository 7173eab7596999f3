//! Whether a line is a command, and which.

use caliban_model::nearest;

use crate::action::{Action, nothing};
use crate::built_in;
use crate::entry::{Does, Entry};
use crate::prompts::yields;
use crate::table::BUILT_IN;

/// What a line means.
#[derive(Debug)]
pub enum Reading {
    /// Words for the model, or a command of the user's own, which becomes such.
    Prompt,
    Act(&'static Entry, Action),
    /// A command that cannot be obeyed, and why.
    Misused(String),
}

/// Whether a name is that of a command which is not built in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Known {
    Yes,
    No,
}

/// Takes `/name arguments` apart. A path is no command.
pub fn called(line: &str) -> Option<(&str, &str)> {
    let text = line.trim().strip_prefix('/')?;
    let (name, arguments) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let is_of_a_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ':');
    (name.starts_with(char::is_alphabetic) && name.chars().all(is_of_a_name))
        .then(|| (name, arguments.trim()))
}

/// Reads a line where there is no screen. A lone word that no command has is a slip and costs
/// nothing; with more words behind it, it may be meant for the model.
pub fn read<'a>(
    line: &str,
    own: impl Fn(&str) -> Known,
    names: impl IntoIterator<Item = &'a str>,
) -> Reading {
    let Some((name, arguments)) = called(line) else {
        return Reading::Prompt;
    };
    let Some(entry) = built_in(name) else {
        return match own(name) {
            Known::No if arguments.is_empty() => unknown(name, names),
            Known::Yes | Known::No => Reading::Prompt,
        };
    };
    if yields(entry) && own(name) == Known::Yes {
        return Reading::Prompt;
    }
    match entry.does {
        Does::Act(action) => match action(arguments) {
            Ok(action) => Reading::Act(entry, action),
            Err(problem) => Reading::Misused(misused(name, entry, &problem)),
        },
        Does::NeedsScreen { instead } => {
            Reading::Misused(format!("`/{name}` needs a screen: {instead}"))
        }
        Does::Missing { part, instead } => Reading::Misused(format!(
            "`/{name}` does nothing: this version has no {part}; {instead}"
        )),
    }
}

/// What is wrong with how a built-in command is written, wherever it is obeyed.
pub fn fault(line: &str) -> Option<String> {
    let (name, arguments) = called(line)?;
    let entry = built_in(name)?;
    let problem = match entry.does {
        Does::Act(action) => action(arguments).err()?,
        Does::NeedsScreen { .. } if entry.arguments.is_empty() => nothing(arguments).err()?,
        Does::NeedsScreen { .. } | Does::Missing { .. } => return None,
    };
    Some(misused(name, entry, &problem))
}

fn misused(name: &str, entry: &Entry, problem: &str) -> String {
    format!("`/{name}`: {problem}; write `{}`", entry.usage())
}

fn unknown<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Reading {
    let ours = BUILT_IN.iter().map(|entry| entry.name);
    let meant = nearest(name, ours.chain(names))
        .map_or_else(String::new, |meant| format!(" did you mean `/{meant}`?"));
    Reading::Misused(format!(
        "there is no command `/{name}`;{meant} `/help` lists those there are"
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use caliban_model::{Effort, Reasoning};
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::action::{
        Depth, Existing, ExportFormat, MemoryAction, Repetition, RewindAction, Rewinding, TakenBack,
    };
    use crate::reserved;

    fn nobody(_: &str) -> Known {
        Known::No
    }

    #[rstest]
    #[case("/help", Action::Help)]
    #[case("  /cost  ", Action::Cost)]
    #[case("/compact", Action::Compact { instructions: None })]
    #[case("/compact the tests", Action::Compact { instructions: Some("the tests".to_owned()) })]
    #[case("/model", Action::Model(None))]
    #[case("/model x-1", Action::Model(Some("x-1".to_owned())))]
    #[case("/effort", Action::Effort(None))]
    #[case("/effort high", Action::Effort(Some(Reasoning::Effort(Effort::High))))]
    #[case("/effort auto", Action::Effort(Some(Reasoning::Auto)))]
    #[case("/export", Action::Export { path: None, format: ExportFormat::Markdown })]
    #[case("/export a.json --format json", Action::Export { path: Some("a.json".into()), format: ExportFormat::Json })]
    #[case("/export --format=md a.md", Action::Export { path: Some("a.md".into()), format: ExportFormat::Markdown })]
    #[case("/memory", Action::Memory(MemoryAction::List))]
    #[case("/memory show a-b", Action::Memory(MemoryAction::Show { topic: "a-b".to_owned() }))]
    #[case("/memory delete a", Action::Memory(MemoryAction::Remove { topic: "a".to_owned() }))]
    #[case("/memory rebuild-index", Action::Memory(MemoryAction::RebuildIndex))]
    #[case("/doctor --deep", Action::Doctor(Depth::Deep))]
    #[case("/system", Action::System)]
    #[case("/init", Action::Draft(Existing::Kept))]
    #[case("/init --force", Action::Draft(Existing::Replaced))]
    #[case("/btw why?  so?", Action::Aside { question: "why?  so?".to_owned() })]
    #[case("/review", Action::Review)]
    #[case("/review the last commit", Action::Review)]
    #[case("/loop", Action::Repeat(Repetition { times: 3, pause: Duration::from_secs(15) }))]
    #[case("/loop --interval=0 --n 7", Action::Repeat(Repetition { times: 7, pause: Duration::ZERO }))]
    #[case("/rename A better name", Action::Rename { title: "A better name".to_owned() })]
    #[case("/rewind", Action::Rewind(RewindAction::List))]
    #[case("/rewind --list", Action::Rewind(RewindAction::List))]
    #[case("/rewind 3", Action::Rewind(RewindAction::Do(Rewinding { to: 3, what: TakenBack::Both, changed: Existing::Kept })))]
    #[case("/rewind --code 0 --force", Action::Rewind(RewindAction::Do(Rewinding { to: 0, what: TakenBack::Code, changed: Existing::Replaced })))]
    #[case("/rewind 1 --conversation --dry-run", Action::Rewind(RewindAction::Preview(Rewinding { to: 1, what: TakenBack::Conversation, changed: Existing::Kept })))]
    #[case("/rewind 1 --summarize-up-to", Action::Rewind(RewindAction::Do(Rewinding { to: 1, what: TakenBack::SummarizeUpTo, changed: Existing::Kept })))]
    #[case("/fork", Action::Fork { name: None })]
    #[case("/fork b", Action::Fork { name: Some("b".to_owned()) })]
    #[case("/add-dir a b", Action::AddDirectory { path: "a b".to_owned() })]
    #[case("/bug it broke", Action::Feedback { text: "it broke".to_owned() })]
    fn commands_are_actions(#[case] line: &str, #[case] action: Action) {
        match read(line, nobody, []) {
            Reading::Act(_, read) => assert_eq!(read, action),
            other => panic!("{other:?}"),
        }
    }

    #[rstest]
    #[case("/usr/bin/env")]
    #[case("/tmp")]
    #[case("/etc/hosts is broken")]
    #[case("/reveiw this file please")]
    #[case("/ help")]
    #[case("help")]
    #[case("/")]
    #[case("//comment")]
    #[case("/mine")]
    #[case("/review the tests")]
    fn other_lines_are_prompts(#[case] line: &str) {
        let own = |name: &str| match name {
            // A directory that happens to look like a command is told apart by nobody but the user.
            "mine" | "tmp" | "review" => Known::Yes,
            _ => Known::No,
        };
        assert!(matches!(read(line, own, []), Reading::Prompt), "{line}");
    }

    #[rstest]
    #[case("/hlep", "did you mean `/help`?")]
    #[case("/reveiw", "did you mean `/review`?")]
    #[case("/tydy", "did you mean `/tidy`?")]
    #[case("/loop --n=0", "from 1 to 1000")]
    #[case("/loop --n", "from 1 to 1000")]
    #[case("/loop --interval=-1", "from 0 to 86400")]
    #[case("/loop --interval=99999999999999999999", "from 0 to 86400")]
    #[case("/loop forever", "`forever` is not known")]
    #[case("/btw", "it needs a question")]
    #[case("/feedback", "it needs the words")]
    #[case("/rename", "it needs a name")]
    #[case("/fork a b", "not one name")]
    #[case("/add-dir", "it needs a directory")]
    #[case("/init --hard", "`--force` or nothing")]
    #[case("/keys", "needs a screen")]
    #[case("/login", "api_key_helper")]
    #[case("/zzzzzz", "`/help` lists")]
    #[case("/effort enormous", "low, medium, high")]
    #[case("/cost now", "no arguments")]
    #[case("/export a b", "one path too many")]
    #[case("/memory show", "needs the name")]
    #[case("/memory burn", "`burn` is not known")]
    #[case("/resume", "needs a screen")]
    #[case("/exit", "needs a screen")]
    fn what_cannot_be_obeyed_says_why(#[case] line: &str, #[case] part: &str) {
        match read(line, nobody, ["tidy"]) {
            Reading::Misused(reason) => assert!(reason.contains(part), "{reason}"),
            other => panic!("{other:?}"),
        }
    }

    #[rstest]
    #[case(
        "/quit now please",
        Some("it takes no arguments, but got `now please`; write `/quit`")
    )]
    #[case("/exit now", Some("`/exit`"))]
    #[case("/help me", Some("no arguments"))]
    #[case("/agents all", Some("`all` is not known"))]
    #[case(
        "/rewind 1 --code --conversation",
        Some("`--conversation` after `--code`")
    )]
    #[case("/quit", None)]
    #[case("/resume the old one", None)]
    #[case("/config model", None)]
    #[case("/theme pink", None)]
    #[case("/mine all", None)]
    #[case("quit now", None)]
    fn how_it_is_written_is_judged_on_a_screen_too(#[case] line: &str, #[case] part: Option<&str>) {
        match (fault(line), part) {
            (None, None) => {}
            (Some(fault), Some(part)) => assert!(fault.contains(part), "{fault}"),
            (fault, part) => panic!("{fault:?} {part:?}"),
        }
    }

    #[test]
    fn a_name_belongs_to_one_command() {
        let names = reserved();
        let distinct: BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        for entry in BUILT_IN {
            assert_eq!(called(&format!("/{}", entry.name)), Some((entry.name, "")));
            assert!(!entry.summary.is_empty() && !entry.summary.ends_with('.'));
        }
    }

    proptest! {
        #[test]
        fn any_line_can_be_read(line in "(/| )?\\PC{0,60}") {
            let _ = read(&line, nobody, []);
        }
    }
}
