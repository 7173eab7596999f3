//! Reads settings files: regular ones of a bounded size, and in a workspace only those that are
//! really in it.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use crate::error::SettingsError;

/// The largest settings file.
pub(crate) const SIZE_LIMIT: u64 = 1024 * 1024;

/// Reads a file; `None` where there is none.
pub(crate) fn read_file(path: &Path) -> Result<Option<String>, SettingsError> {
    let unreadable = |error: &std::io::Error| SettingsError::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    };
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if is_absence(error.kind()) => return Ok(None),
        Err(error) => return Err(unreadable(&error)),
    };
    // Before opening: opening a pipe would wait for its other end.
    if !metadata.is_file() {
        return Err(SettingsError::NotAFile {
            path: path.to_owned(),
        });
    }
    let expected = usize::try_from(metadata.len().min(SIZE_LIMIT)).unwrap_or(0);
    let mut bytes = Vec::with_capacity(expected + 1);
    File::open(path)
        .and_then(|file| file.take(SIZE_LIMIT + 1).read_to_end(&mut bytes))
        .map_err(|error| unreadable(&error))?;
    if bytes.len() as u64 > SIZE_LIMIT {
        return Err(SettingsError::TooLarge {
            path: path.to_owned(),
            limit: SIZE_LIMIT,
        });
    }
    let text = String::from_utf8(bytes).map_err(|_| SettingsError::NotText {
        path: path.to_owned(),
    })?;
    Ok(Some(match text.strip_prefix('\u{feff}') {
        Some(text) => text.to_owned(),
        None => text,
    }))
}

fn is_absence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// A file that arrived with a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkspaceFile {
    Absent,
    Text(String),
    /// A link that leads out of the workspace, to this file; it is not followed.
    Elsewhere(PathBuf),
    Unusable(SettingsError),
}

/// Reads a file of a workspace, whose path must be canonical.
pub(crate) fn read_workspace_file(workspace: &Path, path: &Path) -> WorkspaceFile {
    // Most names lead nowhere, and to resolve one asks about every directory above it.
    if let Err(error) = fs::symlink_metadata(path)
        && is_absence(error.kind())
    {
        return WorkspaceFile::Absent;
    }
    let resolved = match fs::canonicalize(path) {
        Ok(resolved) => resolved,
        Err(error) if is_absence(error.kind()) => return WorkspaceFile::Absent,
        Err(error) => {
            return WorkspaceFile::Unusable(SettingsError::Unreadable {
                path: path.to_owned(),
                reason: error.to_string(),
            });
        }
    };
    if !resolved.starts_with(workspace) {
        return WorkspaceFile::Elsewhere(resolved);
    }
    match read_file(&resolved) {
        Ok(Some(text)) => WorkspaceFile::Text(text),
        Ok(None) => WorkspaceFile::Absent,
        Err(error) => WorkspaceFile::Unusable(error),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn files_are_bounded_and_regular() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("f");
        assert_eq!(read_file(&path).unwrap(), None);
        assert_eq!(read_file(&path.join("below")).unwrap(), None);
        fs::write(&path, "\u{feff}a = 1").unwrap();
        assert_eq!(read_file(&path).unwrap().unwrap(), "a = 1");
        assert_eq!(read_file(&path.join("below")).unwrap(), None);
        let size = usize::try_from(SIZE_LIMIT).unwrap();
        fs::write(&path, "#".repeat(size)).unwrap();
        assert!(read_file(&path).is_ok());
        fs::write(&path, "#".repeat(size + 1)).unwrap();
        assert!(matches!(
            read_file(&path),
            Err(SettingsError::TooLarge { .. })
        ));
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(matches!(
            read_file(&path),
            Err(SettingsError::NotText { .. })
        ));
        assert!(matches!(
            read_file(root.path()),
            Err(SettingsError::NotAFile { .. })
        ));
    }

    #[test]
    fn links_out_of_the_workspace_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        let workspace = root.join("w");
        fs::create_dir(&workspace).unwrap();
        fs::create_dir(root.join("w-evil")).unwrap();
        fs::write(root.join("w-evil/s"), "out").unwrap();
        fs::write(workspace.join("t"), "in").unwrap();
        symlink(root.join("w-evil/s"), workspace.join("out")).unwrap();
        symlink("t", workspace.join("in")).unwrap();
        symlink(root.join("w-evil"), workspace.join("dir")).unwrap();
        symlink("loop", workspace.join("loop")).unwrap();
        let read = |name: &str| read_workspace_file(&workspace, &workspace.join(name));
        assert_eq!(read("out"), WorkspaceFile::Elsewhere(root.join("w-evil/s")));
        assert_eq!(
            read("dir/s"),
            WorkspaceFile::Elsewhere(root.join("w-evil/s"))
        );
        assert_eq!(read("in"), WorkspaceFile::Text("in".to_owned()));
        assert_eq!(read("none"), WorkspaceFile::Absent);
        assert!(matches!(read("loop"), WorkspaceFile::Unusable(_)));
    }
}
