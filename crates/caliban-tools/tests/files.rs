//! The file tools as the loop uses them.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "helpers of tests are tests too")]

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use caliban_agent::{
    Confinement, Effect, OpenReading, Progress, Tool, ToolContext, ToolOutput, ToolStatus,
    TypedTool, Workspace,
};
use caliban_model::{CancellationToken, ImageMime, ImageSource, ToolContent};
use caliban_tools::{EditTool, FileState, MultiEditTool, NotebookEditTool, ReadTool, WriteTool};
use serde_json::{Value, json};

/// A workspace `root` with a directory `outside` beside it.
struct Bench {
    _temp: tempfile::TempDir,
    base: PathBuf,
    workspace: Arc<Workspace>,
    tools: Vec<Arc<dyn Tool>>,
}

impl Bench {
    fn new(confinement: Confinement) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        for directory in ["root", "outside", "root-evil"] {
            std::fs::create_dir(base.join(directory)).unwrap();
        }
        let workspace = Workspace::new(&base.join("root"), &[], None, confinement).unwrap();
        let state = Arc::new(FileState::new());
        Self {
            _temp: temp,
            base,
            workspace: Arc::new(workspace),
            tools: vec![
                ReadTool::new(Arc::clone(&state)).boxed(),
                WriteTool::new(Arc::clone(&state)).boxed(),
                EditTool::new(Arc::clone(&state)).boxed(),
                MultiEditTool::new(Arc::clone(&state)).boxed(),
                NotebookEditTool::new(state).boxed(),
            ],
        }
    }

    fn open() -> Self {
        Self::new(Confinement::Open)
    }

    fn restricted() -> Self {
        Self::new(Confinement::Restricted)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.base.join("root").join(path)
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(path), content).unwrap();
    }

    fn content(&self, path: &str) -> String {
        std::fs::read_to_string(self.path(path)).unwrap()
    }

    fn names(&self, directory: &str) -> Vec<String> {
        names(&self.path(directory))
    }

    async fn call(&self, tool: &str, input: Value) -> ToolOutput {
        self.call_with(tool, input, CancellationToken::new()).await
    }

    async fn call_with(&self, tool: &str, input: Value, cancel: CancellationToken) -> ToolOutput {
        let context = ToolContext {
            call_id: "call".into(),
            session_id: "session".into(),
            workspace: Arc::clone(&self.workspace),
            reading: OpenReading::shared(),
            cancel,
            progress: Progress::silent(),
            trace: None,
        };
        let named = |candidate: &&Arc<dyn Tool>| candidate.spec().name == tool;
        let tool = self.tools.iter().find(named).unwrap();
        tool.run(input, context).await
    }

    async fn ok(&self, tool: &str, input: Value) -> String {
        let output = self.call(tool, input).await;
        assert_eq!(output.status, ToolStatus::Ok, "{}", output.text());
        output.text()
    }

    async fn refused(&self, tool: &str, input: Value, status: ToolStatus) -> String {
        let output = self.call(tool, input).await;
        assert_eq!(output.status, status, "{}", output.text());
        output.text()
    }

    async fn fails(&self, tool: &str, input: Value) -> String {
        self.refused(tool, input, ToolStatus::Failed).await
    }
}

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn edit(path: &str, old: &str, new: &str) -> Value {
    json!({"path": path, "old_string": old, "new_string": new})
}

#[test]
fn specifications_are_small_and_closed() {
    for tool in Bench::open().tools {
        let spec = tool.spec();
        let size = serde_json::to_string(&json!({
            "name": spec.name, "description": spec.description, "input_schema": spec.input_schema,
        }))
        .unwrap()
        .len();
        let limit = match spec.name.as_str() {
            "NotebookEdit" => 750,
            _ => 620,
        };
        assert!(size <= limit, "{}: {size} bytes", spec.name);
        assert_eq!(spec.input_schema["additionalProperties"], json!(false));
        let expected = match spec.name.as_str() {
            "Read" => Effect::ReadOnly,
            _ => Effect::Writes,
        };
        assert_eq!(tool.effect(), expected);
    }
}

