//! Whose notes a directory holds. Directories are named after workspaces, and two workspaces can
//! come to the same name; what one learned is not for the other.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use crate::private;

/// The file that holds the path of the workspace.
const OWNER: &str = ".workspace";
/// The longest path that is compared, in bytes.
const MAX_PATH: u64 = 64 * 1024;

/// Whether a directory of notes is another workspace's.
pub fn is_anothers(directory: &Path, workspace: &Path) -> bool {
    match owner(directory) {
        Ok(Some(owner)) => owner != bytes(workspace),
        // What nobody has claimed may be used; what cannot be read cannot be used either way.
        Ok(None) | Err(_) => false,
    }
}

/// Whether it is anybody's.
pub(super) fn is_claimed(directory: &Path) -> bool {
    directory.join(OWNER).exists()
}

/// Makes the directory this workspace's, unless it is somebody's already.
pub(super) fn claim(directory: &Path, workspace: &Path) -> io::Result<()> {
    private::begin(&directory.join(OWNER), bytes(workspace))
}

fn owner(directory: &Path) -> io::Result<Option<Vec<u8>>> {
    let file = match File::open(directory.join(OWNER)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut owner = Vec::new();
    file.take(MAX_PATH).read_to_end(&mut owner)?;
    Ok(Some(owner).filter(|owner| !owner.is_empty()))
}

fn bytes(workspace: &Path) -> &[u8] {
    OsStr::as_encoded_bytes(workspace.as_os_str())
}
