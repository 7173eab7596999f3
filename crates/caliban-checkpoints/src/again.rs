//! A later look at a workspace. What a directory that has not changed holds has the same names as
//! before, so that nothing but the stamps of what is known there is to be asked for; only where names
//! may be others the workspace is walked.

use std::collections::HashSet;
use std::fs::File;
use std::path::{Path, PathBuf};

use crate::platform;
use crate::tree::{self, Shape, Stamp};
use crate::walk::{self, Found};

/// Too little to share it.
const FEW: usize = 1_000;

/// What an earlier look found.
#[derive(Debug)]
pub(crate) struct Earlier<'a> {
    /// In the order of [`walk::in_order`].
    pub(crate) stamps: Vec<(&'a Path, Stamp)>,
    pub(crate) rules: &'a [(PathBuf, Stamp)],
}

/// Looks at everything as [`walk::walk`] does, and finds the same. `is_settled` says of which
/// stamps an equal one means that nothing changed.
pub(crate) fn walk(
    root: &Path,
    ours: &Path,
    most: usize,
    earlier: &Earlier<'_>,
    is_settled: impl Fn(&Stamp) -> bool,
) -> Found {
    look(root, ours, most, earlier, is_settled).unwrap_or_else(|| walk::walk(root, ours, most))
}

/// Nothing where the whole workspace has to be walked.
fn look(
    root: &Path,
    ours: &Path,
    most: usize,
    earlier: &Earlier<'_>,
    is_settled: impl Fn(&Stamp) -> bool,
) -> Option<Found> {
    let now = stamps(root, &earlier.stamps)?;
    let known = || earlier.stamps.iter().zip(&now);
    let mut calm = HashSet::new();
    let mut stirred: HashSet<&Path> = HashSet::new();
    for ((path, before), now) in known() {
        if before.shape != Shape::Directory {
        } else if *now == Some(*before) && is_settled(before) {
            calm.insert(*path);
        } else {
            stirred.extend(path.ancestors());
        }
    }
    calm.retain(|path| !stirred.contains(path));
    let mut seen = walk::visit(root, ours, most, &calm);
    for skipped in &seen.skipped {
        for at in beneath(skipped, &earlier.stamps) {
            let path = earlier.stamps[at].0.to_owned();
            seen.stamps.extend(now[at].map(|stamp| (path, stamp)));
        }
        let rules = earlier.rules.iter();
        let rules = rules.filter(|(path, _)| path.starts_with(skipped));
        seen.rules.extend(rules.cloned());
    }
    let found = seen.found(root);
    // Other rules may be about names in directories that have not changed.
    (found.rules == earlier.rules && found.stamps.len() <= most).then_some(found)
}

/// Where what lies in a directory stands among all.
fn beneath(directory: &Path, all: &[(&Path, Stamp)]) -> std::ops::Range<usize> {
    let mut first = platform::bytes(directory.as_os_str()).to_vec();
    first.push(b'/');
    let is_before = |(path, _): &(&Path, Stamp)| platform::bytes(path.as_os_str()) < &first[..];
    let start = all.partition_point(is_before);
    let is_in = |(path, _): &(&Path, Stamp)| platform::bytes(path.as_os_str()).starts_with(&first);
    let length = all[start..].partition_point(is_in);
    start..start + length
}

