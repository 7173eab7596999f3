//! Both spellings of keys, and what is said when a start fails.

use rstest::rstest;
use serde_json::json;

use crate::support::run;
use crate::{answers, bench, plain, project, under_operator, user};

#[test]
fn keys_are_read_in_both_spellings() {
    let bench = bench(answers());
    user(
        &bench,
        "apiKeyHelper = 'h'\nfallbackModel = 'claude-opus-4-7'\n[permissions]\ndefaultMode = 'plan'\n\
         [mcpServers.x]\ncommand = 'c'\ndisabled = true\n",
    );
    let ran = run(plain(&bench).args(["config", "print"]));
    let shown: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(shown["warnings"], json!([]));
    let settings = &shown["settings"];
    assert_eq!(settings["fallback_model"], "claude-opus-4-7");
    assert_eq!(settings["permissions"]["default_mode"], "plan");
    assert_eq!(settings["mcp_servers"]["x"]["command"], "c");
    assert!(settings["api_key_helper"].is_string());
}

#[rstest]
#[case::key(
    "themee = 'dark'",
    Some(0),
    "unknown key `tui.themee`; did you mean `theme`?"
)]
#[case::word(
    "screen = 'fulscreen'",
    Some(78),
    "`tui.screen`: unknown variant `fulscreen`, expected one of `fullscreen`, `inline`, `plain`"
)]
#[case::kind("mouse = true", Some(78), "`tui.mouse`")]
#[case::files("[tui.files]\ncomand = 'fd'", Some(0), "did you mean `command`?")]
fn slips_in_the_terminals_settings_are_told(
    #[case] text: &str,
    #[case] code: Option<i32>,
    #[case] told: &str,
) {
    let bench = bench(answers());
    user(&bench, &format!("[tui]\n{text}\n"));
    let ran = bench.run(["-p", "hi"]);
    assert_eq!(ran.code, code, "{}", ran.stderr);
    assert!(ran.stderr.contains(told), "{}", ran.stderr);
}

#[test]
fn an_operators_lock_locks_in_either_spelling() {
    let bench = bench(answers());
    user(&bench, "model = 'claude-opus-4-7'");
    let policy = json!({"parentSettingsBehavior": "block", "model": "claude-haiku-4-5"});
    let ran = run(&mut under_operator(
        plain(&bench).args(["config", "print"]),
        &policy,
    ));
    let shown: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        shown["settings"]["model"], "claude-haiku-4-5",
        "{}",
        ran.stderr
    );
    let slip = json!({"parent_setting_behavior": "block"});
    let ran = run(&mut under_operator(plain(&bench).args(["-p", "hi"]), &slip));
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("did you mean `parent_settings_behavior`?"),
        "{}",
        ran.stderr
    );
}

#[rstest]
#[case::text(&[])]
#[case::json(&["--output-format", "json"])]
fn warnings_are_told_with_a_failed_start(#[case] flags: &[&str]) {
    let bench = bench(answers());
    user(&bench, "apiKeyHelpr = 'h'");
    project(&bench, "api_key_helper = 'h'");
    let ran = run(plain(&bench)
        .args(["-p", "hi"])
        .args(flags)
        .env_remove("ANTHROPIC_API_KEY")
        .env_remove("ANTHROPIC_BASE_URL"));
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
    for said in [
        "did you mean `api_key_helper`?",
        "`--trust-workspace`",
        "no API key for anthropic",
    ] {
        assert!(ran.stderr.contains(said), "{said}: {}", ran.stderr);
    }
}

#[test]
fn a_purpose_that_does_not_exist_is_shown_where_it_stands() {
    let bench = bench(answers());
    user(&bench, "[model_overrides]\nsub-agent = 'm'\nfoo = 'm'\n");
    let ran = run(plain(&bench).args(["-p", "hi"]));
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
    assert!(
        ran.stderr
            .contains("settings.toml:3:7: `model_overrides.foo`"),
        "{}",
        ran.stderr
    );
    assert!(ran.stderr.contains("fast_classifier"), "{}", ran.stderr);
}

#[test]
fn a_mistake_in_a_hook_is_shown_where_it_stands() {
    let bench = bench(answers());
    user(
        &bench,
        "[[hooks.Stop]]\n[[hooks.Stop.handlers]]\ntype = 'command'\ncommand = 'x'\n\
         [[hooks.Stop.handlers]]\ntype = 'command'\ncommand = 'x'\ntimeout = 'soon'\n",
    );
    let ran = run(plain(&bench).args(["-p", "hi"]));
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("settings.toml:8:11: `hooks.Stop`"),
        "{}",
        ran.stderr
    );
}
