//! Settings files as other programs write them, and what they become. Each case in `tests/import`
//! is a source, the expected settings (`.toml`) and the expected notes (`.notes`).
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

use std::fs;
use std::path::{Path, PathBuf};

use caliban_settings::import::{self, ImportError, Imported, Kind};
use caliban_settings::write::{WriteError, Writer};
use tempfile::TempDir;

const HOME: &str = "/home/me";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import")
}

fn sources() -> Vec<PathBuf> {
    let mut sources: Vec<PathBuf> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            let name = path.file_name().unwrap().to_str().unwrap();
            matches!(name.split_once('.'), Some((_, "json" | "src.toml")))
        })
        .collect();
    sources.sort();
    assert!(!sources.is_empty());
    sources
}

fn writer(target: &Path) -> Writer {
    Writer::new(target.with_file_name("locks"))
}

fn read(source: &Path) -> Imported {
    import::from_file(source, Some(Path::new(HOME))).unwrap()
}

fn named(name: &str) -> Imported {
    read(&folder().join(name))
}

fn expected(source: &Path, extension: &str) -> String {
    let name = source.file_name().unwrap().to_str().unwrap();
    let stem = name.split('.').next().unwrap();
    fs::read_to_string(folder().join(format!("{stem}.{extension}"))).unwrap()
}

#[test]
fn every_source_becomes_what_is_expected() {
    for source in sources() {
        let imported = read(&source);
        let shown = source.display();
        assert_eq!(
            imported.toml().unwrap(),
            expected(&source, "toml"),
            "{shown}"
        );
        let notes: Vec<&str> = imported.notes.iter().map(String::as_str).collect();
        let expected = expected(&source, "notes");
        assert_eq!(notes, expected.lines().collect::<Vec<_>>(), "{shown}");
    }
}

#[test]
fn the_kind_is_told_by_the_content() {
    for source in sources() {
        let name = source.file_name().unwrap().to_str().unwrap();
        let kind = match name.split(['-', '.']).next() {
            Some("claude") => Kind::ClaudeCode,
            Some("codex") => Kind::Codex,
            _ => Kind::Caliban,
        };
        assert_eq!(read(&source).kind, kind, "{name}");
    }
}

#[test]
fn importing_twice_changes_nothing_the_second_time() {
    for source in sources() {
        let folder = TempDir::new().unwrap();
        let target = folder.path().join("settings.toml");
        let imported = read(&source);
        let preview = imported.preview(&target).unwrap();
        assert!(!target.exists());
        let first = imported.apply(&target, &writer(&target)).unwrap();
        assert_eq!(first, preview);
        // Where nothing could be taken over, no file is made.
        assert_eq!(first.text, fs::read_to_string(&target).unwrap_or_default());
        let second = imported.apply(&target, &writer(&target)).unwrap();
        assert_eq!(second.changes, [""; 0], "{}", source.display());
        assert_eq!(second.text, first.text);
    }
}

