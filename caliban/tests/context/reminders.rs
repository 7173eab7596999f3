//! What the model was told for good: it survives summaries and resumes, and is told once otherwise.

use caliban_testkit::{Match, Reply, Script, Usage};
use serde_json::json;

use crate::support::{Bench, Wire};
use crate::{Told, messages, put, repository, tell, text_of};

const FILES: [(&str, &str); 7] = [
    ("sub/CLAUDE.md", "here be rules"),
    ("sub/a.txt", "x"),
    ("sub/b.txt", "y"),
    ("top.txt", "z"),
    ("other.txt", "o"),
    (
        ".caliban/rules/txt.md",
        "---\npaths: ['sub/*.txt']\n---\ntext is plain",
    ),
    (
        ".claude/rules/theirs.md",
        "---\npaths: ['sub/*.txt']\n---\ntheirs too",
    ),
];

fn read(path: &str) -> Reply {
    Reply::tool("Read", json!({ "path": path }))
}

/// A reply that leaves no room for another.
fn full(mut reply: Reply) -> Reply {
    reply.usage = Some(Usage {
        input: 190_000,
        ..Usage::SMALL
    });
    reply
}

/// The texts of a request that are in the user's name.
fn user_texts(told: &Told, request: usize) -> Vec<String> {
    let messages = messages(told.wire, &told.requests[request]);
    let users = messages.iter().filter(|message| message["role"] == "user");
    users.map(|message| text_of(&message["content"])).collect()
}

fn count(texts: &[String], what: &str) -> usize {
    texts.iter().map(|text| text.matches(what).count()).sum()
}

fn run(bench: &Bench, args: &[&str]) -> Told {
    let settings = json!({"auto_compact_threshold": 0.1}).to_string();
    tell(bench, |command| {
        command.args(["--settings", &settings]).args(args);
    })
}

#[test]
fn instructions_of_a_directory_are_told_beside_every_summary() {
    let script = Script::new([
        read("sub/a.txt"),
        full(read("top.txt")),
        Reply::text("SUMMARY ONE"),
        read("sub/b.txt"),
        full(read("other.txt")),
        Reply::text("SUMMARY TWO"),
        Reply::text("done"),
        // The session goes on.
        read("sub/a.txt"),
        full(read("top.txt")),
        Reply::text("SUMMARY THREE"),
        Reply::text("done again"),
    ]);
    let bench = repository(Wire::Anthropic, script, &FILES);
    let first = run(&bench, &["--session", "s"]);
    let parts = ["here be rules", "text is plain", "theirs too"];
    for (request, summary) in [(3, "SUMMARY ONE"), (6, "SUMMARY TWO")] {
        let texts = user_texts(&first, request);
        assert!(texts[0].contains(summary), "{texts:?}");
        for part in parts {
            assert_eq!(count(&texts, part), 1, "{request}: {texts:?}");
            assert!(texts[0].contains(part), "{request}: {texts:?}");
        }
    }
    let resumed = run(&bench, &["--session", "s", "-p", "go on"]);
    for request in [0, 1, 3] {
        let texts = user_texts(&resumed, request);
        for part in parts {
            assert_eq!(count(&texts, part), 1, "{request}: {texts:?}");
        }
    }
    let last = user_texts(&resumed, 3);
    assert!(last[0].contains("SUMMARY THREE") && last[0].contains("here be rules"));
}

#[test]
fn what_stays_of_a_conversation_is_not_told_beside_its_summary() {
    let script = Script::new([
        read("top.txt"),
        full(read("sub/a.txt")),
        Reply::text("SUMMARY"),
        Reply::text("done"),
    ]);
    let bench = repository(Wire::Anthropic, script, &FILES);
    let texts = user_texts(&run(&bench, &[]), 3);
    assert_eq!(count(&texts, "here be rules"), 1, "{texts:?}");
    assert!(!texts[0].contains("here be rules"), "{texts:?}");
}

#[test]
fn a_list_of_files_brings_up_what_their_directory_says() {
    for glob in [
        json!({"pattern": "*.txt", "path": "sub"}),
        json!({"pattern": "sub/*.txt"}),
    ] {
        let script = Script::new([Reply::tool("Glob", glob), Reply::text("done")]);
        let bench = repository(Wire::Anthropic, script, &FILES);
        let texts = user_texts(&run(&bench, &[]), 1);
        assert_eq!(count(&texts, "here be rules"), 1, "{texts:?}");
    }
    let everything = Script::new([
        Reply::tool("Glob", json!({"pattern": "**/*.txt"})),
        Reply::text("done"),
    ]);
    let bench = repository(Wire::Anthropic, everything, &FILES);
    let texts = user_texts(&run(&bench, &[]), 1);
    assert_eq!(count(&texts, "here be rules"), 0, "{texts:?}");
}

#[test]
fn rules_for_another_program_count_too() {
    let bench = repository(Wire::Anthropic, crate::ok(), &[]);
    put(
        bench.workspace.path(),
        ".claude/rules/a.md",
        "always theirs",
    );
    assert!(run(&bench, &[]).system().contains("always theirs"));
}

fn tasks(content: &str) -> Reply {
    let task = json!({"id": "1", "content": content, "status": "in_progress"});
    Reply::tool("TodoWrite", json!({"todos": [task]}))
}

#[test]
fn the_task_list_is_told_after_a_summary_and_after_a_resume() {
    let script = Script::new([
        tasks("mend the roof"),
        full(read("top.txt")),
        Reply::text("SUMMARY"),
        Reply::text("done"),
        Reply::text("resumed"),
    ]);
    let bench = repository(Wire::Anthropic, script, &FILES);
    let first = run(&bench, &["--session", "s"]);
    let told = "The task list of this session:\n\n[~] 1: mend the roof";
    // The model has just written it.
    assert_eq!(count(&user_texts(&first, 1), told), 0);
    let texts = user_texts(&first, 3);
    assert!(
        texts[0].contains("SUMMARY") && texts[0].contains(told),
        "{texts:?}"
    );
    let resumed = run(&bench, &["--session", "s", "-p", "go on"]);
    let texts = user_texts(&resumed, 0);
    let last = texts.last().unwrap();
    assert!(
        last.starts_with("go on") && last.contains(told),
        "{texts:?}"
    );
}

#[test]
fn a_list_that_a_sub_agent_changed_is_told() {
    let script = Script::new([
        Reply::tool("AgentTool", json!({"prompt": "look into it"})),
        tasks("paint the fence").when(Match::last_user("look into it")),
        Reply::text("found"),
        Reply::text("done"),
    ]);
    let bench = repository(Wire::Anthropic, script, &FILES);
    let told = run(&bench, &[]);
    let texts = user_texts(&told, 3);
    assert_eq!(count(&texts, "[~] 1: paint the fence"), 1, "{texts:?}");
}
