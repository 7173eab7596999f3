//! The head of a profile, with the lines that its parts stand in.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::frontmatter::{self, FrontmatterError, Lenient};
use crate::names::{self, OneOrMany};

/// Keys that are known, in every spelling.
const KNOWN: [&str; 13] = [
    "name",
    "description",
    "tools",
    "disallowed_tools",
    "disallowedTools",
    "disallowed-tools",
    "model",
    "effort",
    "isolation",
    "background",
    "inherit_hooks",
    "inheritHooks",
    "memory",
];
/// Keys of another program that say nothing about what an agent may do.
const HARMLESS: [&str; 2] = ["color", "version"];
/// Keys that would loosen something, or that others decide: a plugin does not say them.
const WITHHELD: [&str; 3] = ["hooks", "mcpServers", "permissionMode"];
/// The longest description of somebody who wrote for another program, in characters.
const DESCRIPTION: usize = 1024;

#[derive(Debug, Deserialize)]
pub(super) struct Fields {
    pub(super) name: String,
    pub(super) description: String,
    #[serde(default)]
    pub(super) tools: Option<OneOrMany>,
    #[serde(default, alias = "disallowedTools", alias = "disallowed-tools")]
    pub(super) disallowed_tools: Option<OneOrMany>,
    #[serde(default)]
    pub(super) model: Option<String>,
    #[serde(default)]
    pub(super) effort: Option<ProfileEffort>,
    #[serde(default)]
    pub(super) isolation: Option<ProfileIsolation>,
    #[serde(default)]
    pub(super) background: Option<bool>,
    #[serde(default, alias = "inheritHooks")]
    pub(super) inherit_hooks: Option<bool>,
    #[serde(default)]
    pub(super) memory: Option<MemoryField>,
}

/// How hard an agent thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileEffort {
    Low,
    Medium,
    High,
    Xhigh,
    Max,
    Auto,
}

impl ProfileEffort {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
            Self::Auto => "auto",
        }
    }
}

/// Where an agent works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProfileIsolation {
    #[default]
    None,
    Worktree,
}

/// Where an agent keeps notes from one task to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ProfileMemory {
    #[default]
    None,
    /// On this project.
    Project,
    /// On everything it does for the user.
    User,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(super) enum MemoryField {
    Switch(bool),
    Scope(MemoryScope),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum MemoryScope {
    User,
    Project,
    Local,
}

impl From<MemoryField> for ProfileMemory {
    fn from(field: MemoryField) -> Self {
        match field {
            MemoryField::Switch(false) => Self::None,
            MemoryField::Scope(MemoryScope::User) => Self::User,
            MemoryField::Switch(true)
            | MemoryField::Scope(MemoryScope::Project | MemoryScope::Local) => Self::Project,
        }
    }
}

/// What was read of a file.
pub(super) struct Read<'a> {
    pub(super) fields: Fields,
    pub(super) body: &'a str,
    /// Lines that say something that is not heard.
    pub(super) remarks: Vec<(usize, String)>,
}

/// Reads a file; the error is a line, counted from 1, and what is wrong with it.
pub(super) fn read(text: &str) -> Result<Read<'_>, (usize, String)> {
    let at_head = |error: FrontmatterError| (1, error.to_string());
    let (block, body) = frontmatter::split(text).map_err(at_head)?;
    let block = block.ok_or_else(|| at_head(FrontmatterError::Missing))?;
    let fields = serde_saphyr::from_str(block).map_err(|error| {
        // The block begins in the second line.
        let line = error.location().map_or(0, |location| location.line());
        let line = usize::try_from(line).unwrap_or(0) + 1;
        let text = error.to_string();
        let reason = text.lines().next().unwrap_or_default();
        let reason = reason.strip_prefix("error: ").unwrap_or(reason);
        // The line that it counts is the block's, and ours has been said.
        let reason = match reason.split_once(": ") {
            Some((place, reason)) if place.starts_with("line ") => reason,
            Some(_) | None => reason,
        };
        (line, reason.to_owned())
    })?;
    let keys = keys(block).filter(|(_, key)| !KNOWN.contains(key) && !HARMLESS.contains(key));
    let remarks = keys.map(|(line, key)| (line, format!("`{key}` is not known and not used")));
    Ok(Read {
        fields,
        body,
        remarks: remarks.collect(),
    })
}

/// Who brings a file that was written for another program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strangers {
    Plugin,
    /// It lies in that program's own directory.
    Directory,
}

