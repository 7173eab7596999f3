//! Agent profiles: kinds of agents that people write down in a file each. The head says what they
//! may use, the text below is what they are told.

mod fields;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use fields::{ProfileEffort, ProfileIsolation, ProfileMemory};

use crate::agents::fields::{Read, Strangers, read, read_leniently};
use crate::expansion::own_places;
use crate::names::{self, Named};
use crate::notice::{Kind, Notice};
use crate::options::{Customization, Options};
use crate::origin::Origin;
use crate::places::{Places, Surface, foreign_part};
use crate::roots::{Root, Writing, roots};
use crate::source;

/// The largest file of a profile.
const MAX_FILE: u64 = 256 * 1024;
/// The most profiles of one directory, and the most names looked at there.
const MAX_PROFILES: usize = 256;
const MAX_NAMES: usize = 4096;
/// How deep the files of a plugin, or of another program, may lie.
const MAX_DEPTH: usize = 3;
/// The longest description, in characters.
const MAX_DESCRIPTION: usize = 4096;

/// A kind of agent that somebody wrote down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    name: String,
    pub description: String,
    /// What such an agent is told.
    pub prompt: String,
    /// The tools it may use; all that there are if left out.
    pub tools: Option<Vec<String>>,
    pub disallowed_tools: Vec<String>,
    pub model: Option<String>,
    pub effort: Option<ProfileEffort>,
    pub isolation: ProfileIsolation,
    /// Whether it works while nobody waits for it.
    pub background: bool,
    /// Whether the hooks of its parent look on.
    pub inherit_hooks: bool,
    pub memory: ProfileMemory,
    origin: Origin,
    path: PathBuf,
}

impl Profile {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Named for Profile {
    fn name(&self) -> &str {
        &self.name
    }

    fn origin(&self) -> &Origin {
        &self.origin
    }
}

/// The profiles of a session, by name.
#[derive(Debug, Clone, Default)]
pub struct Profiles {
    entries: BTreeMap<String, Profile>,
}

impl Profiles {
    /// Finds the profiles. Files that are none are notices with the line that is wrong.
    pub fn load(places: &Places, options: &Options, notices: &mut Vec<Notice>) -> Self {
        let mut profiles = Self::default();
        for root in profile_roots(places, options) {
            profiles.scan(&root, notices);
        }
        profiles
    }

