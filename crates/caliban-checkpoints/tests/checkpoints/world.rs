//! A workspace and a store, in a directory of their own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use caliban_checkpoints::{
    Before, Beginning, Digest, Disk, Environment, Followed, Kind, Limits, Mark, Others, Prompt,
    RealDisk, RealTree, Restored, Restoring, ScanLimits, Scanner, Session, Stamp, Store, Stored,
    Tree,
};
use jiff::Timestamp;

/// Counts operations and fails some of them.
#[derive(Debug, Default)]
pub(crate) struct Fuse {
    pub(crate) done: AtomicUsize,
    first: usize,
    last: usize,
}

impl Fuse {
    pub(crate) fn whole() -> Arc<Self> {
        Arc::new(Self {
            done: AtomicUsize::new(0),
            first: usize::MAX,
            last: usize::MAX,
        })
    }

    /// Everything from this operation on fails, as after a kill.
    pub(crate) fn blown(at: usize) -> Arc<Self> {
        Arc::new(Self {
            done: AtomicUsize::new(0),
            first: at,
            last: usize::MAX,
        })
    }

    /// One operation fails.
    pub(crate) fn flickering(at: usize) -> Arc<Self> {
        Arc::new(Self {
            done: AtomicUsize::new(0),
            first: at,
            last: at,
        })
    }

    fn burn(&self) -> io::Result<()> {
        let at = self.done.fetch_add(1, Ordering::SeqCst);
        if (self.first..=self.last).contains(&at) {
            Err(io::Error::other("injected"))
        } else {
            Ok(())
        }
    }
}

#[derive(Debug)]
pub(crate) struct FusedDisk(pub(crate) Arc<Fuse>);

impl Disk for FusedDisk {
    fn make_directory(&self, path: &Path) -> io::Result<()> {
        self.0.burn()?;
        RealDisk.make_directory(path)
    }
    fn create(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.0.burn().inspect_err(|_| {
            // Torn in the middle.
            let _ = RealDisk.create(path, &bytes[..bytes.len() / 2]);
        })?;
        RealDisk.create(path, bytes)
    }
    fn append(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        self.0.burn().inspect_err(|_| {
            let _ = RealDisk.append(path, &bytes[..bytes.len() / 2]);
        })?;
        RealDisk.append(path, bytes)
    }
    fn sync(&self, path: &Path) -> io::Result<()> {
        self.0.burn()?;
        RealDisk.sync(path)
    }
    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        self.0.burn()?;
        RealDisk.read(path, limit)
    }
    fn stat(&self, path: &Path) -> io::Result<Option<Stored>> {
        self.0.burn()?;
        RealDisk.stat(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.burn()?;
        RealDisk.rename(from, to)
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.burn()?;
        RealDisk.link(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.0.burn()?;
        RealDisk.remove_file(path)
    }
    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.0.burn()?;
        RealDisk.remove_directory(path)
    }
    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.0.burn()?;
        RealDisk.sync_directory(path)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        self.0.burn()?;
        RealDisk.list(path)
    }
}

#[derive(Debug)]
pub(crate) struct FusedTree(pub(crate) RealTree, pub(crate) Arc<Fuse>);

impl Tree for FusedTree {
    fn look(&self, path: &Path) -> io::Result<Option<Stamp>> {
        self.1.burn()?;
        self.0.look(path)
    }
    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>> {
        self.1.burn()?;
        self.0.read(path, limit)
    }
    fn digest(&self, path: &Path, limit: u64) -> io::Result<Option<Digest>> {
        self.1.burn()?;
        self.0.digest(path, limit)
    }
    fn target(&self, path: &Path) -> io::Result<PathBuf> {
        self.1.burn()?;
        self.0.target(path)
    }
    fn create(&self, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
        self.1.burn().inspect_err(|_| {
            let _ = self.0.create(path, &bytes[..bytes.len() / 2], mode);
        })?;
        self.0.create(path, bytes, mode)
    }
    fn sync(&self, path: &Path) -> io::Result<()> {
        self.1.burn()?;
        self.0.sync(path)
    }
    fn create_link(&self, path: &Path, target: &Path) -> io::Result<()> {
        self.1.burn()?;
        self.0.create_link(path, target)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.1.burn()?;
        self.0.rename(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.1.burn()?;
        self.0.remove_file(path)
    }
    fn make_directory(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.1.burn()?;
        self.0.make_directory(path, mode)
    }
    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.1.burn()?;
        self.0.remove_directory(path)
    }
    fn set_directory_mode(&self, path: &Path, mode: u32) -> io::Result<()> {
        self.1.burn()?;
        self.0.set_directory_mode(path, mode)
    }
    fn list(&self, path: &Path) -> io::Result<Vec<OsString>> {
        self.1.burn()?;
        self.0.list(path)
    }
    fn sync_beside(&self, path: &Path) -> io::Result<()> {
        self.1.burn()?;
        self.0.sync_beside(path)
    }
}

