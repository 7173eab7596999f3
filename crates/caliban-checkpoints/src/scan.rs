//! What a command changed: the workspace is looked at before it and after it. Contents that it may
//! change are held before, each as cheaply as can be: not at all where git's object store has it.

use std::collections::HashMap;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::slice;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::again::{self, Earlier};
use crate::baseline::{Baseline, Open};
use crate::capture::{Change, Content, Prompt, too_large};
use crate::disk;
use crate::error::Error;
use crate::git::{self, Environment, Git};
use crate::image::{Digest, Image};
use crate::manifest::Coverage;
use crate::store::{Session, blob_digest};
use crate::tree::{self, Shape, Stamp, Tree};
use crate::walk::{self, Found};

/// A file may change again without another stamp within this time.
const GRANULARITY: Duration = Duration::from_millis(10);

/// How much is looked at and held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScanLimits {
    /// Files, links and directories.
    pub entries: usize,
    /// Bytes that are copied because a command may change them.
    pub bytes: u64,
    pub files: u64,
}

impl Default for ScanLimits {
    fn default() -> Self {
        Self {
            entries: 200_000,
            bytes: 256 << 20,
            files: 20_000,
        }
    }
}

/// Finds out what commands change in a workspace.
#[derive(Debug)]
pub struct Scanner {
    root: PathBuf,
    tree: Arc<dyn Tree>,
    session: Session,
    limits: ScanLimits,
    git: Option<Git>,
    index: Index,
    /// What is in the pool.
    pooled: HashMap<Digest, u64>,
    bytes: u64,
    /// The index on the disk, and what runs on its ground.
    baseline: Baseline,
    open: Option<Open>,
}

/// The workspace as it was looked at last.
#[derive(Debug, Default)]
pub(crate) struct Index {
    /// In the order of [`walk::in_order`].
    pub(crate) known: Vec<(PathBuf, Known)>,
    pub(crate) coverage: Coverage,
    pub(crate) rules: Vec<(PathBuf, Stamp)>,
    /// Nanoseconds since 1970.
    pub(crate) begun: i128,
}

impl Index {
    /// What is here and was not, or was different, and what is gone.
    pub(crate) fn differences<'a>(
        &'a self,
        last: &'a Self,
    ) -> (
        impl Iterator<Item = (&'a Path, &'a Known)>,
        impl Iterator<Item = &'a Path>,
    ) {
        let mut earlier = InOrder::of(last);
        let new = self.known.iter().filter_map(move |(path, known)| {
            let is_new = earlier.get(path) != Some(known);
            is_new.then_some((&**path, known))
        });
        let mut still = InOrder::of(self);
        let gone = last.known.iter().filter_map(move |(path, _)| {
            let is_gone = still.get(path).is_none();
            is_gone.then_some(&**path)
        });
        (new, gone)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Known {
    stamp: Stamp,
    freshness: Freshness,
    held: Held,
}

/// Whether the same stamp means the same content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Freshness {
    Settled,
    Racy,
}

/// What is held of a path in case that it changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
enum Held {
    Pooled(Digest, u64),
    Git(Arc<str>),
    Link(#[serde(with = "crate::manifest::name")] PathBuf),
    Directory,
    Nothing(String),
}

impl Scanner {
    /// The root is canonical; without an environment for git, what it tracks is copied.
    pub fn new(
        root: PathBuf,
        tree: Arc<dyn Tree>,
        session: Session,
        limits: ScanLimits,
        git: Option<Environment>,
    ) -> Self {
        let git = git
            .filter(|_| git::is_in_repository(&root))
            .map(|environment| Git::new(root.clone(), environment));
        let baseline = Baseline::of(&session);
        Self {
            root,
            tree,
            session,
            limits,
            git,
            baseline,
            open: None,
            index: Index::default(),
            pooled: HashMap::new(),
            bytes: 0,
        }
    }

    /// A command is about to run. What changed since the last look was changed by others.
    pub fn before(&mut self) -> Result<(), Error> {
        if self.index.begun == 0 {
            self.baseline.forget()?;
            self.empty_pool()?;
        }
        let last = std::mem::take(&mut self.index);
        self.index = self.look(&last);
        self.noted(&last)
    }

