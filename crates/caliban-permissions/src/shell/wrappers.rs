//! Programs that run their operands: where the inner command begins, and what it is.

use super::build;
use super::programs::{self, Program, listed};
use super::reader::Dialect;
use super::refusal::excerpt;
use super::state::State;
use super::words::{Argument, Start};
use super::wrapper_table::{Runs, SUBCOMMANDS, WRAPPERS, Wrapper};
use super::{Command, Refusal, Wrapping, variables};

#[derive(Debug, Default)]
pub(super) struct Wrapped {
    pub(super) wrapping: Wrapping,
    pub(super) inner: Vec<Command>,
    pub(super) inner_word: Option<usize>,
}

/// What the program of these words runs besides itself.
pub(super) fn read(
    state: &mut State,
    dialect: Dialect,
    args: &[Argument],
) -> Result<Wrapped, Refusal> {
    let program = Program::of(args);
    let name = program.name;
    match name {
        "eval" if program.is_bare() => return text_of(state, dialect, args, 1),
        "trap" if program.is_bare() => return trap(state, dialect, args),
        "command" if program.is_bare() && is_lookup(args) => return Ok(Wrapped::default()),
        "find" => return find(state, dialect, args),
        "fd" | "fdfind" => return fd(state, dialect, args),
        _ if programs::is_shell(name) => return shell(state, args),
        _ => {}
    }
    if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
        return wrapper.read(state, dialect, args);
    }
    if let Some((_, subcommand, operands)) = SUBCOMMANDS.iter().find(|(known, ..)| *known == name)
        && args.get(1).and_then(Argument::as_literal) == Some(subcommand)
    {
        let at = 2 + operands;
        if args.get(at).is_some_and(|arg| arg.text.starts_with('-')) {
            // Options of the runner, which are not modelled.
            return Err(operand(name, &args[at]));
        }
        return words_of(state, dialect, args, at, Wrapping::Wrapper);
    }
    Ok(Wrapped::default())
}

/// `command -v name`, which runs nothing.
fn is_lookup(args: &[Argument]) -> bool {
    matches!(
        args.get(1).and_then(Argument::as_literal),
        Some("-v" | "-V" | "-pv" | "-pV")
    )
}

impl Wrapper {
    fn read(
        &self,
        state: &mut State,
        dialect: Dialect,
        args: &[Argument],
    ) -> Result<Wrapped, Refusal> {
        let mut options = Options::default();
        let mut at = self.skip_options(args, &mut options)?;
        for _ in 0..self.operands {
            literal(self.name, args, at)?;
            at += 1;
        }
        let mut wrapping = self.wrapping;
        if self.runs == Runs::WordsAfterAssignments {
            if options.any {
                wrapping = Wrapping::Wrapper;
            }
            while let Some(name) = args.get(at).and_then(assigned_name) {
                variables::check(name)?;
                at += 1;
            }
        }
        if !Program::of(args).is_trusted_place() {
            // A file of this name anywhere else is not this program.
            wrapping = Wrapping::Wrapper;
        }
        let Some(first) = args.get(at) else {
            return Ok(Wrapped::default());
        };
        if self.name == "flock" && first.text == "-c" {
            return string_of(state, Dialect::Posix, args, at + 1);
        }
        if first.text.starts_with('-') {
            // Some programs look for options here, too.
            return Err(operand(self.name, first));
        }
        match self.runs {
            Runs::Text(dialect) => text_of(state, dialect, args, at),
            Runs::WordsAndInput => {
                let mut words = args[at..].to_vec();
                if let Some(placeholder) = options.placeholder {
                    fill_in(&mut words, &placeholder);
                }
                // A later option may have turned the placeholder off.
                words.push(Argument::unknown("{}"));
                Ok(Wrapped {
                    wrapping,
                    inner: vec![build::inner(state, dialect, &words)?],
                    inner_word: Some(at),
                })
            }
            Runs::Words | Runs::WordsAfterAssignments => {
                words_of(state, dialect, args, at, wrapping)
            }
        }
    }

