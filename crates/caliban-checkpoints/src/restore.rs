//! Carrying out a plan. Whatever interrupts it, each path is as it was or as it shall be, what was
//! overwritten is kept, and the next one to look finishes it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::capture::{Beginning, Prompt, missing_parents};
use crate::disk;
use crate::error::Error;
use crate::image::{Digest, Image};
use crate::manifest::{Entry, Kind, Mark};
use crate::plan::{Action, Plan};
use crate::store::Session;
use crate::tree::{self, Tree};

/// Bytes of an intent that is read back.
const LARGEST_INTENT: u64 = 256 << 20;
/// Permissions of a directory that was not kept and has to be there.
const FILLED_IN: u32 = 0o755;
/// What stands as the tool in the checkpoint that a restore makes.
const TOOL: &str = "rewind";

/// What became of a restore.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// The checkpoint that has what was overwritten; none if there was nothing to do.
    pub checkpoint: Option<u32>,
    pub done: Vec<PathBuf>,
    /// What could not be done, and why.
    pub failed: Vec<Failed>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failed {
    pub path: PathBuf,
    pub why: String,
}

/// What a restore is beside its plan.
#[derive(Debug, Clone, Copy)]
pub struct Restoring {
    pub at: Timestamp,
    /// Where the conversation stands.
    pub began: Option<Mark>,
    /// Where it is to go on; nothing where it stays.
    pub conversation: Option<Mark>,
}

/// The files are back; this is what goes back with them.
#[derive(Debug)]
pub struct Followed<'a> {
    /// Names this restore, and no other.
    pub token: &'a str,
    /// The checkpoint that the restore makes.
    pub checkpoint: u32,
    pub to: u32,
    pub conversation: Option<Mark>,
    pub restored: &'a Restored,
}

/// Takes back what goes back with the files, durably, and tells where the conversation stands then.
/// What has been taken back already stays so: it may be asked for again after an interruption.
pub type Companion<'a> = dyn FnMut(&Followed<'_>) -> Result<Option<Mark>, String> + 'a;

/// What a restore is about to do, written down before it begins.
#[derive(Debug, Serialize, Deserialize)]
struct Intent {
    checkpoint: u32,
    to: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    conversation: Option<Mark>,
    /// Part of the names of its temporary files.
    token: String,
    steps: Vec<Step>,
}

/// An entry whose before-image is what shall be, and whose after-image is what is.
#[derive(Debug, Serialize, Deserialize)]
struct Step {
    entry: Entry,
    kept_in: u32,
}

/// One path on its way.
#[derive(Debug)]
struct Move {
    path: PathBuf,
    temporary: PathBuf,
    now: Image,
    then: Image,
    kept_in: u32,
    way: Way,
    fate: Fate,
}

/// What lies beside the place, to be put into it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Nothing,
    File,
    Link,
}

#[derive(Debug, PartialEq, Eq)]
enum Fate {
    Open,
    Done,
    /// Nothing of it was done.
    Untouched(String),
    /// What was there is gone, what shall be is not there; what was there is kept.
    Torn(String),
}