#[test]
fn calls_are_identified_by_their_file() {
    let bench = Bench::open();
    symlink("real.txt", bench.path("link.txt")).unwrap();
    let real = bench.path("real.txt").display().to_string();
    for tool in &bench.tools {
        let input = match tool.spec().name.as_str() {
            "Read" | "NotebookEdit" => json!({"file_path": "link.txt"}),
            "Write" => json!({"file_path": "link.txt", "content": ""}),
            "MultiEdit" => json!({"file_path": "link.txt", "edits": []}),
            _ => json!({"file_path": "link.txt", "old_string": "", "new_string": ""}),
        };
        assert_eq!(tool.first_arg(&input).as_deref(), Some("link.txt"));
        let key = tool.conflict_key(&input, &bench.workspace);
        assert_eq!(key.as_deref(), Some(real.as_str()));
    }
    let key = |input: Value| bench.tools[0].supersession_key(&input).unwrap();
    assert_eq!(
        key(json!({"path": "a/./b"})),
        key(json!({"path": "a/b", "offset": 1}))
    );
    assert_ne!(
        key(json!({"path": "a"})),
        key(json!({"path": "a", "offset": 2001}))
    );
    assert_ne!(key(json!({"path": "a"})), key(json!({"path": "b"})));
}

#[tokio::test]
async fn read_numbers_lines_and_pages() {
    let bench = Bench::open();
    bench.put("small", "one\r\n\ttwo");
    assert_eq!(
        bench.ok("Read", json!({"path": "small"})).await,
        "     1\tone\n     2\t\ttwo\n"
    );
    let lines: Vec<_> = (1..=2500).map(|number| format!("l{number}\n")).collect();
    bench.put("long", lines.concat());
    let first = bench.ok("Read", json!({"path": "long"})).await;
    assert!(first.ends_with("  2000\tl2000\n(lines 1-2000 of 2500; read on with offset 2001)\n"));
    let rest = bench
        .ok("Read", json!({"path": "long", "offset": 2499}))
        .await;
    assert_eq!(
        rest,
        "  2499\tl2499\n  2500\tl2500\n(lines 2499-2500 of 2500)\n"
    );
    let beyond = json!({"path": "long", "offset": 2501});
    let text = bench
        .refused("Read", beyond, ToolStatus::InvalidInput)
        .await;
    assert_eq!(
        text,
        "`long` has only 2500 lines; offset 2501 is beyond its end."
    );
    bench.put("empty", "");
    assert_eq!(
        bench.ok("Read", json!({"path": "empty"})).await,
        "`empty` is empty."
    );
    let none = json!({"path": "long", "limit": 0});
    bench.refused("Read", none, ToolStatus::InvalidInput).await;
}

#[tokio::test]
async fn large_files_are_streamed_on_request() {
    let bench = Bench::open();
    let line = "x".repeat(99) + "\n";
    bench.put("large", line.repeat(60_000));
    let refusal = bench.fails("Read", json!({"path": "large"})).await;
    assert!(
        refusal.contains("6.0 MB") && refusal.contains("offset"),
        "{refusal}"
    );
    let page = json!({"path": "large", "offset": 59_999, "limit": 1});
    let text = bench.ok("Read", page).await;
    assert!(text.starts_with(" 59999\txxx"));
    assert!(
        text.ends_with("(lines 59999-59999 of a file of 6.0 MB; read on with offset 60000)\n"),
        "{text}"
    );
    let last = json!({"path": "large", "offset": 60_000});
    assert!(
        bench
            .ok("Read", last)
            .await
            .ends_with("(lines 60000-60000 of 60000)\n")
    );
    // Its pages were read, not its whole; a change is still noticed.
    bench.put("large", "different");
    let write = json!({"path": "large", "content": ""});
    assert!(
        bench
            .fails("Write", write)
            .await
            .contains("changed on disk")
    );
}

