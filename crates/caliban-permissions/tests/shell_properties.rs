//! Properties of the two readers on anything: chains keep their commands, denials see what is
//! proven, and no text makes them panic or take long.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::time::{Duration, Instant};

use caliban_permissions::shell::{MAX_LENGTH, lenient, strict};
use proptest::prelude::*;
use proptest::sample::select;
use rstest::rstest;

const TOKENS: &[&str] = &[
    "ls",
    "rm x",
    "git log",
    "echo",
    "sudo",
    "timeout 5",
    "env A=1",
    "bash -c",
    "sh -c",
    "eval",
    "xargs",
    "find . -exec",
    "{} \\;",
    "trap",
    "ssh host",
    "'a b'",
    "\"a $x\"",
    "'ls; rm x'",
    "\"rm x\"",
    "$(ls)",
    "`ls`",
    "<(ls)",
    "$x",
    "${x:-a}",
    "*.rs",
    "{a,b}",
    ">out",
    "2>&1",
    "<in",
    "A=1",
    "x=$(ls)",
    "&&",
    "||",
    ";",
    "|",
    "&",
    "\n",
    "(",
    ")",
    "{ ",
    "; }",
    "if",
    "then",
    "fi",
    "for x in a; do",
    "; done",
    "while",
    "case x in x)",
    ";; esac",
    "[[ -f x ]]",
    "!",
    "time",
    "# a",
    "<<E\nls\nE\n",
    "\\",
    "'",
    "\"",
    "$'rm'",
    "f() {",
    "-exec",
    "--",
    "-c",
    "$((1+1))",
];

fn line() -> impl Strategy<Value = String> {
    proptest::collection::vec(select(TOKENS), 1..12).prop_map(|tokens| tokens.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_chain_keeps_the_commands_of_its_parts(line in line()) {
        support::assert_chaining_keeps_commands(&line);
    }

    #[test]
    fn a_denial_sees_what_is_proven(line in line()) {
        support::assert_denial_sees_what_is_proven(&line);
    }

    #[test]
    fn any_text_is_read_without_panic(text in ".{0,200}") {
        let _ = strict(&text);
        let _ = lenient(&text);
    }

    #[test]
    fn any_shell_like_text_is_read_without_panic(text in "[a-c1 \n\t'\"\\\\$(){}<>|&;`#=!*?~:@/,.\\[\\]é-]{0,60}") {
        support::assert_denial_sees_what_is_proven(&text);
        support::assert_chaining_keeps_commands(&text);
    }
}

/// Long enough for a slow machine without optimisation; what is not bounded takes hours.
const LONG: Duration = Duration::from_secs(5);

#[rstest]
fn no_text_takes_long(
    #[values(
        "(",
        ")",
        "((",
        "$(",
        "$((",
        "${a:-",
        "\"${a:-",
        "\"$(",
        "`",
        "\\`",
        "'",
        "\"",
        "{ ",
        "{",
        "{a,",
        "{a,b}",
        "<(",
        "<<E\n",
        "if ",
        "if a; then ",
        "case x in x) ",
        "while a; do ",
        "f() { ",
        "function f ",
        "[[ ( ",
        "nice ",
        "sudo ",
        "eval ",
        "bash -c '",
        "a=(",
        "a|",
        "a;",
        "a&",
        "a ",
        "x=a $x ",
        "$x",
        "$IFS",
        "\\\n",
        "#\n",
        "!",
        "! ",
        "time ",
        ">a ",
        "a=b ",
        "é",
        "sed -e ",
        "mystery 'a b' ",
        "git -c x=!y ",
        "[",
        "*",
        "~",
        "$'\\x41'",
        "echo {1..9} "
    )]
    part: &str,
) {
    for length in [1000, MAX_LENGTH] {
        let line = part.repeat(length / part.len());
        let start = Instant::now();
        let _ = strict(&line);
        let _ = lenient(&line);
        assert!(
            start.elapsed() < LONG,
            "{length} bytes of {part:?} took {:?}",
            start.elapsed()
        );
    }
}

#[test]
fn nesting_up_to_the_limit_fits_a_small_stack() {
    let lines = [
        format!("{}ls{}", "( ".repeat(15), " )".repeat(15)),
        format!("{}ls{}", "echo $(".repeat(15), ")".repeat(15)),
        format!("{}ls{}", "if a; then ".repeat(15), "; fi".repeat(15)),
        format!("echo {}a{}", "\"${a:-".repeat(14), "}\"".repeat(14)),
        format!("{}ls", "nice ".repeat(14)),
    ];
    std::thread::Builder::new()
        .stack_size(512 * 1024)
        .spawn(move || {
            for line in lines {
                strict(&line).unwrap();
                let _ = lenient(&line);
                let _ = lenient(&line.repeat(50));
            }
        })
        .unwrap()
        .join()
        .unwrap();
}

/// Prints how long it takes to read everyday lines; run with `--ignored --nocapture`.
#[test]
#[ignore = "prints a measurement"]
fn measure() {
    let lines = [
        "cargo test --workspace 2>&1 | tail -20",
        "cd src && git diff --stat HEAD~1 -- a b c",
        "for f in *.rs; do wc -l \"$f\"; done",
        "git commit -m \"$(cat <<'EOF'\nfix: a thing\n\nlong text\nEOF\n)\"",
        "timeout 60 bash -c 'ls; grep -rn foo .'",
    ];
    for (name, read) in [
        ("strict", (|line: &str| drop(strict(line))) as fn(&str)),
        ("lenient", |line| drop(lenient(line))),
    ] {
        let start = Instant::now();
        for _ in 0..200 {
            for line in lines {
                read(line);
            }
        }
        println!("{name}: {:?} per line", start.elapsed() / 1000);
    }
}
