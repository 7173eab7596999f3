//! Work below the directory that has the settings.

use std::process::Command;

use caliban_testkit::{Reply, Script};
use serde_json::json;

use crate::support::{Bench, run};
use crate::{answers, bench, init, plain, project, write};

/// The binary in a directory two levels below the repository's root.
fn below(bench: &Bench) -> Command {
    let directory = bench.workspace.path().join("a/b");
    std::fs::create_dir_all(bench.workspace.path().join(".git")).unwrap();
    std::fs::create_dir_all(&directory).unwrap();
    let mut command = plain(bench);
    command.current_dir(directory);
    command
}

#[test]
fn the_settings_of_the_repository_count_below_its_root() {
    let bench = bench(answers());
    project(
        &bench,
        "[permissions]\ndeny = ['Bash:curl *']\nallow = ['Bash:ls *']\n",
    );
    let verdict = |command: &mut Command, line: &str| {
        let input = format!(r#"{{"command": "{line}"}}"#);
        run(command.args(["perms", "test", "Bash", &input])).stdout
    };
    assert!(verdict(&mut below(&bench), "curl x").contains("action=deny"));
    assert!(
        verdict(&mut below(&bench), "ls x").contains("action=ask"),
        "not trusted yet"
    );
    let trusted = run(below(&bench).arg("trust"));
    assert!(
        trusted.stdout.contains("/.caliban/settings.toml"),
        "{trusted:?}"
    );
    assert!(verdict(&mut below(&bench), "ls x").contains("action=allow"));
    let added = run(below(&bench).args(["perms", "add", "Bash:pwd", "allow"]));
    assert_eq!(added.code, Some(0), "{}", added.stderr);
    assert!(!bench.workspace.path().join("a/b/.caliban").exists());
    assert!(verdict(&mut below(&bench), "pwd").contains("action=allow"));
    // Tools work where they were started, and a nearer directory is another project.
    let cwd = init(&mut below(&bench))["cwd"].clone();
    assert!(cwd.as_str().unwrap().ends_with("a/b"), "{cwd}");
    std::fs::create_dir(bench.workspace.path().join("a/.caliban")).unwrap();
    assert!(verdict(&mut below(&bench), "curl x").contains("action=ask"));
}

#[test]
fn skills_of_the_repository_count_below_its_root() {
    let bench = bench(answers());
    let skill = ".caliban/skills/greet/SKILL.md";
    let text = "---\nname: greet\ndescription: says hello\n---\nhello\n";
    write(&bench.workspace.path().join(skill), text);
    init(&mut below(&bench));
    let request = bench.server.model_requests().pop().unwrap().json();
    assert!(request["tools"].to_string().contains("says hello"));
}

#[test]
fn trust_covers_what_a_relative_name_means_below_the_root() {
    let bench = bench(answers());
    project(&bench, "api_key_helper = 'sh ./tool.sh'");
    let trusts = || {
        let ran = run(below(&bench).args(["config", "print"]));
        !ran.stdout.contains("is not trusted")
    };
    write(&bench.workspace.path().join("tool.sh"), "echo key");
    run(below(&bench).arg("trust"));
    assert!(trusts());
    // There it is this one that would be started.
    write(&bench.workspace.path().join("a/b/tool.sh"), "echo other");
    assert!(!trusts());
}

#[test]
fn rules_of_the_repository_count_below_its_root() {
    let script = Script::new([
        Reply::tool("Read", json!({"file_path": "../../src/x.rs"})),
        Reply::text("done"),
    ]);
    let bench = bench(script);
    let rule = |name: &str, text: &str| write(&bench.workspace.path().join(name), text);
    rule(".caliban/rules/always.md", "Say please.");
    rule(
        ".caliban/rules/scoped.md",
        "---\npaths: ['src/*.rs']\n---\nPrefer loops.",
    );
    rule(".claude/rules/foreign.md", "Say thanks.");
    rule("src/x.rs", "fn x() {}");
    let ran = run(below(&bench).args(["-p", "go"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let [first, second] = &bench.server.model_requests()[..] else {
        panic!("two requests were expected");
    };
    let system = first.json()["system"].to_string();
    assert!(system.contains("Say please."), "{system}");
    assert!(system.contains("Say thanks."), "{system}");
    assert!(!first.json().to_string().contains("Prefer loops."));
    // Its paths begin where it is written.
    assert!(second.json().to_string().contains("Prefer loops."));
}
