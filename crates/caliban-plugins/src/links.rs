//! Links of a repository, which is checked out without any: each is a text that says where it leads.
//! Where that is a file or directory of the same repository, a copy takes its place; the others stay
//! texts.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use caliban_settings::{TREE_BYTES, TREE_ENTRIES};

/// The longest text of a link, in bytes, and how many links may lead to each other.
const LONGEST: u64 = 4096;
const CHAIN: usize = 8;
const DEPTH: usize = 32;

/// Puts copies in the place of links. `links` are meant from `root`.
pub fn follow_links(root: &Path, links: &[PathBuf]) {
    let known: BTreeSet<&Path> = links.iter().map(PathBuf::as_path).collect();
    let mut copies = Copies {
        entries: 0,
        bytes: 0,
    };
    // All are looked up before any is replaced: what a copy holds leads nowhere.
    let led: Vec<(PathBuf, PathBuf)> = known
        .iter()
        .filter_map(|link| {
            let target = target(root, link, &known)?;
            Some((root.join(link), root.join(target)))
        })
        .collect();
    for (place, target) in led {
        let beside = place.with_extension("caliban-copy");
        let is_whole = copies.copy(&target, &beside, 0).is_some();
        let is_placed = is_whole && fs::remove_file(&place).is_ok();
        if !(is_placed && fs::rename(&beside, &place).is_ok()) {
            // What there is no room for stays a text.
            let _ = fs::remove_dir_all(&beside);
            let _ = fs::remove_file(&beside);
        }
    }
}

/// Where a link leads in the repository, if it does.
fn target(root: &Path, link: &Path, known: &BTreeSet<&Path>) -> Option<PathBuf> {
    let mut at = link.to_owned();
    for _ in 0..CHAIN {
        let place = root.join(&at);
        let about = fs::symlink_metadata(&place).ok()?;
        if !known.contains(at.as_path()) {
            let is_part = about.is_file() || about.is_dir();
            // One that leads to what it lies in would never end.
            return (is_part && !link.starts_with(&at)).then_some(at);
        }
        if about.len() > LONGEST {
            return None;
        }
        let text = fs::read_to_string(&place).ok()?;
        at = joined(at.parent()?, Path::new(text.trim_end_matches('\n')))?;
    }
    None
}

/// A path as it is meant from a directory; nothing where it leads out of the root.
fn joined(directory: &Path, path: &Path) -> Option<PathBuf> {
    let mut joined = directory.to_owned();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !joined.pop() {
                    return None;
                }
            }
            Component::Normal(name) if name == ".git" => return None,
            Component::Normal(name) => joined.push(name),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(joined)
}

struct Copies {
    entries: usize,
    bytes: u64,
}

impl Copies {
    /// Copies a file or directory; nothing where there is no room for it.
    fn copy(&mut self, from: &Path, to: &Path, depth: usize) -> Option<()> {
        let about = fs::symlink_metadata(from).ok()?;
        self.entries += 1;
        self.bytes += if about.is_file() { about.len() } else { 0 };
        if depth > DEPTH || self.entries > TREE_ENTRIES || self.bytes > TREE_BYTES {
            return None;
        }
        if about.is_file() {
            return fs::copy(from, to).ok().map(|_| ());
        }
        if !about.is_dir() {
            return None;
        }
        fs::create_dir(to).ok()?;
        for entry in fs::read_dir(from).ok()? {
            let entry = entry.ok()?;
            self.copy(&entry.path(), &to.join(entry.file_name()), depth + 1)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_in_the_repository_takes_the_place_of_its_links() {
        let root = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        put("shared/skill/SKILL.md", "shared");
        put("a/skills/one", "../../shared/skill\n");
        put("a/two.md", "three.md");
        put("a/three.md", "../shared/skill/SKILL.md");
        for (link, text) in [
            ("a/out", "../../etc/passwd"),
            ("a/root", "/etc/passwd"),
            ("a/up", "../a"),
            ("a/self", "self"),
            ("a/gone", "nothing"),
        ] {
            put(link, text);
        }
        let links = [
            "skills/one",
            "two.md",
            "three.md",
            "out",
            "root",
            "up",
            "self",
            "gone",
        ];
        let links: Vec<PathBuf> = links.iter().map(|it| Path::new("a").join(it)).collect();
        follow_links(root.path(), &links);
        let read = |path: &str| fs::read_to_string(root.path().join(path)).unwrap();
        assert_eq!(read("a/skills/one/SKILL.md"), "shared");
        assert_eq!(
            (read("a/two.md"), read("a/three.md")),
            ("shared".into(), "shared".into())
        );
        assert_eq!(read("a/out"), "../../etc/passwd");
        assert_eq!(read("a/root"), "/etc/passwd");
        assert_eq!(read("a/up"), "../a");
        assert_eq!(
            (read("a/self"), read("a/gone")),
            ("self".into(), "nothing".into())
        );
        let left = fs::read_dir(root.path().join("a")).unwrap().count();
        assert_eq!(left, 8, "nothing is left over");
    }
}
