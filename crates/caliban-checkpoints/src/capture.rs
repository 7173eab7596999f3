//! The checkpoint of a prompt while it runs: what is at a path before its first change, and after.

mod keeping;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use crate::disk::{self, Disk};
use crate::error::Error;
use crate::image::{Digest, Image};
use crate::journal::Record;
use crate::lines::{COUNTED, Counter, Lines};
use crate::manifest::{self, Coverage, Entry, Kind, Manifest, Mark};
use crate::store::{
    Limits, Session, blob_digest, blob_path, blobs_path, journal_path, manifest_path,
};
use crate::tree::{self, Shape, Tree};

/// Bytes of a file that is looked at once more because it may be tidied up.
const LARGEST_TIDIED: u64 = 1 << 20;

/// A checkpoint that is being made.
#[derive(Debug)]
pub struct Prompt {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    limits: Limits,
    head: Manifest,
    entries: BTreeMap<PathBuf, Entry>,
    journal: JournalState,
    /// Contents that other checkpoints of the session have.
    kept: HashMap<Digest, PathBuf>,
    /// Contents that are not durable yet.
    unsynced: BTreeSet<PathBuf>,
    /// Bytes of contents that nobody else in the session has.
    added: u64,
}

/// What a prompt is before anything of it is known.
#[derive(Debug, Clone, Copy)]
pub struct Beginning<'a> {
    pub kind: Kind,
    pub prompt: &'a str,
    pub at: Timestamp,
    /// Where the conversation stands.
    pub began: Option<Mark>,
    /// What names the prompt for whoever sent it.
    pub id: Option<&'a str>,
    /// Where the repository stands.
    pub git_head: Option<&'a str>,
}

/// What is at a path before it is changed.
#[derive(Debug, Clone, Copy)]
pub enum Before<'a> {
    /// To be looked at.
    Unknown,
    /// What the tool that is about to change it has read.
    File { bytes: &'a [u8], mode: u32 },
}

/// Where a content comes from.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Bytes(Vec<u8>),
    /// A file of the store with this digest and size.
    Stored(PathBuf),
}

/// What is known of a path that a command changed.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) before: Image,
    pub(crate) content: Option<Content>,
    pub(crate) source: Option<String>,
    /// Why it cannot be brought back.
    pub(crate) uncovered: Option<String>,
    pub(crate) after: Image,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JournalState {
    Whole,
    /// A write failed in the middle; the next one begins anew.
    Torn,
}

/// Whether what a write confirms survives the loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    Synced,
    Written,
}

impl Session {
    /// Begins the checkpoint of a prompt.
    pub fn begin(&self, beginning: Beginning<'_>) -> Result<Prompt, Error> {
        if self.is_interrupted()? {
            return Err(Error::Unfinished);
        }
        let indices = self.indices()?;
        let index = next(&indices);
        let directory = self.prompt(index);
        let head = head(index, beginning);
        let blobs = blobs_path(&directory);
        self.disk
            .make_directory(&blobs)
            .map_err(Error::io("create", &blobs))?;
        let mut prompt = Prompt {
            disk: Arc::clone(&self.disk),
            directory,
            limits: self.limits,
            head: head.clone(),
            entries: BTreeMap::new(),
            journal: JournalState::Whole,
            kept: self.kept(&indices)?,
            unsynced: BTreeSet::new(),
            added: 0,
        };
        prompt.note(&Record::Head(head), Durability::Synced)?;
        prompt
            .disk
            .sync_directory(&prompt.directory)
            .map_err(Error::io("sync", &prompt.directory))?;
        Ok(prompt)
    }

