//! Reading command lines of the shell: what a line provably runs, and what it might run.
//!
//! [`strict`] may prove that a line is allowed, so it refuses whatever it does not fully
//! understand. [`lenient`] may only prove that a line is denied, so it finds whatever it can.
//! The grammar is that of `bash --noprofile --norc -c`: no history, no aliases, no `extglob`.

mod arithmetic;
mod blind;
mod braces;
mod build;
mod builtins;
mod compound;
mod expansions;
mod guard;
mod hazard_table;
mod hazards;
mod heredoc;
mod lenient;
mod looking;
mod loose;
mod programs;
mod quotes;
mod reader;
mod refusal;
mod scan;
mod scripts;
mod simple;
mod state;
mod value_printers;
mod variables;
mod words;
mod wrapper_table;
mod wrappers;
mod writes;

pub(crate) use lenient::lenient_beside;
pub use lenient::{Candidate, Completeness, Lenient, Origin, lenient};
pub use looking::only_looks;
pub use refusal::Refusal;

use reader::{Dialect, Reader};
use state::State;

/// The longest line that is read, in bytes.
pub const MAX_LENGTH: usize = 64 * 1024;
/// How deep groups, substitutions, quoted command strings and wrappers may nest.
pub const MAX_DEPTH: usize = 16;
/// How many commands a line may have, those of wrappers included.
pub const MAX_COMMANDS: usize = 500;
/// How many words a line may have after brace expansion, those of wrapped commands included.
pub const MAX_WORDS: usize = 20_000;

/// Whether a command that begins with this word may run another, which its words spell.
pub(crate) fn may_wrap(word: &str) -> bool {
    lenient::is_prefix(word) || wrapper_table::is_wrapper(programs::Program::new(word).name)
}

/// The words that make a program do something else than its name says.
pub(crate) fn hazards_among(words: &[&str]) -> Vec<Hazard> {
    let args: Vec<words::Argument> = words
        .iter()
        .copied()
        .map(words::Argument::literal)
        .collect();
    hazards::of(&args)
}

/// What a line runs: every simple command anywhere in it, in the order of the source, wherever
/// it is written (chains, pipes, groups, loops, function bodies, substitutions, here-documents).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    pub commands: Vec<Command>,
}

/// A simple command. One without words only assigns variables or opens files: it starts nothing,
/// but its redirections count.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    /// The program and its arguments without quotes. The program is always literal.
    pub words: Vec<Word>,
    /// Names of the `NAME=value` prefixes.
    pub assignments: Vec<String>,
    pub redirections: Vec<Redirection>,
    pub wrapping: Wrapping,
    /// The commands its operands start. Each needs to be allowed like any other.
    pub inner: Vec<Command>,
    /// Where the wrapped program is spelled: its word, or the word of the first command string.
    pub inner_word: Option<usize>,
    /// Words that a trailing `*` of a rule does not cover; a rule that spells them does.
    pub hazards: Vec<Hazard>,
    /// Files and directories this program is known to write or delete: best effort, for the
    /// check of protected paths only. Of words that are not literal, the source text.
    pub writes: Vec<String>,
}

/// A word of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    /// The text the program gets; of a word that is not literal, its unknown parts are the text
    /// of the source (`$f`, `*.rs`).
    pub text: String,
    pub certainty: Certainty,
}

/// How much of a word is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// The program gets exactly this text as one argument.
    Literal,
    /// Some of it is known only at run time, and it may become any number of arguments. A rule
    /// may cover it with a wildcard that covers the whole word, or spell its source text; no
    /// other part of a pattern may be compared with it.
    Partial,
}

/// Whether a command runs another one, and what that means for rules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Wrapping {
    /// It runs no operand.
    #[default]
    Plain,
    /// It only changes how the inner command runs and needs no rule of its own.
    Transparent,
    /// It needs a rule of its own besides those of the inner commands.
    Wrapper,
}

/// An argument that makes a harmless program run, load, write or send something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hazard {
    /// Index into the command's words.
    pub word: usize,
    pub what: HazardKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HazardKind {
    RunsProgram,
    /// It is code, or decides which code an interpreter runs. A rule about every call of the
    /// interpreter covers that: it is no wider than a script.
    RunsCode,
    LoadsCode,
    WritesFile,
    SendsFile,
    /// The word is not literal and could turn out to be such an argument.
    Unknown,
}

/// A file a command is connected to. Copies of descriptors (`2>&1`) and writes to `/dev/null`,
/// `/dev/stdout` and `/dev/stderr` are left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redirection {
    pub kind: RedirectionKind,
    /// The path as spelled, relative to wherever the command runs; none where it is known only
    /// at run time.
    pub target: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RedirectionKind {
    Read,
    Write,
}

/// Proves what a command line runs, or refuses. Only what this returns may ever be allowed by a
/// pattern.
pub fn strict(line: &str) -> Result<Script, Refusal> {
    guard::check(line)?;
    let mut state = State::default();
    Reader::new(line, Dialect::Bash, &mut state).script()?;
    state.finish()
}

impl Command {
    /// The command and all it wraps, outermost first.
    pub fn all(&self) -> Vec<&Command> {
        let mut all = vec![self];
        let mut next = 0;
        while let Some(command) = all.get(next).copied() {
            all.extend(&command.inner);
            next += 1;
        }
        all
    }
}

impl Word {
    pub fn is_literal(&self) -> bool {
        self.certainty == Certainty::Literal
    }
}

impl HazardKind {
    /// What the argument does, for a message: "`-exec` runs a program".
    pub fn describe(self) -> &'static str {
        match self {
            Self::RunsProgram => "runs a program",
            Self::RunsCode => "runs code",
            Self::LoadsCode => "loads code or configuration",
            Self::WritesFile => "writes a file",
            Self::SendsFile => "sends a file",
            Self::Unknown => "is known only when it runs",
        }
    }
}
