//! Digests of directories that were read before. A directory counts as known only while everything
//! the system says of every file in it is the same, and only if that was settled when it was read:
//! what changed in the same moment could change again without a trace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use caliban_settings::{Tree, TreeError, TreeShape};
use serde::{Deserialize, Serialize};

use crate::state_file::StateFile;

/// How long ago the last change must have been for a directory to be remembered; more than the
/// coarsest clock of a file system.
const SETTLED: Duration = Duration::from_secs(3);
/// The most directories that are remembered.
const MOST: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Known {
    /// What the system said of its files.
    shape: String,
    /// What is in them.
    digest: String,
}

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
struct Content {
    directories: BTreeMap<PathBuf, Known>,
}

/// The digests that were kept.
#[derive(Debug)]
pub struct DigestCache(StateFile<Content>);

impl DigestCache {
    pub fn new(path: PathBuf) -> Self {
        Self(StateFile::new(path))
    }

    /// The digest of a directory, whose files are read only where they are not known.
    pub fn digest(&self, root: &Path) -> Result<String, TreeError> {
        let Some(shape) = Tree::shape(root)? else {
            return Ok(Tree::read(root)?.digest);
        };
        // What cannot be read is not known.
        let content = self.0.read().unwrap_or_default();
        if let Some(known) = content.directories.get(root)
            && known.shape == shape.digest
        {
            return Ok(known.digest.clone());
        }
        let digest = Tree::read(root)?.digest;
        // Nothing happened while it was read, nor shortly before.
        if Tree::shape(root)?.as_ref() == Some(&shape) && is_settled(&shape) {
            let known = Known {
                shape: shape.digest,
                digest: digest.clone(),
            };
            // What is not kept is read again.
            let _ = self.0.update(|content| {
                content.directories.retain(|path, _| path.exists());
                content.directories.insert(root.to_owned(), known);
                while content.directories.len() > MOST {
                    content.directories.pop_last();
                }
            });
        }
        Ok(digest)
    }
}

fn is_settled(shape: &TreeShape) -> bool {
    let now = SystemTime::now();
    now.duration_since(shape.newest)
        .is_ok_and(|age| age > SETTLED)
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn only_what_is_settled_and_the_same_is_known() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("p");
        fs::create_dir(&root).unwrap();
        let file = root.join("a");
        fs::write(&file, "one").unwrap();
        let path = temp.path().join("trust/files.json");
        let read = || DigestCache::new(path.clone()).digest(&root).unwrap();
        let first = read();
        assert_eq!(first, Tree::read(&root).unwrap().digest);
        assert!(!path.exists(), "it was changed just now");
        // As if it had been seen long ago.
        let state: StateFile<Content> = StateFile::new(path.clone());
        let known = Known {
            shape: Tree::shape(&root).unwrap().unwrap().digest,
            digest: "kept".to_owned(),
        };
        state
            .update(|content| {
                content.directories.insert(root.clone(), known);
            })
            .unwrap();
        assert_eq!(read(), "kept", "what is known is not read again");
        let old = fs::metadata(&file).unwrap().modified().unwrap();
        fs::write(&file, "two").unwrap();
        let opened = fs::File::options().write(true).open(&file).unwrap();
        opened.set_modified(old).unwrap();
        assert_eq!(
            read(),
            Tree::read(&root).unwrap().digest,
            "a date that was set back is seen"
        );
        fs::write(root.join("b"), "").unwrap();
        assert_eq!(read(), Tree::read(&root).unwrap().digest);
    }
}
