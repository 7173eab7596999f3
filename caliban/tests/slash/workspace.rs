//! Commands about the workspace: drafts, differences, directories, trust and settings.

use std::path::Path;
use std::process::Command;

use caliban_testkit::Reply;

use crate::bench;
use crate::support::Bench;

/// Runs git with nobody's configuration.
fn git(directory: &Path, args: &[&str]) {
    let status = Command::new("git")
        .args([
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@b",
            "-c",
            "commit.gpgsign=false",
        ])
        .args(args)
        .current_dir(directory)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap()
        .status;
    assert!(status.success(), "git {args:?}");
}

fn write(bench: &Bench, name: &str, text: &str) {
    std::fs::write(bench.workspace.path().join(name), text).unwrap();
}

fn read(bench: &Bench, name: &str) -> String {
    std::fs::read_to_string(bench.workspace.path().join(name)).unwrap()
}

fn repository() -> Bench {
    let bench = bench([]);
    git(bench.workspace.path(), &["init", "-q"]);
    write(&bench, "a.txt", "old\n");
    git(bench.workspace.path(), &["add", "a.txt"]);
    git(bench.workspace.path(), &["commit", "-qm", "First"]);
    bench
}

#[test]
fn a_draft_gathers_what_the_project_says() {
    let bench = repository();
    write(&bench, "AGENTS.md", "Run `make`.");
    write(&bench, ".cursorrules", "No tabs.");
    write(&bench, ".windsurfrules", "Short lines.");
    write(&bench, "README.md", "# Paint\nIt paints.");
    let ran = bench.run(["-p", "/init"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let draft = read(&bench, "CLAUDE.draft.md");
    for part in [
        "Run `make`.",
        "No tabs.",
        "Short lines.",
        "It paints.",
        "?? AGENTS.md",
    ] {
        assert!(draft.contains(part), "{part}: {draft}");
    }
    assert!(!bench.workspace.path().join("CLAUDE.md").exists());
    assert!(bench.server.requests().is_empty());
}

#[test]
fn a_draft_replaces_nothing_unless_forced() {
    let bench = bench([]);
    write(&bench, "CLAUDE.md", "Mine.");
    let ran = bench.run(["-p", "/init"]);
    assert_eq!(ran.code, Some(64));
    assert!(ran.stderr.contains("--force"), "{}", ran.stderr);
    assert!(!bench.workspace.path().join("CLAUDE.draft.md").exists());
    assert_eq!(bench.run(["-p", "/init --force"]).code, Some(0));
    assert_eq!(read(&bench, "CLAUDE.md"), "Mine.");
    assert_eq!(
        bench.run(["-p", "/init --force"]).code,
        Some(0),
        "its own draft"
    );
}

#[cfg(unix)]
#[test]
fn a_draft_neither_reads_nor_writes_through_links_that_lead_out() {
    use std::os::unix::fs::symlink;
    let bench = bench([]);
    let (secret, target) = (
        bench.home.path().join("secret"),
        bench.home.path().join("target"),
    );
    std::fs::write(&secret, "hush").unwrap();
    std::fs::write(&target, "untouched").unwrap();
    symlink(&secret, bench.workspace.path().join("AGENTS.md")).unwrap();
    symlink(&target, bench.workspace.path().join("CLAUDE.draft.md")).unwrap();
    assert_eq!(bench.run(["-p", "/init"]).code, Some(64));
    let ran = bench.run(["-p", "/init --force"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "untouched");
    assert!(!read(&bench, "CLAUDE.draft.md").contains("hush"));
}

#[test]
fn differences_are_shown_with_new_files() {
    let bench = repository();
    let none = bench.run(["-p", "/diff"]);
    assert!(
        none.stdout.contains("Nothing differs"),
        "{}{}",
        none.stdout,
        none.stderr
    );
    write(&bench, "a.txt", "new\n");
    write(&bench, "b.txt", "b");
    let text = bench.run(["-p", "/diff"]).stdout;
    assert!(text.contains("-old\n+new"), "{text}");
    assert!(text.contains("new files\n  b.txt"), "{text}");
}

#[test]
fn without_a_repository_there_is_no_difference() {
    let ran = bench([]).run(["-p", "/diff"]);
    assert_eq!(ran.code, Some(64));
    assert!(
        ran.stderr.contains("not a git repository"),
        "{}",
        ran.stderr
    );
}

/// What an archive unpacked may bring along is not trusted.
#[cfg(unix)]
#[test]
fn a_repository_runs_nothing_when_it_is_looked_at() {
    let bench = repository();
    let mark = bench.home.path().join("ran");
    let touch = format!("touch {}; cat", mark.display());
    let root = bench.workspace.path();
    for (key, value) in [
        ("core.fsmonitor", touch.as_str()),
        ("core.pager", &touch),
        ("diff.external", &touch),
        ("diff.d.textconv", &touch),
        ("diff.d.command", &touch),
        ("filter.f=x.clean", &touch),
        ("filter.f=x.required", "true"),
        ("filter.g.process", &touch),
    ] {
        git(root, &["config", key, value]);
    }
    write(
        &bench,
        ".gitattributes",
        "a.txt diff=d filter=f=x\nb.txt filter=g\n",
    );
    write(&bench, "a.txt", "new\n");
    write(&bench, "b.txt", "new\n");
    let _ = std::fs::remove_file(&mark);
    let ran = bench.run(["-p", "/diff"]);
    assert!(ran.stdout.contains("+new"), "{}{}", ran.stdout, ran.stderr);
    assert_eq!(bench.run(["-p", "/init"]).code, Some(0));
    assert!(!mark.exists());
}

#[test]
fn a_further_directory_is_checked_and_counts() {
    let bench = bench([
        Reply::tool("Read", serde_json::json!({"file_path": "PATH"})),
        Reply::text("never"),
    ]);
    let missing = bench.run(["-p", "/add-dir nowhere"]);
    assert_eq!(missing.code, Some(64));
    assert!(
        missing.stderr.contains("not a directory"),
        "{}",
        missing.stderr
    );
    let own = bench.run(["-p", "/add-dir ."]);
    assert!(
        own.stdout.contains("within reach already"),
        "{}",
        own.stdout
    );
}

#[test]
fn a_further_directory_may_be_read_from_then_on() {
    let other = tempfile::tempdir().unwrap();
    let file = other.path().canonicalize().unwrap().join("far.txt");
    std::fs::write(&file, "far away").unwrap();
    let call = serde_json::json!({"file_path": file});
    let replies = [Reply::tool("Read", call.clone()), Reply::text("one")];
    let again = [Reply::tool("Read", call), Reply::text("two")];
    let bench = bench(replies.into_iter().chain(again));
    let user = |text: String| format!("{}\n", serde_json::json!({"type": "user", "content": text}));
    let lines = [
        user("Read.".to_owned()),
        user(format!("/add-dir {}", other.path().display())),
        user("Read again.".to_owned()),
    ];
    let mut command = bench.command();
    command.args(["-p", "--restrict-paths", "--input-format", "stream-json"]);
    command.args(["--output-format", "stream-json"]);
    let ran = crate::support::run_with_input(&mut command, lines.concat().as_bytes());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let results: Vec<String> = bench
        .server
        .model_requests()
        .iter()
        .map(|request| {
            request.json()["messages"]
                .as_array()
                .unwrap()
                .last()
                .unwrap()
                .to_string()
        })
        .collect();
    assert!(!results[1].contains("far away"), "{}", results[1]);
    assert!(results[3].contains("far away"), "{}", results[3]);
}

#[test]
fn trust_tells_what_waits_for_it() {
    let bench = bench([]);
    std::fs::create_dir(bench.workspace.path().join(".caliban")).unwrap();
    write(&bench, ".caliban/settings.toml", "api_key_helper = 'x'\n");
    let ran = bench.run(["-p", "/trust"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for part in ["is not trusted", "api_key_helper", "`caliban trust`"] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    let listed = bench.run(["trust", "--list"]);
    assert_eq!(listed.stdout, "", "telling is not granting");
}

#[test]
fn settings_are_shown_with_their_origin_and_without_secrets() {
    let bench = bench([]);
    let directory = bench.home.path().join(".config/caliban");
    std::fs::create_dir_all(&directory).unwrap();
    let text = "effort = 'high'\n[env]\nMY_TOKEN = 'hush'\n";
    std::fs::write(directory.join("settings.toml"), text).unwrap();
    let shown = bench.run(["-p", "/config"]).stdout;
    assert!(
        shown.contains("effort") && shown.contains("user"),
        "{shown}"
    );
    assert!(!shown.contains("hush"), "{shown}");
}