impl Session {
    /// Carries out a plan. What would be overwritten becomes a checkpoint first.
    pub fn restore(
        &self,
        tree: &dyn Tree,
        plan: &Plan,
        restoring: Restoring,
        companion: &mut Companion<'_>,
    ) -> Result<Restored, Error> {
        let Restoring {
            at,
            began,
            conversation,
        } = restoring;
        if plan.actions.is_empty() && conversation.is_none() {
            return Ok(Restored::default());
        }
        let mut prompt = self.begin(Beginning {
            kind: Kind::Rewind,
            prompt: &format!("rewind to {}", plan.to),
            at,
            began,
            id: None,
            git_head: plan.moved.as_ref().map(|moved| moved.now.as_str()),
        })?;
        prompt.goes_to(plan.to);
        let paths = plan.actions.iter().map(|action| action.path.as_path());
        prompt.before_all(tree, paths, TOOL)?;
        // What changed since the plan was made, or cannot be kept, is not touched.
        let (kept, rest): (Vec<&Action>, Vec<&Action>) = plan.actions.iter().partition(|action| {
            let held = prompt.holds(&action.path);
            held.is_some_and(|held| held.is_surely(&action.now))
        });
        for action in &rest {
            prompt.forget(&action.path);
        }
        let seed = format!("{} {} {at}", self.directory.display(), prompt.index());
        let steps = kept.iter().map(|action| {
            let mut entry = Entry::new(&action.path, &action.then, TOOL);
            entry.left(&action.now);
            Step {
                entry,
                kept_in: action.kept_in,
            }
        });
        let intent = Intent {
            checkpoint: prompt.index(),
            to: plan.to,
            conversation,
            token: Digest::of(seed.as_bytes()).to_string()[..16].to_owned(),
            steps: steps.collect(),
        };
        let path = self.intent();
        serde_json::to_vec(&intent)
            .map_err(io::Error::from)
            .and_then(|bytes| disk::replace(&*self.disk, &path, &bytes))
            .map_err(Error::io("write", &path))?;
        let rest = rest.into_iter().map(|action| Failed {
            path: action.path.clone(),
            why: "it was changed meanwhile, or could not be kept".to_owned(),
        });
        self.carry_out(tree, &intent, prompt, rest.collect(), companion)
    }

    /// Finishes a restore that was interrupted, if one was.
    pub fn resume(
        &self,
        tree: &dyn Tree,
        companion: &mut Companion<'_>,
    ) -> Result<Option<Restored>, Error> {
        if !self.is_interrupted()? {
            return Ok(None);
        }
        let path = self.intent();
        let bytes = self
            .disk
            .read(&path, LARGEST_INTENT)
            .map_err(Error::io("read", &path))?;
        let intent: Intent = serde_json::from_slice(&bytes).map_err(|error| Error::Damaged {
            path,
            problem: error.to_string(),
        })?;
        let mut prompt = self.reopen(intent.checkpoint)?;
        prompt.goes_to(intent.to);
        self.carry_out(tree, &intent, prompt, Vec::new(), companion)
            .map(Some)
    }

    fn carry_out(
        &self,
        tree: &dyn Tree,
        intent: &Intent,
        mut prompt: Prompt,
        failed: Vec<Failed>,
        companion: &mut Companion<'_>,
    ) -> Result<Restored, Error> {
        let mut moves = moves(intent);
        // What lies deeper goes before what it lies in, and comes after it.
        for it in moves.iter_mut().rev() {
            it.clear_way(tree);
        }
        let mut filled_in = BTreeSet::new();
        // Everything is written before anything is made durable: one wait serves many files.
        for it in &mut moves {
            self.step(tree, it, |session, it| {
                session.prepare(tree, it, &mut filled_in)
            });
        }
        for it in &mut moves {
            self.step(tree, it, |_, it| it.secure(tree));
        }
        for it in &mut moves {
            self.step(tree, it, |_, it| it.put(tree));
        }
        for it in moves.iter_mut().rev() {
            it.settle(tree);
        }
        make_durable(tree, &mut moves);
        let mut restored = Restored {
            checkpoint: Some(intent.checkpoint),
            done: Vec::new(),
            failed,
        };
        for it in moves {
            match it.fate {
                Fate::Open | Fate::Done => restored.done.push(it.path),
                Fate::Torn(why) => restored.failed.push(Failed { path: it.path, why }),
                Fate::Untouched(why) => {
                    // It may have been made after all, for the sake of what lies in it.
                    if !filled_in.contains(&it.path) {
                        prompt.forget(&it.path);
                    }
                    restored.failed.push(Failed { path: it.path, why });
                }
            }
        }
        let ended = companion(&Followed {
            token: &intent.token,
            checkpoint: intent.checkpoint,
            to: intent.to,
            conversation: intent.conversation,
            restored: &restored,
        })
        .map_err(Error::Companion)?;
        prompt.finish(tree, ended)?;
        let path = self.intent();
        disk::forget(&*self.disk, &path)
            .and_then(|()| self.disk.sync_directory(&self.directory))
            .map_err(Error::io("remove", &path))?;
        Ok(restored)
    }

