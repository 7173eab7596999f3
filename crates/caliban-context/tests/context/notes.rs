use std::fs;
use std::path::Path;
use std::sync::Arc;

use caliban_agent::{
    Confinement, Effect, OpenReading, Progress, Tool, ToolContext, ToolOutput, ToolStatus,
    TypedTool, Workspace,
};
use caliban_context::{
    Author, NoteStore, NotesError, ReadMemoryTopic, Topic, TopicName, TopicType, WriteMemoryTopic,
    load_memory,
};
use caliban_model::CancellationToken;
use serde_json::{Value, json};

use super::Fixture;

fn name(text: &str) -> TopicName {
    text.parse().unwrap()
}

fn topic(description: &str) -> Topic {
    Topic::new(description, TopicType::Project, "the body").unwrap()
}

fn index(store: &NoteStore) -> String {
    fs::read_to_string(store.directory().join("MEMORY.md")).unwrap()
}

fn entries(store: &NoteStore) -> Vec<String> {
    let lines = index(store);
    let entry = |line: &&str| line.starts_with("- [");
    lines.lines().filter(entry).map(str::to_owned).collect()
}

async fn run(tool: &Arc<dyn Tool>, input: Value) -> ToolOutput {
    let temp = tempfile::tempdir().unwrap();
    let workspace = Workspace::new(temp.path(), &[], None, Confinement::Open).unwrap();
    let context = ToolContext {
        call_id: Arc::from("call-1"),
        session_id: Arc::from("session-1"),
        workspace: Arc::new(workspace),
        reading: OpenReading::shared(),
        cancel: CancellationToken::new(),
        progress: Progress::silent(),
        trace: None,
    };
    tool.run(input, context).await
}

#[tokio::test]
async fn the_tools_write_and_read_topics() {
    let fixture = Fixture::new();
    let store = NoteStore::new(&fixture.places.notes);
    let write = WriteMemoryTopic::new(store.clone()).boxed();
    let read = ReadMemoryTopic::new(store.clone()).boxed();
    assert_eq!(
        (read.effect(), write.effect()),
        (Effect::ReadOnly, Effect::Writes)
    );
    let input = json!({
        "name": "build", "type": "project", "description": "how to build", "body": "use make\u{200b}"
    });
    assert_eq!(run(&write, input.clone()).await.text(), "Saved `build`.");
    assert_eq!(write.first_arg(&input).as_deref(), Some("build"));
    let workspace = Workspace::new(&fixture.base, &[], None, Confinement::Open).unwrap();
    assert_eq!(
        write.conflict_key(&input, &workspace).as_deref(),
        Some("memory:build")
    );

    let output = run(&read, json!({"name": "build"})).await;
    assert_eq!(output.text(), "build (project): how to build\n\nuse make");
    assert_eq!(
        entries(&store),
        ["- [build](build.md) — project: how to build"]
    );
    let author = Author {
        session: "session-1".to_owned(),
        call: "call-1".to_owned(),
    };
    assert_eq!(store.read(&name("build")).unwrap().author(), Some(&author));

    let memory = load_memory(&fixture.places, &fixture.options);
    assert!(memory.sections[0].text.contains("project: how to build"));
    assert!(!memory.sections[0].text.contains("use make"));
}

#[tokio::test]
async fn names_and_texts_are_checked() {
    let fixture = Fixture::new();
    let victim = fixture.write("home/.local/share/caliban/projects/x/victim.md", "safe");
    let store = NoteStore::new(&fixture.places.notes);
    let write = WriteMemoryTopic::new(store.clone()).boxed();
    let read = ReadMemoryTopic::new(store.clone()).boxed();
    for bad in [
        "../victim",
        "/etc/passwd",
        "..",
        "",
        ".x",
        "a/b",
        "MEMORY",
        "a\0",
        "ａ",
    ] {
        let input = json!({"name": bad, "type": "user", "description": "d", "body": "b"});
        assert_eq!(
            run(&write, input).await.status,
            ToolStatus::InvalidInput,
            "{bad}"
        );
        let output = run(&read, json!({"name": bad})).await;
        assert_eq!(output.status, ToolStatus::InvalidInput, "{bad}");
    }
    for bad in [
        json!({"name": "a", "type": "other", "description": "d", "body": "b"}),
        json!({"name": "a", "type": "user", "description": "d\ne", "body": "b"}),
        json!({"name": "a", "type": "user", "description": "d", "body": ""}),
        json!({"name": "a", "type": "user", "description": "d", "body": "x".repeat(70_000)}),
    ] {
        assert_eq!(run(&write, bad).await.status, ToolStatus::InvalidInput);
    }
    assert_eq!(fs::read_to_string(victim).unwrap(), "safe");
    assert!(!store.directory().exists(), "nothing was written");
    assert_eq!(
        run(&read, json!({"name": "none"})).await.status,
        ToolStatus::Failed
    );
}

