//! What git's index and object store say of the files of a workspace. They are only read.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use caliban_git::WaitingGit;

use crate::platform;
use crate::tree::{Shape, Stamp};

/// The variables that git is started with and no others: where it and its settings are.
#[derive(Debug, Clone, Default)]
pub struct Environment(pub Vec<(OsString, OsString)>);

#[derive(Debug)]
pub(crate) struct Git {
    git: WaitingGit,
}

/// What the index says of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tracked {
    object: String,
    mtime: (u32, u32),
    ctime: (u32, u32),
    inode: u32,
    size: u32,
}

impl Git {
    pub(crate) fn new(root: PathBuf, environment: Environment) -> Self {
        Self {
            git: WaitingGit::new(root, environment.0),
        }
    }

    /// The objects that hold exactly what is in these files; nothing for a file that is not
    /// tracked, was changed since, or looks otherwise in the object store. Where git cannot be
    /// asked there are none.
    pub(crate) fn clean<'a>(
        &self,
        files: impl Iterator<Item = (&'a PathBuf, &'a Stamp)>,
    ) -> HashMap<PathBuf, String> {
        self.try_clean(files).unwrap_or_default()
    }

    fn try_clean<'a>(
        &self,
        files: impl Iterator<Item = (&'a PathBuf, &'a Stamp)>,
    ) -> Option<HashMap<PathBuf, String>> {
        let index = self
            .git
            .ask(&["rev-parse", "--git-path", "index"], b"")
            .ok()?;
        let index = platform::name(index.trim_ascii_end().to_vec())?;
        let written = Stamp::from(&fs::metadata(self.git.directory().join(index)).ok()?).modified;
        let listed = self
            .git
            .ask(&["ls-files", "-z", "--stage", "--debug"], b"")
            .ok()?;
        let tracked = tracked(&listed);
        let candidates: Vec<(&PathBuf, &Stamp, &Tracked)> = files
            .filter_map(|(path, stamp)| Some((path, stamp, tracked.get(path)?)))
            // As git has it: what changed when the index was written may have changed after.
            .filter(|(_, stamp, tracked)| stamp.modified < written && tracked.fits(stamp))
            .collect();
        let mut names = Vec::new();
        let mut objects = Vec::new();
        for (path, _, tracked) in &candidates {
            names.extend_from_slice(platform::bytes(path.as_os_str()));
            names.push(0);
            objects.extend_from_slice(tracked.object.as_bytes());
            objects.push(b'\n');
        }
        let attributes = [
            "check-attr",
            "-z",
            "--stdin",
            "filter",
            "ident",
            "working-tree-encoding",
        ];
        let converted = converted(&self.git.ask(&attributes, &names).ok()?);
        let sizes = self
            .git
            .ask(&["cat-file", "--batch-check"], &objects)
            .ok()?;
        let sizes = sizes.split(|byte| *byte == b'\n');
        Some(
            candidates
                .into_iter()
                .zip(sizes)
                .filter(|((path, stamp, tracked), size)| {
                    // Another size means other ends of lines.
                    let same = format!("{} blob {}", tracked.object, stamp.size);
                    *size == same.as_bytes() && !converted.contains(*path)
                })
                .map(|((path, _, tracked), _)| (path.clone(), tracked.object.clone()))
                .collect(),
        )
    }

    /// The contents of objects, as far as they are there and within a bound in all.
    pub(crate) fn contents(&self, objects: &[String]) -> HashMap<String, Vec<u8>> {
        match self
            .git
            .ask(&["cat-file", "--batch"], objects.join("\n").as_bytes())
        {
            Ok(answer) if !objects.is_empty() => contents(&answer),
            Ok(_) | Err(_) => HashMap::new(),
        }
    }
}

impl Tracked {
    /// Whether the index has the stamp of this very file. Its numbers have 32 bits.
    fn fits(&self, stamp: &Stamp) -> bool {
        let time = |nanoseconds: i128| {
            let seconds = nanoseconds.div_euclid(1_000_000_000);
            let rest = nanoseconds.rem_euclid(1_000_000_000);
            Some((u32::try_from(seconds).ok()?, u32::try_from(rest).ok()?))
        };
        let inode = u32::try_from(stamp.identity.1 & u64::from(u32::MAX)).ok();
        stamp.shape == Shape::File
            && u64::from(self.size) == stamp.size
            && time(stamp.modified) == Some(self.mtime)
            && time(stamp.changed) == Some(self.ctime)
            && inode == Some(self.inode)
    }
}

