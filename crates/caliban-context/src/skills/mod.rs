//! Skills: instructions that the model asks for by name. It always sees their descriptions, and
//! their text only when it wants it.

mod tool;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};

pub use tool::SkillTool;

use crate::expansion::{PluginHome, own_places};
use crate::frontmatter::{self, Lenient};
use crate::names::{self, Named};
use crate::notice::{Kind, Notice};
use crate::options::{Customization, Notes, Options, SkillSources};
use crate::origin::Origin;
use crate::places::{Places, Surface, foreign_part, project_part};
use crate::roots::{Root, Writing, roots};
use crate::source::{self, Fence, FileProblem};

/// The file of a skill in its directory.
const FILE: &str = "SKILL.md";
/// The largest skill file.
const MAX_FILE: u64 = 256 * 1024;
/// The most skills of one root, and the most names looked at there.
const MAX_SKILLS: usize = 256;
const MAX_NAMES: usize = 4096;
/// The longest description, in characters.
const MAX_DESCRIPTION: usize = 1024;

const AUTO_MEMORY: &str = "auto-memory";
const AUTO_MEMORY_TEXT: &str = include_str!("auto-memory.md");

/// A skill that can be asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Skill {
    name: String,
    description: String,
    origin: Origin,
    invocation: Invocation,
    metadata: Map<String, Value>,
    text: Text,
}

