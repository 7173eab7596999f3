//! Prompts are taken back through the built binary, in files and conversation.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]
#![cfg(unix)]

mod support;

use std::fs;

use caliban_testkit::{Reply, Script};
use serde_json::{Value, json};
use support::{Bench, Ran, Wire};

fn write(path: &str, content: &str) -> Reply {
    Reply::tool("Write", json!({ "file_path": path, "content": content }))
}

fn text(bench: &Bench, path: &str) -> Option<String> {
    fs::read_to_string(bench.workspace.path().join(path)).ok()
}

fn prompt(bench: &Bench, prompt: &str) -> Ran {
    let ran = bench.run(["-p", prompt, "--session", "s", "--no-permissions"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran
}

fn rewind(bench: &Bench, args: &[&str]) -> Ran {
    bench.run(["rewind", "--session", "s"].iter().chain(args))
}

/// What the model was told last, as text.
fn last_request(bench: &Bench) -> String {
    let requests = bench.server.model_requests();
    requests.last().unwrap().json()["messages"].to_string()
}

fn saved(bench: &Bench) -> Value {
    let exported = bench.run(["sessions", "export", "s", "--format", "json"]);
    assert_eq!(exported.code, Some(0), "{exported:?}");
    serde_json::from_str(&exported.stdout).unwrap()
}

/// Three prompts, each of which writes the same file.
fn three() -> Bench {
    let mut replies = Vec::new();
    for number in ["one", "two", "three"] {
        replies.push(write("a.txt", number));
        replies.push(Reply::text(format!("wrote {number}")));
    }
    replies.extend((0..9).map(|_| Reply::text("more")));
    let bench = Bench::new(Wire::Anthropic, Script::new(replies));
    for number in ["first", "second", "third"] {
        prompt(&bench, number);
    }
    bench
}

#[test]
fn files_and_conversation_go_to_the_same_point_and_forward_again() {
    let bench = three();
    let back = rewind(&bench, &["--to", "1"]);
    assert_eq!(back.code, Some(0), "{back:?}");
    assert_eq!(text(&bench, "a.txt").unwrap(), "one");
    let exported = saved(&bench).to_string();
    assert!(exported.contains("wrote one") && !exported.contains("wrote two"));
    prompt(&bench, "other");
    let asked = last_request(&bench);
    assert!(asked.contains("first") && asked.contains("wrote one") && asked.contains("other"));
    assert!(
        !asked.contains("second") && !asked.contains("third"),
        "{asked}"
    );

    let listed = rewind(&bench, &["--list"]).stdout;
    assert!(
        listed.contains("   2  ") && listed.contains("(taken back)  second"),
        "{listed}"
    );
    assert!(!listed.contains("(taken back)  first"), "{listed}");

    let forward = rewind(&bench, &["--to", "3"]);
    assert_eq!(forward.code, Some(0), "{forward:?}");
    assert_eq!(text(&bench, "a.txt").unwrap(), "three");
    prompt(&bench, "go on");
    let asked = last_request(&bench);
    assert!(
        asked.contains("wrote three") && !asked.contains("other"),
        "{asked}"
    );
}

#[test]
fn each_of_the_two_can_go_back_alone_and_the_model_knows() {
    let bench = three();
    assert_eq!(rewind(&bench, &["--to", "1", "--code"]).code, Some(0));
    assert_eq!(text(&bench, "a.txt").unwrap(), "one");
    prompt(&bench, "go on");
    let asked = last_request(&bench);
    assert!(asked.contains("wrote three"), "{asked}");
    assert!(
        asked.contains("took changes back") && asked.contains("`a.txt`"),
        "{asked}"
    );

    assert_eq!(
        rewind(&bench, &["--to", "2", "--conversation"]).code,
        Some(0)
    );
    assert_eq!(text(&bench, "a.txt").unwrap(), "one");
    prompt(&bench, "go on");
    let asked = last_request(&bench);
    assert!(
        asked.contains("wrote two") && !asked.contains("wrote three"),
        "{asked}"
    );
    assert!(asked.contains("The files were not"), "{asked}");
}

#[test]
fn what_a_conversation_was_before_it_was_condensed_can_be_gone_to() {
    let bench = three();
    let condensed = prompt(&bench, "/compact");
    assert!(condensed.stdout.contains("condensed"), "{condensed:?}");
    assert!(!saved(&bench).to_string().contains("wrote one"));
    assert_eq!(rewind(&bench, &["--to", "2"]).code, Some(0));
    assert_eq!(text(&bench, "a.txt").unwrap(), "two");
    let exported = saved(&bench).to_string();
    assert!(exported.contains("wrote two") && !exported.contains("wrote three"));
}

#[test]
fn the_command_at_the_prompt_lists_previews_and_takes_back() {
    let bench = three();
    let calls = bench.server.model_requests().len();
    let listed = prompt(&bench, "/rewind");
    assert!(listed.stdout.contains("third") && listed.stdout.contains("before the first prompt"));
    let shown = prompt(&bench, "/rewind 1 --dry-run");
    assert!(
        shown.stdout.contains("-three") && shown.stdout.contains("+one"),
        "{shown:?}"
    );
    assert_eq!(text(&bench, "a.txt").unwrap(), "three");
    let back = prompt(&bench, "/rewind 1");
    assert!(back.stdout.contains("restored a.txt"), "{back:?}");
    assert!(
        back.stdout
            .contains("the conversation goes on after prompt 1"),
        "{back:?}"
    );
    assert!(
        back.stdout.contains("`/rewind 3` takes this back"),
        "{back:?}"
    );
    assert_eq!(text(&bench, "a.txt").unwrap(), "one");
    assert_eq!(
        bench.server.model_requests().len(),
        calls,
        "no model is asked"
    );
    prompt(&bench, "other");
    assert!(!last_request(&bench).contains("wrote two"));
    let none = bench.run(["-p", "/rewind 99", "--session", "s"]);
    assert_eq!(none.code, Some(64), "{none:?}");
}

#[test]
fn a_summary_takes_the_place_of_what_was_said_before_or_since() {
    let bench = three();
    let replies = bench.server.model_requests().len();
    prompt(&bench, "/rewind 1 --summarize-up-to");
    assert_eq!(bench.server.model_requests().len(), replies + 1);
    prompt(&bench, "go on");
    let asked = last_request(&bench);
    assert!(
        !asked.contains("wrote one") && asked.contains("wrote two"),
        "{asked}"
    );
    assert!(asked.contains("condensed"), "{asked}");
    // What was condensed is still there to go to.
    assert_eq!(
        rewind(&bench, &["--to", "3", "--conversation"]).code,
        Some(0)
    );
    prompt(&bench, "/rewind 2 --summarize-from");
    prompt(&bench, "go on");
    let asked = last_request(&bench);
    assert!(
        asked.contains("wrote two") && !asked.contains("wrote three"),
        "{asked}"
    );
    assert_eq!(text(&bench, "a.txt").unwrap(), "three");
}

#[test]
fn tasks_follow_the_conversation() {
    let tasks = |name: &str| {
        Reply::tool(
            "TodoWrite",
            json!({"todos": [{"id": "1", "content": name, "status": "pending"}]}),
        )
    };
    let replies = vec![
        tasks("plant"),
        Reply::text("one"),
        tasks("water"),
        Reply::text("two"),
    ];
    let bench = Bench::new(Wire::Anthropic, Script::new(replies));
    prompt(&bench, "first");
    prompt(&bench, "second");
    assert!(prompt(&bench, "/tasks").stdout.contains("water"));
    prompt(&bench, "/rewind 1");
    assert!(prompt(&bench, "/tasks").stdout.contains("plant"));
    assert_eq!(rewind(&bench, &["--to", "0"]).code, Some(0));
    assert!(prompt(&bench, "/tasks").stdout.contains("empty"));
}

#[test]
fn a_copy_has_the_checkpoints_and_goes_its_own_way() {
    let bench = three();
    let copied = bench.run([
        "-p",
        "in the copy",
        "-r",
        "s",
        "--fork-session",
        "--no-permissions",
        "--output-format",
        "json",
    ]);
    assert_eq!(copied.code, Some(0), "{copied:?}");
    let result: Value = serde_json::from_str(&copied.stdout).unwrap();
    let id = result["session_id"].as_str().unwrap();
    let back = bench.run(["rewind", "--session", id, "--to", "1"]);
    assert_eq!(back.code, Some(0), "{back:?}");
    assert_eq!(text(&bench, "a.txt").unwrap(), "one");
    assert!(saved(&bench).to_string().contains("wrote three"));
    assert_eq!(bench.run(["sessions", "rm", "s"]).code, Some(0));
    let forward = bench.run(["rewind", "--session", id, "--to", "3"]);
    assert_eq!(forward.code, Some(0), "{forward:?}");
    assert_eq!(text(&bench, "a.txt").unwrap(), "three");
}

#[test]
fn doctor_tells_what_is_kept_and_what_is_unfinished() {
    let bench = three();
    let told = bench.run(["doctor"]).stdout;
    assert!(told.contains("3 checkpoints of 1 session here"), "{told}");
    let projects = fs::read_dir(bench.home.path().join(".caliban/projects")).unwrap();
    let project = projects.map(|it| it.unwrap().path()).next().unwrap();
    let session = project.join("checkpoints/s");
    fs::write(session.join("prompt-002/manifest.json"), "{").unwrap();
    let told = bench.run(["doctor"]).stdout;
    assert!(told.contains("1 are damaged"), "{told}");
    fs::write(session.join("restore.json"), "{}").unwrap();
    let told = bench.run(["doctor"]).stdout;
    assert!(told.contains("a rewind of `s` was interrupted"), "{told}");
}

#[test]
fn a_repository_that_has_moved_on_is_told_of() {
    let bench = Bench::new(
        Wire::Anthropic,
        Script::new([
            write("a.txt", "one"),
            Reply::text("done"),
            Reply::tool(
                "Bash",
                json!({"command": "git init -q -b main . && git add a.txt && \
                    git -c user.name=a -c user.email=a@b commit -qm one"}),
            ),
            Reply::text("begun"),
            write("a.txt", "two"),
            Reply::tool(
                "Bash",
                json!({"command": "git -c user.name=a -c user.email=a@b commit -qam two"}),
            ),
            Reply::text("committed"),
        ]),
    );
    for number in ["first", "second", "third"] {
        prompt(&bench, number);
    }
    let git = |args: &[&str]| {
        let mut command = std::process::Command::new("git");
        let ran = command
            .args(args)
            .current_dir(bench.workspace.path())
            .output();
        String::from_utf8(ran.unwrap().stdout)
            .unwrap()
            .trim()
            .to_owned()
    };
    let (then, now) = (git(&["rev-parse", "HEAD~"]), git(&["rev-parse", "HEAD"]));
    let line = format!(
        "git was at main {} and is at main {}:",
        &then[..12],
        &now[..12]
    );
    for args in [&["--to", "2", "--dry-run"][..], &["--to", "2"]] {
        let ran = rewind(&bench, args);
        assert!(ran.stdout.contains(&line), "{ran:?}\n{line}");
    }
    assert_eq!(text(&bench, "a.txt").as_deref(), Some("one"));
    // What was committed stays.
    assert_eq!(git(&["rev-parse", "HEAD"]), now);
    // From there on nothing has moved.
    let ran = rewind(&bench, &["--to", "3", "--dry-run"]);
    assert!(!ran.stdout.contains("git was at"), "{ran:?}");
}
