//! What is known of programs by their names.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::words::Argument;
use super::{hazards, value_printers, wrapper_table};

static KEYWORDS: Names = LazyLock::new(|| {
    names(
        "\
     ! [[ ]] case coproc do done elif else esac fi for function if in select then time until \
     while { }",
    )
});

static SHELLS: Names = LazyLock::new(|| {
    names(
        "\
     ash bash csh dash elvish fish ksh ksh93 mksh nu pwsh rbash sh tcsh xonsh yash zsh",
    )
});

static BUILTINS: Names = LazyLock::new(|| {
    names(
        "\
     . : alias bg bind break builtin caller cd command compgen complete compopt continue \
     declare dirs disown echo enable eval exec exit export false fc fg getopts hash help \
     history jobs kill let local logout mapfile popd printf pushd pwd read readarray readonly \
     return set shift shopt source suspend test times trap true type typeset ulimit umask \
     unalias unset wait [",
    )
});

/// A program that runs what it reads when it gets no code otherwise.
struct Interpreter {
    names: &'static str,
    /// Options whose value is the code or names it.
    code: &'static str,
    /// Letters of options without a value, so that a word after them is the file of the code.
    flags: &'static str,
    operand: Operand,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operand {
    /// The first operand is the file of the code, or a subcommand.
    Code,
    /// The second operand is the code, behind the file that it is about.
    CodeBehindFile,
    /// Operands are something else, and the code is the input.
    Other,
}

const fn interpreter(
    names: &'static str,
    code: &'static str,
    flags: &'static str,
    operand: Operand,
) -> Interpreter {
    Interpreter {
        names,
        code,
        flags,
        operand,
    }
}

const INTERPRETERS: &[Interpreter] = &[
    interpreter("at batch", "-f", "", Operand::Other),
    interpreter("bun deno lua tclsh m4", "-e", "", Operand::Code),
    interpreter("dc", "-e -f", "", Operand::Code),
    interpreter("ed ex", "", "", Operand::Other),
    interpreter("elixir gnuplot julia", "-e -E", "", Operand::Code),
    interpreter("mysql mariadb", "-e --execute", "", Operand::Other),
    interpreter(
        "node nodejs",
        "-e -p --eval --print --test",
        "",
        Operand::Code,
    ),
    interpreter("perl", "-e -E", "wtTnp", Operand::Code),
    interpreter("php", "-r -S", "", Operand::Code),
    interpreter("psql", "-c -f -l --command --file", "", Operand::Other),
    interpreter(
        "python python2 python3 pypy pypy3",
        "-c -m",
        "uBOEsSIqbdx",
        Operand::Code,
    ),
    interpreter("ruby", "-e", "wnp", Operand::Code),
    interpreter(
        "sqlite3",
        "-cmd -version -help",
        "",
        Operand::CodeBehindFile,
    ),
];

/// Everyday programs that never run their operands, so that `git rm` and `echo rm` are not `rm`.
static QUIET: Names = LazyLock::new(|| {
    names(
        "\
     : [ alias apt apt-get awk base64 basename bat brew bun bzip2 cargo cat cd chmod chown \
     clang cmake cmp column comm cp curl cut date declare deno df diff dig dirname dnf docker \
     du echo egrep exit export false fgrep file fold gcc gem gh git go grep gunzip gzip head \
     help hexdump history hostname id info install jobs join jq kill kubectl less ln local ls \
     make man mapfile md5sum mkdir mktemp more mv nl node npm od paste patch perl php ping pip \
     pip3 pnpm popd printf ps pushd pwd pytest python python3 read readarray readlink readonly \
     realpath return rg rm rmdir ruby rustc rustfmt scp sed seq set sha1sum sha256sum shasum \
     shift shopt sleep sort split stat strings tac tail tar tee terraform test touch tr tree \
     true truncate tsc type typeset uname uniq unset unzip wait wc wget whereis which who \
     whoami xxd yarn yes yq zcat zip",
    )
});

/// Directories whose programs are what their names say.
static TRUSTED_PLACES: Names =
    LazyLock::new(|| names("/bin /usr/bin /usr/local/bin /sbin /usr/sbin /opt/homebrew/bin"));

/// A program as it is called.
#[derive(Debug, Clone, Copy)]
pub(super) struct Program<'a> {
    /// The last component of its path.
    pub(super) name: &'a str,
    directory: Option<&'a str>,
}