#[tokio::test]
async fn a_long_search_for_a_line_ends_when_cancelled() {
    let bench = Bench::open();
    bench.put("sparse", "x\n".repeat(8192));
    let file = std::fs::File::options()
        .write(true)
        .open(bench.path("sparse"))
        .unwrap();
    file.set_len(1 << 36).unwrap();
    let cancel = CancellationToken::new();
    let page = json!({"path": "sparse", "offset": 1_000_000});
    let read = bench.call_with("Read", page, cancel.clone());
    let (output, ()) = tokio::join!(read, async { cancel.cancel() });
    assert_eq!(output.status, ToolStatus::Cancelled);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn files_of_the_kernel_are_read_although_they_claim_to_be_empty() {
    let bench = Bench::open();
    let text = bench.ok("Read", json!({"path": "/proc/self/status"})).await;
    assert!(text.starts_with("     1\tName:"), "{text}");
}

#[tokio::test]
async fn what_is_not_text_is_named() {
    let bench = Bench::open();
    bench.put("binary", b"abc\0def");
    let text = bench.fails("Read", json!({"path": "binary"})).await;
    assert!(text.contains("binary data (7 bytes)"), "{text}");
    bench.put("paper.txt", "%PDF-1.4\n");
    let text = bench.fails("Read", json!({"path": "paper.txt"})).await;
    assert!(text.contains("a PDF document"), "{text}");
    bench.put("latin", b"caf\xe9 au lait\n");
    let text = bench.ok("Read", json!({"path": "latin"})).await;
    assert!(
        text.starts_with("     1\tcaf\u{fffd} au lait\n(bytes"),
        "{text}"
    );
    bench.put("wide", b"\xff\xfeh\0i\0\n\0");
    assert_eq!(
        bench.ok("Read", json!({"path": "wide"})).await,
        "     1\thi\n(the file is UTF-16; shown decoded)\n"
    );
    bench.put("marked", "\u{feff}text\n");
    assert_eq!(
        bench.ok("Read", json!({"path": "marked"})).await,
        "     1\ttext\n"
    );
}

#[tokio::test]
async fn images_are_shown_by_content() {
    let bench = Bench::open();
    bench.put("picture.txt", b"\x89PNG\r\n\x1a\nrest");
    let output = bench.call("Read", json!({"path": "picture.txt"})).await;
    let [ToolContent::Text { .. }, ToolContent::Image(image)] = output.content.as_slice() else {
        panic!("{output:?}");
    };
    assert_eq!(image.mime, ImageMime::Png);
    let data = "iVBORw0KGgpyZXN0".into();
    assert_eq!(image.source, ImageSource::Base64 { data });
    bench.put("large.gif", b"GIF89a");
    let large = std::fs::File::options()
        .write(true)
        .open(bench.path("large.gif"))
        .unwrap();
    large.set_len(64 * 1024 * 1024 + 1).unwrap();
    let text = bench.fails("Read", json!({"path": "large.gif"})).await;
    assert!(
        text.contains("image/gif") && text.contains("67.1 MB"),
        "{text}"
    );
}

#[tokio::test]
async fn a_missing_file_is_met_with_similar_names() {
    let bench = Bench::open();
    std::fs::create_dir(bench.path("src")).unwrap();
    bench.put("src/Main.rs", "");
    bench.put("src/unrelated.toml", "");
    let root = bench.path("").display().to_string();
    let root = root.trim_end_matches('/');
    assert_eq!(
        bench.fails("Read", json!({"path": "src/main.rs"})).await,
        format!(
            "`src/main.rs` was not found. Did you mean `src/Main.rs`? The working directory is \
             `{root}`."
        )
    );
    let text = bench.fails("Read", json!({"path": "lib/a"})).await;
    assert!(text.contains("neither was its directory"), "{text}");
    let text = bench.fails("Edit", edit("src/main.rs", "a", "b")).await;
    assert!(text.contains("Did you mean `src/Main.rs`?"), "{text}");
}

#[tokio::test]
async fn only_regular_files_are_touched_and_nothing_hangs() {
    for bench in [Bench::open(), Bench::restricted()] {
        std::fs::create_dir(bench.path("directory")).unwrap();
        let fifo = bench.path("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o644),
            0,
        )
        .unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(bench.path("socket")).unwrap();
        for (path, expected) in [
            ("directory", "is a directory"),
            (".", "is a directory"),
            ("fifo", "is a FIFO"),
            ("socket", "is a socket"),
        ] {
            let text = bench.fails("Read", json!({"path": path})).await;
            assert!(text.contains(expected), "{text}");
            let write = json!({"path": path, "content": "x"});
            assert!(bench.fails("Write", write).await.contains(expected));
            assert!(
                bench
                    .fails("Edit", edit(path, "a", "b"))
                    .await
                    .contains(expected)
            );
        }
        assert_eq!(bench.names("."), ["directory", "fifo", "socket"]);
    }
    let bench = Bench::open();
    let text = bench.fails("Read", json!({"path": "/dev/zero"})).await;
    assert!(text.contains("is a device"), "{text}");
}

#[tokio::test]
async fn write_creates_and_overwrites() {
    for bench in [Bench::open(), Bench::restricted()] {
        let created = json!({"path": "a/b/c.txt", "content": "one\ntwo\n"});
        assert_eq!(
            bench.ok("Write", created).await,
            "Created `a/b/c.txt` (8 bytes, 2 lines)."
        );
        bench.put("plain", "");
        let mode = |path: &str| bench.path(path).metadata().unwrap().mode() & 0o7777;
        assert_eq!(mode("a/b/c.txt"), mode("plain"), "the mask decides");
        let executable = PermissionsExt::from_mode(0o751);
        std::fs::set_permissions(bench.path("a/b/c.txt"), executable).unwrap();
        let over = json!({"path": "a/b/c.txt", "content": "x"});
        assert_eq!(
            bench.ok("Write", over).await,
            "Overwrote `a/b/c.txt` (1 byte, 1 line)."
        );
        assert_eq!(bench.content("a/b/c.txt"), "x");
        assert_eq!(mode("a/b/c.txt"), 0o751);
        assert_eq!(bench.names("a/b"), ["c.txt"]);
        // Only root can give files away, to see whether they stay with their owner.
        if rustix::process::geteuid().is_root() {
            let file = bench.path("a/b/c.txt");
            std::os::unix::fs::chown(&file, Some(1234), Some(4321)).unwrap();
            let write = json!({"path": "a/b/c.txt", "content": "y"});
            bench.ok("Write", write).await;
            let meta = file.metadata().unwrap();
            assert_eq!((meta.uid(), meta.gid()), (1234, 4321));
            assert_eq!(mode("a/b/c.txt"), 0o751);
        }
        let slash = json!({"path": "new/", "content": ""});
        bench
            .refused("Write", slash, ToolStatus::InvalidInput)
            .await;
    }
}

#[tokio::test]
async fn links_stay_links() {
    for bench in [Bench::open(), Bench::restricted()] {
        bench.put("target", "old");
        symlink("target", bench.path("soft")).unwrap();
        std::fs::hard_link(bench.path("target"), bench.path("hard")).unwrap();
        let write = json!({"path": "soft", "content": "new and longer"});
        bench.ok("Write", write).await;
        assert!(bench.path("soft").is_symlink());
        assert_eq!(bench.content("hard"), "new and longer");
        bench
            .ok("Edit", edit("hard", "new and longer", "short"))
            .await;
        assert_eq!(bench.content("target"), "short");
        assert_eq!(bench.path("target").metadata().unwrap().nlink(), 2);
        symlink("later", bench.path("dangling")).unwrap();
        bench
            .ok("Write", json!({"path": "dangling", "content": "x"}))
            .await;
        assert_eq!(bench.content("later"), "x");
        assert!(bench.path("dangling").is_symlink());
    }
}

#[tokio::test]
async fn changes_made_by_others_are_not_overwritten() {
    let bench = Bench::open();
    bench.put("file", "one");
    bench.ok("Read", json!({"path": "file"})).await;
    bench.put("file", "two");
    let write = json!({"path": "file", "content": "three"});
    let expected = "`file` changed on disk since it was read; read it again. Nothing was written.";
    assert_eq!(bench.fails("Write", write.clone()).await, expected);
    assert_eq!(
        bench.fails("Edit", edit("file", "two", "2")).await,
        expected
    );
    assert_eq!(bench.content("file"), "two");
    // The same content again is no change, whatever the clock says.
    bench.put("file", "one");
    bench.ok("Edit", edit("file", "one", "1")).await;
    // What was written here counts as read.
    bench.ok("Write", write).await;
    bench.put("file", "four");
    let again = json!({"path": "file", "content": ""});
    assert_eq!(bench.fails("Write", again).await, expected);
    // What was never read may be overwritten.
    bench.put("unread", "old");
    bench
        .ok("Write", json!({"path": "unread", "content": "new"}))
        .await;
}

#[tokio::test]
async fn a_file_its_permissions_protect_is_not_replaced() {
    let bench = Bench::open();
    bench.put("locked", "old");
    std::fs::set_permissions(bench.path("locked"), PermissionsExt::from_mode(0o444)).unwrap();
    if rustix::process::geteuid().is_root() {
        // Permissions do not bind root, so there is nothing to see.
        return;
    }
    let text = bench
        .fails("Write", json!({"path": "locked", "content": "new"}))
        .await;
    assert!(
        text.contains("`locked` cannot be written: Permission denied"),
        "{text}"
    );
    assert_eq!(bench.content("locked"), "old");
    assert_eq!(bench.names("."), ["locked"]);
}

#[tokio::test]
async fn a_writable_file_in_a_closed_directory_is_written_in_place() {
    let bench = Bench::open();
    std::fs::create_dir(bench.path("closed")).unwrap();
    bench.put("closed/file", "old and longer");
    let closed = bench.path("closed");
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o555)).unwrap();
    let write = json!({"path": "closed/file", "content": "new"});
    bench.ok("Write", write).await;
    let create = json!({"path": "closed/other", "content": "x"});
    if !rustix::process::geteuid().is_root() {
        let text = bench.fails("Write", create).await;
        assert!(
            text.contains("`closed/other` cannot be written: Permission"),
            "{text}"
        );
    }
    std::fs::set_permissions(&closed, PermissionsExt::from_mode(0o755)).unwrap();
    assert_eq!(bench.content("closed/file"), "new");
    assert_eq!(bench.names("closed"), ["file"]);
}

