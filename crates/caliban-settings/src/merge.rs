//! Merges the scopes' documents: lists that grow, tables that merge key by key, and everything
//! else decided by the highest scope that says something.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::document::{Content, Entry, Node, Step, Table, dotted};
use crate::policy::{Found, Nature, find, is_allow_rule};
use crate::scope::Scope;

/// How a key's values from two scopes become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Lists are joined, lower scopes first, and what is said twice is kept once.
    Union,
    /// Lists are joined as they are.
    Concatenation,
    /// The higher value replaces the lower one whole, even where both are tables.
    Replacement,
    /// Tables merge key by key; any other value is replaced.
    Default,
}

const RULES: &[(&str, Rule)] = &[
    ("permissions.allow", Rule::Union),
    ("permissions.ask", Rule::Union),
    ("permissions.deny", Rule::Union),
    ("permissions.rules", Rule::Concatenation),
    ("hooks.*", Rule::Concatenation),
    ("mcp_servers.*.permissions.allow", Rule::Union),
    ("mcp_servers.*.permissions.ask", Rule::Union),
    ("mcp_servers.*.permissions.deny", Rule::Union),
    ("additional_directories", Rule::Union),
    ("claude_md_excludes", Rule::Union),
    ("available_models", Rule::Union),
    ("trusted_directories", Rule::Union),
    ("plugins.enabled", Rule::Replacement),
    ("plugins.disabled", Rule::Union),
    ("plugins.marketplaces.blocked", Rule::Union),
    ("sandbox.filesystem.deny_read", Rule::Union),
    ("sandbox.filesystem.deny_write", Rule::Union),
    ("model", Rule::Replacement),
    ("fallback_model", Rule::Replacement),
    ("api_key_helper", Rule::Replacement),
    ("statusLine", Rule::Replacement),
    ("router", Rule::Replacement),
];

fn rule(path: &[&str]) -> Rule {
    RULES
        .iter()
        .find(|(row, _)| {
            let mut names = row.split('.');
            path.iter()
                .all(|key| names.next().is_some_and(|name| name == "*" || name == *key))
                && names.next().is_none()
        })
        .map_or(Rule::Default, |(_, rule)| *rule)
}

/// Lays `over` on `base`.
pub(crate) fn overlay(base: &mut Node, over: &Node) {
    merge_nodes(base, over, &mut Vec::new());
}

fn merge_nodes<'a>(base: &mut Node, over: &'a Node, path: &mut Vec<&'a str>) {
    let rule = rule(path);
    match (&mut base.content, &over.content, rule) {
        // A list that says nothing takes nothing back.
        (Content::List(_), Content::Null, Rule::Union | Rule::Concatenation) => {}
        (Content::List(below), Content::List(above), Rule::Union) => {
            for node in above {
                let value = node.to_value();
                if below.iter().all(|known| known.to_value() != value) {
                    below.push(node.clone());
                }
            }
            base.place = over.place.clone();
        }
        (Content::List(below), Content::List(above), Rule::Concatenation) => {
            below.extend(above.iter().cloned());
            base.place = over.place.clone();
        }
        (Content::Table(below), Content::Table(above), Rule::Default) => {
            merge_tables(below, above, path);
        }
        _ => *base = over.clone(),
    }
}

fn merge_tables<'a>(base: &mut Table, over: &'a Table, path: &mut Vec<&'a str>) {
    for entry in over.iter() {
        match base.entry_mut(&entry.key) {
            Some(known) => {
                path.push(&entry.key);
                merge_nodes(&mut known.node, &entry.node, path);
                path.pop();
            }
            None => base.set(entry.clone()),
        }
    }
}

