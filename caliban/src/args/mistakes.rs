//! What was probably meant by a command line that says something else.

use std::ffi::OsString;

use clap::CommandFactory as _;
use clap::error::{ContextKind, ContextValue};

use super::{Cli, RunArgs};
use crate::exit::Failure;

/// Whether these words ask for JSON on standard output, whatever else they say.
pub(crate) fn asks_for_frames(words: &[OsString]) -> bool {
    const FLAG: &str = "--output-format";
    let mut words = words.iter().filter_map(|word| word.to_str());
    let mut last = None;
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        }
        match word.strip_prefix(FLAG) {
            Some("") => last = words.next(),
            Some(value) => last = value.strip_prefix('=').or(last),
            None => {}
        }
    }
    matches!(last, Some("json" | "stream-json"))
}

/// Refuses a prompt of one word that is nearly a command: whoever mistyped one does not want to pay
/// for an answer to it.
pub(crate) fn check_prompt(args: &RunArgs) -> Result<(), Failure> {
    let (Some(word), None, None) = (&args.prompt, &args.print, &args.prompt_flag) else {
        return Ok(());
    };
    match near_command(word) {
        None => Ok(()),
        Some(command) => Err(Failure::Usage(format!(
            "there is no command `{word}`; did you mean `caliban {command}`? \
             `caliban -p {word}` asks it as a prompt"
        ))),
    }
}

/// What to say of a command line that cannot be understood, where a mistyped command explains it,
/// whose own arguments are then words too many, or a prompt without quotes.
pub(crate) fn mistyped(error: &clap::Error, words: &[OsString]) -> Option<String> {
    let stray = [ContextKind::InvalidArg, ContextKind::InvalidSubcommand]
        .into_iter()
        .find_map(|kind| match error.get(kind) {
            Some(ContextValue::String(word)) if !word.starts_with('-') => Some((kind, word)),
            Some(_) | None => None,
        });
    let (kind, stray) = stray?;
    let cli = Cli::command();
    let words = || words.iter().skip(1).filter_map(|word| word.to_str());
    let has_command = words().any(|word| cli.find_subcommand(word).is_some());
    if has_command && kind == ContextKind::InvalidSubcommand {
        return None;
    }
    let near = words().find_map(|word| Some((word, near_command(word)?)));
    match near {
        Some((word, command)) => Some(format!(
            "there is no command `{word}`; did you mean `caliban {command}`?"
        )),
        None if has_command => None,
        None => Some(format!(
            "`{stray}` is one word too many; write a prompt of several words in quotes: `caliban -p \"…\"`"
        )),
    }
}

/// The command that a word is one slip away from.
fn near_command(word: &str) -> Option<String> {
    let cli = Cli::command();
    let names: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
    let word = word.to_lowercase();
    if names.contains(&&*word) {
        return None;
    }
    let near = names.iter().find(|name| is_one_slip(&word, name));
    near.map(|name| (*name).to_owned())
}

/// Whether one letter too many, too few or wrong, or two in the wrong order, make the difference.
fn is_one_slip(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    let same = one.iter().zip(&other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[same..], &other[same..]);
    match (one, other) {
        ([], []) => false,
        ([a, b, one @ ..], [c, d, other @ ..]) if (a, b) == (d, c) && one == other => true,
        ([_, one_rest @ ..], [_, other_rest @ ..]) => {
            one_rest == other_rest || one_rest == other || one == other_rest
        }
        ([_, rest @ ..], []) | ([], [_, rest @ ..]) => rest.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("docter", Some("doctor"))]
    #[case("prems", Some("perms"))]
    #[case("session", Some("sessions"))]
    #[case("modells", Some("models"))]
    #[case("Docter", Some("doctor"))]
    #[case("doctor", None)]
    #[case("hello", None)]
    #[case("", None)]
    #[case("mc", Some("mcp"))]
    #[case("what is a doctor", None)]
    fn one_slip_is_enough(#[case] word: &str, #[case] meant: Option<&str>) {
        assert_eq!(near_command(word).as_deref(), meant);
    }

    #[rstest]
    #[case(&["--output-format", "json"], true)]
    #[case(&["--output-format=stream-json", "--nonsense"], true)]
    #[case(&["-p", "x", "--output-format", "text"], false)]
    #[case(&["--output-format"], false)]
    #[case(&["--", "--output-format", "json"], false)]
    fn what_is_wanted_is_known_before_it_is_understood(
        #[case] words: &[&str],
        #[case] wants: bool,
    ) {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        assert_eq!(asks_for_frames(&words), wants);
    }
}