    /// A call begins that may change anything. What is known now is on the disk before it does.
    pub fn begins(&mut self, prompt: &Prompt, tool: &str) -> Result<(), Error> {
        self.open = Some(Open {
            prompt: prompt.index(),
            tool: tool.to_owned(),
        });
        self.baseline.opened(&self.index, self.open.as_ref())
    }

    /// No such call runs any more.
    pub fn ends(&mut self) -> Result<(), Error> {
        if self.open.take().is_none() || self.index.begun == 0 {
            return Ok(());
        }
        self.baseline.opened(&self.index, None)
    }

    fn noted(&mut self, last: &Index) -> Result<(), Error> {
        self.baseline.looked(last, &self.index, self.open.as_ref())
    }

    /// What a call did that ran on this ground when another process was killed.
    pub(crate) fn resume(
        mut self,
        known: Index,
        prompt: &mut Prompt,
        tool: &str,
    ) -> Result<(), Error> {
        self.index = known;
        for (_, known) in &self.index.known {
            if let Held::Pooled(digest, size) = known.held {
                self.pooled.insert(digest, size);
            }
        }
        let last = std::mem::take(&mut self.index);
        self.compare(&last, prompt, tool).map(|_| ())
    }

    /// What changed until now was changed by others, and is known from here on.
    pub fn look_again(&mut self) -> Result<(), Error> {
        if self.index.begun == 0 {
            return Ok(());
        }
        self.before()
    }

    /// A command has run: what changed becomes part of the prompt's checkpoint.
    pub fn after(&mut self, prompt: &mut Prompt, tool: &str) -> Result<(), Error> {
        if self.index.begun == 0 {
            // Without an earlier look everything would seem to be new.
            let mut coverage = Coverage::default();
            coverage.lacks("the workspace could not be looked at before a command".to_owned());
            prompt.covered(&coverage)?;
            return self.before();
        }
        let last = std::mem::take(&mut self.index);
        match self.compare(&last, prompt, tool) {
            Ok(index) => self.index = index,
            Err(error) => {
                self.index = last;
                return Err(error);
            }
        }
        self.noted(&last)
    }

    /// Notes what is not as it was, and tells how it is now.
    fn compare(&mut self, last: &Index, prompt: &mut Prompt, tool: &str) -> Result<Index, Error> {
        let mut index = self.look(last);
        self.revisit(last, &mut index);
        let mut coverage = index.coverage.clone();
        for shortfall in &last.coverage.shortfalls {
            coverage.lacks(shortfall.clone());
        }
        let touched: Vec<(&PathBuf, Option<&Known>, Option<&Known>)> = touched(last, &index);
        let objects: Vec<String> = touched
            .iter()
            .filter_map(|(_, before, _)| match &before.as_ref()?.held {
                Held::Git(object) => Some(object.to_string()),
                Held::Pooled(..) | Held::Link(_) | Held::Directory | Held::Nothing(_) => None,
            })
            .collect();
        let contents = match &self.git {
            Some(git) if !objects.is_empty() => git.contents(&objects),
            Some(_) | None => HashMap::new(),
        };
        for (path, before, after) in touched {
            let change = match before {
                Some(before) => self.change(before, &contents),
                None => self.creation(path, last, &index),
            };
            let after = match after {
                Some(known) => self.left(path, known),
                None => Image::Absent,
            };
            if change.before.is_surely(&after) {
                continue;
            }
            prompt.changed(path, tool, Change { after, ..change })?;
        }
        prompt.secure()?;
        prompt.covered(&coverage)?;
        Ok(index)
    }

    /// Gives up what is held; the next look begins anew.
    pub fn close(&mut self) -> Result<(), Error> {
        self.index = Index::default();
        self.pooled.clear();
        self.bytes = 0;
        self.open = None;
        self.baseline.forget()?;
        self.empty_pool()
    }

