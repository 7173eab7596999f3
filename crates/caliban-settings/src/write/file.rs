//! Where the bytes of a settings file are, and how they are replaced as a whole.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use toml_edit::DocumentMut;

use super::JsonSibling;
use super::error::WriteError;
use crate::hex::hex;

/// No settings file is read beyond this.
const LIMIT: u64 = 4 * 1024 * 1024;
/// Links followed from one settings file, as the kernel does.
const LINKS: usize = 40;

/// A settings file behind all links, which need not exist yet.
#[derive(Debug)]
pub(super) struct Place {
    file: PathBuf,
    directory: PathBuf,
    name: String,
}

impl Place {
    pub(super) fn resolve(path: &Path) -> Result<Self, WriteError> {
        let mut file = path.to_owned();
        for _ in 0..LINKS {
            let Ok(target) = fs::read_link(&file) else {
                break;
            };
            file = match file.parent() {
                Some(directory) => directory.join(target),
                None => target,
            };
        }
        let name = file
            .file_name()
            .ok_or_else(|| WriteError::NotAFile { path: path.into() })?
            .to_string_lossy()
            .into_owned();
        let directory = match file.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
            _ => PathBuf::from("."),
        };
        Ok(Self {
            file,
            directory,
            name,
        })
    }

    /// JSON is only read: neither is a JSON file edited nor one put out of use unawares.
    pub(super) fn refuse_json(&self, path: &Path, sibling: JsonSibling) -> Result<(), WriteError> {
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            return Err(WriteError::Json { path: path.into() });
        }
        let json = path.with_extension("json");
        match sibling {
            JsonSibling::Refuse if !self.file.exists() && json.exists() => {
                Err(WriteError::Json { path: json })
            }
            JsonSibling::Refuse | JsonSibling::Supersede => Ok(()),
        }
    }

    pub(super) fn create_directory(&self) -> Result<(), WriteError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.directory)
            .map_err(WriteError::io("create", &self.directory))
    }

    /// The name of what its writers take turns by: the same whichever way leads to the file.
    pub(super) fn lock_name(&self) -> String {
        let directory = fs::canonicalize(&self.directory);
        let directory = directory.unwrap_or_else(|_| self.directory.clone());
        let path = directory.join(&self.name);
        let digest = Sha256::digest(path.as_os_str().as_encoded_bytes());
        format!("{}.lock", hex(&digest[..8]))
    }

    pub(super) fn read(&self) -> Result<Option<String>, WriteError> {
        match fs::metadata(&self.file) {
            Ok(metadata) if !metadata.is_file() => Err(WriteError::NotAFile {
                path: self.file.clone(),
            }),
            Ok(_) => read_bounded(&self.file, LIMIT).map(Some),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(WriteError::io("read", &self.file)(error)),
        }
    }

    fn temporary_prefix(&self) -> String {
        format!("{}.tmp.", self.name)
    }

    /// Only the holder of the lock has temporary files, so any that is there when the lock has
    /// just been taken belongs to a writer that was killed.
    pub(super) fn remove_abandoned(&self) {
        let prefix = self.temporary_prefix();
        let entries = fs::read_dir(&self.directory).into_iter().flatten();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let ours = name
                .to_str()
                .and_then(|name| name.strip_prefix(&prefix)?.split_once('.'))
                .is_some_and(|(process, _)| process.parse::<u32>().is_ok());
            if ours {
                // A file that stays is clutter, not damage.
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Puts `text` in place of the file, on disk before this returns. A failure removes the
    /// temporary file.
    pub(super) fn replace(&self, text: &str) -> Result<(), WriteError> {
        let mode = match fs::metadata(&self.file) {
            Ok(metadata) => metadata.permissions().mode() & 0o7777,
            Err(_) => 0o600,
        };
        let mut temporary = tempfile::Builder::new()
            .prefix(&format!(
                "{}{}.",
                self.temporary_prefix(),
                std::process::id()
            ))
            .permissions(Permissions::from_mode(0o600))
            .tempfile_in(&self.directory)
            .map_err(WriteError::io("create a file in", &self.directory))?;
        let written = temporary
            .write_all(text.as_bytes())
            .and_then(|()| {
                temporary
                    .as_file()
                    .set_permissions(Permissions::from_mode(mode))
            })
            .and_then(|()| temporary.as_file().sync_all());
        written.map_err(WriteError::io("write", temporary.path()))?;
        temporary
            .persist(&self.file)
            .map_err(|failure| WriteError::io("replace", &self.file)(failure.error))?;
        File::open(&self.directory)
            .and_then(|directory| directory.sync_all())
            .map_err(WriteError::io("sync", &self.directory))
    }
}

/// Reads a text file, refusing what is larger than `limit` bytes.
pub(crate) fn read_bounded(path: &Path, limit: u64) -> Result<String, WriteError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(limit + 1).read_to_end(&mut bytes))
        .map_err(WriteError::io("read", path))?;
    if bytes.len() as u64 > limit {
        return Err(WriteError::TooLarge {
            path: path.into(),
            limit,
        });
    }
    String::from_utf8(bytes).map_err(|error| {
        WriteError::io("read", path)(io::Error::new(ErrorKind::InvalidData, error))
    })
}

/// Parses TOML; an error names file, line and column.
pub(crate) fn parse(path: &Path, text: &str) -> Result<DocumentMut, WriteError> {
    text.parse::<DocumentMut>().map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let before = text.get(..offset).unwrap_or(text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        WriteError::Parse {
            path: path.into(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: error.message().trim().replace('\n', ", "),
        }
    })
}
