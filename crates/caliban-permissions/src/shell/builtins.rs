//! Builtins that change the shell itself, and so what the other commands of the line mean.

use super::programs::listed;
use super::refusal::excerpt;
use super::state::State;
use super::words::Argument;
use super::{Refusal, arithmetic, variables};

/// Options of `set` that only stop, trace or restrict.
const SET_LETTERS: &str = "eufvxE";
const SET_NAMES: &str = "errexit nounset pipefail noglob xtrace verbose errtrace";
/// Options of `shopt` that change which files a pattern matches, and not how text is parsed.
const SHOPT_NAMES: &str = "\
     nullglob globstar dotglob failglob nocaseglob nocasematch inherit_errexit lastpipe";
/// Attributes without code behind them: not `-i` (evaluates values), `-n` (another name), `-f`.
const DECLARE_LETTERS: &str = "aAglprux";

/// Refuses what would make the reading of other commands wrong, and notes which variables get
/// values.
pub(super) fn check(state: &mut State, program: &str, args: &[Argument]) -> Result<(), Refusal> {
    match program {
        "alias" | "enable" | "bind" => Err(poison(program)),
        "hash"
            if args
                .iter()
                .any(|arg| arg.text.starts_with('-') && arg.text != "-r") =>
        {
            Err(poison(program))
        }
        "." | "source" => {
            state.poison(program);
            Ok(())
        }
        _ if declares(program) => args
            .iter()
            .try_for_each(|arg| declaration(state, program, arg)),
        "set" => settings(program, args),
        "shopt" => options(program, args),
        "wait" if !args.iter().any(|arg| arg.text.starts_with('-')) => Ok(()),
        "read" | "mapfile" | "readarray" | "getopts" | "unset" | "wait" => args
            .iter()
            .try_for_each(|arg| variable(state, program, arg)),
        "printf" => match args {
            [option, name, ..] if option.text == "-v" => variable(state, program, name),
            _ => Ok(()),
        },
        "let" => args.iter().try_for_each(|arg| match arg.as_literal() {
            Some(expression) => arithmetic::check(state, expression),
            None => Err(operand(program, arg)),
        }),
        _ => Ok(()),
    }
}

/// Whether a builtin takes assignments for its operands.
pub(super) fn declares(program: &str) -> bool {
    matches!(
        program,
        "export" | "readonly" | "declare" | "typeset" | "local"
    )
}

/// `NAME`, `NAME=value` or options of a declaration.
fn declaration(state: &mut State, program: &str, arg: &Argument) -> Result<(), Refusal> {
    if let Some(letters) = arg.text.strip_prefix(['-', '+']) {
        let allowed = arg.is_literal() && letters.chars().all(|c| DECLARE_LETTERS.contains(c));
        return if allowed {
            Ok(())
        } else {
            Err(poison(program))
        };
    }
    let (name, value) = match arg.text.split_once('=') {
        Some((name, value)) => (name.trim_end_matches('+'), Some(value)),
        None => (arg.text.as_str(), None),
    };
    let known = arg.is_literal() || (value.is_some() && arg.known > name.len());
    if !known || !variables::is_name(name) || arg.splits {
        return Err(poison(program));
    }
    variables::check(name)?;
    if arg.is_literal() && value.is_some_and(|value| value.parse::<i64>().is_ok()) {
        state.assign_number(name);
    } else if value.is_some() {
        state.assign_text(name);
    }
    Ok(())
}

/// A word that may be the name of a variable that gets a value.
fn variable(state: &mut State, program: &str, arg: &Argument) -> Result<(), Refusal> {
    let Some(text) = arg.as_literal() else {
        return Err(operand(program, arg));
    };
    if text.contains('[') {
        // The subscript is evaluated, with the commands in it.
        return Err(operand(program, arg));
    }
    let name = text.trim_start_matches(|c: char| c == '-' || c.is_ascii_lowercase());
    for name in [text, name] {
        if variables::is_name(name) {
            variables::check(name)?;
            state.assign_text(name);
        }
    }
    Ok(())
}

fn settings(program: &str, args: &[Argument]) -> Result<(), Refusal> {
    let allowed = args.iter().all(|arg| {
        arg.as_literal()
            .is_some_and(|text| match text.strip_prefix(['-', '+']) {
                Some(letters) => letters.chars().all(|c| c == 'o' || SET_LETTERS.contains(c)),
                None => listed(SET_NAMES, text),
            })
    });
    if allowed {
        Ok(())
    } else {
        Err(poison(program))
    }
}

fn options(program: &str, args: &[Argument]) -> Result<(), Refusal> {
    let allowed = args.iter().all(|arg| {
        arg.as_literal().is_some_and(|text| {
            matches!(text, "-s" | "-u" | "-q" | "-p") || listed(SHOPT_NAMES, text)
        })
    });
    if allowed {
        Ok(())
    } else {
        Err(poison(program))
    }
}

fn poison(program: &str) -> Refusal {
    Refusal::Poison {
        program: program.to_owned(),
    }
}

fn operand(program: &str, arg: &Argument) -> Refusal {
    Refusal::Operand {
        program: program.to_owned(),
        word: excerpt(&arg.text),
    }
}
