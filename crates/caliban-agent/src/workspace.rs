//! Where tools work: the root that relative paths start from, and the roots that paths may not
//! leave in restricted mode.

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use serde::{Deserialize, Serialize};

/// The directories of a session. Nothing a tool is asked to do extends them; the user's settings
/// may, for everybody who has a copy of this.
#[derive(Debug, Clone)]
pub struct Workspace {
    root: PathBuf,
    additional: Arc<RwLock<Arc<[PathBuf]>>>,
    home: Option<PathBuf>,
    confinement: Confinement,
    /// Directories of our own that may be read in restricted mode too. They need not exist.
    readable: Vec<PathBuf>,
    /// What a sandbox closes, and moves.
    boundary: Option<Arc<dyn Boundary>>,
}

/// What a sandbox makes of paths, so that tools in this process agree with the programs in it.
pub trait Boundary: Send + Sync + Debug {
    /// Where a path really is that programs in the sandbox call so.
    fn locate(&self, path: &Path) -> PathBuf;
    /// The setting that forbids to read a path, links followed.
    fn hides(&self, real: &Path) -> Option<&'static str>;
    /// The setting that forbids to change a path, links followed.
    fn fixes(&self, real: &Path) -> Option<&'static str>;
}

/// Whether paths outside the roots are refused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Confinement {
    /// Any path the process may use.
    #[default]
    Open,
    /// Only paths beneath the roots, links resolved.
    Restricted,
}

/// A path as it was asked for and as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResolvedPath {
    /// Absolute, without `.` and `..`, links not followed.
    pub given: PathBuf,
    /// Absolute, with every link in the existing part followed.
    pub real: PathBuf,
    /// In restricted mode, the root that contains it.
    pub root: Option<PathBuf>,
}

/// Why a path cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    #[error("the path is empty")]
    Empty,
    #[error("the path holds a NUL byte")]
    Nul,
    #[error("`{}` is outside the workspace `{}`", .path.display(), .root.display())]
    Outside { path: PathBuf, root: PathBuf },
    #[error("`{}` cannot be resolved: {reason}", .path.display())]
    Unresolvable { path: PathBuf, reason: String },
    #[error("`~` cannot be expanded: no home directory is known")]
    NoHome,
    #[error("`{}` is closed: `{setting}` names it", .path.display())]
    Closed {
        path: PathBuf,
        setting: &'static str,
    },
}

impl Workspace {
    /// Resolves the roots; each must be an existing directory.
    pub fn new(
        root: &Path,
        additional: &[PathBuf],
        home: Option<PathBuf>,
        confinement: Confinement,
    ) -> Result<Self, PathError> {
        let directory = |path: &Path| {
            let unresolvable = |reason: String| PathError::Unresolvable {
                path: path.to_owned(),
                reason,
            };
            let real = path
                .canonicalize()
                .map_err(|error| unresolvable(error.to_string()))?;
            if !real.is_dir() {
                return Err(unresolvable("it is not a directory".to_owned()));
            }
            Ok(real)
        };
        Ok(Self {
            root: directory(root)?,
            additional: Arc::new(RwLock::new(
                additional
                    .iter()
                    .map(|path| directory(path))
                    .collect::<Result<_, _>>()?,
            )),
            home,
            confinement,
            readable: Vec::new(),
            boundary: None,
        })
    }

    /// The same with directories beside the roots that may be read and not changed: what we keep
    /// for the model to page through.
    #[must_use]
    pub fn with_readable(self, directories: Vec<PathBuf>) -> Self {
        Self {
            readable: directories,
            ..self
        }
    }

    /// The same within a sandbox.
    #[must_use]
    pub fn with_boundary(self, boundary: Option<Arc<dyn Boundary>>) -> Self {
        Self { boundary, ..self }
    }

    /// The same around another directory: its root is there, the further roots and what is
    /// confined stay.
    pub fn moved(&self, root: &Path) -> Result<Self, PathError> {
        let unresolvable = |reason: String| PathError::Unresolvable {
            path: root.to_owned(),
            reason,
        };
        let real = root.canonicalize();
        Ok(Self {
            root: real.map_err(|error| unresolvable(error.to_string()))?,
            ..self.clone()
        })
    }