#[tokio::test]
async fn edit_replaces_one_place_and_shows_it() {
    let bench = Bench::open();
    bench.put("file", "\u{feff}a\r\nb\r\nc\r\nd\r\ne\r\nf\r\ng\r\n");
    assert_eq!(
        bench.ok("Edit", edit("file", "e\nf", "E\nX\nF")).await,
        "Edited `file`: 1 replacement at lines 5-7.\n     2\tb\n     3\tc\n     4\td\n     5\tE\n     \
         6\tX\n     7\tF\n     8\tg\n"
    );
    assert_eq!(
        bench.content("file"),
        "\u{feff}a\r\nb\r\nc\r\nd\r\nE\r\nX\r\nF\r\ng\r\n"
    );
    let several = edit("file", "\n", "\n\n");
    let text = bench.fails("Edit", several).await;
    assert!(text.contains("found 8 times (lines 1, 2,"), "{text}");
    let text = bench.fails("Edit", edit("file", "  c", "C")).await;
    assert!(text.contains("differ from it in whitespace only"), "{text}");
    let same = edit("file", "c", "c");
    bench.refused("Edit", same, ToolStatus::InvalidInput).await;
    let mut all = edit("file", "\n", "!\n");
    all["replace_all"] = json!(true);
    let text = bench.ok("Edit", all).await;
    assert!(
        text.starts_with("Edited `file`: 8 replacements at lines 1-8.\n"),
        "{text}"
    );
    assert!(bench.content("file").ends_with("g!\r\n"));
}

