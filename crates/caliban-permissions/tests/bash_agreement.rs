//! The strict reader against the shell itself: on random lines, whatever bash starts was proven,
//! word by word, or the line was refused.
//!
//! Nothing of a line can do harm: no program is found, only made-up names are called, and a
//! handler writes down what would have been started. `PROPTEST_CASES` runs more lines.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::cell::Cell;
use std::fs;
use std::path::Path;
use std::process::{Command as Process, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use caliban_permissions::shell::{Script, lenient, strict};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tempfile::TempDir;

/// How many of the random lines may be refused though bash accepts them, in percent.
const MOST_REFUSED: usize = 35;

const HANDLER: &str =
    "() { builtin printf '%s\\0' \"$#\" \"$@\" >> \"$RECORD\"; return \"$STATUS\"; }";

fn bash(directory: &Path) -> Process {
    let mut process = Process::new("/bin/bash");
    process
        .args(["--noprofile", "--norc"])
        .env_clear()
        .env("PATH", "/nonexistent")
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    process
}

fn is_valid(directory: &Path, line: &str) -> bool {
    bash(directory)
        .args(["-n", "-c", line])
        .status()
        .unwrap()
        .success()
}

/// What bash starts when every program ends with this status.
fn started(directory: &Path, line: &str, status: &str) -> Vec<Vec<String>> {
    // What an earlier line left in the background writes to a file of its own.
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let record = directory.join(format!("record-{run}"));
    fs::write(&record, "").unwrap();
    fs::write(directory.join("f"), "").unwrap();
    bash(directory)
        .args(["-c", line])
        .env("RECORD", &record)
        .env("STATUS", status)
        .env("BASH_FUNC_command_not_found_handle%%", HANDLER)
        .status()
        .unwrap();
    let text = fs::read(&record).unwrap();
    fs::remove_file(&record).unwrap();
    let text = String::from_utf8_lossy(&text).into_owned();
    let mut fields = text.split_terminator('\0');
    let mut commands = Vec::new();
    while let Some(count) = fields.next() {
        // A command in the background may still be writing.
        let Ok(count) = count.parse::<usize>() else {
            break;
        };
        commands.push(fields.by_ref().take(count).map(str::to_owned).collect());
    }
    commands
}

fn is_proven(script: &Script, arguments: &[String]) -> bool {
    support::all(script)
        .iter()
        .any(|command| support::become_arguments(&command.words, arguments))
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Proven,
    Refused,
    Invalid,
}

fn compare(directory: &Path, line: &str) -> Outcome {
    let proven = strict(line);
    if !is_valid(directory, line) {
        assert!(proven.is_err(), "bash rejects {line:?}: {proven:?}");
        return Outcome::Invalid;
    }
    let Ok(script) = proven else {
        // Even so a denial must find what is started.
        return Outcome::Refused;
    };
    for status in ["0", "1"] {
        for arguments in started(directory, line, status) {
            assert!(
                is_proven(&script, &arguments),
                "bash starts {arguments:?} for {line:?}, which is not in {script:#?}"
            );
            let program = arguments.first().unwrap();
            let found = lenient(line).candidates;
            assert!(
                found
                    .iter()
                    .any(|candidate| candidate.words.first() == Some(program)),
                "bash starts {arguments:?} for {line:?}, which is not in {found:#?}"
            );
        }
    }
    Outcome::Proven
}

fn program() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "c[1-4]",
        1 => Just("c\"1\"".to_owned()),
        1 => Just("\\c2".to_owned()),
        1 => Just("'c3'".to_owned()),
        1 => Just("$'c\\x34'".to_owned()),
        1 => Just("$v".to_owned()),
    ]
}