    pub fn boundary(&self) -> Option<&Arc<dyn Boundary>> {
        self.boundary.as_ref()
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn additional(&self) -> Arc<[PathBuf]> {
        let additional = self.additional.read();
        Arc::clone(&additional.unwrap_or_else(PoisonError::into_inner))
    }

    /// Makes these the further roots, as far as they are directories.
    pub fn replace_additional(&self, directories: &[PathBuf]) {
        let real = directories.iter().filter_map(|it| it.canonicalize().ok());
        let real = real.filter(|it| it.is_dir()).collect();
        let mut additional = self
            .additional
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        *additional = real;
    }

    pub fn confinement(&self) -> Confinement {
        self.confinement
    }

    /// Resolves a path from a tool's input: `~` expanded, relative to the root, links followed
    /// as far as the path exists, containment checked by components on the result.
    pub fn resolve(&self, path: &str) -> Result<ResolvedPath, PathError> {
        let resolved = self.resolve_directory(path)?;
        self.check(resolved, |boundary, real| boundary.fixes(real))
    }

    /// The same for a directory that something is to run in, which changes nothing yet.
    pub fn resolve_directory(&self, path: &str) -> Result<ResolvedPath, PathError> {
        self.confine(self.resolve_freely(path)?, &[])
    }

    /// The same for a path that is only read.
    pub fn resolve_to_read(&self, path: &str) -> Result<ResolvedPath, PathError> {
        let resolved = self.resolve_freely(path)?;
        let readable = self.readable.iter().filter_map(|it| follow(it).ok());
        let resolved = self.confine(resolved, &readable.collect::<Vec<_>>())?;
        self.check(resolved, |boundary, real| boundary.hides(real))
    }

    /// Refuses what the sandbox closes.
    fn check(
        &self,
        resolved: ResolvedPath,
        closing: impl Fn(&dyn Boundary, &Path) -> Option<&'static str>,
    ) -> Result<ResolvedPath, PathError> {
        let boundary = self.boundary.as_deref();
        match boundary.and_then(|boundary| closing(boundary, &resolved.real)) {
            Some(setting) => Err(PathError::Closed {
                path: resolved.real,
                setting,
            }),
            None => Ok(resolved),
        }
    }

    fn confine(
        &self,
        resolved: ResolvedPath,
        further: &[PathBuf],
    ) -> Result<ResolvedPath, PathError> {
        let additional = self.additional();
        let mut roots = std::iter::once(&self.root)
            .chain(&*additional)
            .chain(further);
        let root = roots.find(|root| resolved.real.starts_with(root));
        match (self.confinement, root) {
            (Confinement::Open, _) => Ok(resolved),
            (Confinement::Restricted, Some(root)) => Ok(ResolvedPath {
                root: Some(root.clone()),
                ..resolved
            }),
            (Confinement::Restricted, None) => Err(PathError::Outside {
                path: resolved.real,
                root: self.root.clone(),
            }),
        }
    }

    /// The same wherever it leads: for judging a path, not for using it.
    pub fn resolve_freely(&self, path: &str) -> Result<ResolvedPath, PathError> {
        if path.trim().is_empty() {
            return Err(PathError::Empty);
        }
        if path.contains('\0') {
            return Err(PathError::Nul);
        }
        let absolute = self.root.join(self.expand_home(path)?);
        // `..` must mean what the kernel makes of it: the parent of what a link points to. So
        // links are followed component by component, and the lexical form is only for display.
        let located = match &self.boundary {
            // What is above a place that was moved is not above where it is.
            Some(boundary) if !absolute.components().any(|it| it == Component::ParentDir) => {
                &boundary.locate(&absolute)
            }
            Some(_) | None => &absolute,
        };
        let real = follow(located)?;
        Ok(ResolvedPath {
            given: lexical(&absolute),
            root: None,
            real,
        })
    }

    /// The path as people read it: relative to the root where it lies beneath it.
    pub fn display(&self, path: &Path) -> String {
        match path.strip_prefix(&self.root) {
            Ok(rest) if rest.as_os_str().is_empty() => ".".to_owned(),
            Ok(rest) => rest.display().to_string(),
            Err(_) => path.display().to_string(),
        }
    }

    fn expand_home(&self, path: &str) -> Result<PathBuf, PathError> {
        let rest = match path.strip_prefix('~') {
            Some("") => "",
            Some(rest) if rest.starts_with('/') => rest.trim_start_matches('/'),
            Some(_) | None => return Ok(PathBuf::from(path)),
        };
        Ok(self.home.as_ref().ok_or(PathError::NoHome)?.join(rest))
    }
}

/// The most links one path may go through, as in the kernel.
const MAX_LINKS: usize = 40;

/// The real path of something that need not exist yet: links of the existing part are followed
/// as the kernel would, the rest is appended. A link that points nowhere resolves to its target.
fn follow(path: &Path) -> Result<PathBuf, PathError> {
    let unresolvable = |reason: &str| PathError::Unresolvable {
        path: path.to_owned(),
        reason: reason.to_owned(),
    };
    let mut real = PathBuf::from("/");
    let mut pending: Vec<OsString> = components(path);
    let mut links = 0;
    while let Some(component) = pending.pop() {
        if component == ".." {
            real.pop();
            continue;
        }
        let candidate = real.join(&component);
        match std::fs::symlink_metadata(&candidate) {
            Ok(meta) if meta.file_type().is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(unresolvable("too many links"));
                }
                let target = std::fs::read_link(&candidate)
                    .map_err(|error| unresolvable(&error.to_string()))?;
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                pending.extend(components(&target));
            }
            Ok(meta) if !meta.is_dir() && !pending.is_empty() => {
                return Err(unresolvable(&format!(
                    "`{}` is not a directory",
                    candidate.display()
                )));
            }
            Ok(_) => real = candidate,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                // Nothing exists from here on: a `..` in the tail would be decided by whatever
                // is created later.
                if pending.iter().any(|component| component == "..") {
                    return Err(unresolvable(&format!(
                        "`..` after `{}`, which does not exist",
                        candidate.display()
                    )));
                }
                real = candidate;
            }
            Err(error) => return Err(unresolvable(&error.to_string())),
        }
    }
    Ok(real)
}

