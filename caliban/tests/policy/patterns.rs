//! What patterns match.

use rstest::rstest;
use serde_json::json;

use crate::{Place, bench, denials, result, write};

#[rstest]
#[case("Bash:{rm,dd} *", "rm -rf x", 1)]
#[case("Bash:{rm,dd} *", "dd if=a", 1)]
#[case("Bash:{rm,dd} *", "ls && rm x", 1)]
#[case("Bash:{rm,dd} *", "cp a b", 0)]
#[case("Bash:[rd]m *", "rm x", 1)]
#[case("Bash:[!r]m *", "rm x", 0)]
#[case("Bash:git {push,reset --{hard,soft}}*", "git reset --soft HEAD~1", 1)]
#[case("Bash:git {push,reset --{hard,soft}}*", "git reset HEAD", 0)]
#[case("Bash(git {push,pull}:*)", "git pull --rebase", 1)]
#[case("Bash:~{rm,shred} *", "sudo shred x", 1)]
#[case("Bash:find * -exec rm {} *", "find . -exec rm {} +", 1)]
#[case("Bash:rm *", "sudo rm x", 1)]
fn globs_in_commands_mean_what_globs_mean(
    #[case] pattern: &str,
    #[case] command: &str,
    #[case] verdict: i32,
) {
    let place = Place::new();
    let flags = ["--deny", pattern, "--allow", "Bash"];
    assert_eq!(place.verdict(command, &flags), Some(verdict));
}

#[rstest]
#[case::revision("git show HEAD:.env", 1)]
#[case::object("git cat-file -p HEAD~3:.env", 1)]
#[case::index("git cat-file blob :.env", 1)]
#[case::variable("f=.env; git show main:$f", 1)]
#[case::from_the_root("cd deep && git show HEAD:.env", 1)]
#[case::elsewhere("git -C deep show HEAD:.env", 1)]
#[case::paths("git diff HEAD~1 -- .env", 1)]
#[case::log("git log -p -- :/.env", 1)]
#[case::another("git show HEAD:README.md", 0)]
#[case::all("git log -p", 0)]
#[case::pushed("git push origin HEAD:.env", 0)]
#[case::named("git add -- .env", 0)]
fn what_git_has_stored_of_a_closed_file_is_closed(#[case] command: &str, #[case] verdict: i32) {
    let place = Place::new();
    // The file itself is gone.
    std::fs::create_dir_all(place.workspace.path().join(".git")).unwrap();
    std::fs::create_dir_all(place.workspace.path().join("deep")).unwrap();
    let flags = ["--deny", "Read:./.env", "--allow", "Bash"];
    assert_eq!(place.verdict(command, &flags), Some(verdict), "{command}");
}

#[test]
fn an_alternative_does_not_spell_what_only_another_does() {
    let place = Place::new();
    let flags = ["--allow", "Bash:{ls *,find * -delete}"];
    assert_eq!(place.verdict("find . -delete", &flags), Some(0));
    let flags = ["--allow", "Bash:{find *,ls -delete}"];
    assert_eq!(place.verdict("find . -delete", &flags), Some(2));
}

#[test]
fn a_suggested_rule_takes_brackets_and_braces_literally() {
    let command = "echo a[1] {b,c} '{d,e}' \\\\[x]";
    let bench = bench(&[("Bash", json!({"command": command}))]);
    let refused = result(&bench, &[]);
    let remedy = refused["denials"][0]["remedy"].as_str().unwrap();
    let flag = remedy.split("--allow '").nth(1).unwrap();
    let pattern = flag.split('\'').next().unwrap();
    let place = Place::new();
    assert_eq!(place.verdict(command, &["--allow", pattern]), Some(0));
    assert_eq!(place.verdict("echo b", &["--allow", pattern]), Some(2));
}

