//! What the program says of itself: usage, examples, and help that is about the command at hand.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use rstest::rstest;
use support::{Ran, bare, run};

fn caliban(args: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    run(bare(folder.path(), folder.path()).args(args))
}

#[rstest]
fn a_prompt_or_a_command_and_an_example_for_each_group(#[values("-h", "--help")] flag: &str) {
    let help = caliban(&[flag]).stdout;
    let usage = "Usage: caliban [OPTIONS] [PROMPT]\n       caliban [OPTIONS] <COMMAND>\n";
    assert!(help.contains(usage), "{help}");
    let (_, examples) = help.split_once("Examples:\n").unwrap();
    for flag in [
        "-p -",
        "--output-format",
        "--max-turns",
        " -c",
        "--allow",
        "--workspace",
        "--model",
        "--system",
        "--mcp-config",
        "--settings",
        "--record",
    ] {
        assert!(examples.contains(flag), "{flag}");
    }
}

#[rstest]
#[case(&["perms", "list", "--help"], "--effective")]
#[case(&["help", "sessions", "prune"], "--days")]
#[case(&["mcp", "add", "-h"], "caliban mcp add files")]
#[case(&["doctor", "-h"], "--deep")]
#[case(&["sessions"], "export")]
#[case(&["fleet", "--help"], "--creds")]
#[case(&["fleet", "list", "--help"], "--server")]
fn the_help_of_a_command_is_about_that_command(#[case] args: &[&str], #[case] own: &str) {
    let ran = caliban(args);
    let help = format!("{}{}", ran.stdout, ran.stderr);
    assert!(help.contains(own), "{help}");
    for everywhere in [
        "--allow",
        "--setting-sources",
        "--mcp-oauth-port",
        "--trust-workspace",
    ] {
        assert!(!help.contains(everywhere), "{everywhere} in {help}");
    }
    assert!(help.contains("`caliban --help` has"), "{help}");
}

#[test]
fn what_is_not_repeated_still_counts() {
    let call = ["Bash", "{\"command\": \"ls\"}"];
    let allowed = caliban(&["perms", "test", "--allow", "Bash", call[0], call[1]]);
    assert_eq!(allowed.code, Some(0), "{}", allowed.stderr);
}

#[rstest]
#[case(&["hello", "there"], "`there` is one word too many; write a prompt of several words in quotes")]
#[case(&["-p", "fix", "the", "bug"], "`bug` is one word too many")]
#[case(&["perms", "lst"], "unrecognized subcommand 'lst'")]
fn a_prompt_without_quotes_is_told_what_it_lacks(#[case] args: &[&str], #[case] told: &str) {
    let ran = caliban(args);
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
}

#[rstest]
#[case("--model")]
#[case("--fallback-model")]
fn a_model_has_a_name(#[case] flag: &str) {
    let ran = caliban(&["-p", "hi", flag, ""]);
    assert_eq!(ran.code, Some(64), "{}", ran.stderr);
    assert!(ran.stderr.contains(flag), "{}", ran.stderr);
}
