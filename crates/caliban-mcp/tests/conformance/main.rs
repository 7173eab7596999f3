//! The client scenarios of the MCP conformance suite, with `client.rs` as the
//! client.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test may panic and say why it did nothing"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use rstest::rstest;

/// What the suite says about a scenario, and whether it is content; nothing without the suite.
fn conform(scenario: &str) -> Option<(bool, String)> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let (Some(node), Some(packages)) = (
        variable("CALIBAN_TEST_NODE"),
        variable("CALIBAN_TEST_NODE_PACKAGES"),
    ) else {
        eprintln!("skipped: CALIBAN_TEST_NODE is not set; run `cargo xtask test`");
        return None;
    };
    let folder = tempfile::tempdir().unwrap();
    let suite: &Path = &packages.join("node_modules/.bin/conformance");
    let output = Command::new(node)
        .arg(suite)
        .args(["client", "--scenario", scenario, "--command"])
        .arg(env!("CARGO_BIN_EXE_mcp-conformance-client"))
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    Some((output.status.success(), said.into_owned()))
}

#[rstest]
fn a_session_conforms(
    #[values(
        "initialize",
        "tools_call",
        "elicitation-sep1034-client-defaults",
        "sse-retry"
    )]
    scenario: &str,
) {
    if let Some((passed, said)) = conform(scenario) {
        assert!(passed, "{said}");
    }
}

#[rstest]
fn scenarios_pass(
    #[values(
        "metadata-default",
        "metadata-var1",
        "metadata-var2",
        "metadata-var3",
        "scope-from-www-authenticate",
        "scope-from-scopes-supported",
        "scope-omitted-when-undefined",
        "scope-step-up",
        "scope-retry-limit",
        "token-endpoint-auth-basic",
        "token-endpoint-auth-post",
        "token-endpoint-auth-none",
        "pre-registration",
        "2025-03-26-oauth-metadata-backcompat",
        "2025-03-26-oauth-endpoint-fallback",
        "resource-mismatch",
        "offline-access-scope",
        "offline-access-not-supported",
        "authorization-server-migration",
        "iss-supported",
        "iss-not-advertised",
        "iss-supported-missing",
        "iss-wrong-issuer",
        "iss-unexpected",
        "iss-normalized",
        "metadata-issuer-mismatch"
    )]
    scenario: &str,
) {
    if let Some((passed, said)) = conform(&format!("auth/{scenario}")) {
        assert!(passed, "{said}");
    }
}

/// What is known not to pass, and why. One that passes belongs above.
#[rstest]
#[case(
    "basic-cimd",
    "a client id that is an address needs a document on the web, and there is none"
)]
#[case("client-credentials-basic", "there is always a person who logs in")]
#[case("client-credentials-jwt", "there is always a person who logs in")]
#[case("dpop", "tokens are bearer tokens")]
#[case("dpop-nonce", "tokens are bearer tokens")]
#[case(
    "enterprise-managed-authorization",
    "there is no identity provider to ask"
)]
#[case("wif-jwt-bearer", "there is no workload identity")]
fn scenarios_fail_for_a_reason(#[case] scenario: &str, #[case] reason: &str) {
    if let Some((passed, said)) = conform(&format!("auth/{scenario}")) {
        assert!(said.contains("OVERALL"), "the suite did not run: {said}");
        assert!(!passed, "it passes, though {reason}: {said}");
    }
}