/// Takes out of a document what the managed scope has locked with
/// `parent_settings_behavior = "block"`, and names it. Rules that forbid or ask stay: a lock is
/// there to hold others back, not to free them.
pub(crate) fn lock(layer: &mut Node, managed: &Node) -> Vec<String> {
    let mut locked = Vec::new();
    let defines = |key: &str| managed.at(&["permissions", key]).is_some();
    let (Some(table), Some(above)) = (layer.as_table_mut(), managed.as_table()) else {
        return locked;
    };
    if defines("allow") || defines("rules") {
        lock_permissions(table, &mut locked);
    }
    lock_table(table, above, &mut Vec::new(), &mut locked);
    locked
}

fn lock_permissions(table: &mut Table, locked: &mut Vec<String>) {
    let Some(permissions) = table.get_mut("permissions").and_then(Node::as_table_mut) else {
        return;
    };
    if permissions.remove("allow").is_some() {
        locked.push("permissions.allow".to_owned());
    }
    let rules = permissions.get_mut("rules").map(|node| &mut node.content);
    if let Some(Content::List(rules)) = rules {
        let before = rules.len();
        rules.retain(|rule| !is_allow_rule(&rule.to_value()));
        if rules.len() < before {
            locked.push("permissions.rules".to_owned());
        }
    }
}

fn lock_table<'a>(
    layer: &mut Table,
    managed: &'a Table,
    path: &mut Vec<&'a str>,
    locked: &mut Vec<String>,
) {
    for entry in managed.iter() {
        path.push(&entry.key);
        let stays = matches!(find(path), Found::Row(Nature::Restricts | Nature::Rules));
        let descends = rule(path) == Rule::Default;
        let below = layer.get_mut(&entry.key).and_then(Node::as_table_mut);
        match (below, entry.node.as_table()) {
            _ if stays => {}
            (Some(below), Some(above)) if descends => lock_table(below, above, path, locked),
            _ => {
                if layer.remove(&entry.key).is_some() {
                    let steps: Vec<Step> = path
                        .iter()
                        .map(|key| Step::Key((*key).to_owned()))
                        .collect();
                    locked.push(dotted(&steps));
                }
            }
        }
        path.pop();
    }
}

/// Which scopes a key's value came from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Provenance(BTreeMap<String, Vec<Scope>>);

impl Provenance {
    /// The highest scope that contributed to a dotted key.
    pub fn of(&self, key: &str) -> Option<Scope> {
        self.contributors(key).last().copied()
    }

    /// Every scope that contributed to a dotted key, lowest first.
    pub fn contributors(&self, key: &str) -> &[Scope] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }

    /// Every key with the highest scope that contributed to it.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Scope)> {
        self.0
            .iter()
            .filter_map(|(key, scopes)| Some((key.as_str(), *scopes.last()?)))
    }

    /// Reads the provenance off a merged document. `order` is the scopes' priority, lowest first.
    pub(crate) fn read(root: &Node, order: &[Scope]) -> Self {
        let mut provenance = Self::default();
        provenance.visit(root, &mut Vec::new(), order);
        provenance
    }

    fn visit(&mut self, node: &Node, path: &mut Vec<Step>, order: &[Scope]) -> Vec<Scope> {
        let mut scopes = match &node.content {
            Content::Table(table) => table
                .iter()
                .flat_map(|entry| {
                    path.push(Step::Key(entry.key.clone()));
                    let scopes = self.visit(&entry.node, path, order);
                    path.pop();
                    scopes
                })
                .collect(),
            Content::List(nodes) => nodes.iter().map(|node| node.place.scope()).collect(),
            Content::Null | Content::Bool(_) | Content::Number(_) | Content::String(_) => {
                Vec::new()
            }
        };
        if scopes.is_empty() {
            scopes.push(node.place.scope());
        }
        scopes.sort_by_key(|scope| order.iter().position(|known| known == scope));
        scopes.dedup();
        if !path.is_empty() {
            self.0.insert(dotted(path), scopes.clone());
        }
        scopes
    }
}

