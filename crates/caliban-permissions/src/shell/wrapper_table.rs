//! The wrappers whose options are known.

use super::Wrapping;
use super::reader::Dialect;

/// How a wrapper is called: `program [options] [operands] [NAME=value…] command…`.
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    pub(super) wrapping: Wrapping,
    /// Letters of options without a value, and of those with one.
    pub(super) flags: &'static str,
    pub(super) values: &'static str,
    pub(super) long_flags: &'static str,
    pub(super) long_values: &'static str,
    /// How many operands come before the command.
    pub(super) operands: usize,
    pub(super) runs: Runs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Runs {
    /// The words themselves.
    Words,
    /// The words after assignments.
    WordsAfterAssignments,
    /// The words joined by blanks, read by a shell.
    Text(Dialect),
    /// The words and more, from the input.
    WordsAndInput,
}

const PLAIN: Wrapper = Wrapper {
    name: "",
    wrapping: Wrapping::Transparent,
    flags: "",
    values: "",
    long_flags: "",
    long_values: "",
    operands: 0,
    runs: Runs::Words,
};

/// An option that is not listed makes the command unreadable.
pub(super) const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        name: "builtin",
        ..PLAIN
    },
    Wrapper {
        name: "command",
        flags: "p",
        ..PLAIN
    },
    Wrapper {
        name: "caffeinate",
        flags: "dimsu",
        values: "tw",
        ..PLAIN
    },
    Wrapper {
        name: "chrt",
        flags: "bfior",
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        name: "ionice",
        flags: "t",
        values: "cn",
        long_flags: "ignore",
        long_values: "class classdata",
        ..PLAIN
    },
    Wrapper {
        name: "nice",
        flags: "0123456789",
        values: "n",
        long_values: "adjustment",
        ..PLAIN
    },
    Wrapper {
        name: "nohup",
        ..PLAIN
    },
    Wrapper {
        name: "setsid",
        flags: "cfw",
        long_flags: "ctty fork wait",
        ..PLAIN
    },
    Wrapper {
        name: "stdbuf",
        values: "ioe",
        long_values: "input output error",
        ..PLAIN
    },
    Wrapper {
        name: "taskset",
        flags: "ac",
        long_flags: "cpu-list all-tasks",
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        name: "time",
        flags: "apv",
        values: "fo",
        long_flags: "portability verbose append",
        long_values: "format output",
        ..PLAIN
    },
    Wrapper {
        name: "timeout",
        flags: "fpv",
        values: "ks",
        long_flags: "foreground preserve-status verbose",
        long_values: "kill-after signal",
        operands: 1,
        ..PLAIN
    },
    Wrapper {
        name: "env",
        flags: "i0v",
        values: "uC",
        long_flags: "ignore-environment null debug",
        long_values: "unset chdir",
        runs: Runs::WordsAfterAssignments,
        ..PLAIN
    },
    Wrapper {
        name: "exec",
        wrapping: Wrapping::Wrapper,
        flags: "cl",
        values: "a",
        ..PLAIN
    },
    Wrapper {
        name: "doas",
        wrapping: Wrapping::Wrapper,
        flags: "n",
        values: "u",
        ..PLAIN
    },
    Wrapper {
        name: "sudo",
        wrapping: Wrapping::Wrapper,
        flags: "AbEHknPSBN",
        values: "CgGhpRrTtuUD",
        long_flags: "preserve-env set-home non-interactive stdin background reset-timestamp",
        long_values: "user group host prompt chdir chroot command-timeout",
        runs: Runs::WordsAfterAssignments,
        ..PLAIN
    },
    Wrapper {
        name: "xargs",
        wrapping: Wrapping::Wrapper,
        flags: "0rtpxo",
        values: "adEILnPs",
        long_flags: "null no-run-if-empty verbose interactive exit open-tty",
        long_values: "arg-file delimiter max-args max-procs max-lines max-chars \
                         process-slot-var",
        runs: Runs::WordsAndInput,
        ..PLAIN
    },
    Wrapper {
        name: "watch",
        wrapping: Wrapping::Wrapper,
        flags: "bcdegtw",
        values: "n",
        long_flags: "beep color differences errexit chgexit no-title precise",
        long_values: "interval",
        runs: Runs::Text(Dialect::Posix),
        ..PLAIN
    },
    Wrapper {
        name: "ssh",
        wrapping: Wrapping::Wrapper,
        flags: "46AaCfGgKkMNnqsTtVvXxYy",
        values: "BbcDEeFIiJLlmOopQRSWw",
        operands: 1,
        runs: Runs::Text(Dialect::Posix),
        ..PLAIN
    },
    Wrapper {
        name: "flock",
        wrapping: Wrapping::Wrapper,
        flags: "nesxuoFv",
        values: "wE",
        long_flags: "nonblock shared exclusive close no-fork verbose",
        long_values: "wait timeout conflict-exit-code",
        operands: 1,
        ..PLAIN
    },
];

/// Programs with a subcommand that runs the rest: the words of it, and operands before the rest.
pub(super) const SUBCOMMANDS: &[(&str, &str, usize)] = &[
    ("bundle", "exec", 0),
    ("direnv", "exec", 1),
    ("pdm", "run", 0),
    ("pipenv", "run", 0),
    ("pnpm", "exec", 0),
    ("poetry", "run", 0),
    ("rustup", "run", 1),
    ("uv", "run", 0),
    ("yarn", "exec", 0),
];

pub(super) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.iter().any(|wrapper| wrapper.name == name)
        || SUBCOMMANDS.iter().any(|(known, ..)| *known == name)
        || matches!(name, "find" | "fd" | "fdfind")
}