/// The ordinary files of `ls-files --stage --debug -z`: what is to be shown of the next one follows
/// the zero byte after the name of this one.
fn tracked(listed: &[u8]) -> HashMap<PathBuf, Tracked> {
    let mut tracked = HashMap::new();
    let mut pieces = listed.split(|byte| *byte == 0);
    let mut head = pieces.next().unwrap_or_default();
    for piece in pieces {
        // Five lines of numbers, and then the next file.
        let end = piece
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'\n')
            .nth(4)
            .map_or(piece.len(), |(at, _)| at + 1);
        let (numbers, next) = piece.split_at(end);
        if let Some((path, file)) = one(head, numbers) {
            tracked.insert(path, file);
        }
        head = next;
    }
    tracked
}

fn one(head: &[u8], numbers: &[u8]) -> Option<(PathBuf, Tracked)> {
    let tab = head.iter().position(|byte| *byte == b'\t')?;
    let path = PathBuf::from(platform::name(head[tab + 1..].to_vec())?);
    let mut words = std::str::from_utf8(&head[..tab]).ok()?.split(' ');
    let (mode, object, stage) = (words.next()?, words.next()?, words.next()?);
    if !matches!(mode, "100644" | "100755") || stage != "0" {
        return None;
    }
    let numbers = std::str::from_utf8(numbers).ok()?;
    let value = |name: &str| {
        let rest = numbers.split_once(name)?.1;
        rest.split(['\n', '\t']).next()
    };
    let time = |name: &str| {
        let (seconds, rest) = value(name)?.split_once(':')?;
        Some((seconds.parse().ok()?, rest.parse().ok()?))
    };
    let file = Tracked {
        object: object.to_owned(),
        ctime: time("ctime: ")?,
        mtime: time("mtime: ")?,
        inode: value("ino: ")?.parse().ok()?,
        size: value("size: ")?.parse().ok()?,
    };
    Some((path, file))
}

/// The paths that have one of the attributes of `check-attr -z`.
fn converted(answer: &[u8]) -> HashSet<PathBuf> {
    let fields: Vec<&[u8]> = answer.split(|byte| *byte == 0).collect();
    fields
        .chunks_exact(3)
        .filter(|field| field[2] != b"unspecified" && field[2] != b"unset")
        .filter_map(|field| platform::name(field[0].to_vec()).map(PathBuf::from))
        .collect()
}

/// The objects of `cat-file --batch`.
fn contents(mut answer: &[u8]) -> HashMap<String, Vec<u8>> {
    let mut contents = HashMap::new();
    while let Some(end) = answer.iter().position(|byte| *byte == b'\n') {
        let head = String::from_utf8_lossy(&answer[..end]).into_owned();
        answer = &answer[end + 1..];
        let mut words = head.split(' ');
        let (object, kind, size) = (words.next(), words.next(), words.next());
        let (Some(object), Some("blob"), Some(Ok(size))) =
            (object, kind, size.map(str::parse::<usize>))
        else {
            // Missing; nothing follows its head.
            continue;
        };
        let Some((content, rest)) = answer.split_at_checked(size) else {
            break;
        };
        contents.insert(object.to_owned(), content.to_vec());
        answer = rest.strip_prefix(b"\n").unwrap_or(rest);
    }
    contents
}

/// Whether a directory could be in a repository at all.
pub(crate) fn is_in_repository(root: &Path) -> bool {
    root.ancestors()
        .any(|ancestor| fs::symlink_metadata(ancestor.join(".git")).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listings_are_read_whatever_names_there_are() {
        let numbers = "  ctime: 7:8\n  mtime: 5:6\n  dev: 65024\tino: 9\n  uid: 0\tgid: 0\n  size: 2\tflags: 0\n";
        let id = "7898192261";
        let listed = format!(
            "100644 {id} 0\ta\nb\tc\0{numbers}120000 {id} 0\tlink\0{numbers}100755 {id} 0\tx\0{numbers}100644 {id} 2\ty\0{numbers}"
        );
        let tracked = tracked(listed.as_bytes());
        let file = Tracked {
            object: id.to_owned(),
            mtime: (5, 6),
            ctime: (7, 8),
            inode: 9,
            size: 2,
        };
        assert_eq!(tracked.len(), 2);
        assert_eq!(tracked[Path::new("a\nb\tc")], file);
        assert_eq!(tracked[Path::new("x")], file);
    }

    #[test]
    fn objects_are_told_apart() {
        let found = contents(b"aa blob 3\nx\ny\nbb missing\ncc blob 0\n\ndd blob 9\ncut");
        assert_eq!(found.len(), 2);
        assert_eq!(found["aa"], b"x\ny");
        assert_eq!(found["cc"], b"");
    }

    #[test]
    fn attributes_that_change_contents_are_noticed() {
        let found = converted(b"a\0filter\0lfs\0b\0filter\0unspecified\0c\0ident\0set\0");
        assert_eq!(found, ["a", "c"].map(PathBuf::from).into());
    }
}
