//! What changed between two loads: which keys, and which of them became looser.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::document::{Content, Node, Step, dotted};
use crate::policy::{Nature, is_allow_rule, mode, rows};
use crate::scope::Scope;
use crate::snapshot::LoadedSettings;
use crate::types::PermissionMode;

/// A key that one scope's files now set more loosely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loosening {
    pub key: String,
    pub scope: Scope,
}

/// What a newer load loosens, scope by scope.
pub fn loosens(old: &LoadedSettings, new: &LoadedSettings) -> Vec<Loosening> {
    Scope::ALL
        .into_iter()
        .flat_map(|scope| {
            let keys = loosened_keys(old, new, scope).into_iter();
            keys.map(move |loosened| Loosening {
                key: loosened.key(),
                scope,
            })
        })
        .collect()
}

/// The keys of one scope that became looser. A mode counts only where the one in effect did,
/// because what one scope takes back another may make stricter.
pub(super) fn loosened_keys(
    old: &LoadedSettings,
    new: &LoadedSettings,
    scope: Scope,
) -> Vec<Loosened> {
    let mode = |loaded: &LoadedSettings| {
        let mode = loaded.settings.permissions.default_mode;
        mode.unwrap_or(PermissionMode::Default)
    };
    let is_mode_looser = mode(new) > mode(old);
    loosened_paths(root(old, scope), root(new, scope))
        .into_iter()
        .filter(|loosened| loosened.nature != Nature::Mode || is_mode_looser)
        .collect()
}

pub(super) fn root(loaded: &LoadedSettings, scope: Scope) -> Option<&Node> {
    let layer = loaded.layers.iter().find(|layer| layer.scope == scope);
    layer.map(|layer| &layer.root)
}

/// One key of one document that became looser.
pub(super) struct Loosened {
    pub(super) path: Vec<String>,
    pub(super) nature: Nature,
}

impl Loosened {
    fn key(&self) -> String {
        let steps: Vec<Step> = self.path.iter().cloned().map(Step::Key).collect();
        dotted(&steps)
    }
}

pub(super) fn loosened_paths(old: Option<&Node>, new: Option<&Node>) -> Vec<Loosened> {
    let mut seen = BTreeSet::new();
    let mut loosened = Vec::new();
    for (row, nature) in rows() {
        let mut paths = BTreeSet::new();
        for root in [old, new].into_iter().flatten() {
            expand(root, row, &mut Vec::new(), &mut paths);
        }
        for path in paths {
            // The first row that fits a key is the one that counts.
            if !seen.insert(path.clone()) {
                continue;
            }
            let keys: Vec<&str> = path.iter().map(String::as_str).collect();
            let value = |root: Option<&Node>| Some(root?.at(&keys)?.to_value());
            if is_looser(nature, &keys, value(old).as_ref(), value(new).as_ref()) {
                loosened.push(Loosened { path, nature });
            }
        }
    }
    loosened
}

/// The paths of a document that a row of the policy table stands for.
fn expand(node: &Node, row: &str, path: &mut Vec<String>, found: &mut BTreeSet<Vec<String>>) {
    let (name, rest) = match row.split_once('.') {
        Some((name, rest)) => (name, Some(rest)),
        None => (row, None),
    };
    let Content::Table(table) = &node.content else {
        return;
    };
    for entry in table
        .iter()
        .filter(|entry| name == "*" || entry.key == name)
    {
        path.push(entry.key.clone());
        match rest {
            Some(rest) => expand(&entry.node, rest, path, found),
            None => {
                found.insert(path.clone());
            }
        }
        path.pop();
    }
}

fn is_looser(nature: Nature, path: &[&str], old: Option<&Value>, new: Option<&Value>) -> bool {
    if old == new {
        return false;
    }
    match nature {
        // `permissions` of a server has rows of its own.
        Nature::Runs => !matches!(path, ["mcp_servers", _, "permissions"]),
        Nature::Reserved(_) => true,
        Nature::LoosensWhen(loose) => {
            let looseness = |value: Option<&Value>| match value.and_then(Value::as_bool) {
                Some(value) if value == loose => 2,
                Some(_) => 0,
                None => 1,
            };
            looseness(new) > looseness(old)
        }
        Nature::Widens => {
            // Without its own list a sandbox falls back to what a lower scope permits.
            let is_lifted = path.first() == Some(&"sandbox") && new.is_none();
            is_lifted || !contains_all(old, new)
        }
        Nature::Restricts => !contains_all(new, old),
        Nature::Mode => match (old.and_then(mode), new.and_then(mode)) {
            (Some(old), Some(new)) => new > old,
            (Some(old), None) => old <= PermissionMode::Default,
            (None, Some(new)) => new > PermissionMode::Default,
            (None, None) => false,
        },
        Nature::Rules => !only_tightens(list(old), list(new)),
    }
}

fn list(value: Option<&Value>) -> &[Value] {
    match value {
        Some(Value::Array(list)) => list,
        Some(_) | None => &[],
    }
}

fn contains_all(outer: Option<&Value>, inner: Option<&Value>) -> bool {
    list(inner).iter().all(|item| list(outer).contains(item))
}