    /// A step of one path, unless it has failed already.
    fn step(
        &self,
        tree: &dyn Tree,
        it: &mut Move,
        step: impl FnOnce(&Self, &mut Move) -> Result<(), String>,
    ) {
        if it.fate != Fate::Open {
            return;
        }
        if let Err(why) = step(self, it) {
            // The error that led here is the one to report.
            let _ = tree.remove_file(&it.temporary);
            it.fate = it.failure(tree, why);
        }
    }

    /// Writes what shall be beside its place.
    fn prepare(
        &self,
        tree: &dyn Tree,
        it: &mut Move,
        filled_in: &mut BTreeSet<PathBuf>,
    ) -> Result<(), String> {
        let told = |error: io::Error| error.to_string();
        if it.then == Image::Absent {
            return Ok(());
        }
        let now = tree::image(tree, &it.path).map_err(told)?;
        if it.then.is_surely(&now) {
            return Ok(());
        }
        let is_expected = now == Image::Absent || it.now.is_surely(&now) || it.is_halfway(&now);
        if !is_expected {
            return Err("it was changed meanwhile".to_owned());
        }
        fill_in_parents(tree, &it.path, filled_in).map_err(told)?;
        match &it.then {
            Image::Absent | Image::Special => return Ok(()),
            // Its own permissions come when everything is in it.
            Image::Directory { mode } => {
                if now == Image::Absent {
                    tree.make_directory(&it.path, mode | 0o700).map_err(told)?;
                }
            }
            Image::Link { target } => {
                forget(tree, &it.temporary).map_err(told)?;
                tree.create_link(&it.temporary, target).map_err(told)?;
                it.way = Way::Link;
            }
            Image::File { digest, size, mode } => {
                let digest = digest.ok_or("its content was not kept")?;
                let bytes = self.content(it.kept_in, digest, *size)?;
                forget(tree, &it.temporary).map_err(told)?;
                tree.create(&it.temporary, &bytes, *mode).map_err(told)?;
                it.way = Way::File;
            }
        }
        Ok(())
    }
}

impl Move {
    /// Makes what was written beside the place durable.
    fn secure(&self, tree: &dyn Tree) -> Result<(), String> {
        match self.way {
            Way::File => tree.sync(&self.temporary).map_err(|it| it.to_string()),
            Way::Nothing | Way::Link => Ok(()),
        }
    }

    /// Puts what was written into its place.
    fn put(&self, tree: &dyn Tree) -> Result<(), String> {
        let told = |error: io::Error| error.to_string();
        if self.way == Way::Nothing {
            return Ok(());
        }
        // It may have been changed while others were written.
        let now = tree::image(tree, &self.path).map_err(told)?;
        if now != Image::Absent && !self.now.is_surely(&now) {
            return Err("it was changed meanwhile".to_owned());
        }
        tree.rename(&self.temporary, &self.path).map_err(told)
    }

    /// Removes what has to go, or to make room for something of another shape.
    fn clear_way(&mut self, tree: &dyn Tree) {
        let is_replaced = matches!(self.then, Image::File { .. } | Image::Link { .. })
            && !is_directory(&self.now);
        let stays = is_directory(&self.then) && is_directory(&self.now);
        if is_replaced || stays || self.now == Image::Absent {
            return;
        }
        if let Err(why) = self.try_clear(tree) {
            self.fate = self.failure(tree, why);
        }
    }

