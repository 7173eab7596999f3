//! `Glob` and `Grep` through the `Tool` trait, in real directories.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, as tests do"
)]

use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use caliban_agent::{
    Confinement, OpenReading, Progress, Tool, ToolContext, ToolOutput, ToolStatus, TypedTool,
    Workspace,
};
use caliban_model::CancellationToken;
use caliban_tools::{Glob, Grep};
use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::{Value, json};

struct Fixture {
    _temp: tempfile::TempDir,
    base: PathBuf,
    cancel: CancellationToken,
    confinement: Confinement,
}

impl Fixture {
    /// A directory `root` to work in, beside whatever a test puts next to it.
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        std::fs::create_dir(base.join("root")).unwrap();
        Self {
            _temp: temp,
            base,
            cancel: CancellationToken::new(),
            confinement: Confinement::Open,
        }
    }

    fn with(files: &[(&str, &str)]) -> Self {
        let fixture = Self::new();
        for (path, content) in files {
            fixture.write(path, content);
        }
        fixture
    }

    fn path(&self, path: &str) -> PathBuf {
        self.base.join("root").join(path)
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    async fn run(&self, tool: Arc<dyn Tool>, input: Value) -> ToolOutput {
        let root = self.base.join("root");
        let workspace = Workspace::new(&root, &[], None, self.confinement).unwrap();
        let context = ToolContext {
            call_id: Arc::from("call"),
            session_id: Arc::from("session"),
            workspace: Arc::new(workspace),
            reading: OpenReading::shared(),
            cancel: self.cancel.clone(),
            progress: Progress::silent(),
            trace: None,
        };
        tool.run(input, context).await
    }

    async fn glob(&self, input: Value) -> ToolOutput {
        self.run(Glob::new().boxed(), input).await
    }

    async fn grep(&self, input: Value) -> ToolOutput {
        self.run(Grep::new().boxed(), input).await
    }
}

/// The text of an output that must be a success.
#[track_caller]
fn text(output: &ToolOutput) -> String {
    assert_eq!(output.status, ToolStatus::Ok, "{}", output.text());
    output.text()
}

#[tokio::test]
async fn glob_lists_matching_paths_in_order() {
    let fixture = Fixture::with(&[
        ("b.rs", ""),
        ("a/z.rs", ""),
        ("a/y.txt", ""),
        ("a-b/x.rs", ""),
        ("src/a.ts", ""),
        ("src/b.tsx", ""),
        ("src/deep/c.ts", ""),
    ]);
    let every = "a/z.rs\na-b/x.rs\nb.rs";
    let absolute = fixture.path("**/*.rs").display().to_string();
    for pattern in ["**/*.rs", "*.rs", "./**/*.rs", &absolute] {
        let output = fixture.glob(json!({"pattern": pattern})).await;
        assert_eq!(text(&output), every, "{pattern}");
    }
    let output = fixture.glob(json!({"pattern": "src/*.{ts,tsx}"})).await;
    assert_eq!(text(&output), "src/a.ts\nsrc/b.tsx");
    let output = fixture
        .glob(json!({"pattern": "*.ts", "path": "src/deep"}))
        .await;
    assert_eq!(text(&output), "src/deep/c.ts");
    let output = fixture
        .glob(json!({"pattern": "../*.ts", "path": "src/deep"}))
        .await;
    assert_eq!(text(&output), "src/a.ts");
}

