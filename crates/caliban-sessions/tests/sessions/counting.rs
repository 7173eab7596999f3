//! The real disk, with a count of what is read, and a place to interfere.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use caliban_sessions::{Disk, DiskFile, DiskReader, FileStat, LockAttempt, RealDisk};

#[derive(Clone, Default)]
pub(crate) struct CountingDisk {
    bytes: Arc<AtomicU64>,
    after_open: Interference,
    before_lock: Interference,
}

/// Something that happens once.
type Interference = Arc<Mutex<Option<Box<dyn FnOnce() + Send>>>>;

impl fmt::Debug for CountingDisk {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("CountingDisk")
    }
}

fn interfere(interference: &Interference) {
    let once = interference.lock().unwrap().take();
    if let Some(once) = once {
        once();
    }
}

impl CountingDisk {
    /// Does something after the next file was opened to be read.
    pub(crate) fn after_open(&self, once: impl FnOnce() + Send + 'static) {
        *self.after_open.lock().unwrap() = Some(Box::new(once));
    }

    /// Does something before the next lock is tried.
    pub(crate) fn before_lock(&self, once: impl FnOnce() + Send + 'static) {
        *self.before_lock.lock().unwrap() = Some(Box::new(once));
    }

    pub(crate) fn bytes_read(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }
}

#[derive(Debug)]
struct Counted {
    reader: Box<dyn DiskReader>,
    bytes: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.bytes.fetch_add(read as u64, Ordering::SeqCst);
        Ok(read)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.reader.seek(to)
    }
}

impl DiskReader for Counted {}

impl Disk for CountingDisk {
    fn make_directory(&self, path: &Path) -> io::Result<()> {
        RealDisk.make_directory(path)
    }

    fn create(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        RealDisk.create(path)
    }

    fn append(&self, path: &Path) -> io::Result<Arc<dyn DiskFile>> {
        RealDisk.append(path)
    }

    fn read(&self, path: &Path) -> io::Result<Box<dyn DiskReader>> {
        let reader = RealDisk.read(path)?;
        interfere(&self.after_open);
        Ok(Box::new(Counted {
            reader,
            bytes: Arc::clone(&self.bytes),
        }))
    }

    fn stat(&self, path: &Path) -> io::Result<Option<FileStat>> {
        RealDisk.stat(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.link(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_file(path)
    }

    fn remove_directory(&self, path: &Path) -> io::Result<()> {
        RealDisk.remove_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_directory(path)
    }

    fn list(&self, path: &Path) -> io::Result<Vec<String>> {
        RealDisk.list(path)
    }

    fn lock(&self, path: &Path) -> io::Result<LockAttempt> {
        interfere(&self.before_lock);
        RealDisk.lock(path)
    }
}
