//! The settings files of that world.

use caliban_testkit::{Reply, Script};
use rstest::rstest;
use serde_json::{Value, json};

use crate::bench::Bench;

fn write(path: &std::path::Path, value: &Value) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, value.to_string()).unwrap();
}

fn touched(bench: &Bench, args: &[&str], trusted: bool) -> bool {
    let mut command = bench.command(&["-p", "go"]);
    command.args(args);
    if trusted {
        command.env("CALIBAN_TRUST_WORKSPACE", "1");
    }
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    bench.workspace.path().join("a").exists()
}

fn bench() -> Bench {
    Bench::new(Script::new([
        Reply::tool("Bash", json!({"command": "touch a"})),
        Reply::text("done"),
    ]))
}

#[rstest]
#[case(&[], true)]
#[case(&["--setting-sources="], false)]
#[case(&["--setting-sources", "project,local"], false)]
#[case(&["--setting-sources=user"], true)]
fn rules_of_the_user_count_where_they_are_read(#[case] args: &[&str], #[case] runs: bool) {
    let bench = bench();
    write(
        &bench.config().join("settings.json"),
        &json!({"permissions": {"allow": ["Bash(touch:*)"]}}),
    );
    assert_eq!(touched(&bench, args, false), runs);
}

#[rstest]
#[case(false)]
#[case(true)]
fn rules_of_the_project_loosen_only_where_it_is_trusted(#[case] trusted: bool) {
    let bench = bench();
    let file = bench.workspace.path().join(".claude/settings.json");
    write(&file, &json!({"permissions": {"allow": ["Bash(touch:*)"]}}));
    assert_eq!(touched(&bench, &[], trusted), trusted);
}

#[test]
fn denials_of_the_project_always_count() {
    let bench = bench();
    let file = bench.workspace.path().join(".claude/settings.local.json");
    write(&file, &json!({"permissions": {"deny": ["Bash(touch:*)"]}}));
    assert!(!touched(
        &bench,
        &["--permission-mode", "bypassPermissions"],
        false
    ));
}

#[test]
fn model_and_environment_of_the_settings_count() {
    let bench = Bench::new(Script::new([Reply::text("ok"), Reply::text("ok")]));
    let other = Bench::new(Script::new([Reply::text("elsewhere")]));
    write(
        &bench.config().join("settings.json"),
        &json!({"model": "haiku"}),
    );
    bench.run(&["-p", "hi"]);
    assert_eq!(bench.last_request()["model"], "claude-haiku-4-5");
    let settings = json!({"env": {"ANTHROPIC_BASE_URL": other.server.url()}}).to_string();
    assert_eq!(
        bench.run(&["-p", "--settings", &settings, "hi"]).stdout,
        "elsewhere\n"
    );
    let named = tempfile::tempdir().unwrap();
    write(
        &named.path().join("settings.json"),
        &json!({"model": "opus"}),
    );
    let mut command = bench.command(&["-p", "hi"]);
    command
        .env("CLAUDE_CONFIG_DIR", named.path())
        .output()
        .unwrap();
    assert_eq!(bench.last_request()["model"], "claude-opus-5-5");
}

#[test]
fn the_native_dialect_does_not_read_them() {
    let bench = bench();
    write(
        &bench.config().join("settings.json"),
        &json!({"permissions": {"allow": ["Bash(touch:*)"]}}),
    );
    assert!(!touched(&bench, &["--dialect", "caliban"], true));
}

/// What the user keeps for that world counts, where the client leaves the user's settings in.
#[rstest]
#[case::all(&[], true)]
#[case::projects_only(&["--setting-sources", "project"], false)]
fn the_users_instructions_count(#[case] args: &[&str], #[case] count: bool) {
    let bench = Bench::new(Script::new([Reply::text("ok")]));
    std::fs::create_dir_all(bench.config()).unwrap();
    std::fs::write(bench.config().join("CLAUDE.md"), "ANSWER IN LATIN").unwrap();
    let ran = bench.run(&[&["-p", "hi"], args].concat());
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let asked = bench.last_request().to_string();
    assert_eq!(asked.contains("ANSWER IN LATIN"), count, "{asked}");
}

#[test]
fn skills_of_that_world_are_loaded() {
    let bench = Bench::new(Script::new([
        Reply::tool("Skill", json!({"skill": "mine"})),
        Reply::tool("Skill", json!({"skill": "ours"})),
        Reply::text("ok"),
    ]));
    let skill = |root: &std::path::Path, name: &str, body: &str| {
        let directory = root.join("skills").join(name);
        std::fs::create_dir_all(&directory).unwrap();
        let text = format!("---\nname: {name}\ndescription: helps\n---\n{body}");
        std::fs::write(directory.join("SKILL.md"), text).unwrap();
    };
    skill(&bench.config(), "mine", "MY BODY");
    skill(&bench.workspace.path().join(".claude"), "ours", "OUR BODY");
    let ran = bench.run(&["-p", "go", "--output-format", "stream-json", "--verbose"]);
    let init = &ran.frames()[0];
    let listed = init["skills"].to_string();
    assert!(
        listed.contains("mine") && listed.contains("ours"),
        "{listed}"
    );
    let asked = bench.last_request()["messages"].to_string();
    assert!(
        asked.contains("MY BODY") && asked.contains("OUR BODY"),
        "{asked}"
    );
}

/// What the libraries make of their option for the sandbox.
#[test]
fn a_sandbox_as_that_world_writes_it_is_understood() {
    let bench = Bench::new(Script::new([Reply::text("ok")]));
    let settings = json!({"sandbox": {
        "enabled": true,
        "autoAllowBashIfSandboxed": true,
        "excludedCommands": ["git"],
        "network": {"allowLocalBinding": true, "allowUnixSockets": ["/tmp/x"], "deniedDomains": ["a.b"]},
    }})
    .to_string();
    let ran = bench.run(&["-p", "hi", "--settings", &settings]);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "ok"), "{ran:?}");
    assert!(
        ran.stderr.contains("sandbox.network.deniedDomains"),
        "{}",
        ran.stderr
    );
}