impl<'a> Program<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        match text.rsplit_once('/') {
            Some((directory, name)) => Self {
                name,
                directory: Some(directory),
            },
            None => Self {
                name: text,
                directory: None,
            },
        }
    }

    pub(super) fn of(args: &'a [Argument]) -> Self {
        Self::new(
            args.first()
                .map(|arg| arg.text.as_str())
                .unwrap_or_default(),
        )
    }

    /// Whether it is called by name, so that it may be a builtin.
    pub(super) fn is_bare(self) -> bool {
        self.directory.is_none()
    }

    /// Whether it is found where programs are installed.
    pub(super) fn is_trusted_place(self) -> bool {
        self.directory
            .is_none_or(|directory| TRUSTED_PLACES.contains(directory))
    }
}

/// Names for quick lookup.
pub(super) type Names = LazyLock<HashSet<&'static str>>;

pub(super) fn names(list: &'static str) -> HashSet<&'static str> {
    list.split_whitespace().collect()
}

/// Whether a short list of words has this one.
pub(super) fn listed(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|listed| listed == word)
}

pub(super) fn is_keyword(text: &str) -> bool {
    KEYWORDS.contains(text)
}

pub(super) fn is_shell(name: &str) -> bool {
    SHELLS.contains(name)
}

/// Whether a program never runs its operands, as far as its options are no hazards.
pub(super) fn is_quiet(name: &str) -> bool {
    QUIET.contains(name)
}

/// Whether a program runs its operands with more of them, which come from elsewhere.
pub(super) fn feeds_operands(name: &str) -> bool {
    matches!(name, "xargs" | "parallel" | "fd" | "fdfind")
}

/// Whether a function of this name would change what is known of it.
pub(super) fn is_known(name: &str) -> bool {
    is_keyword(name)
        || is_shell(name)
        || is_quiet(name)
        || BUILTINS.contains(name)
        || wrapper_table::is_wrapper(name)
        || hazards::has_hazards(name)
        || find_interpreter(name).is_some()
        || value_printers::is_known(name)
        || name.contains('/')
}

/// Whether an interpreter gets no code in its arguments, and so runs its input.
pub(super) fn reads_code_from_input(args: &[Argument]) -> bool {
    let Some((program, args)) = args.split_first() else {
        return false;
    };
    let name = Program::new(&program.text).name;
    let Some(interpreter) = find_interpreter(name) else {
        return false;
    };
    if let [only] = args
        && matches!(
            only.text.as_str(),
            "--version" | "-V" | "-v" | "-h" | "--help"
        )
    {
        return false;
    }
    let mut operands = 0;
    for arg in args {
        let Some(letters) = arg.text.strip_prefix('-') else {
            operands += 1;
            match interpreter.operand {
                Operand::Code => return is_device(&arg.text),
                Operand::CodeBehindFile if operands == 2 => return false,
                Operand::CodeBehindFile | Operand::Other => continue,
            }
        };
        let option = arg.text.split('=').next().unwrap_or_default();
        if interpreter
            .code
            .split_whitespace()
            .any(|code| is_option(option, code))
        {
            return false;
        }
        let is_flag = !letters.is_empty() && letters.chars().all(|c| interpreter.flags.contains(c));
        if !is_flag && interpreter.operand == Operand::Code {
            // It may take the next word as its value, or stand for the input itself (`-`).
            return true;
        }
    }
    true
}

fn find_interpreter(name: &str) -> Option<&'static Interpreter> {
    INTERPRETERS
        .iter()
        .find(|interpreter| listed(interpreter.names, name))
}

/// Files that are the input under another name.
pub(super) fn is_device(path: &str) -> bool {
    path.starts_with("/dev/") || path.starts_with("/proc/")
}

/// Whether a word is this option, or a cluster of one-letter options that ends with it.
fn is_option(word: &str, option: &str) -> bool {
    word == option || (option.len() == 2 && !word.starts_with("--") && word.ends_with(&option[1..]))
}