/// What is at a path, for comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Thing {
    File(Vec<u8>, u32),
    Link(PathBuf),
    Directory(u32),
}

pub(crate) type Snapshot = BTreeMap<PathBuf, Thing>;

pub(crate) fn snapshot(root: &Path) -> Snapshot {
    let mut all = Snapshot::new();
    let mut open = vec![root.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let mode = metadata.permissions().mode() & 0o777;
            let name = path.strip_prefix(root).unwrap().to_owned();
            all.insert(
                name,
                if metadata.is_dir() {
                    open.push(path);
                    Thing::Directory(mode)
                } else if metadata.is_symlink() {
                    Thing::Link(fs::read_link(&path).unwrap())
                } else {
                    Thing::File(fs::read(&path).unwrap(), mode)
                },
            );
        }
    }
    all
}

#[derive(Debug)]
pub(crate) struct World {
    directory: tempfile::TempDir,
    pub(crate) limits: Limits,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::within(tempfile::tempdir().unwrap())
    }

    /// In memory where that is possible: for what is done hundreds of times.
    pub(crate) fn fast() -> Self {
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
        Self::within(directory.unwrap())
    }

    fn within(directory: tempfile::TempDir) -> Self {
        fs::create_dir(directory.path().join("work")).unwrap();
        Self {
            directory,
            limits: Limits::default(),
        }
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.path().canonicalize().unwrap()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.path().join("work")
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    pub(crate) fn store(&self) -> Store {
        self.fused_store(&Fuse::whole())
    }

    pub(crate) fn fused_store(&self, fuse: &Arc<Fuse>) -> Store {
        let disk = Arc::new(FusedDisk(Arc::clone(fuse)));
        Store::new(disk, self.path().join("store"), self.limits)
    }

    pub(crate) fn session(&self) -> Session {
        self.store().session("s").unwrap()
    }

    pub(crate) fn tree(&self) -> RealTree {
        RealTree::new(self.root())
    }

    pub(crate) fn fused_tree(&self, fuse: &Arc<Fuse>) -> FusedTree {
        FusedTree(self.tree(), Arc::clone(fuse))
    }

    pub(crate) fn begin(&self) -> Prompt {
        self.session().begin(beginning("do it")).unwrap()
    }

    pub(crate) fn scanner(&self) -> Scanner {
        self.scanner_with(ScanLimits::default())
    }

    pub(crate) fn scanner_with(&self, limits: ScanLimits) -> Scanner {
        let git = Environment(vec![
            ("PATH".into(), std::env::var_os("PATH").unwrap_or_default()),
            ("HOME".into(), self.path().into()),
        ]);
        Scanner::new(
            self.root(),
            Arc::new(self.tree()),
            self.session(),
            limits,
            Some(git),
        )
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A prompt in which a tool writes files.
    pub(crate) fn tool(&self, writes: &[(&str, Option<&str>)]) -> u32 {
        let mut prompt = self.begin();
        let tree = self.tree();
        for (path, text) in writes {
            prompt
                .before(&tree, Path::new(path), "Write", Before::Unknown)
                .unwrap();
            match text {
                Some(text) => self.write(path, text),
                None => fs::remove_file(self.at(path)).unwrap(),
            }
            prompt.after(&tree, Path::new(path)).unwrap();
        }
        prompt.finish(&tree, None).unwrap().prompt_index
    }

    /// A prompt in which a command does something.
    pub(crate) fn command(&self, scanner: &mut Scanner, run: impl FnOnce()) -> u32 {
        let mut prompt = self.begin();
        scanner.before().unwrap();
        run();
        scanner.after(&mut prompt, "Bash").unwrap();
        prompt.finish(&self.tree(), None).unwrap().prompt_index
    }

    pub(crate) fn rewind(&self, to: u32, others: Others) -> Restored {
        let session = self.session();
        let plan = session.plan(&self.tree(), to, others).unwrap();
        session
            .restore(&self.tree(), &plan, restoring(), &mut alone)
            .unwrap()
    }

    pub(crate) fn now(&self) -> Snapshot {
        snapshot(&self.root())
    }
}

pub(crate) fn beginning(prompt: &str) -> Beginning<'_> {
    Beginning {
        kind: Kind::Files,
        prompt,
        at: Timestamp::UNIX_EPOCH,
        began: None,
        id: None,
        git_head: None,
    }
}

/// A restore of files alone.
pub(crate) fn restoring() -> Restoring {
    Restoring {
        at: Timestamp::UNIX_EPOCH,
        began: None,
        conversation: None,
    }
}

/// Nothing goes back with the files.
#[expect(clippy::unnecessary_wraps, reason = "the form that a companion has")]
pub(crate) fn alone(_: &Followed<'_>) -> Result<Option<Mark>, String> {
    Ok(None)
}
