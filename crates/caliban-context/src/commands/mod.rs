//! Commands of one's own: Markdown files that `/name arguments` turns into a prompt. Skills can
//! be called the same way.

mod arguments;
mod inline;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::commands::inline::Stretch;
use crate::expansion::{PluginHome, own_places};
use crate::frontmatter::{self, Lenient};
use crate::names::{self, Named, OneOrMany};
use crate::notice::{Kind, Notice, Taken};
use crate::options::{Customization, Options};
use crate::origin::Origin;
use crate::places::{Places, Surface, foreign_part};
use crate::roots::{Root, Writing, roots};
use crate::skills::{Skill, SkillError, Skills};
use crate::source::{self, Fence, FileProblem};

/// The largest command file.
const MAX_FILE: u64 = 64 * 1024;
/// The most commands of one root, and how deep directories are looked into.
const MAX_COMMANDS: usize = 256;
const MAX_DEPTH: usize = 4;
/// The most names looked at in one directory.
const MAX_NAMES: usize = 1024;
/// The longest description, in characters.
const MAX_DESCRIPTION: usize = 200;

/// A command that can be called.
#[derive(Debug, Clone, PartialEq)]
pub struct Command {
    name: String,
    description: String,
    argument_hint: Option<String>,
    model: Option<String>,
    allowed_tools: Vec<String>,
    origin: Origin,
    text: Text,
}

#[derive(Debug, Clone, PartialEq)]
enum Text {
    File {
        path: PathBuf,
        fence: Fence,
        home: Option<PluginHome>,
    },
    Skill(Box<Skill>),
    /// It stands in the manifest of a plugin.
    Inline {
        body: String,
        home: Option<PluginHome>,
    },
}

/// A call of a command as a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expansion {
    pub command: String,
    /// What it is made of, in order; at least the text is there, be it empty.
    pub parts: Vec<Part>,
    /// The model the command asks for.
    pub model: Option<String>,
    /// The tools the command asks to use freely. A request, not a permission: what a repository
    /// asks for counts only in a trusted workspace.
    pub allowed_tools: Vec<String>,
    pub origin: Origin,
}

/// A part of a prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Text(String),
    /// What a shell is to run; its output takes the place. Nothing here does that.
    Shell(String),
}

impl Expansion {
    /// The prompt with its shell commands as they are written.
    pub fn prompt(&self) -> String {
        let text = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Shell(script) => format!("!`{script}`"),
        };
        self.parts.iter().map(text).collect()
    }

    /// The shell commands, in order.
    pub fn scripts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(_) => None,
            Part::Shell(script) => Some(script.as_str()),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("the command's file `{}` is gone", .0.display())]
    Gone(PathBuf),
    #[error("the command's file `{}` cannot be used: {problem}", path.display())]
    Unusable { path: PathBuf, problem: FileProblem },
    #[error("the command's file `{}` cannot be used: {reason}", path.display())]
    Malformed { path: PathBuf, reason: String },
    #[error(transparent)]
    Skill(#[from] SkillError),
    #[error("`/{name}` with these arguments is longer than {limit} bytes")]
    TooLong { name: String, limit: usize },
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Fields {
    description: Option<String>,
    #[serde(alias = "argument-hint")]
    argument_hint: Option<OneOrMany>,
    model: Option<String>,
    #[serde(alias = "allowed-tools")]
    allowed_tools: Option<OneOrMany>,
}

impl Command {
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    /// What to write after the name.
    pub fn argument_hint(&self) -> Option<&str> {
        self.argument_hint.as_deref()
    }

    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// The shell commands in its text, as they are written.
    pub fn scripts(&self) -> Vec<String> {
        let Ok(body) = self.body() else {
            return Vec::new();
        };
        let stretches = self.stretches(&body).into_iter();
        stretches
            .filter_map(|stretch| match stretch {
                Stretch::Text(_) => None,
                Stretch::Shell(script) => Some(script.to_owned()),
            })
            .collect()
    }

    /// The tools it asks to use freely.
    pub fn allowed_tools(&self) -> &[String] {
        &self.allowed_tools
    }

    /// Its text taken apart. A skill is text alone.
    fn stretches<'a>(&self, body: &'a str) -> Vec<Stretch<'a>> {
        match self.text {
            Text::File { .. } | Text::Inline { .. } => inline::stretches(body),
            Text::Skill(_) => vec![Stretch::Text(body)],
        }
    }

    fn body(&self) -> Result<String, CommandError> {
        let (path, fence, home) = match &self.text {
            Text::Skill(skill) => return Ok(skill.body()?),
            Text::Inline { body, home } => {
                return Ok(own_places(body.trim(), home.as_ref(), Path::new("")));
            }
            Text::File { path, fence, home } => (path, fence, home.as_ref()),
        };
        let document = source::read_within(path, fence, MAX_FILE)
            .map_err(|problem| CommandError::Unusable {
                path: path.clone(),
                problem,
            })?
            .ok_or_else(|| CommandError::Gone(path.clone()))?;
        match frontmatter::split(&document.text) {
            Ok((_, body)) => Ok(own_places(body.trim(), home, path)),
            Err(_) if home.is_some() => Ok(own_places(document.text.trim(), home, path)),
            Err(error) => Err(CommandError::Malformed {
                path: path.clone(),
                reason: error.to_string(),
            }),
        }
    }
}

