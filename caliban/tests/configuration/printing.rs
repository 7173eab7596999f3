//! What the commands that print settings show.

use serde_json::{Value, json};

use crate::support::run;
use crate::{answers, bench, plain, project, user};

#[test]
fn secrets_are_masked_unless_they_are_asked_for() {
    let bench = bench(answers());
    user(
        &bench,
        "api_key_helper = 'vault --password=hush'\n[env]\nMY_TOKEN = 'hush'\nRUST_LOG = 'info'\n\
         [mcp_servers.x]\ntype = 'http'\nurl = 'https://x'\nheaders = { Authorization = 'Bearer hush' }\n",
    );
    for command in [
        &["config", "print"][..],
        &["settings", "print", "--scope", "effective"],
    ] {
        let ran = run(plain(&bench).args(command));
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(!ran.stdout.contains("hush"), "{}", ran.stdout);
        assert!(
            ran.stdout.contains("info") && ran.stdout.contains("https://x"),
            "{}",
            ran.stdout
        );
    }
    let ran = run(plain(&bench).args(["config", "print", "--show-secrets"]));
    assert_eq!(ran.stdout.matches("hush").count(), 3, "{}", ran.stdout);
}

#[test]
fn the_merged_settings_can_be_printed_alone() {
    let bench = bench(answers());
    user(&bench, "model = 'claude-opus-4-7'\neffort = 'low'\n");
    project(&bench, "effort = 'high'\n");
    let ran = run(plain(&bench).args(["settings", "print", "--scope", "effective"]));
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(shown, json!({"model": "claude-opus-4-7", "effort": "high"}));
}
