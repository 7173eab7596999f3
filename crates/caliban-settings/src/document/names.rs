//! The names of keys: second spellings are replaced, unknown ones reported with the nearest known
//! name. What is known comes from the schema, so the types stay the only list.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::node::{Content, Entry, Node, Step, Table};
use crate::error::{Fault, SettingsError};
use crate::schema::settings_schema;

/// Replaces second spellings by the first, so that scopes which spell a key differently merge,
/// and takes out what is not a setting.
pub(crate) fn canonicalise(root: &mut Node) -> Result<(), SettingsError> {
    let Some(table) = root.as_table_mut() else {
        return Ok(());
    };
    // Meant for editors, and nobody's setting.
    table.remove("$schema");
    rename(table, "status_line", "statusLine")?;
    rename(table, "claudeMdExcludes", "claude_md_excludes")?;
    let servers = table
        .get("mcp_servers")
        .and_then(Node::as_table)
        .map(|servers| {
            servers
                .iter()
                .map(|entry| entry.key.clone())
                .collect::<Vec<_>>()
        })
        .unwrap_or_default();
    for name in servers {
        let server = table
            .get_mut("mcp_servers")
            .and_then(Node::as_table_mut)
            .and_then(|servers| servers.get_mut(&name))
            .and_then(Node::as_table_mut);
        if let Some(server) = server {
            rename(server, "transport", "type")?;
        }
    }
    Ok(())
}

fn rename(table: &mut Table, from: &str, to: &str) -> Result<(), SettingsError> {
    let is_twice = table.entry(to).is_some();
    let Some(entry) = table.entry_mut(from) else {
        return Ok(());
    };
    if is_twice {
        let message = format!("`{from}` is another name of `{to}`, which is also set");
        let fault = Fault::at(&entry.key_place, message);
        return Err(SettingsError::Value(Box::new(fault)));
    }
    to.clone_into(&mut entry.key);
    Ok(())
}

/// Tables whose meaning another part of the program owns; any key goes.
const FOREIGN: [&str; 4] = ["plugins", "router", "tools", "tui"];

/// Reports keys that no type knows: as an error in a closed table, as a warning elsewhere.
pub(crate) fn check_names(root: &Node) -> Result<Vec<String>, SettingsError> {
    let mut checker = Checker {
        schema: &SCHEMA,
        warnings: Vec::new(),
    };
    checker.visit(root, &SCHEMA, &mut Vec::new())?;
    Ok(checker.warnings)
}

static SCHEMA: LazyLock<Value> = LazyLock::new(settings_schema);

struct Checker<'a> {
    schema: &'a Value,
    warnings: Vec<String>,
}

impl<'a> Checker<'a> {
    fn visit(
        &mut self,
        node: &Node,
        schema: &'a Value,
        path: &mut Vec<Step>,
    ) -> Result<(), SettingsError> {
        match &node.content {
            Content::Table(table) => {
                let Some(shape) = self.shapes(schema).into_iter().find_map(Shape::of) else {
                    return Ok(());
                };
                for entry in table.iter() {
                    path.push(Step::Key(entry.key.clone()));
                    match shape.member(&entry.key) {
                        Some(_) if path.len() == 1 && FOREIGN.contains(&entry.key.as_str()) => {}
                        Some(member) => self.visit(&entry.node, member, path)?,
                        None => self.unknown(entry, &shape, path)?,
                    }
                    path.pop();
                }
            }
            Content::List(nodes) => {
                let shapes = self.shapes(schema);
                let Some(items) = shapes.into_iter().find_map(|shape| shape.get("items")) else {
                    return Ok(());
                };
                for (index, node) in nodes.iter().enumerate() {
                    path.push(Step::Index(index));
                    self.visit(node, items, path)?;
                    path.pop();
                }
            }
            Content::Null | Content::Bool(_) | Content::Number(_) | Content::String(_) => {}
        }
        Ok(())
    }

    fn unknown(
        &mut self,
        entry: &Entry,
        shape: &Shape<'_>,
        path: &[Step],
    ) -> Result<(), SettingsError> {
        let mut fault = Fault::at(&entry.key_place, "unknown key").about(path);
        let hint = nearest(&entry.key, shape.names());
        match shape {
            Shape::Closed(_) => {
                if let Some(name) = hint {
                    fault = fault.with_help(format!("did you mean `{name}`?"));
                }
                Err(SettingsError::UnknownKey(Box::new(fault)))
            }
            Shape::Open(_) => {
                let hint = hint.map(|name| format!("; did you mean `{name}`?"));
                self.warnings.push(format!(
                    "{}:{}:{}: unknown key `{}`{}",
                    fault.origin,
                    fault.line,
                    fault.column,
                    fault.key.as_deref().unwrap_or_default(),
                    hint.unwrap_or_default(),
                ));
                Ok(())
            }
            Shape::Map(_) => Ok(()),
        }
    }

