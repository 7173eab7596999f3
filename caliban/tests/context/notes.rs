//! The agent's notes, tended by hand: `caliban memory show`, `edit`, `rm` and `rebuild-index`.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::support::{Bench, Ran, Wire, run};
use crate::{ok, put, repository};

const BUILD: &str = "---\nname: build\ndescription: \"use make\"\nmetadata:\n  node_type: memory\n  \
                     type: project\n---\nRun `make`.\n";

struct Notes {
    bench: Bench,
}

impl Notes {
    fn new() -> Self {
        let bench = repository(Wire::Anthropic, ok(), &[]);
        put(bench.home.path(), "notes/build.md", BUILD);
        Self { bench }
    }

    fn path(&self, file: &str) -> PathBuf {
        self.bench.home.path().join("notes").join(file)
    }

    fn index(&self) -> String {
        std::fs::read_to_string(self.path("MEMORY.md")).unwrap_or_default()
    }

    /// An editor that appends a line to the file it is given.
    fn editor(&self, line: &str) -> PathBuf {
        let path = self.bench.home.path().join("my editor");
        let text = format!("#!/bin/sh\nshift\necho '{line}' >> \"$1\"\n");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn run(&self, args: &[&str], editor: Option<&str>) -> Ran {
        let mut command = self.bench.command();
        command
            .arg("memory")
            .args(args)
            .env(
                "CALIBAN_AUTO_MEMORY_DIRECTORY",
                self.bench.home.path().join("notes"),
            )
            .envs(editor.map(|editor| ("EDITOR", editor)));
        run(&mut command)
    }

    fn says(&self, args: &[&str]) -> String {
        let ran = self.run(args, None);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    }
}

#[test]
fn an_orphan_gets_its_line_and_is_shown() {
    let notes = Notes::new();
    let ran = notes.run(&["show"], None);
    assert_eq!(ran.code, Some(66), "{}", ran.stderr);
    put(
        notes.bench.home.path(),
        "notes/MEMORY.md",
        "# Mine\n- [gone](gone.md) — user: x\n",
    );
    assert_eq!(notes.says(&["rebuild-index"]), "the index has 1 note(s)\n");
    assert_eq!(
        notes.index(),
        "# Mine\n- [build](build.md) — project: use make\n"
    );
    assert_eq!(notes.says(&["show"]), notes.index());
    assert_eq!(notes.says(&["show", "build"]), "use make\n\nRun `make`.\n");
    assert_eq!(
        notes.says(&["show", "build.md"]),
        notes.says(&["show", "build"])
    );
}

#[test]
fn what_is_no_note_is_named_and_left_alone() {
    let notes = Notes::new();
    put(notes.bench.home.path(), "notes/odd.md", "no head");
    let ran = notes.run(&["rebuild-index"], None);
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stderr.contains("notes/odd.md` is not used"),
        "{}",
        ran.stderr
    );
    assert!(!notes.index().contains("odd"));
}

#[test]
fn a_removed_note_leaves_the_index_too() {
    let notes = Notes::new();
    notes.says(&["rebuild-index"]);
    assert_eq!(notes.says(&["rm", "build"]), "removed `build`\n");
    assert!(!notes.path("build.md").exists() && !notes.index().contains("build"));
    for (args, code) in [
        (&["rm", "build"], 66),
        (&["show", "build"], 66),
        (&["rm", "../../etc/passwd"], 64),
        (&["show", "MEMORY"], 64),
    ] {
        let ran = notes.run(args, None);
        assert_eq!(ran.code, Some(code), "{args:?}: {}", ran.stderr);
    }
}

#[test]
fn an_edited_note_must_stay_one() {
    let notes = Notes::new();
    let without = notes.run(&["edit", "build"], None);
    assert_eq!(without.code, Some(78), "{}", without.stderr);
    assert!(without.stderr.contains("EDITOR"), "{}", without.stderr);
    let editor = format!("'{}' --wait", notes.editor("And `make test`.").display());
    let ran = notes.run(&["edit", "build"], Some(&editor));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(notes.says(&["show", "build"]).contains("And `make test`."));
    assert!(
        notes
            .index()
            .contains("- [build](build.md) — project: use make")
    );
    let ran = notes.run(&["edit", "none"], Some(&editor));
    assert_eq!(ran.code, Some(66), "{}", ran.stderr);
    let ran = notes.run(&["edit"], Some("false"));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    std::fs::write(notes.path("build.md"), BUILD).unwrap();
    let spoil = "sh -c 'echo spoiled > \"$1\"' sh";
    let ran = notes.run(&["edit", "build"], Some(spoil));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
}
