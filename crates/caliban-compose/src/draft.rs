//! The draft on disk, so that little is lost when the program dies.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::history::{make_folder, private};

/// What is read back; a draft is written by this program, but the file may be anyone's by now.
const MOST_BYTES: u64 = 16 << 20;

/// A file that holds one draft.
#[derive(Debug, Clone)]
pub struct DraftFile {
    path: PathBuf,
}

impl DraftFile {
    pub fn new(path: PathBuf) -> Self {
        Self { path }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a draft in the place of the one before, whole or not at all.
    pub fn save(&self, text: &str) -> io::Result<()> {
        make_folder(&self.path)?;
        let beside = self.beside();
        // One that was left by a process of the same number that died.
        match fs::remove_file(&beside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
        let written = private()
            .create_new(true)
            .write(true)
            .open(&beside)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| fs::rename(&beside, &self.path));
        if written.is_err() {
            // The error to tell is the first.
            let _ = fs::remove_file(&beside);
        }
        written
    }

    fn beside(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{}.tmp", std::process::id()));
        PathBuf::from(name)
    }

    /// The draft, where there is one that can be read.
    pub fn load(&self) -> Option<String> {
        let mut bytes = Vec::new();
        let file = fs::File::open(&self.path).ok()?;
        file.take(MOST_BYTES).read_to_end(&mut bytes).ok()?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        (!text.is_empty()).then_some(text)
    }

    /// Removes it; that there is none is no error.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_comes_back_as_it_was_saved_last() {
        let folder = tempfile::tempdir().unwrap();
        let draft = DraftFile::new(folder.path().join("a/b/draft.txt"));
        assert_eq!(draft.load(), None);
        draft.save("first\nline").unwrap();
        draft.save("second ✓").unwrap();
        assert_eq!(draft.load().as_deref(), Some("second ✓"));
        let names: Vec<_> = fs::read_dir(folder.path().join("a/b")).unwrap().collect();
        assert_eq!(names.len(), 1, "nothing is left beside it");
        draft.remove().unwrap();
        draft.remove().unwrap();
        assert_eq!(draft.load(), None);
    }

    #[test]
    fn what_a_dead_process_left_is_in_no_ones_way() {
        let folder = tempfile::tempdir().unwrap();
        let draft = DraftFile::new(folder.path().join("draft.txt"));
        fs::write(draft.beside(), "half").unwrap();
        draft.save("whole").unwrap();
        assert_eq!(draft.load().as_deref(), Some("whole"));
    }

    #[cfg(unix)]
    #[test]
    fn a_draft_is_the_users_alone() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let draft = DraftFile::new(folder.path().join("sub/draft.txt"));
        draft.save("secret").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(draft.path()), 0o600);
        assert_eq!(mode(&folder.path().join("sub")), 0o700);
    }
}