impl Named for Command {
    fn name(&self) -> &str {
        &self.name
    }

    fn origin(&self) -> &Origin {
        &self.origin
    }
}

/// The commands of a session, by name.
#[derive(Debug, Clone, Default)]
pub struct Commands {
    entries: BTreeMap<String, Command>,
}

impl Commands {
    /// Finds the commands. Names in `reserved` belong to built-in commands and are not given to
    /// others; a command has precedence over a skill of its name.
    pub fn load(
        places: &Places,
        options: &Options,
        skills: &Skills,
        reserved: &[&str],
        notices: &mut Vec<Notice>,
    ) -> Self {
        let mut entries = BTreeMap::new();
        for root in command_roots(places, options) {
            let mut scan = Scan {
                root: &root,
                commands: Vec::new(),
                notices,
            };
            scan.all();
            for (command, path) in scan.commands {
                if reserved.contains(&command.name.as_str()) {
                    let name = command.name;
                    notices.push(Notice::Reserved { path, name });
                } else {
                    names::insert(&mut entries, command, Kind::Command, notices);
                }
            }
        }
        for skill in skills.iter() {
            let name = skill.name();
            let taken = if reserved.contains(&name) {
                Some(Taken::BuiltIn)
            } else {
                let command = entries.get(name);
                command.map(|command: &Command| Taken::Command(command.origin.clone()))
            };
            match taken {
                Some(taken) => notices.push(Notice::SkillHidden {
                    name: name.to_owned(),
                    taken,
                }),
                None => names::insert(&mut entries, of_skill(skill), Kind::Command, notices),
            }
        }
        Self { entries }
    }

    pub fn get(&self, name: &str) -> Option<&Command> {
        self.entries.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Command> {
        self.entries.values()
    }

    /// The command that a line calls, and what is written after its name.
    fn called<'a>(&self, line: &'a str) -> Option<(&Command, &'a str)> {
        let call = line.trim().strip_prefix('/')?;
        let (name, given) = call.split_once(char::is_whitespace).unwrap_or((call, ""));
        let given = given.trim();
        if let Some(command) = self.get(name) {
            return Some((command, given));
        }
        // Some write the command of a plugin with a blank.
        let (own, rest) = given.split_once(char::is_whitespace).unwrap_or((given, ""));
        let command = self.get(&format!("{name}:{own}"))?;
        Some((command, rest.trim()))
    }

    /// The model that the command of a line asks for.
    pub fn model(&self, line: &str) -> Option<&str> {
        let (command, _) = self.called(line)?;
        command.model.as_deref()
    }

    /// The prompt that a line stands for; `None` where it calls no command of these and is meant
    /// as it is.
    pub fn expand(&self, line: &str) -> Result<Option<Expansion>, CommandError> {
        let Some((command, given)) = self.called(line) else {
            return Ok(None);
        };
        let body = command.body()?;
        let stretches = command.stretches(&body);
        // Only what the command itself says is run, not what its arguments do.
        let texts: Vec<&str> = stretches
            .iter()
            .map(|stretch| match stretch {
                Stretch::Text(text) | Stretch::Shell(text) => *text,
            })
            .collect();
        let (texts, left) =
            arguments::substitute(&texts, given).ok_or_else(|| CommandError::TooLong {
                name: command.name.clone(),
                limit: arguments::MAX_RESULT,
            })?;
        let parts = stretches.iter().zip(texts);
        let mut parts: Vec<Part> = parts
            .map(|(stretch, text)| match stretch {
                Stretch::Text(_) => Part::Text(text),
                Stretch::Shell(_) => Part::Shell(text),
            })
            .collect();
        match parts.last_mut() {
            Some(Part::Text(text)) => text.push_str(&left),
            Some(Part::Shell(_)) | None => parts.push(Part::Text(left)),
        }
        Ok(Some(Expansion {
            command: command.name.clone(),
            parts,
            model: command.model.clone(),
            allowed_tools: command.allowed_tools.clone(),
            origin: command.origin.clone(),
        }))
    }
}

/// The project's and the user's, each followed by what was written for another program of our
/// kind, and the plugins'.
fn command_roots(places: &Places, options: &Options) -> Vec<Root> {
    const PART: &str = "commands";
    let mut own = roots(places, options, Surface::Commands);
    if options.customization == Customization::All {
        let path = foreign_part(&places.workspace, PART);
        let project = Root::of_workspace(&places.workspace, path, Origin::Project);
        own.insert(1, project.foreign());
        let user = Root::of_user(places.foreign.join(PART));
        own.insert(3, user.foreign());
    }
    own
}

