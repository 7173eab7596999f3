//! The files of a workspace that trust is about, read once: what is loaded is what was trusted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::programs;
use super::tree::Tree;
use crate::hex::hex;
use crate::source::{WorkspaceFile, read_workspace_file};

/// The files with fixed names whose keys need trust, relative to the workspace.
const NAMES: [&str; 10] = [
    ".caliban/settings.toml",
    ".caliban/settings.json",
    ".caliban/settings.local.toml",
    ".caliban/settings.local.json",
    ".caliban/permissions.toml",
    ".caliban/mcp.toml",
    ".caliban/hooks.toml",
    ".mcp.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
];

/// Where a workspace keeps plugins.
const PLUGINS: &str = ".caliban/plugins";
/// At most so many manifests and configuration files of plugins are looked through for programs; a
/// workspace with more cannot be recognised again.
const PLUGIN_FILES: usize = 256;
const PLUGIN_DEPTH: usize = 4;

/// The digest of a workspace's trust-relevant files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesDigest(String);

impl FilesDigest {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A workspace's trust-relevant files as they were at one moment.
#[derive(Debug, Clone)]
pub struct WorkspaceFiles {
    workspace: PathBuf,
    working_directory: PathBuf,
    files: BTreeMap<PathBuf, WorkspaceFile>,
    /// The digest of everything that its plugins are made of, where it has any.
    plugins: Option<String>,
    is_complete: bool,
}

impl WorkspaceFiles {
    /// Reads the files. `router` is the `caliban.toml` that was found for the workspace, in it or
    /// above it. A path that cannot be resolved is taken as it is.
    pub fn read(workspace: &Path, router: Option<&Path>) -> Self {
        let canonical = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let workspace = canonical(workspace);
        let root = workspace.join(PLUGINS);
        let plugins = plugin_files(&root);
        let tree = root.is_dir().then(|| Tree::read(&root));
        let is_complete = plugins.len() <= PLUGIN_FILES && !matches!(tree, Some(Err(_)));
        let mut files: BTreeMap<PathBuf, WorkspaceFile> = NAMES
            .iter()
            .map(|name| workspace.join(name))
            .chain(plugins)
            .map(|path| {
                let file = read_workspace_file(&workspace, &path);
                (path, file)
            })
            .collect();
        if let Some((path, directory)) = router.and_then(|path| Some((path, path.parent()?))) {
            let file = read_workspace_file(&canonical(directory), path);
            files.insert(path.to_owned(), file);
        }
        files.retain(|_, file| *file != WorkspaceFile::Absent);
        Self {
            working_directory: workspace.clone(),
            workspace,
            files,
            plugins: tree.and_then(Result::ok).map(|tree| tree.digest),
            is_complete,
        }
    }

    /// The same where programs are started in a directory below the workspace, so that relative
    /// names mean other files.
    #[must_use]
    pub fn starting_in(mut self, directory: &Path) -> Self {
        self.working_directory =
            fs::canonicalize(directory).unwrap_or_else(|_| directory.to_owned());
        self
    }

    /// The canonical path of the workspace.
    pub fn workspace(&self) -> &Path {
        &self.workspace
    }

    /// The files that exist.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.keys().map(PathBuf::as_path)
    }

    /// Where its plugins are, of which every file counts, where it has any.
    pub fn plugins(&self) -> Option<PathBuf> {
        self.plugins.as_ref().map(|_| self.workspace.join(PLUGINS))
    }

