//! Removing a session from disk, or what lies beside it to another name.

use std::path::PathBuf;

use crate::disk::Disk;
use crate::error::Error;
use crate::paths::Paths;

/// Removes what belongs to a session and nothing else that may be in its directory. The lock file
/// is left to its holder.
pub(crate) fn remove_files(disk: &dyn Disk, paths: &Paths) -> Result<(), Error> {
    let (blobs, directory) = (paths.blobs(), &paths.directory);
    let in_blobs = disk.list(&blobs).map_err(Error::io("list", &blobs))?;
    let of_blobs = in_blobs.iter().filter(|name| name.contains(".bin"));
    let in_directory = disk.list(directory).map_err(Error::io("list", directory))?;
    let prefix = format!("{}.", paths.name);
    let of_session = in_directory
        .iter()
        .filter(|name| name.starts_with(&prefix) && **name != format!("{prefix}lock"));
    // Without its journal a session is an older one, without its snapshot a broken one: the
    // order of the alphabet, `journal` before `json`, is the right one.
    let mut files: Vec<PathBuf> = of_session.map(|name| directory.join(name)).collect();
    files.sort();
    files.extend(of_blobs.map(|name| blobs.join(name)));
    for file in &files {
        disk.remove_file(file).map_err(Error::io("remove", file))?;
    }
    if !in_blobs.is_empty() {
        // What else is in them is not ours; then they stay.
        let _ = disk.remove_directory(&blobs);
        let _ = disk.remove_directory(&paths.own());
    }
    disk.sync_directory(directory)
        .map_err(Error::io("remove", directory))
}

/// Gives what was kept beside a session, such as damaged records, to its new name.
pub(crate) fn take_asides(disk: &dyn Disk, from: &Paths, to: &Paths) -> Result<(), Error> {
    let directory = &from.directory;
    let names = disk.list(directory).map_err(Error::io("list", directory))?;
    let prefix = format!("{}.journal.", from.name);
    let asides = names
        .iter()
        .filter_map(|name| name.strip_prefix(&prefix))
        .filter(|suffix| *suffix != "new");
    for suffix in asides {
        let suffix = format!("journal.{suffix}");
        let path = from.with_suffix(&suffix);
        disk.rename(&path, &to.with_suffix(&suffix))
            .map_err(Error::io("rename", &path))?;
    }
    Ok(())
}
