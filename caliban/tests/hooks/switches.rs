//! When hooks do not run, what they get to see, and mistakes in their configuration.

use rstest::rstest;
use serde_json::{Value, json};

use crate::support::apart::under_operator;
use crate::{
    Caller, bench, frames, go, go_with, is_written, ok, put, recorded, recorder, settings, shell,
    writes,
};

pub(crate) fn user(bench: &crate::Bench, settings: &Value) {
    put(
        bench.home.path(),
        ".config/caliban/settings.json",
        &settings.to_string(),
    );
}

#[rstest]
#[case::nothing(&[], &[], json!({}), true)]
#[case::flag(&["--no-hooks"], &[], json!({}), false)]
#[case::variable(&[], &[("CALIBAN_NO_HOOKS", "1")], json!({}), false)]
#[case::bare(&["--bare"], &[], json!({}), false)]
#[case::setting(&[], &[], json!({"disable_all_hooks": true}), false)]
#[case::managed_only(&[], &[], json!({"allow_managed_hooks_only": true}), false)]
fn hooks_can_be_switched_off(
    #[case] args: &[&str],
    #[case] variables: &[(&str, &str)],
    #[case] keys: Value,
    #[case] runs: bool,
) {
    let bench = bench(ok());
    let mut settings = settings(&[("UserPromptSubmit", "", recorder())]);
    for (key, value) in keys.as_object().unwrap() {
        settings[key] = value.clone();
    }
    user(&bench, &settings);
    let ran = go_with(&bench, &json!({}), |command| {
        command.args(args).envs(variables.iter().copied());
    });
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(recorded(&bench).len(), usize::from(runs));
}

#[test]
fn hooks_of_a_workspace_run_only_where_it_is_trusted() {
    let run = |args: &[&str]| {
        let bench = bench(writes(Caller::Parent));
        let allow = r#"cat >> "$RECORD"; echo '{"decision": "approve"}'"#;
        let settings = settings(&[
            ("SessionStart", "", recorder()),
            ("PreToolUse", "Write", shell(allow)),
        ]);
        put(
            bench.workspace.path(),
            ".caliban/settings.json",
            &settings.to_string(),
        );
        let ran = go(&bench, &json!({}), args);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let warnings = frames(&ran)[0]["warnings"].to_string();
        (is_written(&bench), recorded(&bench).len(), warnings)
    };
    let (written, told, warnings) = run(&[]);
    assert!(!written);
    assert_eq!(told, 0);
    assert!(
        warnings.contains("hooks") && warnings.contains("--trust-workspace"),
        "{warnings}"
    );
    let (written, told, warnings) = run(&["--trust-workspace"]);
    assert!(written && !warnings.contains("--trust-workspace"));
    assert_eq!(told, 2);
}

#[test]
fn a_workspace_cannot_switch_off_the_users_hooks() {
    let bench = bench(writes(Caller::Parent));
    user(
        &bench,
        &settings(&[("PreToolUse", "Write", shell("exit 2"))]),
    );
    put(
        bench.workspace.path(),
        ".caliban/settings.toml",
        "disable_all_hooks = true\n",
    );
    go(&bench, &json!({}), &["--allow", "Write"]);
    assert!(!is_written(&bench));
}

#[test]
fn keys_are_not_in_a_hooks_environment() {
    let bench = bench(ok());
    let mut settings = settings(&[(
        "UserPromptSubmit",
        "",
        shell("env > \"$RECORD\"; cat >> \"$RECORD\""),
    )]);
    settings["env"] = json!({"GREETING": "salve"});
    let ran = go_with(&bench, &settings, |command| {
        command
            .env("OPENAI_API_KEY", "sk-secret")
            .env("GEMINI_API_KEY", "g-secret")
            .env("MISTRAL_API_KEY", "m-secret")
            .env("HARMLESS", "yes");
    });
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let seen = std::fs::read_to_string(crate::record(&bench)).unwrap();
    for secret in ["test-key", "-secret", "API_KEY"] {
        assert!(!seen.contains(secret), "{secret}: {seen}");
    }
    let project = bench.workspace.path().canonicalize().unwrap();
    let project = project.display();
    for expected in [
        "HARMLESS=yes".to_owned(),
        "GREETING=salve".to_owned(),
        format!("CALIBAN_PROJECT_DIR={project}"),
        format!("CLAUDE_PROJECT_DIR={project}"),
        format!("PWD={project}"),
    ] {
        assert!(seen.lines().any(|line| line == expected), "{expected}");
    }
}

