//! A disk in memory that knows which bytes and which names would survive a power loss, and that
//! fails where it is told to.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Cursor};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use caliban_sessions::{Disk, DiskFile, DiskReader, FileStat, HeldLock, LockAttempt};
use jiff::Timestamp;

/// What happens at the operation that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It does nothing and says so.
    Error,
    /// A write takes some of its bytes, and everything fails for a while.
    Outage,
    /// A write takes only some of its bytes; anything else is an error.
    Short,
    /// A write takes some of its bytes and is an error all the same.
    Torn,
    /// It is interrupted once.
    Interrupted,
    /// A rename, a removal or a sync happens, and is reported as an error.
    Belied,
    /// The process ends in the middle of it.
    Crash,
}

/// How many operations an outage lasts.
const OUTAGE: usize = 9;

/// What is left after the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remains {
    /// The process is gone, the machine is not.
    Everything,
    PowerLoss(Names, Bytes),
}

/// Which names of files survive a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Names {
    Synced,
    Latest,
}

/// Which bytes of files survive a power loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bytes {
    Synced,
    /// And half of the others.
    Half,
    /// And as many zeros as there were others.
    Zeros,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Sim(Arc<Mutex<World>>);

#[derive(Debug, Default)]
struct World {
    inodes: Vec<Inode>,
    names: BTreeMap<PathBuf, usize>,
    synced_names: BTreeMap<PathBuf, usize>,
    directories: BTreeSet<PathBuf>,
    locks: BTreeSet<PathBuf>,
    plan: Option<(usize, Fault)>,
    operations: usize,
}

#[derive(Debug, Default)]
struct Inode {
    bytes: Vec<u8>,
    synced: Vec<u8>,
    /// What a failed sync left in memory only, for good.
    lost: Vec<Range<usize>>,
}

/// What an operation does.
enum Course {
    Go,
    /// It does this much of a write and returns so.
    Part,
    /// It does part of a write and fails.
    PartThenFail,
    DoThenFail,
}

impl Sim {
    pub(crate) fn failing(at: usize, fault: Fault) -> Self {
        let sim = Self::default();
        sim.world().plan = Some((at, fault));
        sim
    }

    /// How many operations there were.
    pub(crate) fn operations(&self) -> usize {
        self.world().operations
    }

    /// Puts what is left into a directory of the real disk, in the place of `root`.
    pub(crate) fn materialise(&self, remains: Remains, root: &Path, target: &Path) {
        let world = self.world();
        for directory in &world.directories {
            if let Ok(relative) = directory.strip_prefix(root) {
                std::fs::create_dir_all(target.join(relative)).unwrap();
            }
        }
        let names = match remains {
            Remains::Everything | Remains::PowerLoss(Names::Latest, _) => &world.names,
            Remains::PowerLoss(Names::Synced, _) => &world.synced_names,
        };
        for (path, inode) in names {
            let inode = &world.inodes[*inode];
            let bytes = match remains {
                Remains::Everything => inode.bytes.clone(),
                Remains::PowerLoss(_, bytes) => inode.after_power_loss(bytes),
            };
            std::fs::write(target.join(path.strip_prefix(root).unwrap()), bytes).unwrap();
        }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }
}

impl Inode {
    fn after_power_loss(&self, bytes: Bytes) -> Vec<u8> {
        let mut left = self.synced.clone();
        if let Some(others) = self.bytes.strip_prefix(&self.synced[..]) {
            match bytes {
                Bytes::Synced => {}
                Bytes::Half => left.extend_from_slice(&others[..others.len() / 2]),
                Bytes::Zeros => left.resize(self.bytes.len(), 0),
            }
        }
        left
    }
}

impl World {
    fn step(&mut self) -> io::Result<Course> {
        let now = self.operations;
        self.operations += 1;
        let Some((at, fault)) = self.plan else {
            return Ok(Course::Go);
        };
        let failure = || Err(io::Error::new(io::ErrorKind::StorageFull, "injected"));
        match fault {
            Fault::Crash if now > at => failure(),
            Fault::Outage if now > at && now < at + OUTAGE => failure(),
            _ if now != at => Ok(Course::Go),
            Fault::Error => failure(),
            Fault::Short => Ok(Course::Part),
            Fault::Torn | Fault::Outage | Fault::Crash => Ok(Course::PartThenFail),
            Fault::Interrupted => Err(io::ErrorKind::Interrupted.into()),
            Fault::Belied => Ok(Course::DoThenFail),
        }
    }

    /// An operation that happens whole or not at all.
    fn whole(&mut self, operation: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        match self.step()? {
            Course::Go => operation(self),
            Course::Part | Course::PartThenFail => Err(io::Error::other("injected")),
            Course::DoThenFail => {
                operation(self)?;
                Err(io::Error::other("injected"))
            }
        }
    }

