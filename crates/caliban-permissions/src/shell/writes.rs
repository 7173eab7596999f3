//! Which of a program's operands it writes or deletes: best effort, for protected paths.

use super::programs::{Program, listed};
use super::words::{Argument, Start};

/// Which operands are written.
#[derive(Debug, Clone, Copy)]
enum Operands {
    All,
    AllAfterFirst,
    Last,
    None,
}

struct Writer {
    programs: &'static str,
    operands: Operands,
    /// Options whose value is written: a letter, a long name, or the beginning of a word.
    values: &'static str,
}

const fn writer(programs: &'static str, operands: Operands, values: &'static str) -> Writer {
    Writer {
        programs,
        operands,
        values,
    }
}

const WRITERS: &[Writer] = &[
    writer(
        "tee sponge touch truncate mkdir rmdir rm unlink shred mv patch gzip gunzip bzip2 bunzip2 xz unxz zstd mkfifo mknod ed ex vi vim nano rename",
        Operands::All,
        "-t --target-directory",
    ),
    writer(
        "cp ln install rsync scp",
        Operands::Last,
        "-t --target-directory",
    ),
    writer(
        "chmod chown chgrp chattr setfacl",
        Operands::AllAfterFirst,
        "",
    ),
    writer("sort shuf tree iconv", Operands::None, "-o --output"),
    writer("curl", Operands::None, "-o --output --output-dir -D -c"),
    writer(
        "wget",
        Operands::None,
        "-O -P -o --output-document --directory-prefix",
    ),
    writer("tar", Operands::None, "-C -f --directory --file"),
    writer("unzip", Operands::None, "-d"),
    writer("zip", Operands::All, ""),
    writer("dd", Operands::None, "of="),
    writer("git", Operands::None, "--output -o"),
    writer(
        "gcc cc clang go rustc pandoc",
        Operands::None,
        "-o --output",
    ),
    writer("find", Operands::None, "-fprint -fprint0 -fprintf -fls"),
    writer("time", Operands::None, "-o --output"),
];

/// The paths these words write or delete, as spelled.
pub(super) fn of(args: &[Argument]) -> Vec<String> {
    let name = Program::of(args).name;
    let Some((_, args)) = args.split_first() else {
        return Vec::new();
    };
    if matches!(name, "sed" | "gsed" | "perl" | "ruby" | "yq") {
        return edited_in_place(args);
    }
    let Some(writer) = WRITERS.iter().find(|writer| listed(writer.programs, name)) else {
        return Vec::new();
    };
    let mut written: Vec<String> = Vec::new();
    let mut operands: Vec<&Argument> = Vec::new();
    let mut args = args.iter();
    let mut only_operands = false;
    while let Some(arg) = args.next() {
        if only_operands {
            operands.push(arg);
        } else if arg.text == "--" {
            only_operands = true;
        } else if let Some(value) = writer.value(&arg.text) {
            match value {
                Value::Attached(value) => written.push(value.to_owned()),
                Value::Next => written.extend(args.next().map(|arg| arg.text.clone())),
            }
        } else if arg.start != Start::Dash {
            operands.push(arg);
        }
    }
    let operands = match writer.operands {
        Operands::All => operands.as_slice(),
        Operands::AllAfterFirst => operands.get(1..).unwrap_or_default(),
        // What is not known may be nothing at all, unless it has more in it.
        Operands::Last => match operands
            .iter()
            .rposition(|arg| !arg.splits || arg.text.contains('/'))
        {
            Some(last) => &operands[last..],
            None => operands.as_slice(),
        },
        Operands::None => &[],
    };
    written.extend(operands.iter().map(|arg| arg.text.clone()));
    written
}

enum Value<'a> {
    Attached(&'a str),
    Next,
}

impl Writer {
    /// The value of a word that is an option with a written value.
    fn value<'a>(&self, word: &'a str) -> Option<Value<'a>> {
        self.values.split_whitespace().find_map(|option| {
            let rest = match word.strip_prefix(option) {
                Some(rest) => rest,
                // The last letter of a cluster: `-xzf file`.
                None if option.len() == 2
                    && word.starts_with('-')
                    && !word.starts_with("--")
                    && word.ends_with(&option[1..]) =>
                {
                    return Some(Value::Next);
                }
                None => return None,
            };
            match rest.strip_prefix('=').unwrap_or(rest) {
                "" => Some(Value::Next),
                _ if option.starts_with("--") && !rest.starts_with('=') => None,
                value => Some(Value::Attached(value)),
            }
        })
    }
}

/// The operands of an editor of streams that is told to edit files: all that are no option, the
/// script among them.
fn edited_in_place(args: &[Argument]) -> Vec<String> {
    let in_place = |arg: &Argument| {
        arg.text.starts_with("--in")
            || (arg.text.starts_with('-')
                && !arg.text.starts_with("--")
                && arg.text.contains(['i', 'I']))
    };
    if !args.iter().any(in_place) {
        return Vec::new();
    }
    args.iter()
        .filter(|arg| arg.start != Start::Dash)
        .map(|arg| arg.text.clone())
        .collect()
}