    /// The profile that is called so; without its plugin's name where only one plugin has it.
    pub fn get(&self, name: &str) -> Option<&Profile> {
        names::called(&self.entries, name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Profile> {
        self.entries.values()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn scan(&mut self, root: &Root, notices: &mut Vec<Notice>) {
        let mut count = 0;
        for path in files(root) {
            let profile = match source::read_within(&path, &root.fence, MAX_FILE) {
                Ok(None) => continue,
                // Others keep texts about their agents beside them.
                Ok(Some(document))
                    if root.writing == Writing::Foreign && !document.text.starts_with("---") =>
                {
                    continue;
                }
                Ok(Some(document)) => {
                    notices.extend(document.notice());
                    parse(&document.text, &path, root, notices)
                }
                Err(problem) => Err(Notice::Unusable { path, problem }),
            };
            if count == MAX_PROFILES {
                notices.push(Notice::TooMany {
                    what: "agent profiles of a directory",
                    limit: MAX_PROFILES,
                });
                return;
            }
            count += 1;
            match profile {
                Ok(profile) => names::insert(&mut self.entries, profile, Kind::Agent, notices),
                Err(notice) => notices.push(notice),
            }
        }
    }
}

fn parse(
    text: &str,
    path: &Path,
    root: &Root,
    notices: &mut Vec<Notice>,
) -> Result<Profile, Notice> {
    let wrong = |line: usize, reason: String| Notice::WrongLine {
        path: path.to_owned(),
        line,
        reason,
    };
    let stem = path.file_stem().and_then(|stem| stem.to_str());
    let Read {
        fields,
        body,
        remarks,
    } = match (&root.home, root.writing) {
        (Some(_), _) => read_leniently(text, stem.unwrap_or_default(), Strangers::Plugin),
        (None, Writing::Foreign) => {
            read_leniently(text, stem.unwrap_or_default(), Strangers::Directory)
        }
        (None, Writing::Ours) => read(text).map_err(|(line, reason)| wrong(line, reason))?,
    };
    let line = |key: &str| fields::line_of(text, key);
    if !names::is_plain(&fields.name) {
        let reason = format!("`{}` is not a plain name", fields.name);
        return Err(wrong(line("name"), reason));
    }
    let description: Vec<&str> = fields.description.split_whitespace().collect();
    let description = description.join(" ");
    if description.is_empty() || description.chars().count() > MAX_DESCRIPTION {
        let reason = format!("the description must have 1 to {MAX_DESCRIPTION} characters");
        return Err(wrong(line("description"), reason));
    }
    for (line, reason) in remarks {
        notices.push(Notice::IdleLine {
            path: path.to_owned(),
            line,
            reason,
        });
    }
    let mut listed = |key: &str, list: Option<names::OneOrMany>| {
        let list = list?.split();
        let (plain, patterns): (Vec<String>, Vec<String>) =
            list.into_iter().partition(|name| !name.contains('('));
        if let Some(pattern) = patterns.first() {
            notices.push(Notice::IdleLine {
                path: path.to_owned(),
                line: line(key),
                reason: format!(
                    "`{pattern}` is left out: tools are named here, and rules of the settings say \
                     what they may do"
                ),
            });
        }
        Some(plain)
    };
    let tools = listed("tools", fields.tools);
    let tools = tools.filter(|tools| !tools.iter().any(|tool| tool == "*"));
    let disallowed_tools = listed("disallowedTools", fields.disallowed_tools);
    Ok(Profile {
        name: names::qualified(&root.origin, &fields.name),
        description,
        prompt: own_places(body.trim(), root.home.as_ref(), path),
        tools,
        disallowed_tools: disallowed_tools.unwrap_or_default(),
        model: fields
            .model
            .filter(|model| !model.is_empty() && model != "inherit"),
        effort: fields.effort,
        isolation: fields.isolation.unwrap_or_default(),
        background: fields.background.unwrap_or(false),
        inherit_hooks: fields.inherit_hooks.unwrap_or(true),
        memory: fields.memory.map(ProfileMemory::from).unwrap_or_default(),
        origin: root.origin.clone(),
        path: path.to_owned(),
    })
}

/// The files of a root, sorted. Those of a plugin may lie in directories, and its root may be one
/// file.
fn files(root: &Root) -> Vec<PathBuf> {
    let is_file = root.home.is_some() && root.path.extension().is_some_and(|it| it == "md");
    if is_file && root.path.is_file() {
        return vec![root.path.clone()];
    }
    let depth = match (&root.home, root.writing) {
        (Some(_), _) | (None, Writing::Foreign) => MAX_DEPTH,
        (None, Writing::Ours) => 0,
    };
    let mut files = Vec::new();
    collect(&root.path, depth, &mut files);
    files
}

fn collect(directory: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    for name in source::names(directory, MAX_NAMES) {
        let path = directory.join(&name);
        if name.starts_with('.') || files.len() > MAX_PROFILES {
            continue;
        }
        if source::markdown_stem(&name).is_some() {
            files.push(path);
        } else if depth > 0 && path.symlink_metadata().is_ok_and(|it| it.is_dir()) {
            collect(&path, depth - 1, files);
        }
    }
}

/// The project's, those that it has for another program of our kind, and the user's.
fn profile_roots(places: &Places, options: &Options) -> Vec<Root> {
    let surface = Surface::Agents;
    let mut own = roots(places, options, surface);
    if options.customization != Customization::All {
        return own;
    }
    let foreign = foreign_part(&places.project, surface.directory());
    let foreign = Root::of_workspace(&places.project, foreign, Origin::Project);
    own.insert(1.min(own.len()), foreign.foreign());
    own.push(Root::of_user(places.foreign.join(surface.directory())).foreign());
    own
}

#[cfg(test)]
mod tests;