#[cfg(unix)]
#[test]
fn links_are_neither_read_nor_written_through() {
    let fixture = Fixture::new();
    let outside = fixture.write("outside.md", "untouched");
    let store = NoteStore::new(&fixture.places.notes);
    store.write(&name("a"), &topic("one")).unwrap();
    for file in ["b.md", "MEMORY.md"] {
        let path = store.directory().join(file);
        let _ = fs::remove_file(&path);
        super::link(&outside, &path);
    }
    let refused = store.read(&name("b")).unwrap_err();
    assert!(matches!(refused, NotesError::Unusable { .. }), "{refused}");
    assert!(
        store.write(&name("b"), &topic("two")).is_err(),
        "the index is a link"
    );
    fs::remove_file(store.directory().join("MEMORY.md")).unwrap();
    store.write(&name("b"), &topic("two")).unwrap();
    assert_eq!(store.read(&name("b")).unwrap(), topic("two"));
    assert_eq!(fs::read_to_string(outside).unwrap(), "untouched");
    let mode = |path: &Path| {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert_eq!(mode(store.directory()), 0o700);
    assert_eq!(mode(&store.directory().join("b.md")), 0o600);
}

#[test]
fn concurrent_writers_lose_nothing() {
    let fixture = Fixture::new();
    std::thread::scope(|scope| {
        for index in 0..16 {
            let store = NoteStore::new(&fixture.places.notes);
            scope.spawn(move || {
                store
                    .write(&name(&format!("own-{index:02}")), &topic("mine"))
                    .unwrap();
                store
                    .write(&name("shared"), &topic(&format!("by {index}")))
                    .unwrap();
            });
        }
    });
    let store = NoteStore::new(&fixture.places.notes);
    let found = store.topics();
    assert_eq!((found.topics.len(), found.notices.len()), (17, 0));
    let entries = entries(&store);
    assert_eq!(entries.len(), 17);
    let shared = store.read(&name("shared")).unwrap();
    let line = format!("- [shared](shared.md) — project: {}", shared.description());
    assert!(entries.contains(&line), "the index agrees with the file");
    let left: Vec<_> = fs::read_dir(store.directory()).unwrap().collect();
    assert_eq!(left.len(), 19, "topics, the index, the lock");
}

#[test]
fn the_index_is_rebuilt_from_the_topics() {
    let fixture = Fixture::new();
    let store = NoteStore::new(&fixture.places.notes);
    for (topic_name, text) in [("a", "one"), ("b", "two"), ("c", "three")] {
        store.write(&name(topic_name), &topic(text)).unwrap();
    }
    fs::remove_file(store.directory().join("a.md")).unwrap();
    fs::write(store.directory().join("broken.md"), "no head").unwrap();
    let without_b = index(&store).replace("- [b](b.md) — project: two\n", "written by hand\n");
    fs::write(store.directory().join("MEMORY.md"), without_b).unwrap();
    let found = store.rebuild_index().unwrap();
    assert_eq!((found.topics.len(), found.notices.len()), (2, 1));
    assert_eq!(
        entries(&store),
        ["- [c](c.md) — project: three", "- [b](b.md) — project: two"]
    );
    assert!(index(&store).contains("written by hand\n"));

    assert!(store.remove(&name("b")).unwrap());
    assert!(!store.remove(&name("b")).unwrap());
    assert_eq!(entries(&store), ["- [c](c.md) — project: three"]);
    fs::remove_file(store.directory().join("MEMORY.md")).unwrap();
    store.rebuild_index().unwrap();
    assert!(index(&store).starts_with("# Memory index\n"));
    assert_eq!(entries(&store), ["- [c](c.md) — project: three"]);
}

#[test]
fn the_number_of_topics_is_bounded() {
    let fixture = Fixture::new();
    let store = NoteStore::new(&fixture.places.notes);
    store.write(&name("a"), &topic("one")).unwrap();
    for index in 0..499 {
        fs::write(store.directory().join(format!("t{index}.md")), "x").unwrap();
    }
    let full = store.write(&name("b"), &topic("two")).unwrap_err();
    assert!(matches!(full, NotesError::Full));
    store.write(&name("a"), &topic("changed")).unwrap();
}
