//! Making room, forgetting a session, and beginning one where another stands.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use jiff::Timestamp;

use crate::capture::write;
use crate::disk::{self, Disk, Stored};
use crate::error::Error;
use crate::manifest::{Kind, Manifest};
use crate::store::{Session, Store, blob_path, blobs_path, journal_path, manifest_path};

/// What making room came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Room {
    /// Bytes that are still kept.
    pub kept: u64,
    /// Checkpoints that lost their contents.
    pub cleared: u32,
}

/// Which checkpoints may not be cleared.
#[derive(Debug, Clone, Copy)]
pub struct InUse<'a> {
    pub session: &'a str,
    /// This one and those after it.
    pub from: u32,
}

/// A checkpoint and the files of its contents.
#[derive(Debug)]
struct Keeper {
    session: Session,
    index: u32,
    at: Timestamp,
    manifest: Manifest,
    files: Vec<Stored>,
}

/// What a store holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    pub sessions: usize,
    pub checkpoints: usize,
    /// Bytes of contents; a file with several names is counted once.
    pub kept: u64,
    /// The most that may be.
    pub most: u64,
    /// Checkpoints that cannot be understood.
    pub damaged: usize,
    /// Sessions whose rewind was interrupted.
    pub interrupted: Vec<String>,
}

impl Store {
    /// Looks at everything there is, and changes nothing.
    pub fn survey(&self) -> Result<Survey, Error> {
        let mut survey = Survey {
            most: self.limits.project,
            ..Survey::default()
        };
        let mut counted = HashSet::new();
        for name in self.sessions()? {
            let session = self.session(&name)?;
            let history = session.history()?;
            survey.sessions += 1;
            survey.checkpoints += history.checkpoints.len();
            survey.damaged += history.damaged.len();
            for index in history.checkpoints.keys() {
                let blobs = blobs_path(&session.prompt(*index));
                for stored in files(&*self.disk, &blobs)? {
                    if counted.insert(stored.identity) {
                        survey.kept = survey.kept.saturating_add(stored.len);
                    }
                }
            }
            if session.is_interrupted()? {
                survey.interrupted.push(name);
            }
        }
        Ok(survey)
    }

    /// Whether so many bytes are within the bound.
    pub fn has_room(&self, kept: u64) -> bool {
        kept <= self.limits.project
    }

    /// Drops the contents of the oldest checkpoints until all of them are within the bound. Their
    /// manifests stay, so that they still can be seen.
    pub fn make_room(&self, in_use: Option<InUse<'_>>) -> Result<Room, Error> {
        let mut keepers = Vec::new();
        for name in self.sessions()? {
            let session = self.session(&name)?;
            for (index, manifest) in session.history()?.checkpoints {
                let is_free =
                    in_use.is_none_or(|in_use| in_use.session != name || index < in_use.from);
                let files = files(&*self.disk, &blobs_path(&session.prompt(index)))?;
                keepers.push((
                    is_free,
                    Keeper {
                        session: session.clone(),
                        index,
                        at: manifest.created_at,
                        manifest,
                        files,
                    },
                ));
            }
        }
        keepers.sort_by_key(|(_, keeper)| (keeper.at, keeper.index));
        // A file with several names is counted once, and is gone with the last of them.
        let mut names: HashMap<(u64, u64), u32> = HashMap::new();
        let mut room = Room::default();
        for stored in keepers.iter().flat_map(|(_, keeper)| &keeper.files) {
            let count = names.entry(stored.identity).or_insert(0);
            if *count == 0 {
                room.kept = room.kept.saturating_add(stored.len);
            }
            *count += 1;
        }
        for (_, keeper) in keepers.into_iter().filter(|(is_free, _)| *is_free) {
            if room.kept <= self.limits.project {
                break;
            }
            if keeper.files.is_empty() {
                continue;
            }
            keeper.clear()?;
            room.cleared += 1;
            for stored in &keeper.files {
                if let Some(count) = names.get_mut(&stored.identity) {
                    *count = count.saturating_sub(1);
                    if *count == 0 {
                        room.kept = room.kept.saturating_sub(stored.len);
                    }
                }
            }
        }
        Ok(room)
    }

    /// Removes the checkpoints of a session that is being removed itself.
    pub fn remove_session(&self, name: &str) -> Result<(), Error> {
        let session = self.session(name)?;
        let disk = &*self.disk;
        for index in session.indices()? {
            let prompt = session.prompt(index);
            // Without its manifest a checkpoint is none, so that goes first.
            for path in [manifest_path(&prompt), journal_path(&prompt)] {
                disk::forget(disk, &path).map_err(Error::io("remove", &path))?;
            }
            remove_flat(disk, &blobs_path(&prompt))?;
            remove_flat(disk, &prompt)?;
        }
        remove_flat(disk, &session.pool())?;
        remove_flat(disk, &session.directory)
    }

    /// Gives a session that begins as the copy of another its checkpoints. The contents are the
    /// same files.
    pub fn fork(&self, from: &str, to: &str) -> Result<(), Error> {
        let (source, target) = (self.session(from)?, self.session(to)?);
        let disk = &*self.disk;
        for (index, manifest) in &source.history()?.checkpoints {
            let (old, new) = (source.prompt(*index), target.prompt(*index));
            let blobs = blobs_path(&new);
            disk.make_directory(&blobs)
                .map_err(Error::io("create", &blobs))?;
            for entry in &manifest.entries {
                let Some(digest) = entry.sha256 else { continue };
                let (kept, linked) = (blob_path(&old, digest), blob_path(&new, digest));
                let stat = |path: &Path| disk.stat(path).map_err(Error::io("look at", path));
                if stat(&kept)?.is_some() && stat(&linked)?.is_none() {
                    disk.link(&kept, &linked)
                        .map_err(Error::io("link", &linked))?;
                }
            }
            disk.sync_directory(&blobs)
                .map_err(Error::io("sync", &blobs))?;
            write(disk, &new, manifest)?;
        }
        Ok(())
    }
}

impl Keeper {
    /// The manifest first: whoever reads it is not promised what is gone.
    fn clear(&self) -> Result<(), Error> {
        let disk = &*self.session.disk;
        let prompt = self.session.prompt(self.index);
        let cleared = Manifest {
            kind: Kind::Cleared,
            ..self.manifest.clone()
        };
        write(disk, &prompt, &cleared)?;
        let journal = journal_path(&prompt);
        disk::forget(disk, &journal).map_err(Error::io("remove", &journal))?;
        remove_flat(disk, &blobs_path(&prompt))
    }
}

fn files(disk: &dyn Disk, directory: &Path) -> Result<Vec<Stored>, Error> {
    let mut files = Vec::new();
    for name in disk.list(directory).map_err(Error::io("list", directory))? {
        let path = directory.join(name);
        let stored = disk.stat(&path).map_err(Error::io("look at", &path))?;
        files.extend(stored);
    }
    Ok(files)
}

/// Removes a directory with the files in it, and no other directories.
fn remove_flat(disk: &dyn Disk, directory: &Path) -> Result<(), Error> {
    for name in disk.list(directory).map_err(Error::io("list", directory))? {
        let path = directory.join(name);
        if matches!(disk.stat(&path), Ok(Some(_))) {
            disk::forget(disk, &path).map_err(Error::io("remove", &path))?;
        }
    }
    match disk.remove_directory(directory) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::io("remove", directory)(error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}