#[test]
fn an_import_goes_over_what_is_there_and_says_so() {
    let folder = TempDir::new().unwrap();
    let target = folder.path().join("settings.toml");
    fs::write(
        &target,
        r#"# mine
model = "other" # a note
additional_directories = ["../docs"]

[permissions]
default_mode = "plan"

# careful
[[permissions.rules]]
pattern = "Bash:curl:*"
action = "allow"

[[permissions.rules]]
pattern = "Bash:make *"
action = "allow"

[env]
EDITOR = "vi"
RUST_BACKTRACE = "0"

[mcp_servers.github]
command = "github-mcp"
"#,
    )
    .unwrap();
    let changes = named("claude-user.json")
        .apply(&target, &writer(&target))
        .unwrap()
        .changes;
    assert_eq!(
        changes,
        [
            "`model` replaced",
            "`effort` added",
            "`output_style` added",
            "`api_key_helper` added",
            "`statusLine` added",
            "`env.RUST_BACKTRACE` replaced",
            "`env.BASH_DEFAULT_TIMEOUT_MS` added",
            "`env.DISABLE_TELEMETRY` added",
            "`permissions.default_mode` replaced",
            "`permissions.enforce` added",
            "`additional_directories` extended",
            "`plugins` added",
            "`permissions.rules`: `Bash:curl:*` is now `deny`",
            "`permissions.rules`: 8 put before what allows",
            "`permissions.rules`: 9 appended",
        ]
    );
    let changes = named("claude-state.json")
        .apply(&target, &writer(&target))
        .unwrap()
        .changes;
    assert_eq!(
        changes,
        [
            "`mcp_servers.github` replaced",
            "`mcp_servers.linear` added",
            "`mcp_servers.postgres` added"
        ]
    );
    let text = fs::read_to_string(&target).unwrap();
    assert!(
        text.starts_with("# mine\nmodel = \"claude-sonnet-4-6\" # a note\n"),
        "{text}"
    );
    assert!(
        text.contains(
            "# careful\n[[permissions.rules]]\npattern = \"Bash:curl:*\"\naction = \"deny\"\n"
        ),
        "{text}"
    );
    assert!(
        text.contains("additional_directories = [\"../docs\", \"/home/me/shared\"]"),
        "{text}"
    );
    assert!(text.contains("EDITOR = \"vi\""), "{text}");
    assert!(!text.contains("github-mcp"), "{text}");
}

#[test]
fn rules_can_be_imported_alone() {
    let imported = named("claude-user.json").only_rules();
    let text = imported.toml().unwrap();
    assert!(text.contains("Bash:curl:*"));
    assert!(!text.contains("model") && !text.contains("[env]"), "{text}");
}

#[test]
fn the_json_file_of_the_scope_itself_can_be_imported() {
    let folder = TempDir::new().unwrap();
    let (json, target) = (
        folder.path().join("settings.json"),
        folder.path().join("settings.toml"),
    );
    fs::write(&json, r#"{ "output_style": "terse" }"#).unwrap();
    let other = named("claude-user.json");
    assert!(matches!(
        other.apply(&target, &writer(&target)),
        Err(WriteError::Json { .. })
    ));
    assert!(matches!(
        read(&json).only_rules().apply(&target, &writer(&target)),
        Err(WriteError::Json { .. })
    ));
    read(&json).apply(&target, &writer(&target)).unwrap();
    assert_eq!(
        fs::read_to_string(&target).unwrap(),
        "output_style = \"terse\"\n"
    );
    other.apply(&target, &writer(&target)).unwrap();
}

#[test]
fn permissions_are_taken_whole_or_not_at_all() {
    for (text, why) in [
        (
            r#"{ "permissions": { "allow": ["Read"], "deny": "Bash" } }"#,
            "`permissions.deny` is not",
        ),
        (
            r#"{ "permissions": { "rules": [{ "pattern": "Bash", "action": "denny" }] } }"#,
            "rule 0",
        ),
        (r#"{ "permissions": ["Bash"] }"#, "not a table"),
    ] {
        let error = import::from_text(Path::new("x.json"), text, None).unwrap_err();
        assert!(matches!(&error, ImportError::Policy { .. }), "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn what_is_not_settings_is_refused_with_its_place() {
    let path = Path::new("x.json");
    let fail = |text| import::from_text(path, text, None).unwrap_err();
    assert_eq!(
        fail("{\n  \"a\": }")
            .to_string()
            .split(": ")
            .next()
            .unwrap(),
        "x.json:2:8"
    );
    assert!(fail("a = = 1").to_string().starts_with("x.json:1:5: "));
    assert_eq!(fail("[]").to_string(), "x.json:1:1: expected an object");
    assert!(matches!(
        fail(r#"{ "name": "package", "version": "1" }"#),
        ImportError::Unknown(_)
    ));
}