/// Who may use a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invocation {
    ModelAndUser,
    UserOnly,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Text {
    BuiltIn(&'static str),
    File {
        path: PathBuf,
        fence: Fence,
        home: Option<PluginHome>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SkillError {
    #[error("the skill's file `{}` is gone", .0.display())]
    Gone(PathBuf),
    #[error("the skill's file `{}` cannot be used: {problem}", path.display())]
    Unusable { path: PathBuf, problem: FileProblem },
    #[error("the skill's file `{}` cannot be used: {reason}", path.display())]
    Malformed { path: PathBuf, reason: String },
}

#[derive(Debug, Deserialize)]
struct Fields {
    name: String,
    description: String,
    #[serde(default)]
    metadata: Map<String, Value>,
    #[serde(default, alias = "disable-model-invocation")]
    disable_model_invocation: bool,
}

/// The skills of a session, by name.
#[derive(Debug, Clone, Default)]
pub struct Skills {
    entries: BTreeMap<String, Skill>,
}

impl Skill {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    pub fn invocation(&self) -> Invocation {
        self.invocation
    }

    /// What the file says beside the known fields, as it says it.
    pub fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// Its file, unless it is built in.
    pub fn path(&self) -> Option<&Path> {
        match &self.text {
            Text::BuiltIn(_) => None,
            Text::File { path, .. } => Some(path),
        }
    }

    /// The instructions, read anew with the same checks as at the start.
    pub fn body(&self) -> Result<String, SkillError> {
        let (path, fence, home) = match &self.text {
            Text::BuiltIn(text) => return Ok((*text).to_owned()),
            Text::File { path, fence, home } => (path, fence, home.as_ref()),
        };
        let document = source::read_within(path, fence, MAX_FILE)
            .map_err(|problem| SkillError::Unusable {
                path: path.clone(),
                problem,
            })?
            .ok_or_else(|| SkillError::Gone(path.clone()))?;
        match frontmatter::split(&document.text) {
            Ok((_, body)) => Ok(own_places(body.trim(), home, path)),
            // Whoever wrote it for another program may have left the block open.
            Err(_) if home.is_some() => Ok(own_places(document.text.trim(), home, path)),
            Err(error) => Err(SkillError::Malformed {
                path: path.clone(),
                reason: error.to_string(),
            }),
        }
    }
}

impl Named for Skill {
    fn name(&self) -> &str {
        &self.name
    }

    fn origin(&self) -> &Origin {
        &self.origin
    }
}

impl Skills {
    /// Finds the skills. Files that are not skills are notices.
    pub fn load(places: &Places, options: &Options, notices: &mut Vec<Notice>) -> Self {
        let mut skills = Self::default();
        if options.skills == SkillSources::Off {
            return skills;
        }
        for root in skill_roots(places, options) {
            skills.scan(&root, notices);
        }
        names::insert(&mut skills.entries, auto_memory(), Kind::Skill, notices);
        if options.notes == Notes::Off {
            // Without notes there is nothing to say about them.
            skills.entries.remove(AUTO_MEMORY);
        }
        notices.extend(tool::shortfall(&skills));
        skills
    }

    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.entries.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Skill> {
        self.entries.values()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The one skill of a directory.
    fn only(&mut self, root: &Root, directory: &str, extent: Extent, notices: &mut Vec<Notice>) {
        let path = root.path.join(FILE);
        let skill = match source::read_within(&path, &root.fence, MAX_FILE) {
            Ok(None) => return,
            Ok(Some(document)) => {
                notices.extend(document.notice());
                of_stranger(&document.text, directory, &path, root, extent)
            }
            Err(problem) => Err(Notice::Unusable { path, problem }),
        };
        match skill {
            Ok(skill) => names::insert(&mut self.entries, skill, Kind::Skill, notices),
            Err(notice) => notices.push(notice),
        }
    }

    fn scan(&mut self, root: &Root, notices: &mut Vec<Notice>) {
        if let Some((plugin, home)) = root.plugin()
            && root.path.join(FILE).exists()
        {
            let directory = root.path.file_name().and_then(|name| name.to_str());
            let directory = directory.filter(|_| root.path != home).unwrap_or(plugin);
            let extent = if root.path == home {
                Extent::Whole
            } else {
                Extent::One
            };
            self.only(root, directory, extent, notices);
            return;
        }
        let mut count = 0;
        for directory in source::names(&root.path, MAX_NAMES) {
            let path = root.path.join(&directory).join(FILE);
            let skill = match source::read_within(&path, &root.fence, MAX_FILE) {
                Ok(None) => continue,
                Ok(Some(document)) => {
                    notices.extend(document.notice());
                    parse(&document.text, &directory, &path, root)
                }
                Err(problem) => Err(Notice::Unusable { path, problem }),
            };
            if count == MAX_SKILLS {
                notices.push(Notice::TooMany {
                    what: "skills of a directory",
                    limit: MAX_SKILLS,
                });
                return;
            }
            count += 1;
            match skill {
                Ok(skill) => names::insert(&mut self.entries, skill, Kind::Skill, notices),
                Err(notice) => notices.push(notice),
            }
        }
    }
}

/// Whether a directory is the skill of a whole plugin, or one of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    Whole,
    One,
}

fn parse(text: &str, directory: &str, path: &Path, root: &Root) -> Result<Skill, Notice> {
    if root.plugin().is_some() || root.writing == Writing::Foreign {
        return of_stranger(text, directory, path, root, Extent::One);
    }
    let malformed = |reason: String| Notice::Malformed {
        path: path.to_owned(),
        reason,
    };
    let (fields, _) =
        frontmatter::parse::<Fields>(text).map_err(|error| malformed(error.to_string()))?;
    if fields.name != directory {
        let reason = format!(
            "its name is `{}` and its directory's `{directory}`",
            fields.name
        );
        return Err(malformed(reason));
    }
    if !names::is_plain(&fields.name) {
        return Err(malformed(format!("`{}` is not a plain name", fields.name)));
    }
    let description = fields.description.split_whitespace().collect::<Vec<_>>();
    let description = description.join(" ");
    if description.is_empty() || description.chars().count() > MAX_DESCRIPTION {
        let reason = format!("its description must have 1 to {MAX_DESCRIPTION} characters");
        return Err(malformed(reason));
    }
    Ok(Skill {
        name: names::qualified(&root.origin, &fields.name),
        description,
        origin: root.origin.clone(),
        invocation: if fields.disable_model_invocation {
            Invocation::UserOnly
        } else {
            Invocation::ModelAndUser
        },
        metadata: fields.metadata,
        text: Text::File {
            path: path.to_owned(),
            fence: root.fence.clone(),
            home: root.home.clone(),
        },
    })
}

/// A skill that somebody wrote for another program: its directory says what it is called, and
/// what cannot be read of its head is made up for.
fn of_stranger(
    text: &str,
    directory: &str,
    path: &Path,
    root: &Root,
    extent: Extent,
) -> Result<Skill, Notice> {
    let file = Lenient::read(text);
    let field = |key: &str| file.fields.get(key).and_then(Value::as_str);
    let name = match extent {
        Extent::Whole => field("name").filter(|name| names::is_plain(name)),
        Extent::One => None,
    };
    let name = name.unwrap_or(directory);
    if !names::is_plain(name) {
        return Err(Notice::Malformed {
            path: path.to_owned(),
            reason: format!("`{name}` is not a plain name"),
        });
    }
    let first = || file.body.lines().find(|line| !line.trim().is_empty());
    let described = field("description").filter(|text| !text.trim().is_empty());
    let described = described.or_else(first).unwrap_or(name);
    let words: Vec<&str> = described
        .trim_start_matches('#')
        .split_whitespace()
        .collect();
    let hides = ["disable-model-invocation", "disable_model_invocation"]
        .iter()
        .filter_map(|key| file.fields.get(*key))
        .any(|value| value.as_bool() == Some(true) || value.as_str() == Some("true"));
    Ok(Skill {
        name: names::qualified(&root.origin, name),
        description: words.join(" ").chars().take(MAX_DESCRIPTION).collect(),
        origin: root.origin.clone(),
        invocation: if hides {
            Invocation::UserOnly
        } else {
            Invocation::ModelAndUser
        },
        metadata: match file.fields.get("metadata") {
            Some(Value::Object(metadata)) => metadata.clone(),
            Some(_) | None => Map::new(),
        },
        text: Text::File {
            path: path.to_owned(),
            fence: root.fence.clone(),
            home: root.home.clone(),
        },
    })
}

/// The project's, those of further directories, the user's, other programs' where they were asked
/// for, and the plugins'.
fn skill_roots(places: &Places, options: &Options) -> Vec<Root> {
    const PART: &str = "skills";
    let mut own = roots(places, options, Surface::Skills);
    if options.customization != Customization::All {
        return own;
    }
    let is_plugin = |root: &Root| matches!(root.origin, Origin::Plugin(_));
    let plugins = own.split_off(own.iter().position(is_plugin).unwrap_or(own.len()));
    let further = options.skill_directories.iter().map(|directory| {
        Root::of_workspace(directory, project_part(directory, PART), Origin::Additional)
    });
    own.splice(1..1, further);
    let data = Root::of_user(places.data.join(PART));
    // On some systems configuration and data are one directory.
    if !own.contains(&data) {
        own.push(data);
    }
    match options.skills {
        SkillSources::Off | SkillSources::Own => {}
        SkillSources::OwnAndForeign => {
            let path = foreign_part(&places.workspace, PART);
            let project = Root::of_workspace(&places.workspace, path, Origin::Project);
            own.push(project.foreign());
            let user = Root::of_user(places.foreign.join(PART));
            own.push(user.foreign());
        }
    }
    own.extend(plugins);
    own
}

fn auto_memory() -> Skill {
    let (description, body) = match frontmatter::parse::<Fields>(AUTO_MEMORY_TEXT) {
        Ok((fields, body)) => (fields.description, body.trim()),
        // The text is part of the program, and a test reads it.
        Err(_) => (String::new(), AUTO_MEMORY_TEXT),
    };
    Skill {
        name: AUTO_MEMORY.to_owned(),
        description,
        origin: Origin::BuiltIn,
        invocation: Invocation::ModelAndUser,
        metadata: Map::new(),
        text: Text::BuiltIn(body),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_skill_is_complete() {
        let skill = auto_memory();
        assert!(skill.description().starts_with("How to use your notes"));
        let body = skill.body().unwrap();
        assert!(body.starts_with("# Notes on this project"));
        for word in [
            "ReadMemoryTopic",
            "WriteMemoryTopic",
            "`user`",
            "`feedback`",
            "`project`",
            "`reference`",
        ] {
            assert!(body.contains(word), "{word}");
        }
    }
}
