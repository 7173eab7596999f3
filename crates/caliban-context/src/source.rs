//! Reads files that end up in a prompt: regular ones of a bounded size, text, and where it
//! matters really where they seem to be.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::invisible::visible;
use crate::notice::Notice;

/// Where the kernel shows itself and its processes, whose environments hold keys.
const KERNEL: [&str; 2] = ["/proc", "/sys"];

/// Why a file cannot be part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileProblem {
    #[error("it is not a regular file")]
    NotAFile,
    #[error("it is larger than {limit} bytes")]
    TooLarge { limit: u64 },
    #[error("it is not UTF-8 text")]
    NotText,
    #[error("it leads to `{}`, which is somewhere else", target.display())]
    Elsewhere { target: PathBuf },
    #[error("it is made up by the system and may tell what this program keeps to itself")]
    Virtual,
    #[error("it may not be read: {0}")]
    Closed(String),
    #[error("it belongs to another user")]
    OtherOwner,
    #[error("{0}")]
    Unreadable(String),
}

/// A file as it may be shown.
#[derive(Debug)]
pub(crate) struct Document {
    /// With every link followed.
    pub(crate) path: PathBuf,
    /// Without invisible characters.
    pub(crate) text: String,
    /// How many of those there were.
    pub(crate) invisible: usize,
    /// How many bytes there are beyond those that were read.
    pub(crate) beyond: usize,
    /// The SHA-256 of the bytes that were read, in hexadecimal.
    pub(crate) digest: String,
    pub(crate) owner: Owner,
}

impl Document {
    /// Something to say about invisible characters, if there were any.
    pub(crate) fn notice(&self) -> Option<Notice> {
        (self.invisible > 0).then(|| Notice::Invisible {
            path: self.path.clone(),
            count: self.invisible,
        })
    }
}

/// Whose a file is. Systems without numeric owners make no difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner(Option<u32>);

impl Owner {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt;
            Self(Some(metadata.uid()))
        }
        #[cfg(not(unix))]
        {
            let _ = metadata;
            Self(None)
        }
    }

    /// Whether somebody who works in a directory of `other` may be told things by this owner:
    /// their own files and the system's.
    pub(crate) fn speaks_to(self, other: Self) -> bool {
        self == other || self.0 == Some(0)
    }
}

/// The real path of a file; `None` where there is nothing.
pub(crate) fn resolve(path: &Path) -> Result<Option<PathBuf>, FileProblem> {
    match fs::canonicalize(path) {
        Ok(path) => Ok(Some(path)),
        Err(error) if is_absence(error.kind()) => Ok(None),
        Err(error) => Err(FileProblem::Unreadable(error.to_string())),
    }
}

/// Reads a file by its real path, whole or not at all.
pub(crate) fn read(resolved: &Path, limit: u64) -> Result<Document, FileProblem> {
    let document = read_head(resolved, limit)?;
    if document.beyond > 0 {
        return Err(FileProblem::TooLarge { limit });
    }
    Ok(document)
}

/// Reads the first bytes of a file by its real path.
pub(crate) fn read_head(resolved: &Path, limit: u64) -> Result<Document, FileProblem> {
    let unreadable = |error: io::Error| FileProblem::Unreadable(error.to_string());
    if KERNEL.iter().any(|place| resolved.starts_with(place)) {
        return Err(FileProblem::NotAFile);
    }
    let file = open(resolved).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err(FileProblem::NotAFile);
    }
    if is_virtual(&file) {
        return Err(FileProblem::Virtual);
    }
    let mut bytes = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(unreadable)?;
    let mut beyond = 0;
    if bytes.len() as u64 > limit {
        bytes.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
        // What is not a whole character is beyond.
        if let Err(error) = std::str::from_utf8(&bytes)
            && error.error_len().is_none()
        {
            bytes.truncate(error.valid_up_to());
        }
        let length = usize::try_from(metadata.len()).unwrap_or(usize::MAX);
        beyond = length.saturating_sub(bytes.len()).max(1);
    }
    let digest = hex(&Sha256::digest(&bytes));
    let text = String::from_utf8(bytes).map_err(|_| FileProblem::NotText)?;
    let visible = visible(&text);
    Ok(Document {
        path: resolved.to_owned(),
        text: visible.text,
        invisible: visible.removed,
        beyond,
        digest,
        owner: Owner::of(&metadata),
    })
}

/// Where a file may really be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fence {
    /// Anywhere: its owner is free to link.
    Open,
    /// Beneath this real directory.
    Within(PathBuf),
}

