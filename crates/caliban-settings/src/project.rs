//! Which directory's `.caliban` counts for work in a directory.

use std::fs;
use std::path::{Path, PathBuf};

use crate::locations::Locations;

/// The nearest git root or the home. Outside both nothing above the start counts: those
/// directories may be anybody's.
pub(crate) fn project_root<'a>(start: &'a Path, home: &Path) -> &'a Path {
    start
        .ancestors()
        .find(|directory| *directory == home || directory.join(".git").exists())
        .unwrap_or(start)
}

/// The directory whose settings, rules, trust, skills and commands count where somebody works in
/// `start`: the nearest one up to the root of the repository that has a `.caliban`, else `start`
/// itself. The home is none, for what is kept there is the user's.
pub fn project_of(start: &Path, locations: &Locations) -> PathBuf {
    let canonical = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (start, home) = (canonical(start), canonical(locations.home()));
    let root = project_root(&start, &home);
    let found = start
        .ancestors()
        .take_while(|directory| directory.starts_with(root) && *directory != home)
        .find(|directory| locations.project_dir(directory).is_dir());
    found.unwrap_or(&start).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::locations::Platform;

    #[test]
    fn the_nearest_directory_up_to_the_repository_counts() {
        let root = tempfile::tempdir().unwrap();
        let home = fs::canonicalize(root.path()).unwrap().join("home");
        for path in [
            ".caliban",
            "repo/.git",
            "repo/.caliban",
            "repo/a/b",
            "repo/own/.caliban",
            "repo/own/c",
            "plain/d",
        ] {
            fs::create_dir_all(home.join(path)).unwrap();
        }
        let locations = Locations::new(Platform::current(), &home, &|_| None);
        for (start, expected) in [
            ("repo", "repo"),
            ("repo/a/b", "repo"),
            ("repo/own/c", "repo/own"),
            ("plain/d", "plain/d"),
            ("", ""),
        ] {
            let found = project_of(&home.join(start), &locations);
            assert_eq!(found, home.join(expected).components().collect::<PathBuf>());
        }
        // Above a repository nothing counts, whatever is there.
        fs::create_dir_all(home.join("plain/.caliban")).unwrap();
        assert_eq!(
            project_of(&home.join("plain/d"), &locations),
            home.join("plain")
        );
        fs::create_dir_all(home.join("plain/d/.git")).unwrap();
        assert_eq!(
            project_of(&home.join("plain/d"), &locations),
            home.join("plain/d")
        );
    }
}