    /// The schemas a value may follow, references resolved.
    fn shapes(&self, schema: &'a Value) -> Vec<&'a Map<String, Value>> {
        let Some(object) = schema.as_object() else {
            return Vec::new();
        };
        let mut shapes = vec![object];
        if let Some(target) = object.get("$ref").and_then(Value::as_str) {
            let target = self.schema.pointer(target.trim_start_matches('#'));
            shapes.extend(target.into_iter().flat_map(|target| self.shapes(target)));
        }
        for member in ["anyOf", "oneOf"]
            .iter()
            .filter_map(|word| object.get(*word).and_then(Value::as_array))
            .flatten()
        {
            shapes.extend(self.shapes(member));
        }
        shapes
    }
}

/// What a table may contain.
enum Shape<'a> {
    /// Named keys and no others.
    Closed(&'a Map<String, Value>),
    /// Named keys; others are kept.
    Open(&'a Map<String, Value>),
    /// Any key, each with the same kind of value.
    Map(&'a Value),
}

impl<'a> Shape<'a> {
    fn of(schema: &'a Map<String, Value>) -> Option<Self> {
        let rest = schema.get("additionalProperties");
        match schema.get("properties").and_then(Value::as_object) {
            Some(names) if rest == Some(&Value::Bool(false)) => Some(Self::Closed(names)),
            Some(names) => Some(Self::Open(names)),
            None => rest.filter(|rest| rest.is_object()).map(Self::Map),
        }
    }

    fn member(&self, key: &str) -> Option<&'a Value> {
        match self {
            Self::Closed(names) | Self::Open(names) => names.get(key),
            Self::Map(value) => Some(value),
        }
    }

    fn names(&self) -> impl Iterator<Item = &'a str> {
        let names = match self {
            Self::Closed(names) | Self::Open(names) => Some(names),
            Self::Map(_) => None,
        };
        names
            .into_iter()
            .flat_map(|names| names.keys())
            .map(String::as_str)
    }
}

/// The known name a key was probably meant to be.
fn nearest<'a>(key: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let plain = |name: &str| -> Vec<char> {
        name.chars()
            .filter(|c| *c != '_' && *c != '-')
            .flat_map(char::to_lowercase)
            .take(64)
            .collect()
    };
    let key = plain(key);
    names
        .map(|name| (distance(&key, &plain(name)), name))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= key.len().div_ceil(3))
        .map(|(_, name)| name)
}

/// Levenshtein's distance.
fn distance(left: &[char], right: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.iter().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::node::Origin;
    use super::super::parse::{Format, parse};
    use super::*;
    use crate::scope::Scope;

    fn document(text: &str) -> Node {
        let mut node = parse(
            Scope::User,
            Origin::File(PathBuf::from("s.toml")),
            text.to_owned(),
            Format::Toml,
        )
        .unwrap();
        canonicalise(&mut node).unwrap();
        node
    }

    #[test]
    fn unknown_keys_are_warned_about_with_the_nearest_name() {
        let root = document(
            "modle = 'm'\nzebra = 1\napiKeyHelper = 'k'\n[memory]\ncap_token_auto = 1\n[mcp_servers.x]\nurll = 'u'\n",
        );
        assert_eq!(
            check_names(&root).unwrap(),
            [
                "s.toml:1:1: unknown key `modle`; did you mean `model`?",
                "s.toml:2:1: unknown key `zebra`",
                "s.toml:3:1: unknown key `apiKeyHelper`; did you mean `api_key_helper`?",
                "s.toml:5:1: unknown key `memory.cap_token_auto`; did you mean `cap_tokens_auto`?",
                "s.toml:7:1: unknown key `mcp_servers.x.urll`; did you mean `url`?",
            ]
        );
    }

    #[test]
    fn unknown_keys_in_a_policy_are_errors() {
        for (text, key) in [
            ("[permissions]\ndenny = []\n", "permissions.denny"),
            (
                "[[permissions.rules]]\npattern = 'B'\nacton = 'deny'\n",
                "permissions.rules[0].acton",
            ),
            ("[sandbox]\nenable = true\n", "sandbox.enable"),
            (
                "[sandbox.network]\nallowed = []\n",
                "sandbox.network.allowed",
            ),
            (
                "[mcp_servers.x.permissions]\nallows = []\n",
                "mcp_servers.x.permissions.allows",
            ),
        ] {
            let error = check_names(&document(text)).unwrap_err();
            assert!(matches!(error, SettingsError::UnknownKey(_)), "{text}");
            assert_eq!(error.fault().unwrap().key.as_deref(), Some(key));
        }
        let error = check_names(&document("[permissions]\ndefaultMode = 'plan'\n")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "s.toml:2:1: `permissions.defaultMode`: unknown key\n  |\n2 | defaultMode = 'plan'\n  | ^^^^^^^^^^^\n  = did you mean `default_mode`?"
        );
    }

    #[test]
    fn known_and_foreign_keys_are_silent() {
        let root = document(
            "\"$schema\" = 's'\nmodel = { provider = 'openai', name = 'm' }\nstatus_line = { command = 'c', padding = 1 }\n[tui]\ntheme = 'dark'\n[plugins]\nenabled = []\n[router]\nx = 1\n[env]\nANY = '1'\n[[hooks.PreToolUse]]\nmatcher = '*'\n[[api_key_helper]]\ncommand = 'c'\n",
        );
        assert_eq!(check_names(&root).unwrap(), Vec::<String>::new());
        assert!(root.at(&["statusLine"]).is_some());
    }

    #[test]
    fn two_spellings_of_one_key_are_an_error() {
        let mut node = parse(
            Scope::User,
            Origin::File(PathBuf::from("s.json")),
            r#"{"statusLine": {"command": "a"}, "status_line": {"command": "b"}}"#.to_owned(),
            Format::Json,
        )
        .unwrap();
        assert!(matches!(
            canonicalise(&mut node),
            Err(SettingsError::Value(_))
        ));
    }
}
