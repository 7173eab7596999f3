//! Files and directories in places that a repository has a say in: nothing is followed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::path::{Component, Path, PathBuf};

/// Makes the names in a directory last.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Goes down from `root` by plain names, making directories that are missing. Something else in the
/// place of one, a link included, is an error.
pub(crate) fn descend(root: &Path, relative: &Path) -> io::Result<PathBuf> {
    let mut path = root.to_owned();
    for component in relative.components() {
        let Component::Normal(name) = component else {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        };
        path.push(name);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(io::Error::from(io::ErrorKind::NotADirectory)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                DirBuilder::new().create(&path)?;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(path)
}

/// Whether a path leads down by plain names and is not empty.
pub(crate) fn is_plain(path: &Path) -> bool {
    let mut components = path.components().peekable();
    components.peek().is_some() && components.all(|it| matches!(it, Component::Normal(_)))
}

/// Opens an ordinary file that is no link.
pub(crate) fn open_plain(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;
        // Neither a link nor the other end of a pipe.
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::from(io::ErrorKind::InvalidInput))
    }
}