/// `permissions.enforce = true` of the user or the operator holds whatever later scopes say.
pub(crate) fn keep_enforcement<'a>(merged: &mut Node, layers: impl Iterator<Item = &'a Node>) {
    let sticky = layers
        .filter_map(|layer| layer.as_table()?.entry("permissions"))
        .filter_map(|permissions| {
            Some((permissions, permissions.node.as_table()?.entry("enforce")?))
        })
        .find(|(_, enforce)| enforce.node.to_value() == Value::Bool(true));
    let Some((permissions, enforce)) = sticky else {
        return;
    };
    let Some(table) = merged.as_table_mut() else {
        return;
    };
    match table.get_mut("permissions").and_then(Node::as_table_mut) {
        Some(known) => known.set(enforce.clone()),
        None => table.set(Entry {
            node: Node {
                content: Content::Table([enforce.clone()].into_iter().collect()),
                place: permissions.node.place.clone(),
            },
            ..permissions.clone()
        }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use std::path::PathBuf;

    use super::*;
    use crate::document::{Format, Origin, parse};

    fn node(scope: Scope, value: &Value) -> Node {
        parse(
            scope,
            Origin::File(PathBuf::from("s")),
            value.to_string(),
            Format::Json,
        )
        .unwrap()
    }

    fn merged(layers: &[Node]) -> Node {
        let mut base = layers[0].clone();
        for layer in &layers[1..] {
            overlay(&mut base, layer);
        }
        base
    }

    #[test]
    fn a_server_gains_a_variable_without_being_written_again() {
        let user = node(
            Scope::User,
            &json!({"mcp_servers": {"a": {"command": "npx", "args": ["x"], "env": {"A": "1"}}}}),
        );
        let project = node(
            Scope::Project,
            &json!({"mcp_servers": {"a": {"env": {"B": "2"}, "args": ["y"]}}}),
        );
        let merged = merged(&[user, project]);
        assert_eq!(
            merged.to_value(),
            json!({"mcp_servers": {"a": {"command": "npx", "args": ["y"], "env": {"A": "1", "B": "2"}}}})
        );
        let provenance = Provenance::read(&merged, &Scope::ALL);
        assert_eq!(provenance.of("mcp_servers.a.command"), Some(Scope::User));
        assert_eq!(provenance.of("mcp_servers.a.env.B"), Some(Scope::Project));
        assert_eq!(
            provenance.contributors("mcp_servers.a"),
            [Scope::User, Scope::Project]
        );
    }

    #[test]
    fn a_lock_keeps_prohibitions_and_drops_the_rest() {
        let managed = node(
            Scope::Managed,
            &json!({"model": "m", "env": {"A": "1"}, "permissions": {"allow": ["Read"], "deny": ["X"]},
                "hooks": {"Stop": []}, "statusLine": {"command": "s"}}),
        );
        let mut user = node(
            Scope::User,
            &json!({"model": "u", "env": {"A": "2", "B": "2"}, "effort": "low",
                "permissions": {"allow": ["Bash"], "deny": ["Y"], "rules": [
                    {"pattern": "P", "action": "allow"}, {"pattern": "Q", "action": "deny"}]},
                "hooks": {"Stop": [{}], "Setup": [{}]}, "statusLine": {"command": "t", "padding": 1}}),
        );
        let locked = lock(&mut user, &managed);
        assert_eq!(
            user.to_value(),
            json!({"env": {"B": "2"}, "effort": "low",
                "permissions": {"deny": ["Y"], "rules": [{"pattern": "Q", "action": "deny"}]},
                "hooks": {"Setup": [{}]}})
        );
        assert_eq!(
            locked,
            [
                "permissions.allow",
                "permissions.rules",
                "model",
                "env.A",
                "hooks.Stop",
                "statusLine"
            ]
        );
    }

    #[test]
    fn enforcement_holds() {
        let user = node(Scope::User, &json!({"permissions": {"enforce": true}}));
        let project = node(Scope::Project, &json!({"permissions": {"enforce": false}}));
        let mut merged = merged(&[user.clone(), project.clone()]);
        keep_enforcement(&mut merged, [&user].into_iter());
        assert_eq!(merged.to_value(), json!({"permissions": {"enforce": true}}));
        let mut bare = node(Scope::Cli, &json!({}));
        keep_enforcement(&mut bare, [&user].into_iter());
        assert_eq!(bare.to_value(), json!({"permissions": {"enforce": true}}));
        keep_enforcement(&mut merged, [&project].into_iter());
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z.\"é]{0,6}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            let key = prop_oneof![
                Just("permissions".to_owned()),
                Just("allow".to_owned()),
                Just("rules".to_owned()),
                Just("hooks".to_owned()),
                Just("mcp_servers".to_owned()),
                Just("model".to_owned()),
                Just("enforce".to_owned()),
                "[a-z.]{0,4}",
            ];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(key, inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn any_document() -> impl Strategy<Value = Value> {
        any_json().prop_map(|value| match value {
            Value::Object(_) => value,
            other => json!({ "permissions": other }),
        })
    }

    /// Documents in which every key has its own type, as those that are merged do.
    fn settings() -> impl Strategy<Value = Value> {
        let word = || "[a-c]";
        let words = || prop::collection::vec("[a-c]", 0..3);
        let table = || prop::collection::btree_map("[a-c]", "[a-c]", 0..3);
        (
            prop::option::of(word()),
            prop::option::of(words()),
            prop::option::of(words()),
            prop::option::of(words()),
            prop::option::of(table()),
            prop::option::of(prop_oneof![
                Just(json!("m")),
                Just(json!({"provider": "openai", "name": "g"}))
            ]),
            prop::option::of(words()),
        )
            .prop_map(|(agent, allow, rules, hooks, env, model, args)| {
                let rules = rules.map(|rules| {
                    rules
                        .into_iter()
                        .map(|pattern| json!({"pattern": pattern, "action": "ask"}))
                        .collect::<Vec<_>>()
                });
                let mut value = json!({});
                let mut set = |keys: &[&str], leaf: Option<Value>| {
                    if let Some(leaf) = leaf {
                        let target = keys.iter().fold(&mut value, |value, key| &mut value[*key]);
                        *target = leaf;
                    }
                };
                set(&["agent"], agent.map(Value::from));
                set(&["permissions", "allow"], allow.map(Value::from));
                set(&["permissions", "rules"], rules.map(Value::from));
                set(&["hooks", "Stop"], hooks.map(Value::from));
                set(&["env"], env.map(|env| json!(env)));
                set(&["model"], model);
                set(&["mcp_servers", "s", "args"], args.map(Value::from));
                value
            })
    }

    proptest! {
        #[test]
        fn merging_never_panics(a in any_document(), b in any_document(), c in any_document()) {
            let layers = [node(Scope::User, &a), node(Scope::Project, &b), node(Scope::Cli, &c)];
            let mut merged = merged(&layers);
            keep_enforcement(&mut merged, layers.iter());
            Provenance::read(&merged, &Scope::ALL);
            let mut locked = layers[0].clone();
            lock(&mut locked, &layers[2]);
        }

        #[test]
        fn merging_is_associative(a in settings(), b in settings(), c in settings()) {
            let [a, b, c] = [(Scope::User, a), (Scope::Project, b), (Scope::Local, c)]
                .map(|(scope, value)| node(scope, &value));
            let left = merged(&[merged(&[a.clone(), b.clone()]), c.clone()]);
            let right = merged(&[a, merged(&[b, c])]);
            prop_assert_eq!(left.to_value(), right.to_value());
            let order = Scope::ALL;
            prop_assert_eq!(Provenance::read(&left, &order), Provenance::read(&right, &order));
        }

        #[test]
        fn merging_with_nothing_changes_nothing(a in settings()) {
            let a = node(Scope::User, &a);
            let nothing = node(Scope::Cli, &json!({}));
            prop_assert_eq!(merged(&[a.clone(), nothing.clone()]).to_value(), a.to_value());
            prop_assert_eq!(merged(&[nothing, a.clone()]).to_value(), a.to_value());
        }
    }
}
