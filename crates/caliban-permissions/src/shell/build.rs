//! A command from its words: what it wraps, which of its arguments are hazards, what it writes.

use super::reader::{Dialect, Reader};
use super::refusal::excerpt;
use super::state::State;
use super::words::Argument;
use super::wrappers::{self, Wrapped};
use super::{Command, Refusal, builtins, hazards, programs, writes};

/// The command of these words; the first is the program.
pub(super) fn command(
    state: &mut State,
    dialect: Dialect,
    args: &[Argument],
) -> Result<Command, Refusal> {
    let program = match args.first() {
        Some(program) if program.is_literal() => program.text.as_str(),
        other => {
            return Err(Refusal::Program {
                word: other.map(|word| excerpt(&word.text)).unwrap_or_default(),
            });
        }
    };
    state.count_program();
    builtins::check(state, program, &args[1..])?;
    if programs::reads_code_from_input(args) {
        return Err(Refusal::Input {
            program: program.to_owned(),
        });
    }
    let Wrapped {
        wrapping,
        inner,
        inner_word,
    } = wrappers::read(state, dialect, args)?;
    Ok(Command {
        words: args.iter().map(Argument::to_word).collect(),
        wrapping,
        inner,
        inner_word,
        hazards: hazards::of(args),
        writes: writes::of(args),
        ..Command::default()
    })
}

/// The command that a wrapper starts from its own arguments.
pub(super) fn inner(
    state: &mut State,
    dialect: Dialect,
    args: &[Argument],
) -> Result<Command, Refusal> {
    state.enter()?;
    state.count_command()?;
    state.count_words(args.len())?;
    let command = command(state, dialect, args)?;
    state.leave();
    Ok(command)
}

/// The commands of a text that a shell will read.
pub(super) fn text(
    state: &mut State,
    dialect: Dialect,
    text: &str,
) -> Result<Vec<Command>, Refusal> {
    state.apart(|state| Reader::new(text, dialect, state).script())
}
