//! Switches and numbers in variables, and flags that beat them.

use rstest::rstest;

use crate::support::run;
use crate::{answers, bench, init, plain};

#[rstest]
#[case::gate("CALIBAN_NO_PERMISSIONS", &["--permission-mode", "plan"], "plan")]
#[case::questions("CALIBAN_AUTO_ALLOW", &["--permission-mode", "default"], "default")]
#[case::mode("CALIBAN_NO_PERMISSIONS", &["--permission-mode", "acceptEdits"], "acceptEdits")]
#[case::alone("CALIBAN_NO_PERMISSIONS", &[], "disabled")]
fn an_explicit_mode_beats_the_variables(
    #[case] variable: &str,
    #[case] flags: &[&str],
    #[case] mode: &str,
) {
    let bench = bench(crate::runs_command("touch ran"));
    let init = init(plain(&bench).args(flags).env(variable, "1"));
    assert_eq!(init["permission_mode"], mode, "{init}");
    let ran = bench.workspace.path().join("ran").exists();
    assert_eq!(ran, flags.is_empty());
}

#[rstest]
#[case("0", "default")]
#[case("false", "default")]
#[case("No", "default")]
#[case("off", "default")]
#[case("", "default")]
#[case("1", "disabled")]
#[case("yes", "disabled")]
fn a_switch_is_off_where_its_word_says_so(#[case] value: &str, #[case] mode: &str) {
    let bench = bench(answers());
    let init = init(plain(&bench).env("CALIBAN_NO_PERMISSIONS", value));
    assert_eq!(init["permission_mode"], mode);
}

#[rstest]
#[case("CALIBAN_MCP_TIMEOUT")]
#[case("MCP_TIMEOUT")]
#[case("CALIBAN_MCP_TOOL_TIMEOUT")]
#[case("MCP_TOOL_TIMEOUT")]
#[case("CALIBAN_MAX_MCP_OUTPUT_TOKENS")]
#[case("CALIBAN_CLEANUP_PERIOD_DAYS")]
#[case("CALIBAN_MEMORY_BUDGET_TOKENS")]
#[case("CALIBAN_PARALLEL_TOOL_LIMIT")]
#[case("CALIBAN_MAX_ATTACH_BYTES")]
#[case("CALIBAN_ATTACH_BUDGET_BYTES")]
#[case("CALIBAN_API_KEY_HELPER_TTL_MS")]
#[case("CALIBAN_MAX_RETRIES")]
#[case("CALIBAN_IDLE_TIMEOUT_MS")]
#[case("CALIBAN_OLLAMA_NUM_CTX")]
#[case("CALIBAN_MCP_OAUTH_PORT")]
#[case("CALIBAN_OPENAI_API")]
#[case("CALIBAN_WEBSEARCH_PROVIDER")]
#[case("CALIBAN_DEFAULT_PERMISSION_MODE")]
#[case("CALIBAN_PROVIDER")]
#[case("CALIBAN_DIALECT")]
#[case("CALIBAN_TUI")]
#[case("CALIBAN_GRAPHICS")]
#[case("CALIBAN_AWS_AUTH_REFRESH")]
#[case("CALIBAN_GCP_AUTH_REFRESH")]
fn what_a_variable_cannot_mean_is_an_error(#[case] variable: &str) {
    let bench = bench(answers());
    let ran = run(plain(&bench).args(["-p", "hi"]).env(variable, "abc"));
    assert_eq!(ran.code, Some(78), "{variable}: {}", ran.stderr);
    assert!(ran.stderr.contains(variable), "{}", ran.stderr);
}