    /// The index of the first word that is no option.
    fn skip_options(&self, args: &[Argument], options: &mut Options) -> Result<usize, Refusal> {
        let mut at = 1;
        while let Some(arg) = args.get(at) {
            if arg.start == Start::Other && !arg.splits {
                return Ok(at);
            }
            let text = literal(self.name, args, at)?;
            at += 1;
            if text == "--" {
                return Ok(at);
            }
            let Some(option) = text.strip_prefix('-') else {
                return Ok(at - 1);
            };
            options.any = true;
            let unreadable = || operand(self.name, arg);
            if let Some(long) = option.strip_prefix('-') {
                let (name, value) = match long.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (long, None),
                };
                match (listed(self.long_values, name), value) {
                    (true, Some(_)) => {}
                    (true, None) => {
                        literal(self.name, args, at)?;
                        at += 1;
                    }
                    (false, _) if listed(self.long_flags, name) => {}
                    (false, _) => return Err(unreadable()),
                }
                continue;
            }
            for (index, letter) in option.char_indices() {
                if self.flags.contains(letter) {
                    continue;
                }
                if !self.values.contains(letter) {
                    return Err(unreadable());
                }
                let rest = &option[index + letter.len_utf8()..];
                let value = if rest.is_empty() {
                    at += 1;
                    literal(self.name, args, at - 1)?
                } else {
                    rest
                };
                if self.runs == Runs::WordsAndInput && letter == 'I' {
                    options.placeholder = Some(value.to_owned());
                }
                break;
            }
        }
        Ok(at)
    }
}

#[derive(Debug, Default)]
struct Options {
    any: bool,
    /// What stands for the input in the words of `xargs -I`.
    placeholder: Option<String>,
}

/// The name in `NAME=value`, where the name is known.
fn assigned_name(arg: &Argument) -> Option<&str> {
    let (name, _) = arg.text.split_once('=')?;
    (arg.known > name.len() && !name.is_empty() && !arg.splits).then_some(name)
}

/// The text of a word that comes before the inner program, which must be known.
fn literal<'a>(program: &str, args: &'a [Argument], at: usize) -> Result<&'a str, Refusal> {
    match args.get(at) {
        Some(arg) => arg.as_literal().ok_or_else(|| operand(program, arg)),
        None => Ok(""),
    }
}

fn words_of(
    state: &mut State,
    dialect: Dialect,
    args: &[Argument],
    at: usize,
    wrapping: Wrapping,
) -> Result<Wrapped, Refusal> {
    if at >= args.len() {
        return Ok(Wrapped::default());
    }
    Ok(Wrapped {
        wrapping,
        inner: vec![build::inner(state, dialect, &args[at..])?],
        inner_word: Some(at),
    })
}

