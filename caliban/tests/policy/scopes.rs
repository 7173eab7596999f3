//! The commands about rules: what is written, what counts, what is imported.

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::{bare, run};
use crate::{Place, write};

const PROJECT: &str = "\
[[permissions.rules]]
pattern = 'Bash:cargo *'
action = 'allow'

[[permissions.rules]]
pattern = 'Bash:curl *'
action = 'deny'
";

#[test]
fn rules_of_a_workspace_that_is_not_trusted_are_shown_as_such() {
    let place = Place::new();
    write(&place.project_settings(), PROJECT);
    let listed = place.perms(&["list"]).stdout;
    let why = "(does not count: the workspace is not trusted, see `caliban trust`)";
    let expected = format!("1 allow Bash:cargo *  {why}\n2 deny Bash:curl *\n");
    assert_eq!(listed, expected);
    let json: Value = serde_json::from_str(&place.perms(&["list", "--json"]).stdout).unwrap();
    assert!(
        json[0]["ignored"].is_string() && json[1]["ignored"].is_null(),
        "{json}"
    );
    let exported = place.perms(&["export"]).stdout;
    assert_eq!(
        exported.matches("[[permissions.rules]]").count(),
        2,
        "{exported}"
    );
    assert!(exported.contains("Bash:cargo *"), "{exported}");
    let trusted = place.perms(&["list", "--trust-workspace"]).stdout;
    assert_eq!(trusted, "1 allow Bash:cargo *\n2 deny Bash:curl *\n");
    // Whoever tries a call out hears why a rule does not count.
    let tested = place.perms(&["test", "Bash", r#"{"command": "cargo build"}"#]);
    assert_eq!(tested.code, Some(2));
    assert!(tested.stderr.contains("is not trusted"), "{tested:?}");
}

#[test]
fn rules_of_a_workspace_that_is_not_trusted_are_checked_and_removed() {
    let place = Place::new();
    let doubled = format!("{PROJECT}\n{PROJECT}");
    write(&place.project_settings(), &doubled);
    let lint = place.perms(&["lint"]);
    assert_eq!(lint.code, Some(1), "{lint:?}");
    assert_eq!(lint.stdout.matches("duplicate").count(), 2, "{lint:?}");
    for (index, left) in [("3", 3), ("1", 2), ("1", 1), ("1", 0)] {
        let removed = place.perms(&["remove", "--index", index]);
        assert_eq!(removed.code, Some(0), "{removed:?}");
        let text = std::fs::read_to_string(place.project_settings()).unwrap();
        assert_eq!(text.matches("pattern").count(), left, "{text}");
    }
    assert_eq!(place.perms(&["list"]).stdout, "(no rules)\n");
}

#[test]
fn a_rule_that_is_none_can_be_found_and_removed() {
    let place = Place::new();
    let text = "[[permissions.rules]]\npattern = 'Bsh:x'\naction = 'deny'\n";
    write(&place.user_settings(), text);
    let listed = place.perms(&["list", "--scope", "user"]);
    assert_eq!(listed.stdout, "1 deny Bsh:x\n", "{listed:?}");
    let lint = place.perms(&["lint", "--scope", "user"]);
    assert_eq!(lint.code, Some(78));
    assert!(lint.stderr.contains("did you mean `Bash`"), "{lint:?}");
    let removed = place.perms(&["remove", "--index", "1", "--scope", "user"]);
    assert_eq!(removed.code, Some(0), "{removed:?}");
}

#[test]
fn imported_objections_stand_before_what_allows() {
    let place = Place::new();
    write(
        &place.user_settings(),
        "[[permissions.rules]]\npattern = 'Bash:ls *'\naction = 'deny'\n\n\
         [[permissions.rules]]\npattern = 'Bash:git *'\naction = 'allow'\n",
    );
    let theirs = json!({"permissions": {
        "allow": ["Bash(npm run test:*)"],
        "ask": ["Bash(git push:*)"],
        "deny": ["Bash(git reset:*)", "Nothing(x)"],
    }});
    let from = place.home.path().join("theirs.json");
    write(&from, &theirs.to_string());
    let import = ["import", "--from", from.to_str().unwrap()];
    let imported = place.perms(&import);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    assert_eq!(
        imported.stderr.matches("not imported").count(),
        1,
        "{imported:?}"
    );
    assert_eq!(place.verdict("git reset --hard", &[]), Some(1));
    assert_eq!(place.verdict("git push", &[]), Some(2));
    assert_eq!(place.verdict("git push origin", &[]), Some(2));
    assert_eq!(place.verdict("git log", &[]), Some(0));
    assert_eq!(place.verdict("npm run test", &[]), Some(0));
    let listed = place.perms(&["list", "--scope", "user"]).stdout;
    let actions: Vec<&str> = listed
        .lines()
        .map(|line| line.split(' ').nth(1).unwrap())
        .collect();
    assert_eq!(
        actions,
        ["deny", "deny", "ask", "allow", "allow"],
        "{listed}"
    );
    let lint = place.perms(&["lint", "--scope", "user"]);
    assert_eq!(lint.code, Some(0), "{lint:?}");
    let again = place.perms(&import);
    assert!(again.stdout.contains("has it all already"), "{again:?}");
}

/// Taking settings over from JSON is said with the scope they belong to.
#[test]
fn what_stands_in_the_way_of_a_rule_is_taken_over_as_it_is_said() {
    let place = Place::new();
    let json = place.user_settings().with_extension("json");
    write(
        &json,
        r#"{"permissions": {"rules": [{"pattern": "Bash:ls *", "action": "deny"}]}}"#,
    );
    let add = ["add", "Bash:make *", "deny", "--scope", "user"];
    let refused = place.perms(&add);
    assert_eq!(refused.code, Some(78), "{refused:?}");
    let said = refused.stderr.split('`').nth(3).unwrap();
    let words: Vec<&str> = said.split(' ').skip(1).collect();
    let mut import = bare(place.home.path(), place.workspace.path());
    let imported = run(import.args(&words));
    assert_eq!(imported.code, Some(0), "{words:?} {imported:?}");
    assert_eq!(place.perms(&add).code, Some(0));
    for command in ["ls x", "make x"] {
        assert_eq!(place.verdict(command, &[]), Some(1), "{command}");
    }
}

/// What the operator imports is the operator's; what lies in the workspace is not, whoever imports
/// it.
#[rstest]
#[case::own(false, 0)]
#[case::of_the_workspace(true, 2)]
fn what_is_imported_into_a_workspace_counts_if_it_is_the_operators(
    #[case] is_within: bool,
    #[case] verdict: i32,
) {
    let place = Place::new();
    let home = if is_within {
        place.workspace.path()
    } else {
        place.home.path()
    };
    let from = home.join("theirs.json");
    write(&from, r#"{"permissions": {"allow": ["Bash(ls:*)"]}}"#);
    let mut import = bare(place.home.path(), place.workspace.path());
    let imported = run(import.args(["settings", "import", "--from"]).arg(&from));
    assert_eq!(imported.code, Some(0), "{imported:?}");
    assert_eq!(
        imported.stderr.contains("caliban trust"),
        is_within,
        "{imported:?}"
    );
    assert_eq!(place.verdict("ls x", &[]), Some(verdict));
}

/// The older files of a single purpose held their rules at the top, and the first of them called
/// the pattern `tool`.
#[rstest]
#[case::tools("rules.toml", "[[rules]]\ntool = 'Bash:make *'\naction = 'deny'\n")]
#[case::patterns("rules.toml", "[[rules]]\npattern = 'Bash:make *'\naction = 'deny'\n")]
#[case::lists("permissions.toml", "deny = ['Bash:make *']\nallow = ['Bash:ls *']\n")]
#[case::json("old.json", r#"{"deny": ["Bash(make *)"]}"#)]
fn rules_of_the_older_files_are_imported(#[case] name: &str, #[case] text: &str) {
    let place = Place::new();
    let from = place.home.path().join(name);
    write(&from, text);
    let imported = place.perms(&["import", "--from", from.to_str().unwrap()]);
    assert_eq!(imported.code, Some(0), "{imported:?}");
    assert_eq!(place.verdict("make all", &[]), Some(1));
}

#[test]
fn lint_reports_an_objection_behind_a_broader_allow() {
    let place = Place::new();
    for (pattern, action) in [("Bash:git *", "allow"), ("Bash:git push *", "deny")] {
        let added = place.perms(&["add", pattern, action, "--scope", "user"]);
        assert_eq!(added.code, Some(0), "{added:?}");
    }
    let lint = place.perms(&["lint", "--scope", "user"]);
    assert_eq!(lint.code, Some(1), "{lint:?}");
    assert!(
        lint.stdout
            .starts_with("overruled: pattern=\"Bash:git push *\" action=deny"),
        "{lint:?}"
    );
}

#[rstest]
#[case(&["test", "Bash", r#"{"command": "ls"}"#, "--scope", "user"], 0)]
#[case(&["test", "Bash", r#"{"command": "ls"}"#, "--scope", "project"], 2)]
#[case(&["test", "Bash", r#"{"command": "ls"}"#, "--scope", "cli", "--deny", "Bash"], 1)]
#[case(&["test", "Bash", r#"{"command": "ls"}"#, "--scope", "user", "--deny", "Bash"], 0)]
#[case(&["explain", "Bash", r#"{"command": "ls"}"#, "--scope", "user"], 0)]
#[case(&["audit", "--scope", "user"], 0)]
#[case(&["audit", "--scope", "nowhere"], 64)]
fn every_verb_takes_a_scope(#[case] args: &[&str], #[case] code: i32) {
    let place = Place::new();
    write(
        &place.user_settings(),
        "[[permissions.rules]]\npattern = 'Bash:ls'\naction = 'allow'\n",
    );
    let ran = place.perms(args);
    assert_eq!(ran.code, Some(code), "{ran:?}");
}

#[rstest]
fn only_scopes_that_are_ours_to_write_are_offered(
    #[values("managed", "cli")] scope: &str,
    #[values(&["add", "Bash", "deny"], &["remove", "--index", "1"], &["import", "--from", "x"])]
    verb: &[&str],
) {
    let place = Place::new();
    let ran = place.perms(&[verb, &["--scope", scope]].concat());
    assert_eq!(ran.code, Some(64), "{ran:?}");
    assert!(
        ran.stderr.contains("possible values: user, project, local"),
        "{ran:?}"
    );
}

#[test]
fn a_reason_may_be_given_for_any_action() {
    let place = Place::new();
    let args = [
        "add",
        "Bash:ls *",
        "allow",
        "--reason",
        "it only looks",
        "--scope",
        "user",
    ];
    let added = place.perms(&args);
    assert_eq!(added.code, Some(0), "{added:?}");
    assert!(
        added.stderr.contains("only where a call is denied"),
        "{added:?}"
    );
    let listed = place.perms(&["list", "--scope", "user"]).stdout;
    assert_eq!(listed, "1 allow Bash:ls *  reason: it only looks\n");
    assert_eq!(place.verdict("ls -l", &[]), Some(0));
}