    /// Notes a prompt that changed nothing, so that it can be chosen. Nothing is lost with it, so it
    /// is not made durable.
    pub fn pass(&self, beginning: Beginning<'_>, ended: Option<Mark>) -> Result<u32, Error> {
        let index = next(&self.indices()?);
        let directory = self.prompt(index);
        let path = manifest_path(&directory);
        let manifest = Manifest {
            ended,
            ..head(index, beginning)
        };
        serde_json::to_vec_pretty(&manifest)
            .map_err(io::Error::from)
            .and_then(|bytes| {
                self.disk.make_directory(&directory)?;
                self.disk.create(&path, &bytes)
            })
            .map_err(Error::io("write", &path))?;
        Ok(index)
    }

    /// The checkpoint of a restore that was interrupted.
    pub(crate) fn reopen(&self, index: u32) -> Result<Prompt, Error> {
        let directory = self.prompt(index);
        let Some(mut head) = self.load(index)? else {
            return Err(Error::Damaged {
                path: directory,
                problem: "nothing of it is left".to_owned(),
            });
        };
        head.coverage = None;
        let entries = std::mem::take(&mut head.entries);
        head.partial = entries.iter().any(|entry| entry.uncovered.is_some());
        Ok(Prompt {
            disk: Arc::clone(&self.disk),
            directory,
            limits: self.limits,
            head,
            entries: entries
                .into_iter()
                .filter_map(|mut entry| {
                    entry.unsettle();
                    Some((entry.path()?, entry))
                })
                .collect(),
            journal: JournalState::Torn,
            kept: HashMap::new(),
            unsynced: BTreeSet::new(),
            added: 0,
        })
    }

    /// The last checkpoint once more, for what goes on after its prompt is over.
    pub fn carry_on_last(&self) -> Result<Option<Prompt>, Error> {
        let indices = self.indices()?;
        let Some(index) = indices.last().copied() else {
            return Ok(None);
        };
        let Some(manifest) = self.load(index)? else {
            return Ok(None);
        };
        let blobs = blobs_path(&self.prompt(index));
        self.disk
            .make_directory(&blobs)
            .map_err(Error::io("create", &blobs))?;
        let kept = self.kept(&indices)?;
        Ok(Some(Prompt {
            kept,
            ..self.carry_on(index, manifest)
        }))
    }

    /// The checkpoint of a prompt that another process worked on, as far as that came.
    pub(crate) fn carry_on(&self, index: u32, mut head: Manifest) -> Prompt {
        let entries = std::mem::take(&mut head.entries).into_iter();
        Prompt {
            disk: Arc::clone(&self.disk),
            directory: self.prompt(index),
            limits: self.limits,
            head,
            entries: entries
                .filter_map(|entry| Some((entry.path()?, entry)))
                .collect(),
            journal: JournalState::Torn,
            kept: HashMap::new(),
            unsynced: BTreeSet::new(),
            added: 0,
        }
    }

    fn kept(&self, indices: &[u32]) -> Result<HashMap<Digest, PathBuf>, Error> {
        let mut kept = HashMap::new();
        for index in indices {
            let directory = self.prompt(*index);
            let blobs = blobs_path(&directory);
            for name in self.disk.list(&blobs).map_err(Error::io("list", &blobs))? {
                kept.extend(blob_digest(&name).map(|digest| (digest, blobs.join(&name))));
            }
        }
        Ok(kept)
    }
}

impl Prompt {
    pub fn index(&self) -> u32 {
        self.head.prompt_index
    }

    /// Whether nothing is known to have changed yet.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many bytes of contents it has that the session had not.
    pub fn added(&self) -> u64 {
        self.added
    }

    /// Where the conversation stood when the prompt was over, if it was.
    pub fn ended(&self) -> Option<Mark> {
        self.head.ended
    }

    /// The paths that are as calls of this prompt left them, but for large files; nothing where there
    /// are more than that.
    pub fn settled(&self, tree: &dyn Tree, most: usize) -> Vec<PathBuf> {
        if self.entries.len() > most {
            return Vec::new();
        }
        let is_settled = |path: &Path, entry: &Entry| {
            let left = entry.after()?;
            let is_large = matches!(left, Image::File { size, .. } if size > LARGEST_TIDIED);
            if is_large {
                return None;
            }
            let now = now(tree, path).ok()?;
            Some(left.is_surely(&now))
        };
        let entries = self.entries.iter();
        let settled = entries.filter(|(path, entry)| is_settled(path, entry) == Some(true));
        settled.map(|(path, _)| path.clone()).collect()
    }

