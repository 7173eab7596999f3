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
    /// The same with links followed, where that is another name of it.
    real_home: Option<PathBuf>,
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
    /// Beneath the anchor.
    glob: String,
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
        let real_home = home.as_deref().and_then(|home| home.canonicalize().ok());
        Self {
            workspace,
            project,
            real_home: real_home.filter(|real| Some(real) != home.as_ref()),
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

    /// The home by all of its names.
    fn homes(&self) -> impl Iterator<Item = &Path> {
        let homes = self.home.iter().chain(&self.real_home);
        homes.map(PathBuf::as_path)
    }

    fn any_root(&self, is_meant: impl Fn(&Path) -> bool) -> bool {
        is_meant(&self.project)
            || is_meant(self.workspace.root())
            || self.workspace.additional().iter().any(|it| is_meant(it))
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
            glob,
            text: text.to_owned(),
        })
    }

    /// Whether it matches a path in the way an allow rule must: a relative pattern does not reach
    /// beyond the project.
    pub fn allows(&self, path: &Path, places: &Places) -> bool {
        self.covers(path, places)
    }

    /// Whether it matches a path in the way an objection must: the path, or a directory above it
    /// that the pattern spells. A last `*` is about what lies right there, not below.
    pub fn objects(&self, path: &Path, places: &Places) -> bool {
        let reach = if self.ends_in_wildcard() {
            1
        } else {
            usize::MAX
        };
        let mut names = path.ancestors().take(reach);
        names.any(|ancestor| self.touches(ancestor, places))
    }

    fn ends_in_wildcard(&self) -> bool {
        let last = self.text.rsplit('/').next().unwrap_or_default();
        let mut letters = last.chars();
        while let Some(letter) = letters.next() {
            match letter {
                '\\' => drop(letters.next()),
                '*' | '?' | '[' => return true,
                _ => {}
            }
        }
        false
    }

    fn covers(&self, path: &Path, places: &Places) -> bool {
        let beneath = |root: &Path| {
            path.strip_prefix(root)
                .is_ok_and(|rest| self.matcher.is_match(rest))
        };
        match self.anchor {
            Anchor::AnyDepth => places.any_root(beneath),
            Anchor::Workspace => beneath(places.workspace.root()),
            Anchor::Home => places.homes().any(beneath),
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

    /// Globs over absolute paths without their first `/`, of which one matches wherever this one
    /// objects: to many paths they are asked about at once.
    pub(crate) fn objections(&self, places: &Places) -> Vec<String> {
        let beneath = |root: &Path| {
            let root = root.strip_prefix("/").unwrap_or(root);
            match root.to_str() {
                Some("") => self.glob.clone(),
                Some(root) => format!("{}/{}", globset::escape(root), self.glob),
                // No glob spells it; it is asked about by itself.
                None => "**".to_owned(),
            }
        };
        let globs = match self.anchor {
            Anchor::AnyDepth | Anchor::Root => vec![self.glob.clone()],
            Anchor::Workspace => vec![beneath(places.workspace.root())],
            Anchor::Home => places.homes().map(beneath).collect(),
        };
        let deeper = globs.iter().map(|glob| format!("{glob}/**"));
        deeper.chain(globs.iter().cloned()).collect()
    }

    /// Whether it could object to anything beneath a directory.
    pub(crate) fn reaches(&self, directory: &Path, places: &Places) -> bool {
        if self.anchor == Anchor::AnyDepth {
            return true;
        }
        let begins = self.begins(places);
        begins
            .iter()
            .any(|begin| begin.starts_with(directory) || directory.starts_with(begin))
    }

    /// Where what it is about begins, as far as it spells that out.
    pub(crate) fn begins(&self, places: &Places) -> Vec<PathBuf> {
        let roots: Vec<&Path> = match self.anchor {
            Anchor::AnyDepth => vec![&places.project],
            Anchor::Workspace => vec![places.workspace.root()],
            Anchor::Home => places.homes().collect(),
            Anchor::Root => vec![Path::new("/")],
        };
        let components = self.glob.split('/');
        let literal = components
            .take_while(|component| !component.contains(['*', '?', '[', ']', '{', '}', '\\']));
        let begin: PathBuf = literal.collect();
        roots.iter().map(|root| root.join(&begin)).collect()
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
        assert!(it.objects("{secrets,keys}", "keys/deep/key"));
    }

    #[test]
    fn a_star_does_not_reach_below_whoever_writes_it() {
        let it = fixture();
        assert!(it.objects("secrets/*", "secrets/key") && it.allows("secrets/*", "secrets/key"));
        assert!(!it.objects("secrets/*", "secrets/deep/key"));
        assert!(!it.objects("*.d", "a.d/key") && it.objects("*.d", "a.d"));
        assert!(it.objects("secrets/**", "secrets/deep/key"));
        assert!(it.objects(r"a/\*", "a/*/key"));
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
