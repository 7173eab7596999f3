//! Why a line is not proven.

use super::{MAX_COMMANDS, MAX_DEPTH, MAX_LENGTH, MAX_WORDS};

/// How much of the source a refusal quotes, in characters.
const EXCERPT: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the command is longer than {MAX_LENGTH} bytes")]
    TooLong,
    #[error("the command contains the invisible or deceptive character U+{:04X}", *.character as u32)]
    Character { character: char },
    #[error("the command is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    #[error("the command line has more than {MAX_COMMANDS} commands")]
    TooManyCommands,
    #[error("the command line has more than {MAX_WORDS} words")]
    TooManyWords,
    #[error("the command does not parse: {problem} at {}", place(.at))]
    Syntax { problem: &'static str, at: String },
    #[error("{what} cannot be read in advance, at {}", place(.at))]
    Construct { what: &'static str, at: String },
    #[error("the name of the program is not literal: `{word}`")]
    Program { word: String },
    #[error("setting `{name}` changes how programs are found or what they load")]
    Variable { name: String },
    #[error("the function `{name}` would replace a known program")]
    Function { name: String },
    #[error("`{program}` changes what later commands mean")]
    Poison { program: String },
    #[error("what `{program}` would run cannot be read from `{word}`")]
    Operand { program: String, word: String },
    #[error("`{program}` would run what it reads from its input")]
    Input { program: String },
    #[error("the arithmetic `{expression}` uses a value that may itself contain commands")]
    Arithmetic { expression: String },
    #[error("the redirection to `{target}` opens a network connection")]
    Network { target: String },
}

/// The beginning of what a refusal is about, without line breaks.
pub(super) fn excerpt(text: &str) -> String {
    text.chars()
        .take(EXCERPT)
        .map(|c| if c == '\n' { ' ' } else { c })
        .collect()
}

fn place(at: &str) -> String {
    if at.is_empty() {
        "the end".to_owned()
    } else {
        format!("`{at}`")
    }
}