    /// What the files say and what they start, in one value; `None` where there is more than is
    /// covered.
    pub fn digest(&self) -> Option<FilesDigest> {
        let programs = self.programs();
        if !self.is_complete || programs.len() > programs::MOST {
            return None;
        }
        let mut hasher = Sha256::new();
        let mut field = |bytes: &[u8]| {
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        for (path, file) in &self.files {
            let name = path.strip_prefix(&self.workspace).unwrap_or(path);
            field(name.as_os_str().as_encoded_bytes());
            match file {
                WorkspaceFile::Absent => field(b"absent"),
                WorkspaceFile::Text(text) => {
                    field(b"text");
                    field(text.as_bytes());
                }
                WorkspaceFile::Elsewhere(target) => {
                    field(b"elsewhere");
                    field(target.as_os_str().as_encoded_bytes());
                }
                WorkspaceFile::Unusable(_) => field(b"unusable"),
            }
        }
        if let Some(plugins) = &self.plugins {
            field(b"plugins");
            field(plugins.as_bytes());
        }
        for path in &programs {
            let name = path.strip_prefix(&self.workspace).unwrap_or(path);
            field(b"program");
            field(name.as_os_str().as_encoded_bytes());
            field(&programs::digest(path)?);
        }
        let digest = hex(&hasher.finalize());
        Some(FilesDigest(format!("sha256:{digest}")))
    }

    /// The programs in the workspace that the files start.
    pub fn programs(&self) -> BTreeSet<PathBuf> {
        let texts = self.files.values().filter_map(|file| match file {
            WorkspaceFile::Text(text) => Some(text),
            WorkspaceFile::Absent | WorkspaceFile::Elsewhere(_) | WorkspaceFile::Unusable(_) => {
                None
            }
        });
        texts
            .flat_map(|text| programs::named_in(text, &self.workspace, &self.working_directory))
            .collect()
    }

    pub(crate) fn file(&self, path: &Path) -> &WorkspaceFile {
        self.files.get(path).unwrap_or(&WorkspaceFile::Absent)
    }
}

/// The manifests and configuration files of a workspace's plugins; at most one more than is
/// covered.
fn plugin_files(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![(root.to_owned(), 0)];
    while let Some((directory, depth)) = pending.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            if found.len() + pending.len() > PLUGIN_FILES {
                found.resize(PLUGIN_FILES + 1, directory.clone());
                return found;
            }
            let path = entry.path();
            let is_directory = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if is_directory && depth < PLUGIN_DEPTH {
                pending.push((path, depth + 1));
            } else if path
                .extension()
                .is_some_and(|extension| extension == "json")
            {
                found.push(path);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(workspace: &Path) -> Option<FilesDigest> {
        let router = workspace.join("caliban.toml");
        WorkspaceFiles::read(workspace, Some(&router)).digest()
    }

    #[test]
    fn every_trust_relevant_file_changes_the_digest() {
        let root = tempfile::tempdir().unwrap();
        let workspace = root.path();
        fs::create_dir_all(workspace.join(".caliban/plugins/p/hooks")).unwrap();
        fs::create_dir(workspace.join(".claude")).unwrap();
        let mut seen = vec![digest(workspace).unwrap()];
        let names = NAMES.into_iter().chain([
            "caliban.toml",
            ".caliban/plugins/p/plugin.json",
            ".caliban/plugins/p/hooks/hooks.json",
            ".caliban/plugins/p/hooks/run.sh",
        ]);
        for name in names {
            for text in ["a", "b", ""] {
                fs::write(workspace.join(name), text).unwrap();
                let now = digest(workspace).unwrap();
                assert!(!seen.contains(&now), "{name} {text:?}");
                seen.push(now);
            }
        }
        fs::write(workspace.join("README.md"), "x").unwrap();
        assert_eq!(digest(workspace).unwrap(), *seen.last().unwrap());
    }

    #[test]
    fn a_router_file_above_the_workspace_is_covered() {
        let root = tempfile::tempdir().unwrap();
        let workspace = root.path().join("below");
        fs::create_dir(&workspace).unwrap();
        let router = root.path().join("caliban.toml");
        let digest = || WorkspaceFiles::read(&workspace, Some(&router)).digest();
        let absent = digest();
        fs::write(&router, "a").unwrap();
        let first = digest();
        fs::write(&router, "b").unwrap();
        assert!(absent != first && first != digest());
    }

    #[test]
    fn moving_text_between_files_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(".caliban")).unwrap();
        let path = |name: &str| root.path().join(".caliban").join(name);
        fs::write(path("hooks.toml"), "x").unwrap();
        let before = digest(root.path());
        fs::rename(path("hooks.toml"), path("mcp.toml")).unwrap();
        assert_ne!(digest(root.path()), before);
    }

    #[test]
    fn more_plugins_than_are_covered_have_no_digest() {
        let root = tempfile::tempdir().unwrap();
        let plugins = root.path().join(".caliban/plugins");
        fs::create_dir_all(&plugins).unwrap();
        for index in 0..=PLUGIN_FILES {
            fs::write(plugins.join(format!("{index}.json")), "").unwrap();
        }
        assert_eq!(digest(root.path()), None);
    }
}
