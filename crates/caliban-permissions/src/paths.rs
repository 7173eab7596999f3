//! Patterns about files: matched against the path as it was given and as it is.

use std::path::{Path, PathBuf};

use caliban_agent::Workspace;
use globset::{GlobBuilder, GlobMatcher};

/// Where the patterns of a run are anchored.
#[derive(Debug, Clone)]
pub struct Places {
    /// Where relative paths of calls start.
    pub workspace: Workspace,
    /// The repository around the workspace, or the workspace itself.
    pub project: PathBuf,
    pub home: Option<PathBuf>,
}

/// A path of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Known {
        /// Absolute, links not followed.
        given: PathBuf,
        /// Absolute, links followed.
        real: PathBuf,
    },
    /// It cannot be resolved safely: no pattern allows it, every pattern that could be meant
    /// refuses it.
    Unknown { given: PathBuf },
}

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct PathPattern {
    anchor: Anchor,
    matcher: GlobMatcher,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Anchor {
    /// At any depth beneath the project.
    AnyDepth,
    /// At the workspace itself.
    Workspace,
    Home,
    Root,
}

impl Places {
    pub fn new(workspace: Workspace, home: Option<PathBuf>) -> Self {
        let root = workspace.root();
        let project = root
            .ancestors()
            .find(|directory| directory.join(".git").exists())
            .unwrap_or(root)
            .to_owned();
        Self {
            workspace,
            project,
            home,
        }
    }

    /// Resolves a path of a call as the tools do.
    pub fn subject(&self, path: &str) -> Subject {
        match self.workspace.resolve_freely(path) {
            Ok(resolved) => Subject::Known {
                given: resolved.given,
                real: resolved.real,
            },
            Err(_) => Subject::Unknown {
                given: self.workspace.root().join(path),
            },
        }
    }

    fn roots(&self) -> impl Iterator<Item = &Path> {
        [self.project.as_path(), self.workspace.root()]
            .into_iter()
            .chain(self.workspace.additional().iter().map(PathBuf::as_path))
    }
}

impl Subject {
    /// The names of what is touched: as given and, where a link leads elsewhere, as it is.
    pub fn names(&self) -> impl Iterator<Item = &Path> {
        let real = Some(self.real()).filter(|real| *real != self.given());
        std::iter::once(self.given()).chain(real)
    }

    /// The path that is really touched.
    pub fn real(&self) -> &Path {
        match self {
            Self::Known { real, .. } => real,
            Self::Unknown { given } => given,
        }
    }

    pub fn given(&self) -> &Path {
        match self {
            Self::Known { given, .. } | Self::Unknown { given } => given,
        }
    }
}

impl PathPattern {
    /// `text` as it is written: absolute, `~/…`, `./…` at the workspace, or relative at any depth.
    pub fn new(text: &str) -> Result<Self, globset::Error> {
        let (anchor, glob) = if let Some(rest) = text.strip_prefix("//") {
            (Anchor::Root, rest)
        } else if let Some(rest) = text.strip_prefix('/') {
            (Anchor::Root, rest)
        } else if let Some(rest) = text.strip_prefix("~/") {
            (Anchor::Home, rest)
        } else if let Some(rest) = text.strip_prefix("./") {
            (Anchor::Workspace, rest)
        } else {
            (Anchor::AnyDepth, text)
        };
        // A directory stands for everything in it.
        let glob = match glob.strip_suffix('/') {
            Some(directory) => format!("{directory}/**"),
            None => glob.to_owned(),
        };
        let glob = match anchor {
            Anchor::AnyDepth if !glob.starts_with("**/") => format!("**/{glob}"),
            _ => glob,
        };
        Ok(Self {
            anchor,
            matcher: GlobBuilder::new(&glob)
                .literal_separator(true)
                .build()?
                .compile_matcher(),
            text: text.to_owned(),
        })
    }

    /// Whether it matches a path in the way an allow rule must: a relative pattern does not reach
    /// beyond the project.
    pub fn allows(&self, path: &Path, places: &Places) -> bool {
        self.covers(path, places)
    }

    /// Whether it matches a path in the way an objection must: the path or a directory above it.
    pub fn objects(&self, path: &Path, places: &Places) -> bool {
        path.ancestors()
            .any(|ancestor| self.touches(ancestor, places))
    }

    fn covers(&self, path: &Path, places: &Places) -> bool {
        let beneath = |root: &Path| {
            path.strip_prefix(root)
                .is_ok_and(|rest| self.matcher.is_match(rest))
        };
        match self.anchor {
            Anchor::AnyDepth => places.roots().any(beneath),
            Anchor::Workspace => beneath(places.workspace.root()),
            Anchor::Home => places.home.as_deref().is_some_and(beneath),
            Anchor::Root => beneath(Path::new("/")),
        }
    }

    fn touches(&self, path: &Path, places: &Places) -> bool {
        let anywhere = |path: &Path| {
            path.strip_prefix("/")
                .is_ok_and(|rest| !rest.as_os_str().is_empty() && self.matcher.is_match(rest))
        };
        match self.anchor {
            Anchor::AnyDepth => anywhere(path),
            Anchor::Workspace | Anchor::Home | Anchor::Root => self.covers(path, places),
        }
    }

    /// Whether the pattern spells this name.
    pub fn names(&self, name: &str) -> bool {
        let folded = self.text.to_lowercase();
        let name = name.to_lowercase();
        if name.contains('/') {
            return format!("/{folded}/").contains(&format!("/{name}/"))
                || folded.contains(&format!("{name}/"));
        }
        folded.split('/').any(|component| component == name)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use caliban_agent::Confinement;

    use super::*;

    struct Fixture {
        _temp: tempfile::TempDir,
        base: PathBuf,
        places: Places,
    }

    fn fixture() -> Fixture {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        for directory in ["repo/.git", "repo/app/src", "home", "outside"] {
            std::fs::create_dir_all(base.join(directory)).unwrap();
        }
        let home = Some(base.join("home"));
        let workspace =
            Workspace::new(&base.join("repo/app"), &[], home.clone(), Confinement::Open).unwrap();
        Fixture {
            places: Places::new(workspace, home),
            base,
            _temp: temp,
        }
    }

    impl Fixture {
        fn allows(&self, pattern: &str, path: &str) -> bool {
            let pattern = PathPattern::new(pattern).unwrap();
            let subject = self.places.subject(path);
            matches!(subject, Subject::Known { .. })
                && subject
                    .names()
                    .all(|name| pattern.allows(name, &self.places))
        }

        fn objects(&self, pattern: &str, path: &str) -> bool {
            let pattern = PathPattern::new(pattern).unwrap();
            let subject = self.places.subject(path);
            subject
                .names()
                .any(|name| pattern.objects(name, &self.places))
        }
    }

    #[test]
    fn relative_patterns_hold_at_any_depth_of_the_repository() {
        let it = fixture();
        assert!(it.allows("src/**/*.rs", "src/a/b.rs"));
        assert!(it.allows("*.md", "../docs/x.md"));
        assert!(it.allows("**/*.rs", "main.rs"));
        assert!(!it.allows("src/*.rs", "src/a/b.rs"));
        assert!(!it.allows("*.md", "../../outside/x.md"));
        assert!(it.objects("*.md", "../../outside/x.md"));
        assert!(it.allows("./src/*", "src/x"));
        assert!(!it.allows("./src/*", "deep/src/x"));
        assert!(it.allows("~/notes/*", "~/notes/a"));
        let outside = it.base.join("outside");
        assert!(it.allows(&format!("{}/*", outside.display()), "../../outside/x"));
        assert!(it.allows("src/", "src/deep/x"));
    }

    #[test]
    fn a_link_has_two_names() {
        let it = fixture();
        symlink(it.base.join("outside"), it.base.join("repo/app/src/link")).unwrap();
        assert!(!it.allows("src/**", "src/link/x"));
        assert!(it.objects("src/**", "src/link/x"));
        let outside = format!("{}/**", it.base.join("outside").display());
        assert!(!it.allows(&outside, "src/link/x"));
        assert!(it.objects(&outside, "src/link/x"));
    }

    #[test]
    fn an_objection_to_a_directory_holds_for_what_is_in_it() {
        let it = fixture();
        assert!(it.objects("secrets", "secrets/deep/key"));
        assert!(!it.allows("secrets", "secrets/deep/key"));
        assert!(!it.objects("secret", "secrets/deep/key"));
    }

    #[test]
    fn what_cannot_be_resolved_is_never_allowed() {
        let it = fixture();
        symlink("loop", it.base.join("repo/app/loop")).unwrap();
        assert!(!it.allows("**", "loop"));
        assert!(!it.allows("**", "missing/../x"));
        assert!(it.objects("loop", "loop"));
    }

    #[test]
    fn an_unclosed_bracket_is_an_error() {
        assert!(PathPattern::new("a[b").is_err());
    }

    #[test]
    fn a_pattern_names_what_it_spells() {
        let names = |pattern: &str, name: &str| PathPattern::new(pattern).unwrap().names(name);
        assert!(names(".git/**", ".git"));
        assert!(names("/repo/.GIT/config", ".git"));
        assert!(!names("**", ".git"));
        assert!(!names("x.git/**", ".git"));
        assert!(names(".github/workflows/*", ".github/workflows"));
        assert!(!names(".github/**", ".github/workflows"));
    }
}
