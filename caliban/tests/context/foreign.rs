//! What was written for another program of our kind, or lies in another directory; and menus that
//! do not hold everything.

use caliban_testkit::{Reply, Script};
use serde_json::json;

use crate::support::{Wire, run};
use crate::{ok, put, repository, tell};

#[test]
fn commands_of_another_program_are_commands() {
    let files = [
        (".claude/commands/hi.md", "Say hi to $1."),
        (".claude/commands/ops/drain.md", "Drain it."),
        (".claude/commands/both.md", "theirs"),
        (
            ".claude/commands/pr.md",
            "---\nargument-hint: [number] [priority]\ndescription: Reviews\n---\nReview $1.",
        ),
        (".caliban/commands/both.md", "ours"),
    ];
    let bench = repository(Wire::Anthropic, ok(), &files);
    put(bench.home.path(), ".claude/commands/mine.md", "My own.");
    for (typed, prompt) in [
        ("/hi Ada", "Say hi to Ada."),
        ("/hi Ada and Grace", "Say hi to Ada.\n\nand Grace"),
        ("/ops:drain", "Drain it."),
        ("/both", "ours"),
        ("/pr 5", "Review 5."),
        ("/mine", "My own."),
    ] {
        let told = tell(&bench, |command| {
            command.args(["-p", typed]);
        });
        assert_eq!(told.prompt(), prompt, "{typed}");
    }
    let before = bench.server.model_requests().len();
    let ran = run(bench
        .command()
        .args(["--dialect", "claude", "-p", "/hi Ada"]));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let request = bench.server.model_requests()[before].json();
    assert!(
        request["messages"][0]
            .to_string()
            .contains("Say hi to Ada."),
        "{request}"
    );
}

fn skill(name: &str, description: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\nText of {name}.\n")
}

#[test]
fn skills_of_additional_directories_are_skills() {
    let script = Script::new([
        Reply::tool("Skill", json!({"name": "far"})),
        Reply::text("ok"),
    ]);
    let bench = repository(Wire::Anthropic, script, &[]);
    put(
        bench.home.path(),
        "lib/.caliban/skills/far/SKILL.md",
        &skill("far", "from afar"),
    );
    let settings = json!({"additional_directories": ["~/lib"]}).to_string();
    let told = tell(&bench, |command| {
        command.args(["--settings", &settings]);
    });
    assert!(told.requests[0]["tools"].to_string().contains("from afar"));
    assert!(told.requests[1].to_string().contains("Text of far."));
}

#[test]
fn a_menu_that_is_cut_is_a_warning() {
    let bench = repository(Wire::Anthropic, ok(), &[]);
    let add = |index: usize| {
        let name = format!("skill-{index:03}");
        let path = format!(".caliban/skills/{name}/SKILL.md");
        put(
            bench.workspace.path(),
            &path,
            &skill(&name, &"d".repeat(900)),
        );
    };
    (0..10).for_each(add);
    assert_eq!(tell(&bench, |_| {}).warnings(), [""; 0]);
    (10..60).for_each(add);
    let warnings = tell(&bench, |_| {}).warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert!(
        warnings[0].contains("the model sees 240 characters of each;"),
        "{warnings:?}"
    );
}

#[test]
fn a_trusted_workspace_replaces_things_without_a_word() {
    let text = skill("auto-memory", "our own way");
    let bench = repository(Wire::Anthropic, ok(), &[]);
    put(
        bench.workspace.path(),
        ".caliban/skills/auto-memory/SKILL.md",
        &text,
    );
    let warned = tell(&bench, |_| {}).warnings();
    assert_eq!(warned.len(), 1, "{warned:?}");
    let trusted = tell(&bench, |command| {
        command.arg("--trust-workspace");
    });
    assert_eq!(trusted.warnings(), [""; 0]);
}

#[test]
fn requests_are_in_the_debug_log_without_keys() {
    let bench = repository(Wire::Anthropic, ok(), &[]);
    tell(&bench, |command| {
        command.args([
            "--debug",
            "--max-tokens",
            "777",
            "-p",
            "a very particular prompt",
        ]);
    });
    let log = bench.home.path().join(".cache/caliban/debug.log");
    let log = std::fs::read_to_string(log).unwrap();
    let request = log
        .lines()
        .find(|line| line.contains("request to anthropic"));
    let request = request.unwrap_or_else(|| panic!("{log}"));
    for part in [
        "model=claude-sonnet-4-6",
        "max_tokens=777",
        "a very particular prompt",
    ] {
        assert!(request.contains(part), "{request}");
    }
    assert!(!log.contains("test-key"));
}