    /// The paths outside of the workspace.
    pub fn outside(&self) -> Vec<PathBuf> {
        let paths = self.entries.keys().filter(|path| path.is_absolute());
        paths.cloned().collect()
    }

    /// This is the checkpoint of a rewind to the end of a prompt.
    pub(crate) fn goes_to(&mut self, to: u32) {
        self.head.rewound_to = Some(to);
    }

    pub(crate) fn has(&self, path: &Path) -> bool {
        self.entries.contains_key(path)
    }

    /// What is kept of a path, as it was before its first change.
    pub(crate) fn holds(&self, path: &Path) -> Option<Image> {
        let entry = self.entries.get(path)?;
        entry.uncovered.is_none().then(|| entry.before())?
    }

    /// The last word about a prompt that was interrupted.
    pub(crate) fn conclude(&mut self, record: &Record) -> Result<(), Error> {
        if let Some(coverage) = self.head.coverage.clone() {
            self.note(&Record::Coverage(coverage), Durability::Written)?;
        }
        self.note(record, Durability::Synced)
    }

    /// A path was not changed after all.
    pub(crate) fn forget(&mut self, path: &Path) {
        self.entries.remove(path);
    }

    /// A tool is about to change what is at a path. After `Ok` its first state in this prompt is
    /// safe, or it is noted why it cannot be kept. After an error nothing may be changed.
    pub fn before(
        &mut self,
        tree: &dyn Tree,
        path: &Path,
        tool: &str,
        before: Before<'_>,
    ) -> Result<(), Error> {
        self.note_before(tree, path, tool, before, Durability::Synced)
    }