#[tokio::test]
async fn an_empty_old_string_creates_or_fills() {
    let bench = Bench::open();
    let text = bench.ok("Edit", edit("new/file", "", "x\n")).await;
    assert_eq!(text, "Created `new/file` (1 line).\n     1\tx\n");
    let again = edit("new/file", "", "y");
    bench.refused("Edit", again, ToolStatus::InvalidInput).await;
    bench.put("empty", "");
    bench.ok("Edit", edit("empty", "", "y")).await;
    assert_eq!(bench.content("empty"), "y");
}

#[tokio::test]
async fn edits_do_not_damage_what_they_cannot_decode() {
    let bench = Bench::open();
    bench.put("latin", b"caf\xe9 au lait\n");
    let text = bench.fails("Edit", edit("latin", "lait", "x")).await;
    assert!(text.contains("not valid text"), "{text}");
    bench.put("wide", b"\xff\xfea\0b\0");
    bench.ok("Edit", edit("wide", "b", "€")).await;
    let bytes = std::fs::read(bench.path("wide")).unwrap();
    assert_eq!(bytes, b"\xff\xfea\0\xac\x20");
}

#[tokio::test]
async fn multi_edit_is_all_or_nothing() {
    let bench = Bench::open();
    bench.put("file", "one\ntwo\n");
    let edits = |second: &str| {
        json!({"path": "file", "edits": [
            {"old_string": "one", "new_string": "1"},
            {"old_string": second, "new_string": "x"},
        ]})
    };
    let text = bench.fails("MultiEdit", edits("one")).await;
    assert!(
        text.starts_with("`file` was not edited, since edit 2 of 2 failed: old_string was not"),
        "{text}"
    );
    assert_eq!(bench.content("file"), "one\ntwo\n");
    let text = bench.ok("MultiEdit", edits("1\ntwo")).await;
    assert_eq!(
        text,
        "Edited `file`: 2 replacements at line 1.\n     1\tx\n"
    );
    assert_eq!(bench.content("file"), "x\n");
    let none = json!({"path": "file", "edits": []});
    bench
        .refused("MultiEdit", none, ToolStatus::InvalidInput)
        .await;
    let failing = json!({"path": "new/file", "edits": [
        {"old_string": "", "new_string": "a"},
        {"old_string": "b", "new_string": "c"},
    ]});
    bench.fails("MultiEdit", failing).await;
    assert!(!bench.path("new").exists());
}