/// Reads a file that must not lead out of its fence; `None` where there is nothing.
pub(crate) fn read_within(
    path: &Path,
    fence: &Fence,
    limit: u64,
) -> Result<Option<Document>, FileProblem> {
    let Some(resolved) = resolve_within(path, fence)? else {
        return Ok(None);
    };
    read(&resolved, limit).map(Some)
}

/// As [`read_within`], but of a longer file the first bytes.
pub(crate) fn read_head_within(
    path: &Path,
    fence: &Fence,
    limit: u64,
) -> Result<Option<Document>, FileProblem> {
    let Some(resolved) = resolve_within(path, fence)? else {
        return Ok(None);
    };
    read_head(&resolved, limit).map(Some)
}

fn resolve_within(path: &Path, fence: &Fence) -> Result<Option<PathBuf>, FileProblem> {
    let Some(resolved) = resolve(path)? else {
        return Ok(None);
    };
    match fence {
        Fence::Within(root) if !resolved.starts_with(root) => {
            Err(FileProblem::Elsewhere { target: resolved })
        }
        Fence::Open | Fence::Within(_) => Ok(Some(resolved)),
    }
}

/// The names in a directory, sorted; at most `limit` of them are looked at.
pub(crate) fn names(directory: &Path, limit: usize) -> Vec<String> {
    let Ok(entries) = fs::read_dir(directory) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .take(limit)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort_unstable();
    names
}

/// The name of a Markdown file without its extension.
pub(crate) fn markdown_stem(file: &str) -> Option<&str> {
    file.strip_suffix(".md")
}

/// Whether a file is one of `/proc`, where a program's own environment can be read.
#[cfg(target_os = "linux")]
fn is_virtual(file: &File) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|it| it.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

#[cfg(not(target_os = "linux"))]
fn is_virtual(_file: &File) -> bool {
    false
}

/// Opening must not wait for the other end of a pipe nor follow a link put there meanwhile.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    let flags = OFlags::NONBLOCK | OFlags::NOFOLLOW;
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).open(path)
}

fn is_absence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn problem(path: &Path, fence: &Fence) -> FileProblem {
        read_within(path, fence, 10).unwrap_err()
    }

    #[test]
    fn only_bounded_regular_text_inside_the_fence_is_read() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let inside = root.join("w");
        let fence = Fence::Within(inside.clone());
        fs::create_dir_all(inside.join("dir")).unwrap();
        fs::create_dir(root.join("w-evil")).unwrap();
        fs::write(root.join("w-evil/f"), "out").unwrap();
        fs::write(inside.join("ten"), "0123456789").unwrap();
        fs::write(inside.join("eleven"), "0123456789a").unwrap();
        fs::write(inside.join("bytes"), [0xff]).unwrap();
        symlink("ten", inside.join("in")).unwrap();
        symlink("../w-evil/f", inside.join("out")).unwrap();
        symlink("loop", inside.join("loop")).unwrap();
        symlink("/dev/zero", inside.join("zero")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, inside.join("fifo"), 0o600.into()).unwrap();

        let read = |name: &str| read_within(&inside.join(name), &fence, 10).unwrap();
        assert_eq!(read("ten").unwrap().text, "0123456789");
        assert_eq!(read("in").unwrap().path, inside.join("ten"));
        assert!(read("none").is_none());
        assert!(read("ten/below").is_none());
        let problem = |name: &str, fence| problem(&inside.join(name), fence);
        assert_eq!(
            problem("eleven", &fence),
            FileProblem::TooLarge { limit: 10 }
        );
        assert_eq!(problem("bytes", &fence), FileProblem::NotText);
        assert_eq!(problem("dir", &fence), FileProblem::NotAFile);
        assert_eq!(problem("fifo", &fence), FileProblem::NotAFile);
        assert_eq!(problem("zero", &Fence::Open), FileProblem::NotAFile);
        assert!(matches!(
            problem("loop", &fence),
            FileProblem::Unreadable(_)
        ));
        let target = root.join("w-evil/f");
        assert_eq!(problem("out", &fence), FileProblem::Elsewhere { target });
        assert!(read_within(&inside.join("out"), &Fence::Open, 10).is_ok());
    }

    #[test]
    fn strangers_do_not_speak_to_us() {
        let (me, stranger, system) = (Owner(Some(7)), Owner(Some(8)), Owner(Some(0)));
        assert!(me.speaks_to(me) && system.speaks_to(me));
        assert!(!stranger.speaks_to(me) && !me.speaks_to(system));
    }
}