/// What is at these paths now.
fn stamps(root: &Path, known: &[(&Path, Stamp)]) -> Option<Vec<Option<Stamp>>> {
    let root = File::open(root).ok()?;
    let stamp = |(path, _): &(&Path, Stamp)| tree::stamp_at(&root, path).ok();
    let share = known.len().div_ceil(walk::threads()).max(FEW);
    let mut all = Vec::with_capacity(known.len());
    std::thread::scope(|scope| {
        let mut shares = known.chunks(share);
        let own = shares.next().unwrap_or_default();
        let others: Vec<_> = shares
            .map(|share| scope.spawn(move || share.iter().map(stamp).collect::<Vec<_>>()))
            .collect();
        all.extend(own.iter().map(stamp));
        for other in others {
            all.extend(other.join().ok()?);
        }
        Some(())
    })?;
    Some(all)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use proptest::prelude::*;

    use super::*;

    const NAMES: [&str; 6] = ["a", "b", "c.log", ".env", "d", ".git"];
    const RULES: [&str; 4] = ["*.log\n", "/a\n", "d/\n.env\n", "b/a\n!c.log\n"];

    #[derive(Debug, Clone)]
    enum Deed {
        Write(PathBuf),
        Make(PathBuf),
        Link(PathBuf, PathBuf),
        Remove(PathBuf),
        Rename(PathBuf, PathBuf),
        Rule(PathBuf, &'static str),
        Include(&'static str),
    }

    fn path() -> impl Strategy<Value = PathBuf> {
        let name = prop::sample::select(&NAMES[..]);
        proptest::collection::vec(name, 1..4).prop_map(|names| names.iter().collect())
    }

    fn deed() -> impl Strategy<Value = Deed> {
        let rule = || prop::sample::select(&RULES[..]);
        prop_oneof![
            4 => path().prop_map(Deed::Write),
            2 => path().prop_map(Deed::Make),
            1 => (path(), path()).prop_map(|(one, another)| Deed::Link(one, another)),
            2 => path().prop_map(Deed::Remove),
            2 => (path(), path()).prop_map(|(one, another)| Deed::Rename(one, another)),
            1 => (path(), rule()).prop_map(|(path, rule)| Deed::Rule(path, rule)),
            1 => rule().prop_map(Deed::Include),
        ]
    }

    /// What cannot be done is not done.
    fn perform(root: &Path, deed: &Deed) {
        let at = |path: &Path| root.join(path);
        let write = |path: PathBuf, text: &str| {
            let _ = fs::create_dir_all(path.parent().unwrap());
            let _ = fs::write(path, text);
        };
        match deed {
            Deed::Write(path) => write(at(path), "x"),
            Deed::Make(path) => drop(fs::create_dir_all(at(path))),
            Deed::Link(path, target) => drop(symlink(at(target), at(path))),
            Deed::Remove(path) if at(path).is_symlink() => drop(fs::remove_file(at(path))),
            Deed::Remove(path) if at(path).is_dir() => drop(fs::remove_dir_all(at(path))),
            Deed::Remove(path) => drop(fs::remove_file(at(path))),
            Deed::Rename(from, to) => drop(fs::rename(at(from), at(to))),
            Deed::Rule(path, rule) => write(at(path).join(".gitignore"), rule),
            Deed::Include(rule) => write(at(Path::new(".worktreeinclude")), rule),
        }
    }

    /// Waits until what is done from here on has other stamps than what was done.
    fn tick(beside: &Path) -> SystemTime {
        let start = SystemTime::now();
        loop {
            fs::write(beside.join("clock"), "").unwrap();
            let now = fs::metadata(beside.join("clock"))
                .unwrap()
                .modified()
                .unwrap();
            if now > start + Duration::from_millis(1) {
                return now;
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn a_later_look_finds_what_a_first_one_would(
            first in proptest::collection::vec(deed(), 0..24),
            rounds in proptest::collection::vec(proptest::collection::vec(deed(), 0..4), 1..4),
        ) {
            let home = tempfile::tempdir().unwrap();
            let root = home.path().join("root");
            let ours = root.join("a/d");
            fs::create_dir(&root).unwrap();
            for deed in &first {
                perform(&root, deed);
            }
            let begun = tick(home.path());
            let mut earlier = walk::walk(&root, &ours, 1_000);
            for deeds in &rounds {
                let before = begun.duration_since(UNIX_EPOCH).unwrap().as_nanos().cast_signed();
                for deed in deeds {
                    perform(&root, deed);
                }
                let again = super::walk(
                    &root,
                    &ours,
                    1_000,
                    &Earlier {
                        stamps: earlier.stamps.iter().map(|(path, stamp)| (&**path, *stamp)).collect(),
                        rules: &earlier.rules,
                    },
                    |stamp| stamp.modified.max(stamp.changed) < before,
                );
                let anew = walk::walk(&root, &ours, 1_000);
                prop_assert_eq!(&again.stamps, &anew.stamps);
                prop_assert_eq!(&again.rules, &anew.rules);
                prop_assert_eq!(&again.coverage, &anew.coverage);
                earlier = again;
            }
        }
    }

    #[test]
    fn a_directory_that_has_not_changed_is_not_read() {
        let home = tempfile::tempdir().unwrap();
        let root = home.path().join("root");
        fs::create_dir_all(root.join("calm/deep")).unwrap();
        fs::create_dir_all(root.join("stirred")).unwrap();
        fs::write(root.join("calm/deep/file"), "").unwrap();
        let earlier = walk::walk(&root, Path::new(""), 100);
        fs::write(root.join("calm/deep/file"), "longer").unwrap();
        fs::write(root.join("stirred/new"), "").unwrap();
        let stamps: Vec<_> = earlier
            .stamps
            .iter()
            .map(|(path, stamp)| (&**path, *stamp))
            .collect();
        let calm = HashSet::from([Path::new("calm")]);
        let seen = walk::visit(&root, Path::new(""), 100, &calm);
        assert_eq!(seen.skipped, [Path::new("calm")]);
        assert!(
            seen.stamps
                .iter()
                .all(|(path, _)| !path.starts_with("calm/deep"))
        );
        assert_eq!(beneath(Path::new("calm"), &stamps), 1..3);
    }
}