fn plain() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z0-9_.:=@%+,-]{1,4}",
        "'[a-z ;|&$()`\"\\\\#*{}<>]{0,6}'",
        "\"[a-z ;|&()'#*{}<>]{0,6}\"",
        "\\\\[ -~]",
        "\\$'[a-z ;|\"]{0,3}(\\\\n|\\\\t|\\\\x41|\\\\'|\\\\101)?'",
        Just("\"a\\\"b\"".to_owned()),
        Just("\"a\\$b\\\\c\\d\"".to_owned()),
        Just("*".to_owned()),
        Just("[ab]?".to_owned()),
        Just("{a,b}".to_owned()),
        Just("x{a,'b c',}y".to_owned()),
        Just("{1..3}".to_owned()),
        Just("{}".to_owned()),
        Just("{a".to_owned()),
        Just("b}".to_owned()),
        Just("~".to_owned()),
        Just("a#b".to_owned()),
        Just("$v".to_owned()),
        Just("\"$v\"".to_owned()),
        Just("${v}x".to_owned()),
        Just("\"${v:-a b}\"".to_owned()),
        Just("${v:-'a}b'}".to_owned()),
        Just("${v#*\"}\"}".to_owned()),
        Just("${#v}".to_owned()),
        Just("$((1 + 2))".to_owned()),
        Just("$?".to_owned()),
        Just("$".to_owned()),
        Just("\"$\"".to_owned()),
        Just("!".to_owned()),
        Just("if".to_owned()),
        Just("}".to_owned()),
        Just("]]".to_owned()),
    ]
}

/// A word, made of pieces, some of which have commands inside.
fn word(script: impl Strategy<Value = String> + Clone + 'static) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        12 => plain().boxed(),
        1 => script.clone().prop_map(|script| format!("$({script})")).boxed(),
        1 => script.clone().prop_map(|script| format!("\"a $({script}) b\"")).boxed(),
        1 => script.clone().prop_map(|script| format!("\"$({script}\n)\"")).boxed(),
        1 => script
            .clone()
            .prop_filter("backquotes do not nest", |script| !script.contains(['`', '\\']))
            .prop_map(|script| format!("`{script}`"))
            .boxed(),
        1 => script.clone().prop_map(|script| format!("${{v:-$({script})}}")).boxed(),
        1 => script.prop_map(|script| format!("<({script})")).boxed(),
    ];
    proptest::collection::vec(piece, 1..3).prop_map(|pieces| pieces.concat())
}

fn redirection() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => Just(String::new()),
        1 => Just(" >f".to_owned()),
        1 => Just(" 2>&1".to_owned()),
        1 => Just(" <f 3>>f".to_owned()),
        1 => Just(" &>f".to_owned()),
        1 => Just(" <<<\"a $v\"".to_owned()),
        1 => Just(" >&2-".to_owned()),
    ]
}

fn simple(script: impl Strategy<Value = String> + Clone + 'static) -> BoxedStrategy<String> {
    let words = proptest::collection::vec(word(script.clone()), 0..4);
    let assignment = prop_oneof![
        5 => Just(String::new()).boxed(),
        1 => Just("v=1 ".to_owned()).boxed(),
        1 => Just("v=(1 'a b' $v) ".to_owned()).boxed(),
        1 => script.prop_map(|script| format!("v=$({script}) ")).boxed(),
    ];
    (assignment, program(), words, redirection(), redirection())
        .prop_map(|(assignment, program, words, before, after)| {
            format!(
                "{assignment}{}{program} {}{after}",
                before.trim_start().to_owned() + " ",
                words.join(" ")
            )
        })
        .boxed()
}