    /// Looks at the workspace; what is as it was is held as it was.
    fn look(&mut self, last: &Index) -> Index {
        let begun = now();
        let Found {
            stamps,
            mut coverage,
            rules,
        } = self.walk(last);
        let objects = match &self.git {
            // Asked once: later on what changed is copied.
            Some(git) if last.begun == 0 => {
                git.clean(stamps.iter().map(|(path, stamp)| (path, stamp)))
            }
            Some(_) | None => HashMap::new(),
        };
        let mut known = Vec::with_capacity(stamps.len());
        let mut before = InOrder::of(last);
        for (path, stamp) in stamps {
            let as_it_was = before
                .get(&path)
                .filter(|known| known.stamp == stamp && known.freshness == Freshness::Settled);
            let entry = match as_it_was {
                Some(known) => known.clone(),
                None => Known {
                    stamp,
                    freshness: freshness(&stamp, begun),
                    held: match objects.get(&path) {
                        Some(object) => Held::Git(object.as_str().into()),
                        None => self.hold(&path, &stamp, &mut coverage),
                    },
                },
            };
            known.push((path, entry));
        }
        Index {
            known,
            coverage,
            rules,
            begun,
        }
    }

    /// What is in the workspace now. What lay beyond a bound is no ground to stand on.
    fn walk(&self, last: &Index) -> Found {
        let (root, ours, most) = (&self.root, self.session.home(), self.limits.entries);
        if last.begun == 0 || !last.coverage.is_full() {
            return walk::walk(root, ours, most);
        }
        let stamps = last.known.iter();
        let earlier = Earlier {
            stamps: stamps.map(|(path, known)| (&**path, known.stamp)).collect(),
            rules: &last.rules,
        };
        again::walk(root, ours, most, &earlier, |stamp| {
            freshness(stamp, last.begun) == Freshness::Settled
        })
    }

    /// What is not found any more may be ignored now, or beyond a bound, and still be there.
    fn revisit(&mut self, last: &Index, index: &mut Index) {
        let mut after = InOrder::of(index);
        let missing: Vec<(&PathBuf, &Known)> = last
            .known
            .iter()
            .filter(|(path, _)| after.get(path).is_none())
            .map(|(path, known)| (path, known))
            .collect();
        let mut still_there = Vec::new();
        for (path, known) in missing {
            let stamp = match self.tree.look(path) {
                Ok(None) => continue,
                Ok(Some(stamp)) => stamp,
                // It cannot be known; as it was, until it can be.
                Err(_) => known.stamp,
            };
            let entry = if stamp == known.stamp && known.freshness == Freshness::Settled {
                known.clone()
            } else {
                Known {
                    stamp,
                    freshness: freshness(&stamp, index.begun),
                    held: self.hold(path, &stamp, &mut index.coverage),
                }
            };
            still_there.push((path.clone(), entry));
        }
        if !still_there.is_empty() {
            index.known.append(&mut still_there);
            index
                .known
                .sort_by(|one, another| walk::in_order(&one.0, &another.0));
        }
    }

    fn hold(&mut self, path: &Path, stamp: &Stamp, coverage: &mut Coverage) -> Held {
        let unreadable =
            |error: std::io::Error| Held::Nothing(format!("it could not be read: {error}"));
        match stamp.shape {
            Shape::Special => Held::Nothing("it is not a regular file".to_owned()),
            Shape::Directory => Held::Directory,
            Shape::Link => self.tree.target(path).map_or_else(unreadable, Held::Link),
            Shape::File if stamp.size > self.session.limits.file => {
                Held::Nothing(too_large(self.session.limits.file))
            }
            Shape::File => match self.tree.read(path, self.session.limits.file) {
                Err(error) => unreadable(error),
                Ok(bytes) => self.pool(&bytes).unwrap_or_else(|why| {
                    coverage.lacks(why.clone());
                    Held::Nothing(why)
                }),
            },
        }
    }