    /// The same for many paths at once: one wait for the disk serves all of them.
    pub(crate) fn before_all<'p>(
        &mut self,
        tree: &dyn Tree,
        paths: impl Iterator<Item = &'p Path>,
        tool: &str,
    ) -> Result<(), Error> {
        for path in paths {
            self.note_before(tree, path, tool, Before::Unknown, Durability::Written)?;
        }
        self.secure()
    }

    fn note_before(
        &mut self,
        tree: &dyn Tree,
        path: &Path,
        tool: &str,
        before: Before<'_>,
        durability: Durability,
    ) -> Result<(), Error> {
        if self.has(path) {
            return Ok(());
        }
        let (image, content, uncovered) = self
            .look(tree, path, before)
            .map_err(Error::io("keep what is at", path))?;
        if image == Image::Absent {
            let missing = missing_parents(tree, path).map_err(Error::io("look at", path))?;
            for directory in missing {
                if !self.has(&directory) {
                    let entry = Entry::new(&directory, &Image::Absent, tool);
                    self.enter(directory, entry, Durability::Written)?;
                }
            }
        }
        let mut entry = Entry::new(path, &image, tool);
        entry.uncovered = uncovered;
        if let (
            Image::File {
                digest: Some(digest),
                size,
                ..
            },
            Some(content),
        ) = (&image, content)
        {
            self.keep(*digest, *size, &content, durability)?;
            entry.source = Some("copy".to_owned());
        }
        self.head.partial |= entry.uncovered.is_some();
        self.enter(path.to_owned(), entry, durability)
    }

    /// A tool is done with a path.
    pub fn after(&mut self, tree: &dyn Tree, path: &Path) -> Result<(), Error> {
        let on_the_way: Vec<PathBuf> = path
            .ancestors()
            .filter(|ancestor| self.has(ancestor))
            .map(Path::to_owned)
            .collect();
        for path in on_the_way {
            self.left(&path, &now(tree, &path)?)?;
        }
        Ok(())
    }

    /// The prompt is over: what it changed becomes its manifest.
    pub fn finish(mut self, tree: &dyn Tree, ended: Option<Mark>) -> Result<Manifest, Error> {
        for (path, entry) in &mut self.entries {
            if entry.after().is_none() {
                entry.left(&now(tree, path)?);
            }
        }
        let lines = self.lines(tree);
        let mut manifest = self.head;
        manifest.ended = ended;
        manifest.lines = lines;
        manifest.entries = self.entries.into_values().collect();
        let blobs = blobs_path(&self.directory);
        // Contents that commands changed are synced here at the latest.
        self.disk
            .sync_directory(&blobs)
            .map_err(Error::io("sync", &blobs))?;
        write(&*self.disk, &self.directory, &manifest)?;
        let journal = journal_path(&self.directory);
        disk::forget(&*self.disk, &journal).map_err(Error::io("remove", &journal))?;
        Ok(manifest)
    }

    fn lines(&self, tree: &dyn Tree) -> Option<Lines> {
        let mut counter = Counter::new();
        for (path, entry) in &self.entries {
            if counter.is_out_of_time() {
                break;
            }
            let before = match entry.before() {
                Some(Image::Absent) => Some(Vec::new()),
                Some(Image::File {
                    digest: Some(digest),
                    size,
                    ..
                }) if size <= COUNTED => {
                    let blob = blob_path(&self.directory, digest);
                    self.disk.read(&blob, size).ok()
                }
                Some(_) | None => None,
            };
            let after = match entry.after() {
                Some(Image::Absent) => Some(Vec::new()),
                Some(Image::File { size, .. }) if size <= COUNTED => tree.read(path, COUNTED).ok(),
                Some(_) | None => None,
            };
            if let (Some(before), Some(after)) = (before, after) {
                counter.add(&before, &after);
            }
        }
        counter.lines()
    }

    /// A command changed a path. What cannot be kept of it is noted.
    pub(crate) fn changed(&mut self, path: &Path, tool: &str, change: Change) -> Result<(), Error> {
        if self.has(path) {
            return self.left(path, &change.after);
        }
        let mut entry = Entry::new(path, &change.before, tool);
        entry.source = change.source;
        entry.uncovered = change.uncovered;
        if let Image::File { digest, size, .. } = change.before {
            let kept = match (digest, &change.content) {
                (Some(digest), Some(content)) => {
                    self.keep(digest, size, content, Durability::Written)
                }
                (None, _) | (_, None) => Ok(()),
            };
            if let Err(error) = kept {
                // The command has run; what remains is to say so.
                entry.uncovered.get_or_insert(error.to_string());
            }
        }
        entry.left(&change.after);
        self.head.partial |= entry.uncovered.is_some();
        self.enter(path.to_owned(), entry, Durability::Written)
    }

    /// How far the changes of a command were looked for.
    pub(crate) fn covered(&mut self, coverage: &Coverage) -> Result<(), Error> {
        let all = self.head.coverage.get_or_insert_with(Coverage::default);
        all.compared = all.compared.max(coverage.compared);
        for shortfall in &coverage.shortfalls {
            all.lacks(shortfall.clone());
        }
        all.more = all.more.max(coverage.more);
        self.head.partial |= !coverage.is_full();
        let all = all.clone();
        self.note(&Record::Coverage(all), Durability::Synced)
    }

    fn look(
        &self,
        tree: &dyn Tree,
        path: &Path,
        before: Before<'_>,
    ) -> io::Result<(Image, Option<Content>, Option<String>)> {
        let looked = match before {
            Before::File { bytes, mode } => Ok((
                Image::File {
                    digest: Some(Digest::of(bytes)),
                    size: bytes.len() as u64,
                    mode: mode & 0o777,
                },
                Some(Content::Bytes(bytes.to_vec())),
            )),
            Before::Unknown => read(tree, path, self.limits.file),
        };
        Ok(match looked {
            Err(error) if error.kind() != io::ErrorKind::PermissionDenied => return Err(error),
            Err(error) => (
                Image::Special,
                None,
                Some(format!("it could not be read: {error}")),
            ),
            Ok((image, _)) if tree::is_repository(path) => (
                image,
                None,
                Some("it belongs to the repository itself".to_owned()),
            ),
            Ok((Image::File { size, mode, .. }, _)) if size > self.limits.file => {
                let image = Image::File {
                    digest: None,
                    size,
                    mode,
                };
                (image, None, Some(too_large(self.limits.file)))
            }
            Ok((Image::Special, _)) => (
                Image::Special,
                None,
                Some("it is not a regular file".to_owned()),
            ),
            Ok((image, content)) => (image, content, None),
        })
    }

    fn left(&mut self, path: &Path, after: &Image) -> Result<(), Error> {
        let Some(entry) = self.entries.get_mut(path) else {
            return Ok(());
        };
        if entry.after().as_ref() == Some(after) {
            return Ok(());
        }
        entry.left(after);
        let record = Record::Entry(Box::new(entry.clone()));
        self.note(&record, Durability::Written)
    }

    fn enter(&mut self, path: PathBuf, entry: Entry, durability: Durability) -> Result<(), Error> {
        let record = Record::Entry(Box::new(entry.clone()));
        self.note(&record, durability)?;
        self.entries.insert(path, entry);
        Ok(())
    }
}

