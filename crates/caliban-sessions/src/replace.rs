//! Giving a file new content in one step, durably.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use crate::disk::{Disk, DiskFile};

/// Bytes gathered before they are written.
const BUFFER: usize = 256 << 10;

/// Writes a file under the name `temporary` and gives it its own: whoever reads sees the old
/// content or the new one, and after `Ok` a power loss leaves the new one. The caller is the
/// only one to use either name. Returns the size.
pub(crate) fn replace(
    disk: &dyn Disk,
    path: &Path,
    temporary: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<u64> {
    let (_, len) = prepare(disk, temporary, write)?;
    publish(disk, temporary, path)?;
    Ok(len)
}

/// Creates a file with durable content; nothing is left of it if that fails.
pub(crate) fn prepare(
    disk: &dyn Disk,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<(Arc<dyn DiskFile>, u64)> {
    remove_leftover(disk, path)?;
    let file = disk.create(path)?;
    let written = fill(&file, write);
    if written.is_err() {
        // The error that led here is the one to report.
        let _ = disk.remove_file(path);
    }
    written.map(|len| (file, len))
}

/// Gives a prepared file its final name.
pub(crate) fn publish(disk: &dyn Disk, temporary: &Path, path: &Path) -> io::Result<()> {
    disk.rename(temporary, path)?;
    disk.sync_directory(path.parent().unwrap_or(Path::new(".")))
}

fn fill(
    file: &Arc<dyn DiskFile>,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<u64> {
    let mut writer = BufWriter::with_capacity(BUFFER, Counted { file, len: 0 });
    write(&mut writer)?;
    writer.flush()?;
    let len = writer.get_ref().len;
    file.sync()?;
    Ok(len)
}

/// What a process that died in the middle of this left behind.
fn remove_leftover(disk: &dyn Disk, path: &Path) -> io::Result<()> {
    match disk.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

struct Counted<'a> {
    file: &'a Arc<dyn DiskFile>,
    len: u64,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.len += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
