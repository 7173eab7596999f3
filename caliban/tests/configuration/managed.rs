//! The operator's policy: nobody leaves it behind, and nothing of ours writes it.

use rstest::rstest;
use serde_json::json;

use crate::support::run;
use crate::{answers, apart, bench, plain, under_operator, write};

#[rstest]
#[case::sources(&["--setting-sources", "user"])]
#[case::bare(&["--bare"])]
#[case::both(&["--bare", "--setting-sources", "project,local"])]
fn no_flag_leaves_the_managed_scope_out(#[case] flags: &[&str]) {
    let bench = bench(answers());
    let policy = json!({
        "parent_settings_behavior": "block",
        "permissions": {"enforce": true, "deny": ["Bash:curl *"]},
    });
    let open = run(&mut under_operator(
        plain(&bench)
            .args(flags)
            .args(["--no-permissions", "-p", "x"]),
        &policy,
    ));
    assert_eq!(open.code, Some(78), "{}", open.stderr);
    let input = r#"{"command": "curl x"}"#;
    let test = run(&mut under_operator(
        plain(&bench)
            .args(flags)
            .args(["--allow", "Bash", "perms", "test", "Bash", input]),
        &policy,
    ));
    assert!(test.stdout.contains("action=deny"), "{test:?}");
}

#[test]
fn the_managed_scope_is_not_written() {
    let bench = bench(answers());
    let from = bench.home.path().join("claude.json");
    write(&from, r#"{"permissions": {"deny": ["WebFetch"]}}"#);
    let import = |flags: &[&str]| {
        let mut command = plain(&bench);
        command.args(["settings", "import", "--scope", "managed", "--from"]);
        command.arg(&from).args(flags);
        // Where it would be written, if it were.
        let script = "mount -t tmpfs none /etc && \"$@\"; code=$?; ls -A /etc; exit $code";
        run(&mut apart(&command, script, &[]))
    };
    let refused = import(&[]);
    assert_eq!(refused.code, Some(64), "{}", refused.stderr);
    assert_eq!(refused.stdout, "", "nothing is in the directory");
    assert!(refused.stderr.contains("--dry-run"), "{}", refused.stderr);
    let shown = import(&["--dry-run"]);
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    assert!(shown.stdout.contains("WebFetch"), "{}", shown.stdout);
    assert!(!shown.stdout.contains("caliban\n"), "{}", shown.stdout);
}
