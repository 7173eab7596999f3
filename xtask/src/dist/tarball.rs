//! Compressed archives whose bytes depend on what is in them alone.

use std::collections::BTreeSet;
use std::io::Write;

use anyhow::Result;
use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::Artefact;
use super::payload::Payload;

/// One file or link of an archive.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    pub(super) path: String,
    pub(super) content: Content<'a>,
}

#[derive(Debug)]
pub(super) enum Content<'a> {
    Program(&'a [u8]),
    Text(&'a [u8]),
    /// A symbolic link to this.
    Link(&'static str),
}

impl<'a> Entry<'a> {
    pub(super) fn new(path: impl Into<String>, content: Content<'a>) -> Self {
        Self {
            path: path.into(),
            content,
        }
    }
}

/// Whether an archive names the directories above its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Directories {
    Named,
    Implied,
}

/// The archive for everybody else: unpack it and put the program on the path.
pub(super) fn archive(payload: &Payload) -> Result<Artefact> {
    let name = format!(
        "caliban-{}-{}-{}",
        payload.version,
        std::env::consts::ARCH,
        std::env::consts::OS
    );
    let mut entries = vec![
        Entry::new("caliban", Content::Program(&payload.program)),
        Entry::new("caliband", Content::Link("caliban")),
        Entry::new("caliban.cdx.json", Content::Text(&payload.bill)),
        Entry::new("man/caliban.1", Content::Text(&payload.manual)),
    ];
    entries.extend(payload.papers());
    for (shell, script) in &payload.completions {
        let path = format!("completions/{}", shell.file());
        entries.push(Entry::new(path, Content::Text(script)));
    }
    for entry in &mut entries {
        entry.path = format!("{name}/{}", entry.path);
    }
    Ok(Artefact {
        bytes: gzipped_tar(entries, payload.time, Directories::Implied)?,
        name: format!("{name}.tar.gz"),
    })
}

pub(super) fn gzipped_tar(
    mut entries: Vec<Entry<'_>>,
    time: u64,
    directories: Directories,
) -> Result<Vec<u8>> {
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::default()));
    if directories == Directories::Named {
        for directory in above(&entries) {
            let mut header = header(EntryType::Directory, 0o755, time);
            archive.append_data(&mut header, format!("{directory}/"), std::io::empty())?;
        }
    }
    for entry in &entries {
        match entry.content {
            Content::Program(bytes) => append(&mut archive, entry, bytes, 0o755, time)?,
            Content::Text(bytes) => append(&mut archive, entry, bytes, 0o644, time)?,
            Content::Link(to) => {
                let mut header = header(EntryType::Symlink, 0o777, time);
                archive.append_link(&mut header, &entry.path, to)?;
            }
        }
    }
    Ok(archive.into_inner()?.finish()?)
}

fn append(
    archive: &mut Builder<impl Write>,
    entry: &Entry<'_>,
    bytes: &[u8],
    mode: u32,
    time: u64,
) -> Result<()> {
    let mut header = header(EntryType::Regular, mode, time);
    header.set_size(bytes.len() as u64);
    Ok(archive.append_data(&mut header, &entry.path, bytes)?)
}

fn header(kind: EntryType, mode: u32, time: u64) -> Header {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(time);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(0);
    header
}

/// The directories above all entries, outer ones first.
fn above(entries: &[Entry<'_>]) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for entry in entries {
        for (at, _) in entry.path.match_indices('/') {
            all.insert(entry.path[..at].to_owned());
        }
    }
    all
}

/// A single compressed file.
pub(super) fn gzipped(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut file = GzEncoder::new(Vec::new(), Compression::default());
    file.write_all(bytes)?;
    Ok(file.finish()?)
}