#[tokio::test]
async fn notebook_cells_are_edited_in_place() {
    let bench = Bench::open();
    let notebook = "{\n  \"cells\": [\n    {\n      \"cell_type\": \"code\",\n      \"id\": \
                    \"a\",\n      \"outputs\": [\n        1\n      ],\n      \"source\": []\n    \
                    }\n  ],\n  \"nbformat\": 4,\n  \"nbformat_minor\": 5\n}";
    bench.put("n.ipynb", notebook);
    let replace = json!({"notebook_path": "n.ipynb", "cell_id": "a", "new_source": "x\ny"});
    assert_eq!(
        bench.ok("NotebookEdit", replace).await,
        "Replaced the source of cell 0 (code, id `a`) of `n.ipynb`, which has 1 cell now."
    );
    let source = "\"source\": [\n        \"x\\n\",\n        \"y\"\n      ]";
    let expected = notebook.replace("\"source\": []", source);
    assert_eq!(bench.content("n.ipynb"), expected);
    let insert = json!({
        "path": "n.ipynb", "edit_mode": "insert", "cell_type": "markdown", "new_source": "# T",
    });
    let text = bench.ok("NotebookEdit", insert).await;
    assert!(
        text.starts_with("Inserted cell 1 (markdown, id `"),
        "{text}"
    );
    let delete = json!({"path": "n.ipynb", "edit_mode": "delete", "cell_index": 1});
    bench.ok("NotebookEdit", delete).await;
    assert_eq!(bench.content("n.ipynb"), expected);
    for (input, status) in [
        (
            json!({"path": "n.ipynb", "cell_id": "a"}),
            ToolStatus::InvalidInput,
        ),
        (
            json!({"path": "n.ipynb", "new_source": ""}),
            ToolStatus::InvalidInput,
        ),
        (
            json!({"path": "n.ipynb", "cell_id": "zz", "new_source": ""}),
            ToolStatus::Failed,
        ),
        (
            json!({"path": "no.ipynb", "cell_id": "a", "new_source": ""}),
            ToolStatus::Failed,
        ),
    ] {
        bench.refused("NotebookEdit", input, status).await;
    }
    assert_eq!(bench.content("n.ipynb"), expected);
}