/// The words from `at` on, joined by blanks and read by a shell.
fn text_of(
    state: &mut State,
    dialect: Dialect,
    args: &[Argument],
    at: usize,
) -> Result<Wrapped, Refusal> {
    let mut text = String::new();
    for arg in args.get(at..).unwrap_or_default() {
        let word = arg
            .as_literal()
            .ok_or_else(|| operand(&args[0].text, arg))?;
        if text.is_empty() && word.starts_with('-') {
            return Err(operand(&args[0].text, arg));
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    Ok(Wrapped {
        wrapping: Wrapping::Wrapper,
        inner: build::text(state, dialect, &text)?,
        inner_word: (at < args.len()).then_some(at),
    })
}

/// One word, read by a shell.
fn string_of(
    state: &mut State,
    dialect: Dialect,
    args: &[Argument],
    at: usize,
) -> Result<Wrapped, Refusal> {
    match args.get(at) {
        Some(_) => text_of(state, dialect, &args[..=at], at),
        None => Err(Refusal::Input {
            program: args[0].text.clone(),
        }),
    }
}

/// `trap 'commands' SIGNAL…`
fn trap(state: &mut State, dialect: Dialect, args: &[Argument]) -> Result<Wrapped, Refusal> {
    let at = 1 + usize::from(args.get(1).is_some_and(|arg| arg.text == "--"));
    match args.get(at).map(Argument::as_literal) {
        None | Some(Some("-" | "" | "-l" | "-p")) => Ok(Wrapped::default()),
        Some(_) => string_of(state, dialect, args, at),
    }
}

/// A shell with a command string, a script file, or neither.
fn shell(state: &mut State, args: &[Argument]) -> Result<Wrapped, Refusal> {
    let name = Program::of(args).name;
    let mut has_string = false;
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        let text = literal(name, args, at)?;
        at += 1;
        match text {
            "--version" | "--help" if args.len() == 2 => return Ok(Wrapped::default()),
            "--norc" | "--noprofile" | "--login" if name == "bash" => {}
            "--" => break,
            _ => match text.strip_prefix(['-', '+']) {
                None => {
                    at -= 1;
                    break;
                }
                Some(letters)
                    if !letters.is_empty() && letters.chars().all(|c| "ceuxvflo".contains(c)) =>
                {
                    has_string |= letters.contains('c');
                    if letters.contains('o') {
                        // A name of an option, of which these do not change the grammar.
                        match literal(name, args, at)? {
                            "pipefail" | "errexit" | "nounset" | "xtrace" => at += 1,
                            _ => return Err(operand(name, arg)),
                        }
                    }
                }
                Some(_) => return Err(operand(name, arg)),
            },
        }
    }
    if !has_string {
        return match args.get(at).map(Argument::as_literal) {
            // A script is a program like any other and is not opened.
            Some(Some(script)) if script != "-" && !programs::is_device(script) => {
                Ok(Wrapped::default())
            }
            Some(None) => Err(operand(name, &args[at])),
            _ => Err(Refusal::Input {
                program: name.to_owned(),
            }),
        };
    }
    let dialect = match name {
        "bash" => Dialect::Bash,
        "sh" | "dash" | "ash" | "ksh" | "mksh" => Dialect::Posix,
        // The others read another language.
        _ => return Err(operand(name, &args[args.len().min(at + 1) - 1])),
    };
    string_of(state, dialect, args, at)
}

/// Each `-exec command… ;` of `find`.
fn find(state: &mut State, dialect: Dialect, args: &[Argument]) -> Result<Wrapped, Refusal> {
    let mut wrapped = Wrapped::default();
    let mut at = 1;
    while let Some(arg) = args.get(at) {
        at += 1;
        if !matches!(
            arg.as_literal(),
            Some("-exec" | "-execdir" | "-ok" | "-okdir")
        ) {
            continue;
        }
        let rest = &args[at..];
        let end = rest.iter().enumerate().position(|(index, arg)| {
            arg.as_literal() == Some(";")
                || (arg.as_literal() == Some("+") && index > 0 && rest[index - 1].text == "{}")
        });
        let Some(end) = end.filter(|end| rest[..*end].iter().all(|arg| !arg.splits)) else {
            return Err(operand("find", arg));
        };
        let mut words = rest[..end].to_vec();
        fill_in(&mut words, "{}");
        wrapped.wrapping = Wrapping::Wrapper;
        wrapped.inner_word.get_or_insert(at);
        wrapped.inner.push(build::inner(state, dialect, &words)?);
        at += end + 1;
    }
    Ok(wrapped)
}

/// `fd … -x command…`
fn fd(state: &mut State, dialect: Dialect, args: &[Argument]) -> Result<Wrapped, Refusal> {
    let exec = args.iter().position(|arg| {
        matches!(
            arg.as_literal(),
            Some("-x" | "-X" | "--exec" | "--exec-batch")
        )
    });
    let Some(at) = exec.map(|at| at + 1) else {
        return Ok(Wrapped::default());
    };
    let end = args[at..]
        .iter()
        .position(|arg| arg.as_literal() == Some(";"))
        .map_or(args.len(), |end| at + end);
    if end + 1 < args.len() {
        return Err(operand("fd", &args[end + 1]));
    }
    let mut words = args[at..end].to_vec();
    for placeholder in ["{}", "{.}", "{/}", "{//}", "{/.}"] {
        fill_in(&mut words, placeholder);
    }
    words.push(Argument::unknown("{}"));
    Ok(Wrapped {
        wrapping: Wrapping::Wrapper,
        inner: vec![build::inner(state, dialect, &words)?],
        inner_word: Some(at),
    })
}

/// Marks the words that the program completes with a file's name or a line of input.
fn fill_in(words: &mut [Argument], placeholder: &str) {
    for word in words {
        if let Some(known) = word.text.find(placeholder) {
            let unknown = Argument::unknown(word.text.clone());
            *word = Argument {
                known: known.min(word.known),
                // What is filled in stays one word, and `find` begins it with the path it searches.
                splits: false,
                start: if known == 0 {
                    unknown.start
                } else {
                    word.start
                },
                ..unknown
            };
        }
    }
}

fn operand(program: &str, arg: &Argument) -> Refusal {
    Refusal::Operand {
        program: program.to_owned(),
        word: excerpt(&arg.text),
    }
}
