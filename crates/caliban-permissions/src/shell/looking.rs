//! Lines that provably change nothing in the file system: every command in them is one that only
//! looks, by whatever options it is called.

use super::{Command, RedirectionKind, Wrapping, strict};

/// Programs and built-ins that write no file, run no other program and read no code, with any
/// options.
const ONLY_LOOK: &[&str] = &[
    "[",
    "basename",
    "cat",
    "cd",
    "cksum",
    "cmp",
    "comm",
    "cut",
    "date",
    "df",
    "dirname",
    "du",
    "echo",
    "egrep",
    "expr",
    "false",
    "fgrep",
    "fold",
    "grep",
    "head",
    "hexdump",
    "hostname",
    "id",
    "ls",
    "md5sum",
    "nl",
    "nproc",
    "od",
    "paste",
    "printenv",
    "printf",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "seq",
    "sha1sum",
    "sha256sum",
    "sleep",
    "stat",
    "strings",
    "tac",
    "tail",
    "test",
    "tr",
    "true",
    "tty",
    "type",
    "uname",
    "wc",
    "which",
    "whoami",
];

/// Whether a line provably changes nothing. What is not fully understood may change anything.
pub fn only_looks(line: &str) -> bool {
    strict(line).is_ok_and(|script| script.commands.iter().flat_map(Command::all).all(looks))
}

fn looks(command: &Command) -> bool {
    let is_known = match command.words.first() {
        Some(program) => program.is_literal() && ONLY_LOOK.contains(&program.text.as_str()),
        // It opens files, or sets variables that decide what others do.
        None => false,
    };
    let opens = command.redirections.iter();
    is_known
        && command.wrapping == Wrapping::Plain
        && command.assignments.is_empty()
        && command.hazards.is_empty()
        && command.writes.is_empty()
        && opens.clone().all(|it| it.kind == RedirectionKind::Read)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("")]
    #[case("ls -la src")]
    #[case("cat a.txt | grep -n x | wc -l")]
    #[case("cd sub && pwd; test -f a || echo none")]
    #[case("head -5 *.rs 2>/dev/null")]
    #[case("cat < in.txt 2>&1")]
    fn these_only_look(#[case] line: &str) {
        assert!(only_looks(line), "{line}");
    }

    #[rstest]
    #[case("echo x > a.txt")]
    #[case("echo x >> a.txt")]
    #[case("> a.txt")]
    #[case("cat a | tee b")]
    #[case("ls $(touch x)")]
    #[case("ls; rm x")]
    #[case("find . -delete")]
    #[case("sed -i s/a/b/ x")]
    #[case("./ls")]
    #[case("/tmp/cat x")]
    #[case("PATH=. ls")]
    #[case("sort -o a b")]
    #[case("git status")]
    #[case("xargs cat")]
    #[case("env ls")]
    #[case("eval ls")]
    #[case("f() { rm x; }; f")]
    #[case("$X")]
    #[case("cat <(touch x)")]
    #[case("ls |")]
    fn these_may_do_more(#[case] line: &str) {
        assert!(!only_looks(line), "{line}");
    }
}