    fn inode(&self, path: &Path) -> io::Result<usize> {
        let inode = self.names.get(path).copied();
        inode.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Disk for Sim {
    fn make_directory(&self, path: &Path) -> io::Result<()> {
        self.world().whole(|world| {
            let ancestors = path.ancestors().map(Path::to_owned);
            world.directories.extend(ancestors);
            Ok(())
        })
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.world().whole(|world| {
            if world.names.contains_key(path) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            let parent = path.parent().unwrap();
            if !world.directories.contains(parent) {
                return Err(io::ErrorKind::NotFound.into());
            }
            world.inodes.push(Inode::default());
            world.names.insert(path.to_owned(), world.inodes.len() - 1);
            Ok(())
        })?;
        self.file(path)
    }

    fn append(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        self.world().whole(|_| Ok(()))?;
        self.file(path)
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn DiskReader>> {
        let world = self.world();
        let bytes = world.inodes[world.inode(path)?].bytes.clone();
        Ok(Box::new(Reader(Cursor::new(bytes))))
    }

    fn stat(&self, path: &Path) -> io::Result<Option<FileStat>> {
        let world = self.world();
        Ok(world.names.get(path).map(|inode| FileStat {
            len: world.inodes[*inode].bytes.len() as u64,
            modified: Timestamp::UNIX_EPOCH,
        }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.world().whole(|world| {
            let inode = world.inode(from)?;
            world.names.remove(from);
            world.names.insert(to.to_owned(), inode);
            Ok(())
        })
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.world().whole(|world| {
            let inode = world.inode(from)?;
            world.names.insert(to.to_owned(), inode);
            Ok(())
        })
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.world().whole(|world| {
            world.inode(path)?;
            world.names.remove(path);
            Ok(())
        })
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.world().whole(|world| {
            world.directories.remove(path);
            Ok(())
        })
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        self.world().whole(|world| {
            let is_inside = |name: &PathBuf| name.parent() == Some(path);
            world.synced_names.retain(|name, _| !is_inside(name));
            let inside = world.names.iter().filter(|(name, _)| is_inside(name));
            let inside: Vec<_> = inside.map(|(name, inode)| (name.clone(), *inode)).collect();
            world.synced_names.extend(inside);
            Ok(())
        })
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        let world = self.world();
        let inside = world
            .names
            .keys()
            .filter(|name| name.parent() == Some(path));
        let names = inside.filter_map(|name| name.file_name()?.to_str());
        Ok(names.map(str::to_owned).collect())
    }

    fn lock(&self, path: &Path) -> io::Result<LockAttempt> {
        if !self.world().locks.insert(path.to_owned()) {
            return Ok(LockAttempt::Busy(None));
        }
        Ok(LockAttempt::Held(Box::new(Lock {
            sim: self.clone(),
            path: path.to_owned(),
        })))
    }
}

impl Sim {
    fn file(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        let inode = self.world().inode(path)?;
        let sim = self.clone();
        Ok(Arc::new(SimFile { sim, inode }))
    }
}

#[derive(Debug)]
struct SimFile {
    sim: Sim,
    inode: usize,
}

impl DiskFile for SimFile {
    fn write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut world = self.sim.world();
        let course = world.step()?;
        let inode = &mut world.inodes[self.inode].bytes;
        let half = bytes.len() / 2;
        match course {
            Course::Go => {
                inode.extend_from_slice(bytes);
                Ok(bytes.len())
            }
            Course::Part => {
                inode.extend_from_slice(&bytes[..half]);
                Ok(half)
            }
            Course::PartThenFail => {
                inode.extend_from_slice(&bytes[..half]);
                Err(io::Error::other("injected"))
            }
            Course::DoThenFail => {
                inode.extend_from_slice(bytes);
                Err(io::Error::other("injected"))
            }
        }
    }

    fn sync(&self) -> io::Result<()> {
        let mut world = self.sim.world();
        let course = world.step();
        let inode = &mut world.inodes[self.inode];
        if let Ok(Course::Go) = course {
            inode.synced.clone_from(&inode.bytes);
            for lost in &inode.lost {
                let end = lost.end.min(inode.synced.len());
                inode.synced[lost.start.min(end)..end].fill(0);
            }
            return Ok(());
        }
        // What was not synced is lost, and a later sync does not bring it back: the worst that
        // systems are known to do.
        inode.lost.push(inode.synced.len()..inode.bytes.len());
        course.and(Err(io::Error::other("injected")))
    }

    fn truncate(&self, len: u64) -> io::Result<()> {
        let inode = self.inode;
        self.sim.world().whole(|world| {
            let len = usize::try_from(len).unwrap();
            world.inodes[inode].bytes.truncate(len);
            Ok(())
        })
    }

    fn is_gone(&self) -> io::Result<bool> {
        let world = self.sim.world();
        Ok(!world.names.values().any(|inode| *inode == self.inode))
    }
}

#[derive(Debug)]
struct Reader(Cursor<Vec<u8>>);

impl io::Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl io::Seek for Reader {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.0.seek(to)
    }
}

impl DiskReader for Reader {}

#[derive(Debug)]
struct Lock {
    sim: Sim,
    path: PathBuf,
}

impl HeldLock for Lock {}

impl Drop for Lock {
    fn drop(&mut self) {
        self.sim.world().locks.remove(&self.path);
    }
}