#[rstest]
#[case("mcp__gh__issue:acme*", "mcp__gh__issue", r#"{"repo": "acme"}"#)]
#[case("Write:~notes", "Write", r#"{"path": "notes"}"#)]
fn what_can_never_match_is_kept_and_told(
    #[case] pattern: &str,
    #[case] tool: &str,
    #[case] input: &str,
) {
    let place = Place::new();
    for flag in ["--allow", "--ask", "--deny"] {
        let ran = place.perms(&["test", tool, input, flag, pattern]);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("never matches"), "{ran:?}");
    }
    let added = place.perms(&["add", pattern, "deny", "--scope", "user"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    assert!(added.stderr.contains("never matches"), "{added:?}");
    let listed = place.perms(&["list", "--scope", "user"]);
    assert_eq!(listed.stdout, format!("1 deny {pattern}\n"));
    let lint = place.perms(&["lint", "--scope", "user"]);
    assert_eq!(lint.code, Some(1));
    assert!(lint.stdout.contains("never matches"), "{lint:?}");
    // Nothing else is kept from working, and whoever starts a run is told.
    let bench = bench(&[]);
    write(
        &bench.home.path().join(".config/caliban/settings.toml"),
        &format!("[[permissions.rules]]\npattern = '{pattern}'\naction = 'deny'\n"),
    );
    let ran = bench.run(["-p", "go"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("never matches"), "{ran:?}");
}

#[test]
fn a_rule_sees_a_field_under_each_of_its_names() {
    let place = Place::new();
    let verdict = |tool: &str, input: &str, flags: &[&str]| {
        place.perms(&[&["test", tool, input], flags].concat()).code
    };
    for field in ["name", "skill"] {
        let input = json!({field: "deploy"}).to_string();
        for rule in ["Skill:deploy", "Skill:name=deploy", "Skill:skill=deploy"] {
            assert_eq!(
                verdict("Skill", &input, &["--deny", rule]),
                Some(1),
                "{rule}"
            );
        }
        let flags = ["--deny", "Skill:other", "--ask", "Skill"];
        assert_eq!(verdict("Skill", &input, &flags), Some(2));
    }
    for (tool, rule, field) in [
        ("KillShell", "KillShell:id=1", "shell_id"),
        ("BashOutput", "BashOutput:id=1", "bash_id"),
        ("ReadMemoryTopic", "ReadMemoryTopic:topic=1", "slug"),
        ("WriteMemoryTopic", "WriteMemoryTopic:name=1", "topic"),
        ("Grep", "Grep:path=*/x", "file_path"),
    ] {
        let value = if field == "file_path" { "a/x" } else { "1" };
        let input = json!({field: value}).to_string();
        assert_eq!(verdict(tool, &input, &["--deny", rule]), Some(1), "{rule}");
    }
    // Both at once: either is enough to object, only both are enough to allow.
    let both = r#"{"name": "a", "skill": "deploy"}"#;
    assert_eq!(verdict("Skill", both, &["--deny", "Skill:deploy"]), Some(1));
    let flags = ["--allow", "Skill:a", "--ask", "Skill"];
    assert_eq!(verdict("Skill", both, &flags), Some(2));
}

#[test]
fn a_tool_can_be_asked_about_without_an_input() {
    let place = Place::new();
    for (tool, code, rule) in [
        ("Read", 0, "Read"),
        ("Grep", 0, "Grep"),
        ("Write", 2, "Write"),
        ("Bash", 2, "Bash"),
    ] {
        let ran = place.perms(&["test", tool]);
        assert_eq!(ran.code, Some(code), "{ran:?}");
        let action = if code == 0 { "allow" } else { "ask" };
        let expected = format!("MATCH: pattern={rule} action={action}\n");
        assert_eq!((ran.stdout, ran.stderr), (expected, String::new()));
    }
    let denied = place.perms(&["test", "Read", "--deny", "Read"]);
    assert_eq!(denied.code, Some(1));
}

#[rstest]
#[case("Write:/srv/*", "/srv/a.txt", 1)]
#[case("Write:/srv/*", "/srv/a/b.txt", 2)]
#[case("Write:/srv/**", "/srv/a/b.txt", 1)]
#[case("Write:/srv", "/srv/a/b.txt", 1)]
#[case("Write:/srv/{a,b}", "/srv/a/b.txt", 1)]
fn a_star_in_a_denial_stops_at_a_slash(
    #[case] pattern: &str,
    #[case] path: &str,
    #[case] verdict: i32,
) {
    let input = json!({"path": path}).to_string();
    let ran = Place::new().perms(&["test", "Write", &input, "--deny", pattern]);
    assert_eq!(ran.code, Some(verdict), "{ran:?}");
}

#[test]
fn a_protected_file_is_named_as_it_is_spelled() {
    let bench = bench(&[("Write", json!({"path": "CLAUDE.md", "content": "x"}))]);
    let result = result(&bench, &["--auto-allow"]);
    assert_eq!(denials(&result), 1);
    let reason = result["denials"][0]["reason"].as_str().unwrap();
    assert!(
        reason.contains("because `CLAUDE.md` is protected"),
        "{reason}"
    );
}
