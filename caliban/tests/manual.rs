//! Completions and manual pages, used by the programs they are for.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use std::process::{Command, Stdio};

use rstest::rstest;
use support::{Ran, bare, run, run_with_input};

fn caliban(args: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    run(bare(folder.path(), folder.path()).args(args))
}

fn piped(program: &str) -> Command {
    let mut command = Command::new(program);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What bash offers at the end of a line.
fn completed(words: &[&str]) -> Vec<String> {
    let script = caliban(&["completions", "bash"]).stdout;
    let last = words.len() - 1;
    let program = format!(
        "{script}\nCOMP_WORDS=({})\nCOMP_CWORD={last}\n_caliban caliban '{}' '{}'\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        words.join(" "),
        words[last],
        words[last - 1],
    );
    let ran = run_with_input(
        piped("bash").args(["--noprofile", "--norc"]),
        program.as_bytes(),
    );
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    ran.stdout.lines().map(str::to_owned).collect()
}

#[test]
fn bash_reads_the_script_and_completes() {
    let script = caliban(&["completions", "bash"]);
    assert_eq!((script.code, script.stderr.as_str()), (Some(0), ""));
    let checked = run_with_input(piped("bash").arg("-n"), script.stdout.as_bytes());
    assert_eq!((checked.code, checked.stderr.as_str()), (Some(0), ""));
    assert_eq!(completed(&["caliban", "--output-f"]), ["--output-format"]);
    assert_eq!(completed(&["caliban", "doc"]), ["doctor"]);
    assert_eq!(
        completed(&["caliban", "doctor", "--de"]),
        ["--deep", "--deny"]
    );
    assert_eq!(
        completed(&["caliban", "--output-format", "st"]),
        ["stream-json"]
    );
}

#[rstest]
#[case("zsh", "#compdef caliban")]
#[case("fish", "complete -c caliban")]
#[case("powershell", "Register-ArgumentCompleter")]
#[case("elvish", "edit:completion:arg-completer[caliban]")]
fn every_shell_has_its_script(#[case] shell: &str, #[case] text: &str) {
    let ran = caliban(&["completions", shell]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains(text) && ran.stdout.contains("output-format"));
}

#[test]
fn an_unknown_shell_is_wrong_use() {
    assert_eq!(caliban(&["completions", "tcsh"]).code, Some(64));
}

#[test]
fn the_manual_page_can_be_read() {
    let page = caliban(&["man"]);
    assert_eq!((page.code, page.stderr.as_str()), (Some(0), ""));
    assert!(page.stdout.contains(".TH caliban 1"), "{}", page.stdout);
    assert!(page.stdout.contains("\\-\\-output\\-format"));
    if !["/usr/bin/man", "/usr/bin/groff"]
        .iter()
        .all(|program| std::path::Path::new(program).is_file())
    {
        return;
    }
    let shown = run_with_input(
        piped("man")
            .args(["--warnings", "-l", "-"])
            .env("MANPAGER", "cat")
            .env("MANWIDTH", "80")
            .env("LC_ALL", "C.UTF-8"),
        page.stdout.as_bytes(),
    );
    assert_eq!((shown.code, shown.stderr.as_str()), (Some(0), ""));
    for text in [
        "SYNOPSIS",
        "--output-format",
        "SUBCOMMANDS",
        "caliban-doctor(1)",
    ] {
        assert!(shown.stdout.contains(text), "{text} in {}", shown.stdout);
    }
}

#[test]
fn a_directory_gets_a_page_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("share/man1");
    let mut command = bare(folder.path(), folder.path());
    let ran = run(command.args(["man", "--dir", "share/man1"]));
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), ""));
    for page in ["caliban.1", "caliban-doctor.1", "caliban-perms-add.1"] {
        assert!(pages.join(page).is_file(), "{page}");
    }
    std::fs::write(folder.path().join("file"), "").unwrap();
    let mut command = bare(folder.path(), folder.path());
    let ran = run(command.args(["man", "--dir", "file"]));
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("`file`"), "{}", ran.stderr);
}