/// Whether the new rules are the old ones with refusals added, permissions taken away, and
/// questions added where no refusal follows that they could keep from being reached.
fn only_tightens(old: &[Value], new: &[Value]) -> bool {
    let is_deny = |rule: &Value| rule["action"] == "deny";
    let mut rest = old.iter().peekable();
    for (index, rule) in new.iter().enumerate() {
        if rest.peek() == Some(&rule) {
            rest.next();
            continue;
        }
        // Permissions that are gone may be skipped to find the rule again.
        let mut ahead = rest.clone();
        while ahead
            .next_if(|gone| is_allow_rule(gone) && *gone != rule)
            .is_some()
        {}
        if ahead.peek() == Some(&rule) {
            ahead.next();
            rest = ahead;
            continue;
        }
        let is_harmless =
            is_deny(rule) || (!is_allow_rule(rule) && !new[index + 1..].iter().any(is_deny));
        if !is_harmless {
            return false;
        }
    }
    rest.all(is_allow_rule)
}

/// The dotted keys in which two values differ. Tables are compared key by key, lists as wholes.
pub(super) fn changed_keys(old: &Value, new: &Value) -> Vec<String> {
    let mut changed = Vec::new();
    compare(old, new, &mut Vec::new(), &mut changed);
    changed
}

fn compare(old: &Value, new: &Value, path: &mut Vec<Step>, changed: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                path.push(Step::Key(key.clone()));
                let nothing = Value::Object(Map::new());
                match (old.get(key), new.get(key)) {
                    (Some(old), Some(new)) => compare(old, new, path, changed),
                    (Some(table @ Value::Object(_)), None)
                    | (None, Some(table @ Value::Object(_))) => {
                        compare(&nothing, table, path, changed);
                    }
                    _ => changed.push(dotted(path)),
                }
                path.pop();
            }
        }
        (old, new) if old != new => changed.push(dotted(path)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn rules(text: &str) -> Vec<Value> {
        text.split_whitespace()
            .map(|word| {
                let (action, pattern) = word.split_once(':').unwrap();
                json!({"pattern": pattern, "action": action})
            })
            .collect()
    }

    #[rstest]
    #[case("", "deny:A", true)]
    #[case("", "ask:A", true)]
    #[case("", "allow:A", false)]
    #[case("allow:A", "", true)]
    #[case("deny:A", "", false)]
    #[case("ask:A", "", false)]
    #[case("allow:A deny:B", "deny:B", true)]
    #[case("deny:A allow:B", "allow:B deny:A", false)]
    #[case("deny:A", "ask:A deny:A", false)]
    #[case("deny:A", "deny:A ask:B", true)]
    #[case("allow:A ask:B", "deny:C allow:A ask:B", true)]
    #[case("allow:A allow:B", "allow:B", true)]
    #[case("allow:A ask:B allow:C", "ask:B", true)]
    #[case("ask:A", "deny:A", false)]
    fn rules_tighten_only_in_harmless_ways(
        #[case] old: &str,
        #[case] new: &str,
        #[case] expected: bool,
    ) {
        assert_eq!(only_tightens(&rules(old), &rules(new)), expected);
    }

    #[rstest]
    #[case(Nature::LoosensWhen(false), "sandbox.enabled", json!(true), json!(false), true)]
    #[case(Nature::LoosensWhen(false), "sandbox.enabled", json!(true), json!(null), true)]
    #[case(Nature::LoosensWhen(false), "sandbox.enabled", json!(false), json!(true), false)]
    #[case(Nature::Widens, "permissions.allow", json!(["A"]), json!(["A", "B"]), true)]
    #[case(Nature::Widens, "permissions.allow", json!(["A", "B"]), json!(["B"]), false)]
    #[case(Nature::Restricts, "permissions.deny", json!(["A"]), json!(["A", "B"]), false)]
    #[case(Nature::Restricts, "permissions.deny", json!(["A"]), json!(["B"]), true)]
    #[case(Nature::Mode, "permissions.default_mode", json!("plan"), json!("default"), true)]
    #[case(Nature::Mode, "permissions.default_mode", json!("auto"), json!("plan"), false)]
    #[case(Nature::Runs, "hooks", json!({}), json!({"Stop": []}), true)]
    #[case(Nature::Runs, "hooks", json!({"Stop": []}), json!({}), true)]
    fn natures_know_the_looser_of_two_values(
        #[case] nature: Nature,
        #[case] key: &str,
        #[case] old: Value,
        #[case] new: Value,
        #[case] expected: bool,
    ) {
        let path: Vec<&str> = key.split('.').collect();
        assert_eq!(is_looser(nature, &path, Some(&old), Some(&new)), expected);
    }

    #[test]
    fn absence_counts() {
        let path = ["permissions", "deny"];
        assert!(is_looser(
            Nature::Restricts,
            &path,
            Some(&json!(["A"])),
            None
        ));
        let path = ["sandbox", "filesystem", "allow_write"];
        assert!(is_looser(Nature::Widens, &path, Some(&json!([])), None));
        let path = ["permissions", "default_mode"];
        assert!(is_looser(Nature::Mode, &path, Some(&json!("plan")), None));
        assert!(!is_looser(Nature::Mode, &path, Some(&json!("auto")), None));
    }

    #[test]
    fn changed_keys_are_as_narrow_as_tables_allow() {
        let old = json!({"model": "a", "permissions": {"deny": ["A"]}, "env": {"A": "1"}, "x": 1});
        let new = json!({"model": "b", "permissions": {"deny": ["A", "B"]}, "env": {"A": "1"},
            "memory": {"cap_tokens_auto": 1}, "x": 1});
        assert_eq!(
            changed_keys(&old, &new),
            ["memory.cap_tokens_auto", "model", "permissions.deny"]
        );
    }
}
