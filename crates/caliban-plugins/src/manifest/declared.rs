//! The parts that a manifest names: paths, or what stands in it itself.

use caliban_context::CommandSays;
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

/// A file or directory of commands, or one command under another name, which may stand in the
/// manifest itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandSource {
    /// Nothing for one that has its text with it.
    pub path: Option<RelativePath>,
    pub name: Option<String>,
    pub says: CommandSays,
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

/// Paths, or a table of names with a `source` or a `content` each.
fn commands(key: &str, value: &Value) -> Result<Vec<CommandSource>, ManifestError> {
    if let Value::Object(table) = value {
        return table
            .iter()
            .map(|(name, value)| named_command(key, name, value))
            .collect();
    }
    let of = |path| CommandSource {
        path: Some(path),
        name: None,
        says: CommandSays::default(),
    };
    Ok(paths(key, value)?.into_iter().map(of).collect())
}

fn named_command(key: &str, name: &str, value: &Value) -> Result<CommandSource, ManifestError> {
    let expected = || {
        wrong(
            key,
            "a table of plain names, each with a `source` or a `content`",
        )
    };
    if !is_plain(name) {
        return Err(expected());
    }
    let Value::Object(fields) = value else {
        return Ok(CommandSource {
            path: Some(path(key, value)?),
            name: Some(name.to_owned()),
            says: CommandSays::default(),
        });
    };
    let text = |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned);
    let content = text("content");
    let source = fields.get("source").filter(|source| !source.is_null());
    let path = match (source, &content) {
        (Some(source), None) => Some(path(key, source)?),
        (None, Some(_)) => None,
        (Some(_), Some(_)) | (None, None) => return Err(expected()),
    };
    let tools = |tools: &Value| {
        let tools = tools.as_array()?.iter().filter_map(Value::as_str);
        Some(tools.map(str::to_owned).collect())
    };
    Ok(CommandSource {
        path,
        name: Some(name.to_owned()),
        says: CommandSays {
            content,
            description: text("description"),
            argument_hint: text("argumentHint"),
            model: text("model"),
            allowed_tools: fields.get("allowedTools").and_then(tools),
        },
    })
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
            "commands": {
                "about": {"source": "./README.md", "description": "About", "argumentHint": "[x]"},
                "ask": {"content": "Ask.", "allowedTools": ["Read"]},
            },
            "hooks": {"hooks": {}}, "mcpServers": ["./a.json", {"x": {"command": "y"}}],
        }));
        assert_eq!(shown(&declared.skills), ["more"]);
        assert!(declared.skills.has_usual() && !declared.agents.has_usual());
        let [about, ask] = declared.commands.items() else {
            panic!("{:?}", declared.commands);
        };
        assert_eq!(about.name.as_deref(), Some("about"));
        assert_eq!(about.says.description.as_deref(), Some("About"));
        assert_eq!(about.says.argument_hint.as_deref(), Some("[x]"));
        assert_eq!(
            (&ask.path, ask.says.content.as_deref()),
            (&None, Some("Ask."))
        );
        assert_eq!(
            ask.says.allowed_tools.as_deref(),
            Some(&["Read".to_owned()][..])
        );
        assert!(matches!(declared.hooks.items(), [Inlinable::Inline(_)]));
        assert_eq!(declared.servers.items().len(), 2);
    }

    #[test]
    fn a_command_has_one_text() {
        for wrong in [
            json!({"x": {}}),
            json!({"x": {"source": "./a.md", "content": "a"}}),
            json!({"a b": {"content": "a"}}),
        ] {
            let raw = json!({"commands": wrong});
            let read = Declared::read(raw.as_object().unwrap(), &mut Vec::new());
            assert!(read.is_err(), "{raw}");
        }
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
