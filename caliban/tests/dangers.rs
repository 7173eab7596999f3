//! What lets calls run that nobody consents to is said: to the person, and in the log.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod support;

use caliban_testkit::{Reply, Script};
use rstest::rstest;
use support::{Bench, Wire, frame, run};

const BYPASS: &[&str] = &[
    "--permission-mode",
    "bypassPermissions",
    "--allow-dangerously-skip-permissions",
];

#[rstest]
#[case::auto_allow(&["--auto-allow"], &[], Some("--auto-allow"))]
#[case::auto_allow_variable(&[], &[("CALIBAN_AUTO_ALLOW", "1")], Some("--auto-allow"))]
#[case::no_permissions(&["--no-permissions"], &[], Some("switched off"))]
#[case::no_permissions_variable(&[], &[("CALIBAN_NO_PERMISSIONS", "1")], Some("switched off"))]
#[case::bypass(BYPASS, &[], Some("bypassPermissions"))]
#[case::rules(&["--allow", "Bash", "--permission-mode", "acceptEdits"], &[], None)]
fn danger_is_told_once(
    #[case] flags: &[&str],
    #[case] variables: &[(&str, &str)],
    #[case] told: Option<&str>,
    #[values("text", "json", "stream-json")] format: &str,
) {
    let bench = Bench::new(Wire::Anthropic, Script::new([Reply::text("done")]));
    let mut command = bench.command();
    command.envs(variables.iter().copied());
    let ran = run(command
        .args(["-p", "go", "--output-format", format])
        .args(flags));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let lines: Vec<&str> = ran
        .stderr
        .lines()
        .filter(|line| line.contains("dangerous"))
        .collect();
    assert_eq!(lines.len(), usize::from(told.is_some()), "{}", ran.stderr);
    assert!(
        told.is_none_or(|told| lines[0].contains(told)),
        "{}",
        ran.stderr
    );
    if format == "stream-json" {
        let init = frame(ran.stdout.lines().next().unwrap());
        let warnings = init["warnings"].to_string();
        assert_eq!(
            warnings.matches("dangerous").count(),
            lines.len(),
            "{warnings}"
        );
    }
}