#[tokio::test]
async fn a_cancelled_call_writes_nothing() {
    let bench = Bench::open();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let write = json!({"path": "new/file", "content": "x"});
    let output = bench.call_with("Write", write, cancel).await;
    assert_eq!(output.status, ToolStatus::Cancelled);
    assert!(bench.names(".").is_empty());
}

#[tokio::test]
async fn restricted_mode_refuses_every_way_out() {
    let bench = Bench::restricted();
    let outside = bench.base.join("outside");
    std::fs::write(outside.join("secret"), "secret").unwrap();
    std::fs::write(bench.base.join("root-evil/secret"), "secret").unwrap();
    symlink(&outside, bench.path("link")).unwrap();
    symlink(outside.join("new"), bench.path("dangling")).unwrap();
    symlink("loop", bench.path("loop")).unwrap();
    for (path, status) in [
        ("../outside/secret", ToolStatus::Denied),
        ("../root-evil/secret", ToolStatus::Denied),
        ("link/secret", ToolStatus::Denied),
        ("link/new", ToolStatus::Denied),
        ("dangling", ToolStatus::Denied),
        ("/etc/hostname", ToolStatus::Denied),
        ("missing/../../outside/secret", ToolStatus::InvalidInput),
        ("loop", ToolStatus::InvalidInput),
    ] {
        bench.refused("Read", json!({"path": path}), status).await;
        let write = json!({"path": path, "content": "x"});
        bench.refused("Write", write, status).await;
        bench
            .refused("Edit", edit(path, "secret", "x"), status)
            .await;
        bench.refused("Edit", edit(path, "", "x"), status).await;
        let edits = json!({"path": path, "edits": [{"old_string": "secret", "new_string": "x"}]});
        bench.refused("MultiEdit", edits, status).await;
        let cell = json!({"path": path, "cell_index": 0, "new_source": ""});
        bench.refused("NotebookEdit", cell, status).await;
    }
    assert_eq!(names(&outside), ["secret"]);
    assert_eq!(
        std::fs::read_to_string(outside.join("secret")).unwrap(),
        "secret"
    );
    assert_eq!(bench.names("."), ["dangling", "link", "loop"]);
}

/// How often each call runs against the swapping thread.
#[cfg(target_os = "linux")]
const ROUNDS: usize = 2000;
/// Reads per round; the moment in which one could be misled is short.
#[cfg(target_os = "linux")]
const READS: usize = 5;

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_directory_swapped_for_a_link_never_leads_outside() {
    let bench = Bench::restricted();
    let outside = bench.base.join("outside");
    std::fs::write(outside.join("file"), "secret").unwrap();
    std::fs::create_dir(bench.path("door")).unwrap();
    bench.put("door/file", "inside");
    symlink(&outside, bench.path("evil")).unwrap();

    let done = Arc::new(AtomicBool::new(false));
    let swapper = std::thread::spawn({
        let (done, door, evil) = (Arc::clone(&done), bench.path("door"), bench.path("evil"));
        move || {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            while !done.load(Ordering::Relaxed) {
                renameat_with(CWD, &door, CWD, &evil, RenameFlags::EXCHANGE).unwrap();
            }
        }
    });
    let mut successes = 0;
    for round in 0..ROUNDS {
        for _ in 0..READS {
            let read = bench.call("Read", json!({"path": "door/file"})).await;
            assert!(!read.text().contains("secret"), "{}", read.text());
            successes += usize::from(!read.is_error());
        }
        let fresh = format!("door/new{}/deep/file", round % 7);
        let write = json!({"path": fresh, "content": "inside"});
        let write = bench.call("Write", write).await;
        let over = bench
            .call("Write", json!({"path": "door/file", "content": "inside"}))
            .await;
        for output in [write, over] {
            successes += usize::from(!output.is_error());
        }
    }
    done.store(true, Ordering::Relaxed);
    swapper.join().unwrap();
    assert_eq!(names(&outside), ["file"]);
    assert_eq!(
        std::fs::read_to_string(outside.join("file")).unwrap(),
        "secret"
    );
    assert!(successes > 0, "the tools never got through");
}
