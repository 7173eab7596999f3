//! Context as a session sees it, read from a home and a repository in a temporary directory.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic"
)]

mod commands;
mod imports;
mod memory;
mod notes;
mod on_demand;
mod skills;
mod styles;

use std::fs;
use std::path::{Path, PathBuf};

use caliban_context::{Notice, Options, Places, PluginPlace, Section};

/// A home, a repository with a workspace in it, and something outside.
struct Fixture {
    _temp: tempfile::TempDir,
    base: PathBuf,
    places: Places,
    options: Options,
}

impl Fixture {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        fs::create_dir_all(base.join("repo/.git")).unwrap();
        fs::create_dir_all(base.join("repo/app")).unwrap();
        let places = Places {
            workspace: base.join("repo/app"),
            project: base.join("repo/app"),
            home: base.join("home"),
            config: base.join("home/.config/caliban"),
            foreign: base.join("home/.claude"),
            foreign_instructions: None,
            data: base.join("home/.local/share/caliban"),
            notes: base.join("home/.local/share/caliban/projects/x/memory"),
            imports_allowlist: base.join("home/.caliban/imports-allowlist.json"),
            plugins: vec![PluginPlace::usual("tools", base.join("plugins/tools"))],
        };
        Self {
            _temp: temp,
            base,
            places,
            options: Options::default(),
        }
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.base.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn path(&self, path: &str) -> PathBuf {
        self.base.join(path)
    }

    /// Text with the temporary directory shown as `~~`.
    fn shown(&self, text: &str) -> String {
        text.replace(self.base.to_str().unwrap(), "~~")
    }

    fn rendered(&self, sections: &[Section]) -> String {
        let blocks: Vec<String> = sections.iter().map(Section::render).collect();
        self.shown(&blocks.join("\n"))
    }

    fn notices(&self, notices: &[Notice]) -> Vec<String> {
        notices
            .iter()
            .map(|notice| self.shown(&notice.to_string()))
            .collect()
    }
}

#[cfg(unix)]
fn link(target: &Path, link: &Path) {
    std::os::unix::fs::symlink(target, link).unwrap();
}
