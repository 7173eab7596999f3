//! The names of keys: second spellings are replaced, unknown ones reported with the nearest known
//! name. What is known comes from the schema, so the types stay the only list.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::node::{Content, Entry, Node, Step, Table};
use caliban_model::{nearest, slips};

use crate::error::{Fault, SettingsError};
use crate::schema::settings_schema;
use crate::scope::Scope;

/// Replaces second spellings by the first, so that scopes which spell a key differently merge,
/// and takes out what is not a setting.
pub(crate) fn canonicalise(root: &mut Node) -> Result<(), SettingsError> {
    if let Some(table) = root.as_table_mut() {
        // Meant for editors, and nobody's setting.
        table.remove("$schema");
    }
    respell(root, &Kind::of(&SCHEMA))
}

/// Second names of keys that are no other spelling of the first.
const ALIASES: [(&str, &str); 1] = [("transport", "type")];

/// Gives every key that the schema knows in another spelling its own: `apiKeyHelper` is
/// `api_key_helper`, and `status_line` is `statusLine`.
fn respell(node: &mut Node, kind: &Kind) -> Result<(), SettingsError> {
    match &mut node.content {
        Content::Table(table) => {
            let Some(shape) = &kind.table else {
                return Ok(());
            };
            let strange: Vec<String> = table
                .iter()
                .filter(|entry| shape.member(&entry.key).is_none())
                .map(|entry| entry.key.clone())
                .collect();
            for key in strange {
                if let Some(name) = shape.names().find(|name| is_twin(name, &key)) {
                    rename(table, &key, name)?;
                }
            }
            for entry in table.iter_mut().filter(|entry| holds_others(&entry.node)) {
                if let Some(member) = shape.member(&entry.key) {
                    respell(&mut entry.node, &Kind::of(member))?;
                }
            }
        }
        Content::List(nodes) => {
            let Some(items) = kind.items else {
                return Ok(());
            };
            let items = Kind::of(items);
            for node in nodes {
                respell(node, &items)?;
            }
        }
        Content::Null | Content::Bool(_) | Content::Number(_) | Content::String(_) => {}
    }
    Ok(())
}

/// Whether there are names in it to look at.
fn holds_others(node: &Node) -> bool {
    matches!(node.content, Content::Table(_) | Content::List(_))
}

