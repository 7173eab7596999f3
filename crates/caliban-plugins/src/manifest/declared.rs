//! The parts that a manifest names: paths, or what stands in it itself.

use serde_json::{Map, Value};

use super::ManifestError;
use crate::name::is_plain;
use crate::relative::RelativePath;

/// The most paths of one part.
const MOST: usize = 1024;

/// What a manifest says about one part.
#[derive(Debug, Clone, Default, PartialEq)]
pub enum Listing<T> {
    /// Nothing: the usual places are looked through.
    #[default]
    Usual,
    /// This, besides the usual places.
    Besides(Vec<T>),
    /// This and nothing else.
    Only(Vec<T>),
}

impl<T> Listing<T> {
    /// Whether the usual places count.
    pub fn has_usual(&self) -> bool {
        match self {
            Self::Usual | Self::Besides(_) => true,
            Self::Only(_) => false,
        }
    }

    pub fn items(&self) -> &[T] {
        match self {
            Self::Usual => &[],
            Self::Besides(items) | Self::Only(items) => items,
        }
    }
}

/// A file, or what would stand in one.
#[derive(Debug, Clone, PartialEq)]
pub enum Inlinable {
    File(RelativePath),
    Inline(Map<String, Value>),
}

/// A file or directory of commands, or one command under another name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSource {
    pub path: RelativePath,
    pub name: Option<String>,
}

/// Everything that a manifest names.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Declared {
    pub skills: Listing<RelativePath>,
    pub commands: Listing<CommandSource>,
    pub agents: Listing<RelativePath>,
    pub styles: Listing<RelativePath>,
    pub hooks: Listing<Inlinable>,
    pub servers: Listing<Inlinable>,
}

/// The keys of the two forms: ours below `components`, theirs at the top.
struct Keys {
    ours: &'static str,
    theirs: &'static str,
}

const SKILLS: Keys = keys("skills", "skills");
const COMMANDS: Keys = keys("commands", "commands");
const AGENTS: Keys = keys("agents", "agents");
const STYLES: Keys = keys("output_styles", "outputStyles");
const HOOKS: Keys = keys("hooks", "hooks");
const SERVERS: Keys = keys("mcp_servers", "mcpServers");
const ALL: [&Keys; 6] = [&SKILLS, &COMMANDS, &AGENTS, &STYLES, &HOOKS, &SERVERS];

const fn keys(ours: &'static str, theirs: &'static str) -> Keys {
    Keys { ours, theirs }
}

/// How what stands at the top joins the usual places.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Joins {
    Besides,
    Instead,
}

impl Declared {
    /// Reads both forms. What stands in `components` wins.
    pub(super) fn read(
        raw: &Map<String, Value>,
        remarks: &mut Vec<String>,
    ) -> Result<Self, ManifestError> {
        let components = match raw.get("components") {
            None | Some(Value::Null) => None,
            Some(Value::Object(components)) => Some(components),
            Some(_) => return Err(wrong("components", "a table")),
        };
        for key in components.into_iter().flat_map(Map::keys) {
            if !ALL.iter().any(|known| known.ours == key) {
                remarks.push(format!(
                    "`components.{}` is unknown and is not used",
                    key.escape_debug()
                ));
            }
        }
        let sources = Sources { raw, components };
        Ok(Self {
            skills: sources.listing(&SKILLS, Joins::Besides, paths)?,
            commands: sources.listing(&COMMANDS, Joins::Instead, commands)?,
            agents: sources.listing(&AGENTS, Joins::Instead, paths)?,
            styles: sources.listing(&STYLES, Joins::Instead, paths)?,
            hooks: sources.listing(&HOOKS, Joins::Besides, inlinable)?,
            servers: sources.listing(&SERVERS, Joins::Besides, inlinable)?,
        })
    }
}

struct Sources<'a> {
    raw: &'a Map<String, Value>,
    components: Option<&'a Map<String, Value>>,
}

