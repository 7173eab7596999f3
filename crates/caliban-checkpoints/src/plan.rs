//! What a restore would do, before anything is done.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use similar::TextDiff;

use crate::error::Error;
use crate::image::Image;
use crate::store::{History, Session};
use crate::tree::{self, Shape, Tree};

/// Bytes of a file whose difference is shown.
const SHOWN: u64 = 256 << 10;
/// How long the shortest difference of one file is looked for; then a longer one will do.
const PATIENCE: Duration = Duration::from_millis(200);

/// What becomes of paths that somebody else has changed since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// They stay as they are.
    Spared,
    /// They are overwritten; as all that is overwritten they are kept first.
    Overwritten,
}

/// What a restore would do.
#[derive(Debug)]
pub struct Plan {
    /// The end of this prompt; 0 is before the first.
    pub to: u32,
    pub actions: Vec<Action>,
    /// Changed since by others, and left alone.
    pub conflicts: Vec<Conflict>,
    /// What cannot be brought back, and why.
    pub lost: Vec<Lost>,
    /// What commands may have changed unseen.
    pub shortfalls: Vec<String>,
    /// Whether the repository stands elsewhere than then, which a restore does not change.
    pub moved: Option<Moved>,
}

/// Where a repository stood and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub then: String,
    pub now: String,
}

/// One path that would change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Action {
    pub path: PathBuf,
    pub now: Image,
    pub then: Image,
    /// Whether the file has other names, which keep the content it has now.
    pub names: Names,
    /// The checkpoint that has the content.
    pub(crate) kept_in: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    One,
    Several,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    pub path: PathBuf,
    pub why: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    pub path: String,
    pub why: String,
}

/// What is to be at a path.
struct Wanted {
    shown: String,
    then: Option<Image>,
    uncovered: Option<String>,
    kept_in: u32,
    /// What the last of the checkpoints left there.
    left: Option<Image>,
}

impl Plan {
    /// The files stay as they are.
    pub fn nothing(to: u32) -> Self {
        Self {
            to,
            actions: Vec::new(),
            conflicts: Vec::new(),
            lost: Vec::new(),
            shortfalls: Vec::new(),
            moved: None,
        }
    }

    /// Tells of a repository that stands elsewhere than when the first prompt after the point came.
    #[must_use]
    pub fn seen_from(mut self, history: &History, now: Option<String>) -> Self {
        let mut later = history.checkpoints.range(self.to.saturating_add(1)..);
        let then = later.find_map(|(_, manifest)| manifest.git_head.clone());
        self.moved = match (then, now) {
            (Some(then), Some(now)) if then != now => Some(Moved { then, now }),
            _ => None,
        };
        self
    }
}

impl Session {
    /// What has to be done so that the files are as they were when prompt `to` was finished.
    pub fn plan(&self, tree: &dyn Tree, to: u32, others: Others) -> Result<Plan, Error> {
        if self.is_interrupted()? {
            return Err(Error::Unfinished);
        }
        let history = self.history()?;
        if to > history.last() {
            return Err(Error::NoSuchPoint {
                wanted: to,
                last: history.last(),
            });
        }
        let mut plan = Plan::nothing(to);
        for (index, problem) in history.damaged.iter().filter(|(index, _)| **index > to) {
            plan.lost.push(Lost {
                path: format!("everything that prompt {index} changed"),
                why: format!("its checkpoint is damaged: {problem}"),
            });
        }
        let mut wanted: BTreeMap<PathBuf, Wanted> = BTreeMap::new();
        for (index, manifest) in history.checkpoints.range(to.saturating_add(1)..) {
            for shortfall in manifest.coverage.iter().flat_map(|it| &it.shortfalls) {
                plan.shortfalls.push(format!("prompt {index}: {shortfall}"));
            }
            for entry in &manifest.entries {
                let Some(path) = entry.path() else {
                    plan.lost.push(Lost {
                        path: entry.shown().to_owned(),
                        why: "this system has no such names".to_owned(),
                    });
                    continue;
                };
                let first = wanted.entry(path).or_insert_with(|| Wanted {
                    shown: entry.shown().to_owned(),
                    then: entry.before(),
                    uncovered: entry.uncovered.clone(),
                    kept_in: *index,
                    left: None,
                });
                first.left = entry.after();
            }
        }
        for (path, wanted) in wanted {
            self.judge(tree, path, wanted, others, &mut plan);
        }
        spare_full_directories(tree, &mut plan);
        spare_blocked(tree, &mut plan);
        Ok(plan)
    }

    fn judge(
        &self,
        tree: &dyn Tree,
        path: PathBuf,
        wanted: Wanted,
        others: Others,
        plan: &mut Plan,
    ) {
        let lost = |why: String| Lost {
            path: wanted.shown.clone(),
            why,
        };
        let now = match tree::image(tree, &path) {
            Ok(now) => now,
            Err(error) => {
                return plan
                    .lost
                    .push(lost(format!("it cannot be looked at: {error}")));
            }
        };
        let Some(then) = wanted.then else {
            return plan.lost.push(lost("its entry is damaged".to_owned()));
        };
        if then.is_surely(&now) {
            return;
        }
        if let Some(why) = wanted.uncovered {
            return plan.lost.push(lost(why));
        }
        if let Err(why) = self.obstacle(&path, &now, &then, wanted.kept_in) {
            return plan.lost.push(lost(why));
        }
        let is_ours = wanted
            .left
            .as_ref()
            .is_some_and(|left| left.is_surely(&now));
        if !is_ours && others == Others::Spared {
            let why = match wanted.left {
                Some(_) => "it was changed since",
                None => "it is not known how the prompt left it",
            };
            return plan.conflicts.push(Conflict { path, why });
        }
        let links = tree
            .look(&path)
            .ok()
            .flatten()
            .map_or(1, |stamp| stamp.links);
        let names = if matches!(now, Image::File { .. }) && links > 1 {
            Names::Several
        } else {
            Names::One
        };
        plan.actions.push(Action {
            path,
            now,
            then,
            names,
            kept_in: wanted.kept_in,
        });
    }