#[rstest]
#[case(json!({"PreTolUse": []}), "did you mean `PreToolUse`")]
#[case(json!({"PreToolUse": [{"matcher": "["}]}), "matcher")]
#[case(json!({"PreToolUse": [{"hooks": [{"type": "shell", "command": "x"}]}]}), "command, http, mcp, prompt or agent")]
#[case(json!({"PreToolUse": [{"hooks": [{"type": "command", "comand": "x"}]}]}), "`command` is missing")]
#[case(json!({"PreToolUse": [{"if": "Bsh:rm *", "hooks": [{"type": "command", "command": "x"}]}]}), "Bash")]
#[case(json!({"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "timeout": "soon"}]}]}), "timeout")]
fn a_mistake_ends_the_run_before_it_begins(#[case] hooks: Value, #[case] says: &str) {
    let bench = bench(ok());
    let ran = go(&bench, &json!({ "hooks": hooks }), &[]);
    assert_eq!(ran.code, Some(78), "{}", ran.stderr);
    assert!(ran.stderr.contains(says), "{}", ran.stderr);
    assert!(bench.server.model_requests().is_empty());
}

#[test]
fn conditions_are_patterns_of_rules() {
    let entry = |condition: &str| {
        json!({"hooks": {"PreToolUse": [{
            "matcher": "Write",
            "if": condition,
            "hooks": [{"type": "command", "command": "exit 2"}],
        }]}})
    };
    for (condition, runs) in [("Write:*.md", true), ("Write:*.txt", false)] {
        let bench = bench(writes(Caller::Parent));
        go(&bench, &entry(condition), &["--allow", "Write"]);
        assert_eq!(is_written(&bench), runs, "{condition}");
    }
}

#[test]
fn an_old_hooks_file_still_counts() {
    let bench = bench(ok());
    let text = "[[hooks.UserPromptSubmit]]\n[[hooks.UserPromptSubmit.handlers]]\n\
                type = 'command'\ncommand = 'cat >> \"$RECORD\"'\n";
    put(bench.home.path(), ".config/caliban/hooks.toml", text);
    let ran = go(&bench, &json!({}), &[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(recorded(&bench).len(), 1);
}

#[rstest]
#[case::together(json!({}), 2)]
#[case::only_managed(json!({"allow_managed_hooks_only": true}), 1)]
#[case::cannot_be_disabled(json!({"allow_managed_hooks_only": true, "user": {"disable_all_hooks": true}}), 1)]
fn an_administrators_hooks_run_whatever_others_say(#[case] keys: Value, #[case] told: usize) {
    let bench = bench(ok());
    let mut users = settings(&[("UserPromptSubmit", "", recorder())]);
    // Another text: what two scopes say in the same words runs once.
    let handler = shell("cat - >> \"$RECORD\"");
    let mut administrators = settings(&[("UserPromptSubmit", "", handler)]);
    for (key, value) in keys.as_object().unwrap() {
        match key.as_str() {
            "user" => users["disable_all_hooks"] = value["disable_all_hooks"].clone(),
            key => administrators[key] = value.clone(),
        }
    }
    user(&bench, &users);
    let mut command = bench.command();
    command
        .args(["--output-format", "stream-json", "-p", "go"])
        .env("RECORD", crate::record(&bench));
    let ran = crate::run(&mut under_operator(&command, &administrators));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(recorded(&bench).len(), told, "{}", ran.stderr);
}
