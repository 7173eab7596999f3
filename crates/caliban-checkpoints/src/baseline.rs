//! What the workspace was like when a call began that may change anything. It is on the disk for as
//! long as the call runs: after a kill the next process finds out by it what the call did.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::disk::{self, Disk};
use crate::error::Error;
use crate::git::Environment;
use crate::journal::{self, Record};
use crate::manifest::Coverage;
use crate::scan::{Index, Known, ScanLimits, Scanner};
use crate::store::{Interrupted, Session};
use crate::tree::{Stamp, Tree};
use crate::walk;

/// Bytes that are read back, and after which it is written anew.
const MOST: u64 = 256 << 20;

/// A call that may change anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Open {
    pub(crate) prompt: u32,
    pub(crate) tool: String,
}

/// A name, whatever its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Name(#[serde(with = "crate::manifest::name")] pub(crate) PathBuf);

/// One look, as it differs from the one before it.
#[derive(Debug, Serialize, Deserialize)]
struct Block {
    open: Option<Open>,
    begun: i128,
    coverage: Coverage,
    rules: Vec<(Name, Stamp)>,
    set: Vec<(Name, Known)>,
    gone: Vec<Name>,
}

/// The file that says it.
#[derive(Debug)]
pub(crate) struct Baseline {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    /// How long it is; nothing where the next look is written whole.
    written: Option<u64>,
}

impl Baseline {
    pub(crate) fn of(session: &Session) -> Self {
        Self {
            disk: Arc::clone(&session.disk),
            directory: session.directory.clone(),
            written: None,
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.join("baseline.journal")
    }

    /// The workspace was looked at again.
    pub(crate) fn looked(
        &mut self,
        last: &Index,
        now: &Index,
        open: Option<&Open>,
    ) -> Result<(), Error> {
        let is_whole = self.written.is_none_or(|bytes| bytes > MOST / 2);
        let nothing = Index::default();
        let block = Block::between(if is_whole { &nothing } else { last }, now, open);
        self.write(&block, is_whole)
    }

    /// A call begins or none runs any more, and nothing else has changed.
    pub(crate) fn opened(&mut self, now: &Index, open: Option<&Open>) -> Result<(), Error> {
        if self.written.is_none() {
            return self.looked(&Index::default(), now, open);
        }
        self.write(&Block::between(now, now, open), false)
    }

    fn write(&mut self, block: &Block, is_whole: bool) -> Result<(), Error> {
        let path = self.path();
        let before = self.written.take();
        let written = journal::checked(block).map_err(io::Error::from);
        let written = written.and_then(|line| {
            if is_whole {
                self.disk.make_directory(&self.directory)?;
                disk::replace(&*self.disk, &path, &line)?;
            } else {
                self.disk.append(&path, &line)?;
                if block.open.is_some() {
                    self.disk.sync(&path)?;
                }
            }
            Ok(line.len() as u64)
        });
        let bytes = written.map_err(Error::io("write", &path))?;
        self.written = Some(if is_whole { 0 } else { before.unwrap_or(0) }.saturating_add(bytes));
        Ok(())
    }

    pub(crate) fn forget(&mut self) -> Result<(), Error> {
        self.written = None;
        let path = self.path();
        disk::forget(&*self.disk, &path).map_err(Error::io("remove", &path))
    }

    /// What is there; nothing where no call ever began.
    fn read(&self) -> Result<Option<(Index, Option<Open>)>, Error> {
        let path = self.path();
        let bytes = match self.disk.read(&path, MOST) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(Error::io("read", &path)(error)),
        };
        // A line that is torn was not waited for: nothing began after it.
        let (blocks, _) = journal::checked_lines::<Block>(&bytes);
        let mut known = std::collections::BTreeMap::new();
        let mut last = None;
        for block in blocks {
            for Name(gone) in block.gone {
                known.remove(&gone);
            }
            known.extend(block.set.into_iter().map(|(Name(path), it)| (path, it)));
            last = Some((block.open, block.begun, block.coverage, block.rules));
        }
        let Some((open, begun, coverage, rules)) = last else {
            let problem = "nothing of it can be read".to_owned();
            return Err(Error::Damaged { path, problem });
        };
        let mut known: Vec<(PathBuf, Known)> = known.into_iter().collect();
        known.sort_by(|one, another| walk::in_order(&one.0, &another.0));
        let rules = rules.into_iter().map(|(Name(path), stamp)| (path, stamp));
        let index = Index {
            known,
            coverage,
            rules: rules.collect(),
            begun,
        };
        Ok(Some((index, open)))
    }
}

impl Block {
    fn between(last: &Index, now: &Index, open: Option<&Open>) -> Self {
        let (set, gone) = now.differences(last);
        let named = |path: &Path| Name(path.to_owned());
        Self {
            open: open.cloned(),
            begun: now.begun,
            coverage: now.coverage.clone(),
            rules: now
                .rules
                .iter()
                .map(|(path, it)| (named(path), *it))
                .collect(),
            set: set
                .map(|(path, known)| (named(path), known.clone()))
                .collect(),
            gone: gone.map(named).collect(),
        }
    }
}

impl Session {
    /// Finds out what calls did that ran when another process was killed, and notes it in their
    /// checkpoint. Only for whoever has the session to itself. The root is canonical.
    pub fn recover(
        &self,
        root: &Path,
        tree: &Arc<dyn Tree>,
        git: Option<Environment>,
    ) -> Result<(), Error> {
        let Some(index) = self.indices()?.last().copied() else {
            return Ok(());
        };
        let Interrupted::Unknown(manifest) = self.interrupted(index)? else {
            return Ok(());
        };
        let mut prompt = self.carry_on(index, manifest);
        let mut baseline = Baseline::of(self);
        if let Some((known, Some(open))) = baseline.read()?
            && open.prompt == index
        {
            let (root, tree, session) = (root.to_owned(), Arc::clone(tree), self.clone());
            let scanner = Scanner::new(root, tree, session, ScanLimits::default(), git);
            scanner.resume(known, &mut prompt, &open.tool)?;
        }
        prompt.conclude(&Record::Recovered)?;
        baseline.forget()
    }
}