#[tokio::test]
async fn ignore_files_count_with_and_without_a_repository() {
    let files = [
        (".gitignore", "build/\n*.log\n!keep.log\n"),
        (".ignore", "private.txt\n"),
        ("sub/.gitignore", "/local.txt\n"),
        ("build/out.txt", "needle"),
        ("a.log", "needle"),
        ("keep.log", "needle"),
        ("private.txt", "needle"),
        ("sub/local.txt", "needle"),
        ("sub/deep/local.txt", "needle"),
        ("excluded.txt", "needle"),
        (".hidden/h.txt", "needle"),
        (".git/config.txt", "needle"),
        (".git/info/exclude", "excluded.txt\n"),
    ];
    let fixture = Fixture::with(&files);
    let seen = "keep.log\nsub/deep/local.txt";
    let glob = json!({"pattern": "*.{txt,log}"});
    let grep = json!({"pattern": "needle", "output_mode": "files_with_matches"});
    assert_eq!(text(&fixture.glob(glob.clone()).await), seen);
    assert_eq!(text(&fixture.grep(grep.clone()).await), seen);

    let plain = Fixture::with(&files[..files.len() - 2]);
    let seen = "excluded.txt\nkeep.log\nsub/deep/local.txt";
    assert_eq!(text(&plain.glob(glob).await), seen);
    assert_eq!(text(&plain.grep(grep).await), seen);

    let inside = fixture
        .glob(json!({"pattern": "*.txt", "path": "build"}))
        .await;
    assert_eq!(text(&inside), "build/out.txt");
    let hidden = fixture.glob(json!({"pattern": ".hidden/**"})).await;
    assert_eq!(text(&hidden), ".hidden/h.txt");
    let git = fixture.glob(json!({"pattern": "**/.git/**"})).await;
    assert!(text(&git).starts_with("No files match"), "{}", git.text());
    let named = fixture
        .grep(json!({"pattern": "needle", "path": "a.log"}))
        .await;
    assert_eq!(text(&named), "a.log:1:needle");
}

#[tokio::test]
async fn glob_says_when_it_finds_nothing_or_too_much() {
    let fixture = Fixture::with(&[("dir/file.txt", "")]);
    let none = fixture.glob(json!({"pattern": "*.nope"})).await;
    assert!(text(&none).contains(".gitignore"), "{}", none.text());
    for number in 0..1005 {
        fixture.write(&format!("many/{number:04}.x"), "");
    }
    let many = text(&fixture.glob(json!({"pattern": "*.x"})).await);
    assert_eq!(many.lines().count(), 1001);
    assert!(
        many.ends_with("(5 more not shown; use a narrower pattern or `path`.)"),
        "{many}"
    );

    let bad = fixture.glob(json!({"pattern": "a/{b"})).await;
    assert_eq!(bad.status, ToolStatus::InvalidInput);
    assert!(
        bad.text().contains("unclosed alternate group"),
        "{}",
        bad.text()
    );
    let missing = fixture.glob(json!({"pattern": "*", "path": "nope"})).await;
    assert_eq!(missing.status, ToolStatus::Failed);
    let file = fixture
        .glob(json!({"pattern": "*", "path": "dir/file.txt"}))
        .await;
    assert_eq!(file.status, ToolStatus::InvalidInput);
    let unknown = fixture.glob(json!({"pattern": "*", "nonsense": 1})).await;
    assert_eq!(unknown.status, ToolStatus::InvalidInput);
}