/// Reads a file that somebody wrote for another program, with patience: a head that is not YAML
/// is read line by line, what cannot be made out is left out, and where no name is to be found the
/// file's is taken. A list of tools that cannot be made out is an empty one.
pub(super) fn read_leniently<'a>(text: &'a str, stem: &str, from: Strangers) -> Read<'a> {
    let Lenient {
        fields,
        body,
        problem,
    } = Lenient::read(text);
    // Whose own directory it is takes what can be made out line by line without a word.
    let is_said = from == Strangers::Plugin || !fields.contains_key("description");
    let problem = problem.filter(|_| is_said);
    let mut remarks: Vec<(usize, String)> = problem.into_iter().map(|it| (1, it)).collect();
    for key in WITHHELD.iter().filter(|key| fields.contains_key(**key)) {
        remarks.push((line_of(text, key), format!("`{key}` is not used")));
    }
    let words = |key: &str| fields.get(key)?.as_str().map(str::trim);
    let name = words("name").filter(|name| names::is_plain(name));
    let name = name.unwrap_or(stem);
    let description = words("description").filter(|text| !text.is_empty());
    let description = description.map_or_else(
        || format!("The agent {name}."),
        |text| {
            let words: Vec<&str> = text.split_whitespace().collect();
            words.join(" ").chars().take(DESCRIPTION).collect()
        },
    );
    let mut unclear = Vec::new();
    let mut tools = |keys: &[&str]| {
        let (key, value) = keys
            .iter()
            .find_map(|key| Some((*key, fields.get(*key)?)))
            .filter(|(_, value)| !value.is_null())?;
        let Ok(list) = serde_json::from_value::<OneOrMany>(value.clone()) else {
            let reason = format!("`{key}` names no tools: a list of names is meant");
            unclear.push((line_of(text, key), reason));
            return Some(OneOrMany::Many(Vec::new()));
        };
        // What stands in parentheses is the business of rules.
        let bare = |item: &String| item.split('(').next().unwrap_or_default().trim().to_owned();
        Some(OneOrMany::Many(list.split().iter().map(bare).collect()))
    };
    let (wanted, unwanted) = (
        tools(&["tools"]),
        tools(&["disallowedTools", "disallowed_tools", "disallowed-tools"]),
    );
    remarks.append(&mut unclear);
    for key in ["isolation", "effort", "background", "memory"] {
        let is_read = match key {
            "isolation" => field::<ProfileIsolation>(&fields, key).is_some(),
            "effort" => field::<ProfileEffort>(&fields, key).is_some(),
            "background" => field::<bool>(&fields, key).is_some(),
            _ => field::<MemoryField>(&fields, key).is_some(),
        };
        if !is_read && fields.get(key).is_some_and(|value| !value.is_null()) {
            let reason = format!("what `{key}` says is not known and not used");
            remarks.push((line_of(text, key), reason));
        }
    }
    let either = |one: &str, other: &str| field(&fields, one).or_else(|| field(&fields, other));
    let fields = Fields {
        name: name.to_owned(),
        description,
        tools: wanted,
        disallowed_tools: unwanted,
        model: words("model").map(str::to_owned),
        effort: field(&fields, "effort"),
        isolation: field(&fields, "isolation"),
        background: field(&fields, "background"),
        inherit_hooks: either("inherit_hooks", "inheritHooks"),
        memory: field(&fields, "memory"),
    };
    Read {
        fields,
        body,
        remarks,
    }
}

/// A field, where it is what it should be.
fn field<T: DeserializeOwned>(fields: &Map<String, Value>, key: &str) -> Option<T> {
    serde_json::from_value(fields.get(key)?.clone()).ok()
}

/// The keys of a block with the lines of the file that they stand in.
fn keys(block: &str) -> impl Iterator<Item = (usize, &str)> {
    block.lines().enumerate().filter_map(|(index, line)| {
        let (key, _) = line.split_once(':')?;
        let is_key = !key.is_empty()
            && key
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'));
        is_key.then_some((index + 2, key))
    })
}

/// The line of the file that a key stands in, the first where it does not.
pub(super) fn line_of(text: &str, wanted: &str) -> usize {
    let same = |key: &str| {
        let plain = |text: &str| text.replace(['_', '-'], "").to_ascii_lowercase();
        plain(key) == plain(wanted)
    };
    match frontmatter::split(text) {
        Ok((Some(block), _)) => {
            let found = keys(block).find(|(_, key)| same(key));
            found.map_or(1, |(line, _)| line)
        }
        Ok((None, _)) | Err(_) => 1,
    }
}