fn script() -> BoxedStrategy<String> {
    let leaf = simple(Just("c4 leaf".to_owned()));
    leaf.prop_recursive(4, 24, 3, |inner| {
        let inner = inner.boxed();
        let two = (inner.clone(), inner.clone());
        prop_oneof![
            6 => simple(inner.clone()),
            6 => (two.clone(), prop_oneof![
                Just(" && "), Just(" || "), Just("; "), Just(" | "), Just(" & "), Just("\n"),
                Just(" |& "), Just(";"), Just("&&\n"), Just(" # comment $(c1)\n"), Just(" \\\n && "),
            ])
                .prop_map(|((a, b), operator)| format!("{a}{operator}{b}")),
            1 => inner.clone().prop_map(|a| format!("({a})")),
            1 => inner.clone().prop_map(|a| format!("( {a}\n) >f")),
            1 => inner.clone().prop_map(|a| format!("{{ {a}; }}")),
            1 => inner.clone().prop_map(|a| format!("! {a}")),
            1 => inner.clone().prop_map(|a| format!("time {a}")),
            1 => two.clone().prop_map(|(a, b)| format!("if {a}; then {b}; fi")),
            1 => two.clone().prop_map(|(a, b)| format!("if {a}\nthen {b}\nelse c1 else\nfi")),
            1 => two.clone().prop_map(|(a, b)| format!("while {a}; do {b}\nbreak\ndone")),
            1 => inner.clone().prop_map(|a| format!("for v in a \"b c\" *; do {a}\ndone")),
            1 => two.clone().prop_map(|(a, b)| format!("case $v in a|'b)') {a};; (*) {b}\nesac")),
            1 => inner.clone().prop_map(|a| format!("[[ -n $v && a == b* ]] && {a}")),
            1 => inner.clone().prop_map(|a| format!("[[ a =~ (a|b) || ! -f x ]] || {a}")),
            1 => inner.clone().prop_map(|a| format!("g1() {{ {a}; }}\ng1 x")),
            1 => inner.clone().prop_map(|a| format!("c1 <<EOF\na $({a}) `c2` \"'\nEOF\n")),
            1 => inner.clone().prop_map(|a| format!("c1 <<'EOF' | c2\n$({a}) ' \" `\nEOF\n")),
            1 => inner.clone().prop_map(|a| format!("c1 <<-EOF\n\tx\n\tEOF\n{a}")),
            1 => inner.clone().prop_map(|a| format!("command c1 a; {a}")),
            1 => inner
                .clone()
                .prop_filter("quotes do not nest", |a| !a.contains('\''))
                .prop_map(|a| format!("eval '{a}'")),
            1 => inner.prop_map(|a| format!("((1 + 2)); {a}")),
        ]
    })
    .boxed()
}

fn cases(default: u32) -> Config {
    let mut config = Config::default();
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = default;
    }
    config.failure_persistence = None;
    config
}

#[test]
fn random_scripts_start_only_what_was_proven() {
    let directory = TempDir::new().unwrap();
    let (valid, refused) = (Cell::new(0_usize), Cell::new(0_usize));
    let mut runner = TestRunner::new(cases(200));
    runner
        .run(&script(), |line| {
            match compare(directory.path(), &line) {
                Outcome::Proven => valid.set(valid.get() + 1),
                Outcome::Refused => {
                    valid.set(valid.get() + 1);
                    refused.set(refused.get() + 1);
                }
                Outcome::Invalid => {}
            }
            Ok(())
        })
        .unwrap();
    let (valid, refused) = (valid.get(), refused.get());
    let share = refused * 100 / valid.max(1);
    println!("{refused} of {valid} valid lines were refused ({share} %)");
    assert!(share <= MOST_REFUSED, "{refused} of {valid} were refused");
}

/// Tokens in any order: mostly invalid, and so at the edges of the grammar.
#[test]
fn random_tokens_start_only_what_was_proven() {
    const TOKENS: &[&str] = &[
        "c1", "c2", "c3", " ", " ", " ", "\n", ";", ";;", "&", "&&", "|", "||", "(", ")", "{ ",
        " }", "'", "\"", "\\", "\\\n", "$", "$(", "${v", "}", "`", "#", "<", ">", "<<E\n", "\nE\n",
        "E", "<<<", "2>&1", "&>", "v=", "=", "$'", "{a,b}", "[[ ", " ]]", "if ", "then ", "fi",
        "case ", " in ", "esac", "!", "$v", "~", "*", "a", "1", "$((", "))", "((", "<(", "-", ":-",
    ];
    let directory = TempDir::new().unwrap();
    let tokens = proptest::collection::vec(proptest::sample::select(TOKENS), 1..14);
    let mut runner = TestRunner::new(cases(400));
    runner
        .run(&tokens, |tokens| {
            let line = format!("c1 {}", tokens.concat());
            // A function that calls itself would not end.
            prop_assume!(!line.replace([' ', '\n', '\\'], "").contains("()"));
            compare(directory.path(), &line);
            Ok(())
        })
        .unwrap();
}