impl Sources<'_> {
    fn listing<T>(
        &self,
        keys: &Keys,
        joins: Joins,
        read: fn(&str, &Value) -> Result<Vec<T>, ManifestError>,
    ) -> Result<Listing<T>, ManifestError> {
        let given = |table: &'_ Map<String, Value>, key: &str| {
            table.get(key).filter(|value| !value.is_null()).cloned()
        };
        if let Some(value) = self.components.and_then(|table| given(table, keys.ours)) {
            let key = format!("components.{}", keys.ours);
            return Ok(Listing::Only(read(&key, &value)?));
        }
        let Some(value) = given(self.raw, keys.theirs) else {
            return Ok(Listing::Usual);
        };
        let items = read(keys.theirs, &value)?;
        Ok(match joins {
            Joins::Besides => Listing::Besides(items),
            Joins::Instead => Listing::Only(items),
        })
    }
}

fn wrong(key: &str, expected: &'static str) -> ManifestError {
    ManifestError::Type {
        key: key.to_owned(),
        expected,
    }
}

/// One or many, as a list.
fn many<'a>(key: &str, value: &'a Value) -> Result<Vec<&'a Value>, ManifestError> {
    let values: Vec<&Value> = match value {
        Value::Array(values) => values.iter().collect(),
        value => vec![value],
    };
    if values.len() > MOST {
        return Err(wrong(key, "at most 1024 entries"));
    }
    Ok(values)
}

fn path(key: &str, value: &Value) -> Result<RelativePath, ManifestError> {
    let text = value
        .as_str()
        .ok_or_else(|| wrong(key, "a path or a list of paths"))?;
    RelativePath::parse(text).map_err(|source| ManifestError::Path {
        key: key.to_owned(),
        source,
    })
}

fn paths(key: &str, value: &Value) -> Result<Vec<RelativePath>, ManifestError> {
    let values = many(key, value)?;
    values.into_iter().map(|value| path(key, value)).collect()
}

/// Paths, or a table of names with a `source` each.
fn commands(key: &str, value: &Value) -> Result<Vec<CommandSource>, ManifestError> {
    if let Value::Object(table) = value {
        let expected = "a table of names, each with a `source`";
        let named = |(name, value): (&String, &Value)| {
            let source = match value {
                Value::Object(fields) => fields.get("source"),
                value => Some(value),
            };
            let source = source.filter(|_| is_plain(name));
            Ok(CommandSource {
                path: path(key, source.ok_or_else(|| wrong(key, expected))?)?,
                name: Some(name.clone()),
            })
        };
        return table.iter().map(named).collect();
    }
    let of = |path| CommandSource { path, name: None };
    Ok(paths(key, value)?.into_iter().map(of).collect())
}

fn inlinable(key: &str, value: &Value) -> Result<Vec<Inlinable>, ManifestError> {
    let one = |value: &Value| match value {
        Value::Object(inline) => Ok(Inlinable::Inline(inline.clone())),
        value => Ok(Inlinable::File(path(key, value)?)),
    };
    many(key, value)?.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Declared {
        let Value::Object(raw) = value else {
            panic!("an object");
        };
        Declared::read(&raw, &mut Vec::new()).unwrap()
    }

    fn shown(listing: &Listing<RelativePath>) -> Vec<String> {
        listing.items().iter().map(ToString::to_string).collect()
    }

    #[test]
    fn texts_lists_and_tables_are_read() {
        let declared = read(json!({
            "skills": "./more", "agents": ["./agents"], "outputStyles": ["./s/a.md"],
            "commands": {"about": {"source": "./README.md"}},
            "hooks": {"hooks": {}}, "mcpServers": ["./a.json", {"x": {"command": "y"}}],
        }));
        assert_eq!(shown(&declared.skills), ["more"]);
        assert!(declared.skills.has_usual() && !declared.agents.has_usual());
        assert_eq!(declared.commands.items()[0].name.as_deref(), Some("about"));
        assert!(matches!(declared.hooks.items(), [Inlinable::Inline(_)]));
        assert_eq!(declared.servers.items().len(), 2);
    }

    #[test]
    fn components_win() {
        let declared = read(json!({"skills": "a", "components": {"skills": ["b", "c"]}}));
        assert_eq!(
            declared.skills,
            Listing::Only(vec![
                RelativePath::parse("b").unwrap(),
                RelativePath::parse("c").unwrap(),
            ])
        );
        assert_eq!(declared.agents, Listing::Usual);
    }
}