fn of_skill(skill: &Skill) -> Command {
    Command {
        name: skill.name().to_owned(),
        description: shortened(skill.description()),
        argument_hint: None,
        model: None,
        allowed_tools: Vec::new(),
        origin: skill.origin().clone(),
        text: Text::Skill(Box::new(skill.clone())),
    }
}

/// A look through one root.
struct Scan<'a> {
    root: &'a Root,
    commands: Vec<(Command, PathBuf)>,
    notices: &'a mut Vec<Notice>,
}

impl Scan<'_> {
    /// Everything in the root, which for a plugin may be one file.
    fn all(&mut self) {
        let root = self.root;
        if let (Some(text), Some(name)) = (&root.says.content, &root.name) {
            let path = root.path.clone();
            return self.text(text, path, name, name);
        }
        let stem = root.path.file_name().and_then(|name| name.to_str());
        let stem = stem.and_then(source::markdown_stem);
        match stem {
            Some(stem) if root.plugin().is_some() && root.path.is_file() => {
                let name = root.name.as_deref().unwrap_or(stem);
                self.file(root.path.clone(), name, name);
            }
            _ => self.directory(&root.path, "", 0),
        }
    }

    /// The commands of a directory; those below it have its name before theirs.
    fn directory(&mut self, directory: &Path, prefix: &str, depth: usize) {
        for name in source::names(directory, MAX_NAMES) {
            let path = directory.join(&name);
            match source::markdown_stem(&name) {
                Some(stem) => {
                    if self.commands.len() == MAX_COMMANDS {
                        let notice = Notice::TooMany {
                            what: "commands of a directory",
                            limit: MAX_COMMANDS,
                        };
                        if !self.notices.contains(&notice) {
                            self.notices.push(notice);
                        }
                        return;
                    }
                    self.file(path, &format!("{prefix}{stem}"), stem);
                }
                None if depth < MAX_DEPTH && names::is_plain(&name) && is_directory(&path) => {
                    self.directory(&path, &format!("{prefix}{name}:"), depth + 1);
                }
                None => {}
            }
        }
    }

    fn file(&mut self, path: PathBuf, name: &str, stem: &str) {
        let document = match source::read_within(&path, &self.root.fence, MAX_FILE) {
            Ok(None) => return,
            Ok(Some(document)) => document,
            Err(problem) => {
                self.notices.push(Notice::Unusable { path, problem });
                return;
            }
        };
        self.notices.extend(document.notice());
        self.text(&document.text, path, name, stem);
    }

    fn text(&mut self, text: &str, path: PathBuf, name: &str, stem: &str) {
        match self.parse(text, &path, name, stem) {
            Ok(command) => self.commands.push((command, path)),
            Err(reason) => self.notices.push(Notice::Malformed { path, reason }),
        }
    }

    fn parse(&self, text: &str, path: &Path, name: &str, stem: &str) -> Result<Command, String> {
        if !names::is_plain(stem) {
            return Err(format!("`{stem}` is not a plain name"));
        }
        let (fields, body) = match frontmatter::parse_optional::<Fields>(text) {
            Ok(read) => read,
            Err(_) if self.root.plugin().is_some() || self.root.writing == Writing::Foreign => {
                let Lenient { fields, body, .. } = Lenient::read(text);
                let fields = serde_json::from_value(fields.into());
                (fields.unwrap_or_default(), body)
            }
            Err(error) => return Err(error.to_string()),
        };
        let says = &self.root.says;
        let description = says.description.clone().or(fields.description);
        let description = description.unwrap_or_else(|| {
            let first = body.lines().find(|line| !line.trim().is_empty());
            first.unwrap_or_default().trim_start_matches('#').to_owned()
        });
        // `[file] [line]` without quotes is a list to YAML.
        let hint = fields.argument_hint.map(|hint| match hint {
            OneOrMany::One(hint) => hint,
            OneOrMany::Many(hints) => format!("[{}]", hints.join("] [")),
        });
        Ok(Command {
            name: names::qualified(&self.root.origin, name),
            description: shortened(&description),
            argument_hint: says.argument_hint.clone().or(hint),
            model: says.model.clone().or(fields.model),
            allowed_tools: says
                .allowed_tools
                .clone()
                .or_else(|| fields.allowed_tools.map(OneOrMany::split))
                .unwrap_or_default()
                .iter()
                .map(|tool| own_places(tool, self.root.home.as_ref(), path))
                .collect(),
            origin: self.root.origin.clone(),
            text: match &says.content {
                Some(_) => Text::Inline {
                    body: body.to_owned(),
                    home: self.root.home.clone(),
                },
                None => Text::File {
                    path: path.to_owned(),
                    fence: self.root.fence.clone(),
                    home: self.root.home.clone(),
                },
            },
        })
    }
}

/// Links to directories are not followed: they could lead in circles.
fn is_directory(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|metadata| metadata.is_dir())
}

fn shortened(text: &str) -> String {
    text.trim().chars().take(MAX_DESCRIPTION).collect()
}
