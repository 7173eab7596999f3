//! Plugins that a run is given: directories, and archives of one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use caliban_plugins::{Staging, unpack};
use sha2::{Digest as _, Sha256};

/// The largest archive, in bytes.
const LARGEST: u64 = 64 * 1024 * 1024;
/// How much of an archive's digest names where it was unpacked.
const SHORT: usize = 16;

/// The directory that is meant. An archive is unpacked once below `place`, by its digest.
pub(super) fn directory(path: PathBuf, place: &Path) -> Result<PathBuf, String> {
    if !path.is_file() {
        // Whatever is wrong with a directory is found when it is read.
        return Ok(path);
    }
    let failed = |reason: String| format!("`{}`: {reason}", path.display());
    let size = fs::metadata(&path).map_err(|error| failed(error.to_string()))?;
    if size.len() > LARGEST {
        return Err(failed(format!("it is larger than {LARGEST} bytes")));
    }
    let digest = digest(&path).map_err(|error| failed(error.to_string()))?;
    // What has no manifest is called as its directory.
    let name = path.file_stem().and_then(|stem| stem.to_str());
    let name = name.map(|stem| stem.trim_end_matches(".tar"));
    let name = name.filter(|name| !name.is_empty()).unwrap_or("plugin");
    let root = place.join(&digest[..SHORT]);
    let unpacked = root.join(name);
    if unpacked.is_dir() {
        return Ok(unpacked);
    }
    let staging = Staging::new(&root).map_err(|error| failed(error.to_string()))?;
    let scratch = staging.scratch();
    fs::create_dir(&scratch).map_err(|error| failed(error.to_string()))?;
    unpack(&path, &scratch).map_err(|error| failed(error.to_string()))?;
    let taken = staging.take(&staging.unwrapped(), &scratch);
    taken.map_err(|error| failed(error.to_string()))?;
    let settled = staging.settle(name);
    settled.map_err(|error| failed(error.to_string()))
}

fn digest(path: &Path) -> io::Result<String> {
    let archive = fs::read(path)?;
    Ok(caliban_settings::hex(&Sha256::digest(archive)))
}