    /// Why a path can never be brought back, whoever insists.
    fn obstacle(&self, path: &Path, now: &Image, then: &Image, index: u32) -> Result<(), String> {
        if tree::is_repository(path) {
            return Err("it belongs to the repository itself".to_owned());
        }
        match now {
            Image::Special => return Err("what is there now is not a regular file".to_owned()),
            Image::File { digest: None, .. } => {
                return Err("what is there now is too large to be kept".to_owned());
            }
            Image::File { size, .. } if *size > self.limits.file => {
                return Err(format!(
                    "what is there now is larger than {} bytes and could not be kept",
                    self.limits.file
                ));
            }
            Image::File { .. } | Image::Absent | Image::Link { .. } | Image::Directory { .. } => {}
        }
        match then {
            Image::Special => Err("it was not a regular file".to_owned()),
            Image::File { digest: None, .. } => Err("its content was not kept".to_owned()),
            Image::File {
                digest: Some(digest),
                size,
                ..
            } => self.content(index, *digest, *size).map(|_| ()),
            Image::Absent | Image::Link { .. } | Image::Directory { .. } => Ok(()),
        }
    }

    /// How the content of a path would change, in lines; nothing where it is not text, or large.
    pub fn difference(&self, tree: &dyn Tree, action: &Action) -> Option<String> {
        let now = match &action.now {
            Image::File { .. } => tree.read(&action.path, SHOWN).ok()?,
            Image::Absent => Vec::new(),
            Image::Link { .. } | Image::Directory { .. } | Image::Special => return None,
        };
        let then = match &action.then {
            Image::File {
                digest: Some(digest),
                size,
                ..
            } if *size <= SHOWN => self.content(action.kept_in, *digest, *size).ok()?,
            Image::Absent => Vec::new(),
            Image::File { .. } | Image::Link { .. } | Image::Directory { .. } | Image::Special => {
                return None;
            }
        };
        let text = |bytes| {
            String::from_utf8(bytes)
                .ok()
                .filter(|it| !it.contains('\0'))
        };
        let (now, then) = (text(now)?, text(then)?);
        let shown = action.path.display().to_string();
        let diff = TextDiff::configure()
            .timeout(PATIENCE)
            .diff_lines(now.as_str(), then.as_str());
        Some(diff.unified_diff().header(&shown, &shown).to_string())
    }
}

/// A directory that would go stays while others have something in it.
fn spare_full_directories(tree: &dyn Tree, plan: &mut Plan) {
    let mut going: BTreeSet<PathBuf> = plan
        .actions
        .iter()
        .filter(|action| action.then == Image::Absent || is_directory(&action.now))
        .filter(|action| !is_directory(&action.then))
        .map(|action| action.path.clone())
        .collect();
    // What lies deeper is judged before what it lies in.
    let mut spared = BTreeSet::new();
    for action in plan.actions.iter().rev() {
        if !is_directory(&action.now) || is_directory(&action.then) {
            continue;
        }
        let empties = tree.list(&action.path).is_ok_and(|names| {
            names
                .iter()
                .all(|name| going.contains(&action.path.join(name)))
        });
        if !empties {
            going.remove(&action.path);
            spared.insert(action.path.clone());
        }
    }
    spare(
        plan,
        &spared,
        "it is a directory with files of others in it",
    );
}

/// What has to lie in a directory needs one that is there or will be made, and no link.
fn spare_blocked(tree: &dyn Tree, plan: &mut Plan) {
    let then: BTreeMap<&Path, &Image> = plan
        .actions
        .iter()
        .map(|action| (action.path.as_path(), &action.then))
        .collect();
    let is_open = |directory: &Path| match then.get(directory) {
        Some(then) => is_directory(then),
        None => match tree.look(directory) {
            Ok(None) => true,
            Ok(Some(stamp)) => stamp.shape == Shape::Directory,
            Err(_) => false,
        },
    };
    let blocked: BTreeSet<PathBuf> = plan
        .actions
        .iter()
        .filter(|action| action.then != Image::Absent)
        .filter(|action| {
            let mut parents = action.path.ancestors().skip(1);
            !parents.all(|parent| parent.file_name().is_none() || is_open(parent))
        })
        .map(|action| action.path.clone())
        .collect();
    spare(
        plan,
        &blocked,
        "a directory on the way to it has become something else",
    );
}

fn spare(plan: &mut Plan, paths: &BTreeSet<PathBuf>, why: &'static str) {
    plan.actions.retain(|action| !paths.contains(&action.path));
    let conflicts = paths.iter().cloned().map(|path| Conflict { path, why });
    plan.conflicts.extend(conflicts);
}

fn is_directory(image: &Image) -> bool {
    matches!(image, Image::Directory { .. })
}