/// The components of a path, last first, without roots and dots.
fn components(path: &Path) -> Vec<OsString> {
    path.components()
        .rev()
        .filter_map(|component| match component {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => None,
        })
        .collect()
}

fn lexical(path: &Path) -> PathBuf {
    let mut result = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                result.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => {
                result.push(component);
            }
        }
    }
    result
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    struct Fixture {
        _temp: tempfile::TempDir,
        base: PathBuf,
    }

    fn fixture() -> Fixture {
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("root/sub")).unwrap();
        std::fs::create_dir_all(base.join("root-evil")).unwrap();
        std::fs::create_dir_all(base.join("extra")).unwrap();
        std::fs::create_dir_all(base.join("home")).unwrap();
        std::fs::create_dir_all(base.join("outside/deep")).unwrap();
        Fixture { _temp: temp, base }
    }

    fn workspace(fixture: &Fixture, confinement: Confinement) -> Workspace {
        Workspace::new(
            &fixture.base.join("root"),
            &[fixture.base.join("extra")],
            Some(fixture.base.join("home")),
            confinement,
        )
        .unwrap()
    }

    #[test]
    fn relative_home_and_absolute_paths_resolve() {
        let fixture = fixture();
        let workspace = workspace(&fixture, Confinement::Open);
        let real = |path: &str| workspace.resolve(path).unwrap().real;
        assert_eq!(real("a.txt"), fixture.base.join("root/a.txt"));
        assert_eq!(real("./sub/../b"), fixture.base.join("root/b"));
        assert_eq!(real("~/n.md"), fixture.base.join("home/n.md"));
        assert_eq!(real("~"), fixture.base.join("home"));
        assert_eq!(real("/"), PathBuf::from("/"));
        assert_eq!(real("~name"), fixture.base.join("root/~name"));
        assert_eq!(workspace.resolve(" "), Err(PathError::Empty));
        assert_eq!(workspace.resolve("a\0b"), Err(PathError::Nul));
    }

    #[test]
    fn restricted_mode_compares_components_of_the_real_path() {
        let fixture = fixture();
        let workspace = workspace(&fixture, Confinement::Restricted);
        symlink(fixture.base.join("outside"), fixture.base.join("root/link")).unwrap();
        symlink("../outside/new.txt", fixture.base.join("root/dangling")).unwrap();
        symlink("sub", fixture.base.join("root/inside")).unwrap();
        for inside in ["a", "sub/x/y/z", "inside/x", "sub/../a"] {
            assert!(workspace.resolve(inside).is_ok(), "{inside}");
        }
        let extra = fixture.base.join("extra/f");
        assert!(workspace.resolve(extra.to_str().unwrap()).is_ok());
        for outside in [
            "../root-evil/x",
            "../outside",
            "/etc/passwd",
            "~/x",
            "link/secret",
            "link/../x",
            "dangling",
            "..",
        ] {
            let result = workspace.resolve(outside);
            assert!(
                matches!(result, Err(PathError::Outside { .. })),
                "{outside}: {result:?}"
            );
        }
    }

    #[test]
    fn a_directory_of_our_own_is_read_and_not_changed() {
        let fixture = fixture();
        let kept = fixture.base.join("kept/results");
        let workspace =
            workspace(&fixture, Confinement::Restricted).with_readable(vec![kept.clone()]);
        let file = kept.join("call.txt");
        let file = file.to_str().unwrap();
        assert!(workspace.resolve_to_read(file).is_ok());
        assert!(workspace.resolve(file).is_err());
        std::fs::create_dir_all(&kept).unwrap();
        assert!(workspace.resolve_to_read(file).is_ok());
        symlink("../../outside/deep", kept.join("link")).unwrap();
        for outside in ["../secret", "link/x", "../results-evil/x"] {
            let path = kept.join(outside);
            assert!(
                workspace.resolve_to_read(path.to_str().unwrap()).is_err(),
                "{outside}"
            );
        }
    }

    #[derive(Debug)]
    struct Closing(PathBuf);

    impl Boundary for Closing {
        fn locate(&self, path: &Path) -> PathBuf {
            match path.strip_prefix("/moved") {
                Ok(rest) => self.0.join("outside").join(rest),
                Err(_) => path.to_owned(),
            }
        }

        fn hides(&self, real: &Path) -> Option<&'static str> {
            real.starts_with(self.0.join("root/hidden"))
                .then_some("hiding")
        }

        fn fixes(&self, real: &Path) -> Option<&'static str> {
            let is_fixed = real.starts_with(self.0.join("root/fixed"));
            is_fixed.then_some("fixing").or_else(|| self.hides(real))
        }
    }

    #[test]
    fn what_a_sandbox_closes_is_closed_by_every_name() {
        let fixture = fixture();
        symlink("hidden", fixture.base.join("root/link")).unwrap();
        std::fs::create_dir(fixture.base.join("root/hidden")).unwrap();
        let boundary = Arc::new(Closing(fixture.base.clone()));
        let workspace = workspace(&fixture, Confinement::Open).with_boundary(Some(boundary));
        let read = |path: &str| workspace.resolve_to_read(path).is_ok();
        let write = |path: &str| workspace.resolve(path).is_ok();
        assert!(read("a") && write("a"));
        assert!(read("fixed/a") && !write("fixed/a"));
        assert!(!read("hidden/a") && !write("hidden/a"));
        assert!(!read("link/a"));
        assert!(workspace.resolve_directory("fixed").is_ok());
        let located = |path: &str| workspace.resolve_freely(path).unwrap().real;
        assert_eq!(
            located("/moved/deep/x"),
            fixture.base.join("outside/deep/x")
        );
        // What is above a place that was moved is not above where it is.
        assert!(workspace.resolve_freely("/moved/../deep").is_err());
    }

    #[test]
    fn what_cannot_be_resolved_is_refused() {
        let fixture = fixture();
        let workspace = workspace(&fixture, Confinement::Restricted);
        symlink("loop", fixture.base.join("root/loop")).unwrap();
        std::fs::write(fixture.base.join("root/file"), "").unwrap();
        for path in ["loop", "loop/x", "missing/../x", "file/x"] {
            let result = workspace.resolve(path);
            assert!(
                matches!(result, Err(PathError::Unresolvable { .. })),
                "{path}: {result:?}"
            );
        }
    }

    #[test]
    fn a_link_and_its_target_are_both_known() {
        let fixture = fixture();
        let workspace = workspace(&fixture, Confinement::Open);
        symlink(fixture.base.join("outside"), fixture.base.join("root/link")).unwrap();
        let resolved = workspace.resolve("link/x").unwrap();
        assert_eq!(resolved.given, fixture.base.join("root/link/x"));
        assert_eq!(resolved.real, fixture.base.join("outside/x"));
        assert_eq!(workspace.display(&resolved.given), "link/x");
        assert_eq!(
            workspace.display(&resolved.real),
            resolved.real.display().to_string()
        );
    }
}