/// Whether a key is a name in the spelling of the other convention.
fn is_twin(name: &str, key: &str) -> bool {
    camel(name) == key || snake(name) == key || ALIASES.contains(&(key, name))
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let mut camel = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

fn snake(name: &str) -> String {
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
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
const FOREIGN: [&str; 1] = ["router"];

/// Reports keys that no type knows: as an error in a closed table, as a warning elsewhere.
pub(crate) fn check_names(root: &Node) -> Result<Vec<String>, SettingsError> {
    let mut checker = Checker::default();
    checker.visit(root, &Kind::of(&SCHEMA), &mut Vec::new())?;
    Ok(checker.warnings)
}

static SCHEMA: LazyLock<Value> = LazyLock::new(settings_schema);

#[derive(Default)]
struct Checker {
    warnings: Vec<String>,
}

impl Checker {
    fn visit(
        &mut self,
        node: &Node,
        kind: &Kind,
        path: &mut Vec<Step>,
    ) -> Result<(), SettingsError> {
        match &node.content {
            Content::Table(table) => {
                let Some(shape) = &kind.table else {
                    return Ok(());
                };
                for entry in table.iter() {
                    let member = shape.member(&entry.key);
                    if member.is_some() && !holds_others(&entry.node) {
                        continue;
                    }
                    path.push(Step::Key(entry.key.clone()));
                    match member {
                        Some(_) if path.len() == 1 && FOREIGN.contains(&entry.key.as_str()) => {}
                        Some(member) => self.visit(&entry.node, &Kind::of(member), path)?,
                        None => self.unknown(entry, shape, path)?,
                    }
                    path.pop();
                }
            }
            Content::List(nodes) => {
                let Some(items) = kind.items else {
                    return Ok(());
                };
                let items = Kind::of(items);
                for (index, node) in nodes.iter().enumerate() {
                    path.push(Step::Index(index));
                    self.visit(node, &items, path)?;
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
        // Who locks a machine must not find out later that a typing error left it open.
        let is_slip = entry.key_place.scope() == Scope::Managed
            && hint.is_some_and(|name| slips(&entry.key, name) <= 1);
        match shape {
            Shape::Open(_) if is_slip => {
                let help = format!("did you mean `{}`?", hint.unwrap_or_default());
                Err(SettingsError::UnknownKey(Box::new(fault.with_help(help))))
            }
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
}

/// What the schema says about a value, found once for all entries of a list.
struct Kind {
    /// What it may contain where it is a table.
    table: Option<Shape<'static>>,
    /// What is in it where it is a list.
    items: Option<&'static Value>,
}

impl Kind {
    fn of(schema: &'static Value) -> Self {
        let shapes = shapes(&SCHEMA, schema);
        Self {
            table: shapes.iter().copied().find_map(Shape::of),
            items: shapes.iter().find_map(|shape| shape.get("items")),
        }
    }
}

/// The schemas a value may follow, references resolved.
fn shapes<'a>(root: &'a Value, schema: &'a Value) -> Vec<&'a Map<String, Value>> {
    let Some(object) = schema.as_object() else {
        return Vec::new();
    };
    let mut found = vec![object];
    if let Some(target) = object.get("$ref").and_then(Value::as_str) {
        let target = root.pointer(target.trim_start_matches('#'));
        found.extend(target.into_iter().flat_map(|target| shapes(root, target)));
    }
    for member in ["anyOf", "oneOf"]
        .iter()
        .filter_map(|word| object.get(*word).and_then(Value::as_array))
        .flatten()
    {
        found.extend(shapes(root, member));
    }
    found
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::node::Origin;
    use super::super::parse::{Format, parse};
    use super::*;

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
            "modle = 'm'\nzebra = 1\napiKeyHelpr = 'k'\n[memory]\ncap_token_auto = 1\n[mcp_servers.x]\nurll = 'u'\n",
        );
        assert_eq!(
            check_names(&root).unwrap(),
            [
                "s.toml:1:1: unknown key `modle`; did you mean `model`?",
                "s.toml:2:1: unknown key `zebra`",
                "s.toml:3:1: unknown key `apiKeyHelpr`; did you mean `api_key_helper`?",
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
        let error = check_names(&document("[permissions]\ndefaultMod = 'plan'\n")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "s.toml:2:1: `permissions.defaultMod`: unknown key\n  |\n2 | defaultMod = 'plan'\n  | ^^^^^^^^^^\n  = did you mean `default_mode`?"
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
    fn every_key_has_a_twin_in_the_other_spelling() {
        let root = document(
            "apiKeyHelper = { command = 'c', refresh_interval_ms = 1 }\nparentSettingsBehavior = 'block'\n\
             [permissions]\ndefaultMode = 'plan'\n[tui]\nshow_cost_in_statusline = true\n\
             [mcpServers.x]\ntransport = 'http'\nurl = 'u'\n[sandbox.network]\nallowedDomains = []\n",
        );
        assert_eq!(check_names(&root).unwrap(), Vec::<String>::new());
        for path in [
            &["api_key_helper", "refreshIntervalMs"][..],
            &["parent_settings_behavior"],
            &["permissions", "default_mode"],
            &["tui", "showCostInStatusline"],
            &["mcp_servers", "x", "type"],
            &["sandbox", "network", "allowed_domains"],
        ] {
            assert!(root.at(path).is_some(), "{path:?}");
        }
        // Names that the user gives are left as they are.
        let root = document("[env]\nmyKey = '1'\n[mcp_servers.modelOverrides]\ncommand = 'c'\n");
        assert!(root.at(&["env", "myKey"]).is_some());
        assert!(root.at(&["mcp_servers", "modelOverrides"]).is_some());
    }

    #[test]
    fn a_slip_in_a_policy_of_the_operator_is_an_error() {
        let read = |scope, text: &str| {
            let origin = Origin::File(PathBuf::from("s.toml"));
            let node = parse(scope, origin, text.to_owned(), Format::Toml).unwrap();
            check_names(&node)
        };
        let slip = "parent_setting_behavior = 'block'";
        assert!(read(Scope::Managed, slip).is_err());
        assert_eq!(read(Scope::User, slip).unwrap().len(), 1);
        assert_eq!(read(Scope::Managed, "zebra = 1").unwrap().len(), 1);
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