    fn try_clear(&self, tree: &dyn Tree) -> Result<(), String> {
        let told = |error: io::Error| error.to_string();
        let now = tree::image(tree, &self.path).map_err(told)?;
        if now == Image::Absent || self.then.is_surely(&now) || self.is_halfway(&now) {
            return Ok(());
        }
        if !self.now.is_surely(&now) {
            return Err("it was changed meanwhile".to_owned());
        }
        match now {
            Image::Directory { .. } => tree.remove_directory(&self.path),
            Image::File { .. } | Image::Link { .. } => tree.remove_file(&self.path),
            Image::Absent | Image::Special => Ok(()),
        }
        .map_err(told)
    }

    /// A directory that shall be there and has not got its permissions yet.
    fn is_halfway(&self, now: &Image) -> bool {
        is_directory(&self.then) && is_directory(now)
    }

    /// Gives a directory its own permissions.
    fn settle(&mut self, tree: &dyn Tree) {
        let Image::Directory { mode } = self.then else {
            return;
        };
        if self.fate != Fate::Open {
            return;
        }
        let has_them = matches!(
            tree::image(tree, &self.path),
            Ok(Image::Directory { mode: now }) if now == mode
        );
        self.fate = if has_them {
            Fate::Done
        } else {
            match tree.set_directory_mode(&self.path, mode) {
                Ok(()) => Fate::Done,
                Err(error) => Fate::Torn(error.to_string()),
            }
        };
    }

    /// What a failure left behind.
    fn failure(&self, tree: &dyn Tree, why: String) -> Fate {
        match tree::image(tree, &self.path) {
            Ok(now) if self.then.is_surely(&now) => Fate::Done,
            Ok(Image::Absent) if self.now != Image::Absent => Fate::Torn(why),
            Ok(_) => Fate::Untouched(why),
            // Not known: what was there stays kept.
            Err(_) => Fate::Torn(why),
        }
    }
}

/// Makes the names in every directory durable in which something was done, once. What cannot be is
/// not done for sure.
fn make_durable(tree: &dyn Tree, moves: &mut [Move]) {
    let mut synced: BTreeMap<PathBuf, Option<String>> = BTreeMap::new();
    for it in moves {
        if !matches!(it.fate, Fate::Open | Fate::Done) {
            continue;
        }
        let directory = it.path.parent().unwrap_or(Path::new("")).to_owned();
        let problem = synced.entry(directory).or_insert_with(|| {
            // A directory that is gone itself has nothing left to lose.
            match tree.sync_beside(&it.path) {
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                    ) =>
                {
                    None
                }
                other => other.err().map(|error| error.to_string()),
            }
        });
        if let Some(why) = problem {
            it.fate = Fate::Torn(why.clone());
        }
    }
}

/// The steps of an intent in the order of their paths, so that parents come before what they hold.
fn moves(intent: &Intent) -> Vec<Move> {
    let mut moves: Vec<Move> = intent
        .steps
        .iter()
        .enumerate()
        .filter_map(|(at, step)| {
            let path = step.entry.path()?;
            Some(Move {
                temporary: path.with_file_name(format!(".caliban-{}-{at}", intent.token)),
                now: step.entry.after()?,
                then: step.entry.before()?,
                kept_in: step.kept_in,
                way: Way::Nothing,
                fate: if tree::is_repository(&path) {
                    Fate::Untouched("it belongs to the repository itself".to_owned())
                } else {
                    Fate::Open
                },
                path,
            })
        })
        .collect();
    moves.sort_by(|one, another| one.path.cmp(&another.path));
    moves
}

fn fill_in_parents(
    tree: &dyn Tree,
    path: &Path,
    filled_in: &mut BTreeSet<PathBuf>,
) -> io::Result<()> {
    for directory in missing_parents(tree, path)? {
        filled_in.insert(directory.clone());
        tree.make_directory(&directory, FILLED_IN)?;
    }
    Ok(())
}

fn forget(tree: &dyn Tree, path: &Path) -> io::Result<()> {
    match tree.remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

fn is_directory(image: &Image) -> bool {
    matches!(image, Image::Directory { .. })
}
