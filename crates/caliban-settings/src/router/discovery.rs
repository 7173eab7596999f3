//! Finds `caliban.toml`: named by the user, in the project, or the user's own.

use std::fs;
use std::path::{Path, PathBuf};

use crate::locations::Locations;
use crate::project::project_root;
use crate::scope::Scope;
use crate::variables::{Environment, names};

const NAME: &str = "caliban.toml";

/// Who named the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RouterSource {
    /// `--config`.
    Flag,
    /// `CALIBAN_ROUTER_CONFIG`.
    Variable,
    /// Found between the working directory and the root of its project.
    Project,
    /// The user's configuration directory.
    User,
}

impl RouterSource {
    /// The scope whose rules of trust apply.
    pub fn scope(self) -> Scope {
        match self {
            Self::Flag | Self::Variable => Scope::Cli,
            Self::Project => Scope::Project,
            Self::User => Scope::User,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundRouterFile {
    pub path: PathBuf,
    pub source: RouterSource,
    /// The directory a project's file must really be in.
    pub(super) root: PathBuf,
}

/// Finds the file that counts. A file the user names counts even where it does not exist, so that
/// its absence is an error.
pub fn find_router_file(
    flag: Option<&Path>,
    environment: &Environment,
    start: &Path,
    locations: &Locations,
) -> Option<FoundRouterFile> {
    let named = flag.map(|path| (path.to_owned(), RouterSource::Flag));
    let named = named.or_else(|| {
        let path = environment.text(names::CALIBAN_ROUTER_CONFIG)?;
        Some((PathBuf::from(path), RouterSource::Variable))
    });
    if let Some((path, source)) = named {
        let root = path.parent().map(Path::to_owned).unwrap_or_default();
        return Some(FoundRouterFile { path, source, root });
    }
    let canonical = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (start, home) = (canonical(start), canonical(locations.home()));
    let root = project_root(&start, &home);
    let project = start
        .ancestors()
        .take_while(|directory| directory.starts_with(root))
        .map(|directory| directory.join(NAME))
        .find(|path| path.is_file());
    if let Some(path) = project {
        return Some(FoundRouterFile {
            path,
            source: RouterSource::Project,
            root: root.to_owned(),
        });
    }
    let path = locations.user_router_file();
    path.is_file().then(|| FoundRouterFile {
        root: locations.config_dir().to_owned(),
        source: RouterSource::User,
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locations::Platform;

    struct Fixture {
        _root: tempfile::TempDir,
        home: PathBuf,
        locations: Locations,
    }

    fn fixture() -> Fixture {
        let root = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(root.path()).unwrap().join("home");
        fs::create_dir_all(home.join("repo/src/deep")).unwrap();
        fs::create_dir_all(home.join("repo/.git")).unwrap();
        fs::create_dir_all(home.join(".config/caliban")).unwrap();
        let locations = Locations::new(Platform::Linux, &home, &|_| None);
        Fixture {
            _root: root,
            home,
            locations,
        }
    }

    impl Fixture {
        fn find(&self, start: &str) -> Option<(PathBuf, RouterSource)> {
            let none = |_: &str| None;
            let environment = Environment::new(none);
            find_router_file(None, &environment, &self.home.join(start), &self.locations)
                .map(|found| (found.path, found.source))
        }

        fn write(&self, name: &str) -> PathBuf {
            let path = self.home.join(name);
            fs::write(&path, "").unwrap();
            path
        }
    }

    #[test]
    fn the_walk_ends_at_the_git_root() {
        let fixture = fixture();
        fixture.write("caliban.toml");
        assert_eq!(fixture.find("repo/src/deep"), None);
        let user = fixture.write(".config/caliban/caliban.toml");
        assert_eq!(
            fixture.find("repo/src/deep"),
            Some((user, RouterSource::User))
        );
        let project = fixture.write("repo/caliban.toml");
        assert_eq!(
            fixture.find("repo/src/deep"),
            Some((project, RouterSource::Project))
        );
        let nearer = fixture.write("repo/src/caliban.toml");
        assert_eq!(
            fixture.find("repo/src/deep"),
            Some((nearer, RouterSource::Project))
        );
    }

    #[test]
    fn the_walk_ends_at_the_home_and_never_starts_above_it() {
        let fixture = fixture();
        fs::create_dir_all(fixture.home.join("plain/below")).unwrap();
        let outside = fixture.home.parent().unwrap();
        fs::write(outside.join("caliban.toml"), "").unwrap();
        assert_eq!(fixture.find("plain/below"), None);
        let home = fixture.write("caliban.toml");
        assert_eq!(
            fixture.find("plain/below"),
            Some((home, RouterSource::Project))
        );
        fs::create_dir_all(outside.join("tmp/x")).unwrap();
        assert_eq!(fixture.find("../tmp/x"), None);
    }

    #[test]
    fn a_named_file_wins() {
        let fixture = fixture();
        fixture.write("repo/caliban.toml");
        let read = |name: &str| (name == "CALIBAN_ROUTER_CONFIG").then(|| "/v.toml".to_owned());
        let environment = Environment::new(read);
        let start = fixture.home.join("repo");
        let find = |flag| find_router_file(flag, &environment, &start, &fixture.locations).unwrap();
        assert_eq!(find(None).source, RouterSource::Variable);
        assert_eq!(find(Some(Path::new("/f.toml"))).path, Path::new("/f.toml"));
    }
}
