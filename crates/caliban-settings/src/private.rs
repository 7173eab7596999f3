//! Directories and files that nobody else may read.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// Creates a directory and its missing parents for the owner alone (0700). A directory that
/// exists is narrowed where others have access to it, which fails where it is somebody else's; a
/// link is refused.
pub fn ensure_private_dir(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path)?;
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_dir() {
        return Err(io::Error::new(
            io::ErrorKind::NotADirectory,
            format!("`{}` is not a directory", path.display()),
        ));
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        if metadata.permissions().mode() & 0o077 != 0 {
            fs::set_permissions(path, fs::Permissions::from_mode(0o700))?;
        }
    }
    Ok(())
}

/// Creates a file for the owner alone (0600), in a directory that exists. A file that is there
/// already, a link included, is an error: nothing is followed and nothing is overwritten.
pub fn create_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    options.open(path)
}

/// Replaces a private file in one step: whoever reads sees the old content or the new one.
pub fn replace_private_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new()
        .prefix(".caliban-")
        .tempfile_in(directory)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn directories_are_for_the_owner_alone() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b");
        ensure_private_dir(&path).unwrap();
        assert_eq!(mode(&path), 0o700);
        assert_eq!(mode(&root.path().join("a")), 0o700);

        let open = root.path().join("open");
        fs::create_dir(&open).unwrap();
        fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
        ensure_private_dir(&open).unwrap();
        assert_eq!(mode(&open), 0o700);

        let link = root.path().join("link");
        symlink(&open, &link).unwrap();
        assert!(ensure_private_dir(&link).is_err());
        fs::write(root.path().join("file"), "").unwrap();
        assert!(ensure_private_dir(&root.path().join("file")).is_err());
    }

    #[test]
    fn files_are_created_never_taken_over() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("f");
        create_private_file(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        assert!(create_private_file(&path).is_err());
        let link = root.path().join("link");
        symlink(root.path().join("elsewhere"), &link).unwrap();
        assert!(create_private_file(&link).is_err());
        assert!(!root.path().join("elsewhere").exists());
    }

    #[test]
    fn replacing_keeps_a_file_private() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("f");
        replace_private_file(&path, b"one").unwrap();
        replace_private_file(&path, b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(mode(&path), 0o600);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }
}