    /// Holds a content within the bounds of the pool; not durably, for it may never be needed.
    fn pool(&mut self, bytes: &[u8]) -> Result<Held, String> {
        let digest = Digest::of(bytes);
        let size = bytes.len() as u64;
        let held = Held::Pooled(digest, size);
        if self.pooled.contains_key(&digest) {
            return Ok(held);
        }
        let ScanLimits {
            bytes: most, files, ..
        } = self.limits;
        if self.bytes.saturating_add(size) > most {
            return Err(format!(
                "files with more than {most} bytes would have to be copied"
            ));
        }
        if self.pooled.len() as u64 >= files {
            return Err(format!("more than {files} files would have to be copied"));
        }
        let path = self.pooled_path(digest);
        self.session
            .disk
            .make_directory(&self.session.pool())
            .and_then(|()| disk::forget(&*self.session.disk, &path))
            .and_then(|()| self.session.disk.create(&path, bytes))
            .map_err(|error| format!("a copy could not be written: {error}"))?;
        self.bytes = self.bytes.saturating_add(size);
        self.pooled.insert(digest, size);
        Ok(held)
    }

    fn pooled_path(&self, digest: Digest) -> PathBuf {
        self.session.pool().join(format!("{digest}.bin"))
    }

    /// What another process held is worth nothing: nobody knows whether it is whole.
    fn empty_pool(&self) -> Result<(), Error> {
        let pool = self.session.pool();
        let disk = &*self.session.disk;
        for name in disk.list(&pool).map_err(Error::io("list", &pool))? {
            if blob_digest(&name).is_some() {
                let path = pool.join(name);
                disk::forget(disk, &path).map_err(Error::io("remove", &path))?;
            }
        }
        Ok(())
    }

    fn change(&self, before: &Known, contents: &HashMap<String, Vec<u8>>) -> Change {
        let mode = before.stamp.mode;
        let file = |digest, size| Image::File { digest, size, mode };
        let plain = |before| Change {
            before,
            content: None,
            source: None,
            uncovered: None,
            after: Image::Absent,
        };
        match &before.held {
            Held::Directory => plain(Image::Directory { mode }),
            Held::Link(target) => plain(Image::Link {
                target: target.clone(),
            }),
            Held::Pooled(digest, size) => Change {
                content: Some(Content::Stored(self.pooled_path(*digest))),
                source: Some("copy".to_owned()),
                ..plain(file(Some(*digest), *size))
            },
            Held::Git(object) => match contents.get(&**object) {
                Some(bytes) if bytes.len() as u64 <= self.session.limits.file => Change {
                    content: Some(Content::Bytes(bytes.clone())),
                    source: Some(format!("git:{object}")),
                    ..plain(file(Some(Digest::of(bytes)), bytes.len() as u64))
                },
                Some(_) => Change {
                    uncovered: Some(too_large(self.session.limits.file)),
                    ..plain(file(None, before.stamp.size))
                },
                None => Change {
                    uncovered: Some("git no longer has its content".to_owned()),
                    ..plain(file(None, before.stamp.size))
                },
            },
            Held::Nothing(why) => Change {
                uncovered: Some(why.clone()),
                ..plain(match before.stamp.shape {
                    Shape::File => file(None, before.stamp.size),
                    Shape::Link | Shape::Directory | Shape::Special => Image::Special,
                })
            },
        }
    }

    /// A path that was not there before, or was not looked at: then it must not be taken for the
    /// command's, because going back would remove it.
    fn creation(&self, path: &Path, last: &Index, index: &Index) -> Change {
        let is_certain = last.coverage.is_full() && last.rules == index.rules;
        let uncovered = (!is_certain && !self.is_born_since(path, last.begun)).then(|| {
            "it is not known whether it was there before: it had not been looked at".to_owned()
        });
        Change {
            before: Image::Absent,
            content: None,
            source: None,
            uncovered,
            after: Image::Absent,
        }
    }

    fn is_born_since(&self, path: &Path, begun: i128) -> bool {
        std::fs::symlink_metadata(self.root.join(path))
            .and_then(|metadata| metadata.created())
            .is_ok_and(|born| nanoseconds(born) >= begun)
    }