fn next(indices: &[u32]) -> u32 {
    indices.last().map_or(1, |last| last.saturating_add(1))
}

fn head(index: u32, beginning: Beginning<'_>) -> Manifest {
    Manifest {
        prompt_index: index,
        kind: beginning.kind,
        title: manifest::title(beginning.prompt),
        created_at: beginning.at,
        entries: Vec::new(),
        partial: false,
        coverage: None,
        began: beginning.began,
        ended: None,
        lines: None,
        id: beginning.id.map(str::to_owned),
        git_head: beginning.git_head.map(str::to_owned),
        rewound_to: None,
    }
}

/// Writes a manifest durably.
pub(crate) fn write(disk: &dyn Disk, prompt: &Path, manifest: &Manifest) -> Result<(), Error> {
    let path = manifest_path(prompt);
    serde_json::to_vec_pretty(manifest)
        .map_err(io::Error::from)
        .and_then(|bytes| disk::replace(disk, &path, &bytes))
        .map_err(Error::io("write", &path))
}

pub(crate) fn too_large(limit: u64) -> String {
    format!("it is larger than {limit} bytes")
}

/// What is at a path, with its content where that is small enough.
pub(crate) fn read(
    tree: &dyn Tree,
    path: &Path,
    limit: u64,
) -> io::Result<(Image, Option<Content>)> {
    match tree.look(path)? {
        Some(stamp) if stamp.shape == Shape::File && stamp.size <= limit => {
            let bytes = tree.read(path, limit)?;
            let image = Image::File {
                digest: Some(Digest::of(&bytes)),
                size: bytes.len() as u64,
                mode: stamp.mode,
            };
            Ok((image, Some(Content::Bytes(bytes))))
        }
        Some(_) | None => Ok((tree::image(tree, path)?, None)),
    }
}

/// What is at a path now, as far as it can be known.
fn now(tree: &dyn Tree, path: &Path) -> Result<Image, Error> {
    match tree::image(tree, path) {
        // What cannot be read is never taken for what we left.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(Image::Special),
        other => other.map_err(Error::io("look at", path)),
    }
}

/// The directories that have to be made for a path, the outermost first.
pub(crate) fn missing_parents(tree: &dyn Tree, path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut missing = Vec::new();
    for parent in path.ancestors().skip(1) {
        if parent.file_name().is_none() || tree.look(parent)?.is_some() {
            break;
        }
        missing.push(parent.to_owned());
    }
    missing.reverse();
    Ok(missing)
}