#[tokio::test]
async fn links_are_listed_and_never_followed() {
    let mut fixture = Fixture::with(&[("a/file.txt", "needle")]);
    std::fs::create_dir(fixture.base.join("outside")).unwrap();
    std::fs::write(fixture.base.join("outside/secret.txt"), "needle").unwrap();
    symlink("..", fixture.path("a/cycle.txt")).unwrap();
    symlink(fixture.base.join("outside"), fixture.path("out")).unwrap();
    symlink("../outside/secret.txt", fixture.path("secret.txt")).unwrap();
    for confinement in [Confinement::Open, Confinement::Restricted] {
        fixture.confinement = confinement;
        let listed = fixture.glob(json!({"pattern": "**/*.txt"})).await;
        assert_eq!(text(&listed), "a/cycle.txt\na/file.txt\nsecret.txt");
        let found = fixture.grep(json!({"pattern": "needle"})).await;
        assert_eq!(text(&found), "a/file.txt:1:needle");
    }
    for input in [
        json!({"pattern": "*", "path": "out"}),
        json!({"pattern": "../outside/*"}),
        json!({"pattern": "/etc/*"}),
    ] {
        let output = fixture.glob(input.clone()).await;
        assert_eq!(output.status, ToolStatus::Denied, "{input}");
    }
    for path in ["out", "secret.txt", "..", "/etc/passwd"] {
        let output = fixture.grep(json!({"pattern": "n", "path": path})).await;
        assert_eq!(output.status, ToolStatus::Denied, "{path}");
    }
    fixture.confinement = Confinement::Open;
    let followed = fixture
        .grep(json!({"pattern": "needle", "path": "out"}))
        .await;
    assert_eq!(text(&followed), "out/secret.txt:1:needle");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_swapped_for_a_link_never_leads_outside() {
    let mut fixture = Fixture::with(&[("dir/inside.txt", "inside"), ("other.txt", "other")]);
    fixture.confinement = Confinement::Restricted;
    std::fs::create_dir(fixture.base.join("outside")).unwrap();
    std::fs::write(fixture.base.join("outside/secret.txt"), "secret").unwrap();
    let (directory, aside) = (fixture.path("dir"), fixture.base.join("aside"));
    let outside = fixture.base.join("outside");
    let over = CancellationToken::new();
    let swapper = std::thread::spawn({
        let over = over.clone();
        move || {
            while !over.is_cancelled() {
                std::fs::rename(&directory, &aside).unwrap();
                symlink(&outside, &directory).unwrap();
                std::fs::remove_file(&directory).unwrap();
                std::fs::rename(&aside, &directory).unwrap();
            }
        }
    });
    for _ in 0..300 {
        let found = fixture.grep(json!({"pattern": "secret"})).await.text();
        assert!(!found.contains(":secret"), "{found}");
        let named = fixture
            .grep(json!({"pattern": "secret", "path": "dir/secret.txt"}))
            .await;
        assert!(named.is_error(), "{}", named.text());
        let listed = fixture.glob(json!({"pattern": "*.txt"})).await.text();
        assert!(!listed.contains("secret"), "{listed}");
    }
    over.cancel();
    swapper.join().unwrap();
}

#[tokio::test]
async fn grep_shows_lines_and_context() {
    let fixture = Fixture::with(&[
        (
            "b.txt",
            "one\ntwo needle\nthree\nfour\nfive\nsix\nneedle seven\n",
        ),
        ("a/c.rs", "fn Needle() {}\r\n"),
    ]);
    let found = fixture.grep(json!({"pattern": "needle"})).await;
    assert_eq!(text(&found), "b.txt:2:two needle\nb.txt:7:needle seven");
    let found = fixture
        .grep(json!({"pattern": "NEEDLE", "ignore_case": true, "context": 1}))
        .await;
    assert_eq!(
        text(&found),
        "a/c.rs:1:fn Needle() {}\n--\n\
         b.txt-1-one\nb.txt:2:two needle\nb.txt-3-three\n--\nb.txt-6-six\nb.txt:7:needle seven"
    );
    let found = fixture
        .grep(json!({"pattern": "(?i)needle", "output_mode": "count"}))
        .await;
    assert_eq!(text(&found), "a/c.rs:1\nb.txt:2");
    let found = fixture
        .grep(json!({"pattern": "\\}$", "type": "rust"}))
        .await;
    assert_eq!(text(&found), "a/c.rs:1:fn Needle() {}");
    for (glob, expected) in [("*.rs", "a/c.rs"), ("a/*", "a/c.rs"), ("!*.rs", "b.txt")] {
        let input = json!({
            "pattern": "(?i)needle", "glob": glob, "output_mode": "files_with_matches"
        });
        assert_eq!(text(&fixture.grep(input).await), expected);
    }
    let input = json!({"pattern": "Needle", "glob": "a/*", "path": "a"});
    assert_eq!(text(&fixture.grep(input).await), "a/c.rs:1:fn Needle() {}");
    let input = json!({"pattern": "two.*three$", "multiline": true});
    assert_eq!(
        text(&fixture.grep(input).await),
        "b.txt:2:two needle\nb.txt:3:three"
    );
}

#[tokio::test]
async fn grep_explains_what_does_not_work() {
    let fixture = Fixture::with(&[("a.txt", "text")]);
    let none = fixture.grep(json!({"pattern": "zzz"})).await;
    assert_eq!(text(&none), "No matches (files searched: 1).");
    let unmatched = fixture
        .grep(json!({"pattern": "text", "glob": "*.rs"}))
        .await;
    assert!(text(&unmatched).contains(".gitignore"));
    for (input, part) in [
        (json!({"pattern": "a("}), "unclosed group"),
        (json!({"pattern": "a\\nb"}), "Set `multiline`"),
        (json!({"pattern": ""}), "empty"),
        (json!({"pattern": "a", "type": "klingon"}), "*.klingon"),
        (json!({"pattern": "a", "glob": "[a"}), "glob pattern"),
        (json!({"pattern": "(\\w{500}){500}"}), "regular expression"),
        (
            json!({"pattern": "a", "output_mode": "lines"}),
            "output_mode",
        ),
    ] {
        let output = fixture.grep(input.clone()).await;
        assert_eq!(
            output.status,
            ToolStatus::InvalidInput,
            "{input}: {}",
            output.text()
        );
        if part != "output_mode" {
            assert!(output.text().contains(part), "{input}: {}", output.text());
        }
    }
    let missing = fixture.grep(json!({"pattern": "a", "path": "nope"})).await;
    assert_eq!(missing.status, ToolStatus::Failed);
    assert!(missing.text().contains("does not exist"));
}

#[tokio::test]
async fn the_limit_counts_lines_and_is_announced() {
    let fixture = Fixture::new();
    for number in 0..50 {
        fixture.write(&format!("{number:02}.txt"), "hit\nmiss\nhit\n");
    }
    let found = text(
        &fixture
            .grep(json!({"pattern": "hit", "limit": 3, "context": 1}))
            .await,
    );
    assert_eq!(
        found.lines().take(8).collect::<Vec<_>>(),
        [
            "00.txt:1:hit",
            "00.txt-2-miss",
            "00.txt:3:hit",
            "--",
            "01.txt:1:hit",
            "01.txt-2-miss",
            "(There is more: only the first 3 results are shown. Narrow the search or raise \
             `limit`, at most 500.)",
        ]
    );
    let exact = text(&fixture.grep(json!({"pattern": "hit", "limit": 100})).await);
    assert_eq!(exact.lines().count(), 100);
    let files = json!({"pattern": "hit", "limit": 2, "output_mode": "files_with_matches"});
    let files = text(&fixture.grep(files).await);
    assert!(
        files.starts_with("00.txt\n01.txt\n(There is more"),
        "{files}"
    );
    let counts = text(
        &fixture
            .grep(json!({"pattern": "hit", "output_mode": "count"}))
            .await,
    );
    assert_eq!(counts.lines().count(), 50);
}

#[tokio::test]
async fn binary_and_odd_files_are_harmless() {
    let fixture = Fixture::with(&[("text.txt", "needle")]);
    fixture.write("binary", b"needle\n\0\x01needle\n");
    fixture.write("latin1.txt", b"caf\xe9 needle\n");
    let utf16: Vec<u8> = "\u{feff}needle wide\n"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    fixture.write("utf16.txt", utf16);
    mkfifoat(CWD, fixture.path("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
    fixture.write("bad\nname.txt", "needle");
    let found = fixture.grep(json!({"pattern": "needle"})).await;
    assert_eq!(
        text(&found),
        "bad\\nname.txt:1:needle\nlatin1.txt:1:caf\u{fffd} needle\ntext.txt:1:needle\n\
         utf16.txt:1:needle wide"
    );
    let named = fixture
        .grep(json!({"pattern": "needle", "path": "binary"}))
        .await;
    assert_eq!(named.status, ToolStatus::Failed);
    assert!(named.text().contains("binary file"), "{}", named.text());
    for path in ["pipe", "/dev/zero"] {
        let special = fixture
            .grep(json!({"pattern": "needle", "path": path}))
            .await;
        assert_eq!(special.status, ToolStatus::Failed);
        assert!(
            special.text().contains("not a regular file"),
            "{}",
            special.text()
        );
    }
    let listed = text(&fixture.glob(json!({"pattern": "pipe"})).await);
    assert_eq!(listed, "pipe");
}

#[tokio::test]
async fn long_lines_are_cut_and_endless_ones_skipped() {
    let fixture = Fixture::with(&[("after.txt", "needle")]);
    fixture.write(
        "long.txt",
        format!("{}needle{}", "a".repeat(5000), "b".repeat(5000)),
    );
    let huge = std::fs::File::create(fixture.path("huge.txt")).unwrap();
    write_repeated(&huge, b"needle in one line ", 100 * 1024 * 1024);
    let found = text(&fixture.grep(json!({"pattern": "needle"})).await);
    let lines: Vec<&str> = found.lines().collect();
    assert_eq!(lines[0], "after.txt:1:needle");
    assert!(
        lines[1].contains("aneedleb") && lines[1].chars().count() < 530,
        "{}",
        lines[1]
    );
    assert_eq!(
        lines[2],
        "(huge.txt was not searched: it has a line longer than 8 MiB.)"
    );
    let across = fixture
        .grep(json!({"pattern": "needle", "path": "huge.txt", "multiline": true}))
        .await;
    assert_eq!(across.status, ToolStatus::Failed);
    assert!(
        across.text().contains("larger than 32 MiB"),
        "{}",
        across.text()
    );
}

fn write_repeated(mut file: &std::fs::File, piece: &[u8], size: usize) {
    let block = piece.repeat(1024 * 1024 / piece.len());
    for _ in 0..size / block.len() {
        std::io::Write::write_all(&mut file, &block).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_search_ends_at_once() {
    let fixture = Fixture::new();
    for number in 0..50 {
        let file = std::fs::File::create(fixture.path(&format!("{number}.txt"))).unwrap();
        write_repeated(&file, b"nothing to see here\n", 2 * 1024 * 1024);
    }
    let grep = fixture.grep(json!({"pattern": "(x+x+)+y|\\w+z\\b", "output_mode": "count"}));
    let canceller = async {
        tokio::task::yield_now().await;
        fixture.cancel.cancel();
        Instant::now()
    };
    let (output, cancelled_at) = tokio::join!(grep, canceller);
    assert_eq!(output.status, ToolStatus::Cancelled);
    assert!(cancelled_at.elapsed() < Duration::from_secs(2));

    let before = fixture.glob(json!({"pattern": "*"})).await;
    assert_eq!(before.status, ToolStatus::Cancelled);
}

#[tokio::test]
async fn a_directory_that_a_pattern_names_is_not_searched_in_depth() {
    let fixture = Fixture::with(&[("a.txt", ""), ("deep/b.txt", "")]);
    std::fs::write(fixture.base.join("beside.txt"), "").unwrap();
    let root = fixture.path("");
    for (pattern, expected) in [
        (format!("{}*.txt", root.display()), vec!["a.txt"]),
        ("*.txt".to_owned(), vec!["a.txt", "deep/b.txt"]),
    ] {
        let found = fixture.glob(json!({ "pattern": pattern })).await.text();
        assert_eq!(found.lines().collect::<Vec<_>>(), expected, "{pattern}");
    }
    let found = fixture.glob(json!({"pattern": "../*.txt"})).await.text();
    assert!(found.ends_with("/beside.txt") && found.lines().count() == 1);
}

#[tokio::test]
async fn fields_have_the_names_of_other_tools_too() {
    let fixture = Fixture::with(&[("a.txt", "one\nFOO\nfoo\n")]);
    let found = fixture
        .grep(json!({"pattern": "foo", "-i": true, "-C": 1, "head_limit": 1}))
        .await
        .text();
    assert!(found.starts_with("a.txt-1-one\na.txt:2:FOO"), "{found}");
    assert!(found.contains("only the first 1"), "{found}");
}

#[test]
fn calls_are_named_and_superseded_by_their_arguments() {
    let (glob, grep) = (Glob::new().boxed(), Grep::new().boxed());
    let input = json!({"pattern": "*.rs", "file_path": "src"});
    assert_eq!(glob.first_arg(&input).unwrap(), "*.rs");
    assert_eq!(
        glob.supersession_key(&input).unwrap(),
        r#"{"pattern":"*.rs","path":"src"}"#
    );
    let first = grep.supersession_key(&json!({"pattern": "a"})).unwrap();
    let other = grep
        .supersession_key(&json!({"pattern": "a", "context": 1}))
        .unwrap();
    assert_ne!(first, other);
    for (tool, most) in [(glob, 600), (grep, 1100)] {
        let size = serde_json::to_string(tool.spec()).unwrap().len();
        assert!(size <= most, "{}: {size}", tool.spec().name);
    }
}