    fn left(&self, path: &Path, known: &Known) -> Image {
        match &known.held {
            Held::Pooled(digest, size) => Image::File {
                digest: Some(*digest),
                size: *size,
                mode: known.stamp.mode,
            },
            Held::Link(target) => Image::Link {
                target: target.clone(),
            },
            Held::Directory => Image::Directory {
                mode: known.stamp.mode,
            },
            Held::Git(_) | Held::Nothing(_) => {
                // What cannot be read is never taken for what was left.
                tree::image(&*self.tree, path).unwrap_or(Image::Special)
            }
        }
    }
}

/// Finds paths that are asked for in their order, each in a step or two.
struct InOrder<'a>(Peekable<slice::Iter<'a, (PathBuf, Known)>>);

impl<'a> InOrder<'a> {
    fn of(index: &'a Index) -> Self {
        Self(index.known.iter().peekable())
    }

    fn get(&mut self, path: &Path) -> Option<&'a Known> {
        let is_before = |(known, _): &&(PathBuf, Known)| walk::in_order(known, path).is_lt();
        while self.0.next_if(is_before).is_some() {}
        let is_it = |(known, _): &&(PathBuf, Known)| known.as_os_str() == path.as_os_str();
        let found = self.0.next_if(is_it);
        found.map(|(_, known)| known)
    }
}

/// The paths that may have changed between two looks.
fn touched<'a>(
    last: &'a Index,
    index: &'a Index,
) -> Vec<(&'a PathBuf, Option<&'a Known>, Option<&'a Known>)> {
    let mut still = InOrder::of(index);
    let gone = last
        .known
        .iter()
        .filter(|(path, _)| still.get(path).is_none())
        .map(|(path, before)| (path, Some(before), None));
    let mut earlier = InOrder::of(last);
    let here = index.known.iter().filter_map(|(path, after)| {
        let before = earlier.get(path);
        let is_same = before.is_some_and(|before| is_same(before, after));
        (!is_same).then_some((path, before, Some(after)))
    });
    gone.chain(here).collect()
}

fn is_same(before: &Known, after: &Known) -> bool {
    let stamps_tell = before.stamp == after.stamp && before.freshness == Freshness::Settled;
    let contents_tell = before.held == after.held
        && before.stamp.mode == after.stamp.mode
        && !matches!(before.held, Held::Nothing(_));
    stamps_tell || contents_tell
}

fn freshness(stamp: &Stamp, begun: i128) -> Freshness {
    let latest = stamp.modified.max(stamp.changed);
    if latest.saturating_add(GRANULARITY.as_nanos().cast_signed()) >= begun {
        Freshness::Racy
    } else {
        Freshness::Settled
    }
}

fn now() -> i128 {
    nanoseconds(SystemTime::now())
}

fn nanoseconds(time: SystemTime) -> i128 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos().cast_signed())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    const TICK: i128 = 10_000_000;

    fn stamp(modified: i128, changed: i128) -> Stamp {
        Stamp {
            shape: Shape::File,
            mode: 0o644,
            size: 3,
            modified,
            changed,
            identity: (1, 2),
            links: 1,
        }
    }

    #[rstest]
    #[case(0, 0, Freshness::Settled)]
    #[case(0, 1000 * TICK, Freshness::Racy)]
    #[case(0, 999 * TICK, Freshness::Racy)]
    #[case(999 * TICK, 0, Freshness::Racy)]
    #[case(0, 999 * TICK - 1, Freshness::Settled)]
    #[case(0, 2000 * TICK, Freshness::Racy)]
    fn a_stamp_as_young_as_the_look_proves_nothing(
        #[case] modified: i128,
        #[case] changed: i128,
        #[case] expected: Freshness,
    ) {
        assert_eq!(freshness(&stamp(modified, changed), 1000 * TICK), expected);
    }

    #[rstest]
    #[case(Freshness::Racy, b"two", false)]
    #[case(Freshness::Racy, b"one", true)]
    #[case(Freshness::Settled, b"two", true)]
    fn of_a_racy_file_only_the_content_tells(
        #[case] freshness: Freshness,
        #[case] content: &[u8],
        #[case] expected: bool,
    ) {
        let known = |freshness, content: &[u8]| Known {
            stamp: stamp(0, 0),
            freshness,
            held: Held::Pooled(Digest::of(content), 3),
        };
        let before = known(freshness, b"one");
        let after = known(Freshness::Settled, content);
        assert_eq!(is_same(&before, &after), expected);
    }
}
