//! Takes back from a newer document what loosens it, and leaves what tightens it.

use serde_json::Value;

use super::difference::Loosened;
use crate::document::{Content, Entry, Node, Place, Table};
use crate::policy::{Nature, is_allow_rule};

/// The newer document with the given keys held at their older, stricter values.
pub(super) fn hold(old: Option<&Node>, new: Option<&Node>, keys: &[Loosened]) -> Option<Node> {
    let place = old.or(new)?.place.clone();
    let mut held = new.cloned().unwrap_or(Node {
        content: Content::Table(Table::default()),
        place,
    });
    for Loosened { path, nature } in keys {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let before = old.and_then(|root| root.at(&path));
        let after = new.and_then(|root| root.at(&path));
        put(&mut held, &path, strictest(*nature, before, after));
    }
    Some(held)
}

/// What both documents can agree on without loosening the older one.
fn strictest(nature: Nature, old: Option<&Node>, new: Option<&Node>) -> Option<Node> {
    let (Some(before), Some(after)) = (old, new) else {
        return old.cloned();
    };
    let (Content::List(old_items), Content::List(new_items)) = (&before.content, &after.content)
    else {
        return old.cloned();
    };
    let items = match nature {
        Nature::Widens => common(old_items, new_items),
        Nature::Restricts => {
            let mut items = old_items.clone();
            items.extend(missing(old_items, new_items));
            items
        }
        Nature::Rules => tightened_rules(old_items, new_items),
        Nature::Runs | Nature::LoosensWhen(_) | Nature::Mode | Nature::Reserved(_) => {
            return old.cloned();
        }
    };
    Some(Node {
        content: Content::List(items),
        place: before.place.clone(),
    })
}

/// New refusals come first and new questions last; old permissions stay only where the new
/// document still has them.
fn tightened_rules(old: &[Node], new: &[Node]) -> Vec<Node> {
    let values: Vec<Value> = new.iter().map(Node::to_value).collect();
    let (denials, others): (Vec<Node>, Vec<Node>) = missing(old, new)
        .into_iter()
        .partition(|rule| rule.to_value()["action"] == "deny");
    let kept = old.iter().filter(|rule| {
        let value = rule.to_value();
        !is_allow_rule(&value) || values.contains(&value)
    });
    let questions = others
        .into_iter()
        .filter(|rule| !is_allow_rule(&rule.to_value()));
    denials
        .into_iter()
        .chain(kept.cloned())
        .chain(questions)
        .collect()
}

fn common(old: &[Node], new: &[Node]) -> Vec<Node> {
    let values: Vec<Value> = new.iter().map(Node::to_value).collect();
    let kept = old.iter().filter(|node| values.contains(&node.to_value()));
    kept.cloned().collect()
}

/// The items of `new` that `old` lacks.
fn missing(old: &[Node], new: &[Node]) -> Vec<Node> {
    let values: Vec<Value> = old.iter().map(Node::to_value).collect();
    let added = new.iter().filter(|node| !values.contains(&node.to_value()));
    added.cloned().collect()
}

/// Sets or removes the node at a path; tables on the way are made where they are missing.
fn put(root: &mut Node, path: &[&str], node: Option<Node>) {
    let Some((key, rest)) = path.split_first() else {
        if let Some(node) = node {
            *root = node;
        }
        return;
    };
    let place = root.place.clone();
    let Some(table) = root.as_table_mut() else {
        return;
    };
    match (rest.is_empty(), node) {
        (true, None) => {
            table.remove(key);
        }
        (_, Some(node)) => {
            if table.get(key).is_none() {
                table.set(empty(key, place));
            }
            if let Some(next) = table.get_mut(key) {
                put(next, rest, Some(node));
            }
        }
        (false, None) => {
            if let Some(next) = table.get_mut(key) {
                put(next, rest, None);
            }
        }
    }
}

fn empty(key: &str, place: Place) -> Entry {
    Entry {
        key: key.to_owned(),
        key_place: place.clone(),
        node: Node {
            content: Content::Table(Table::default()),
            place,
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::difference::loosened_paths;
    use super::*;
    use crate::document::{Format, Origin, parse};
    use crate::scope::Scope;

    fn node(value: &Value) -> Node {
        parse(
            Scope::Project,
            Origin::Overlay,
            value.to_string(),
            Format::Json,
        )
        .unwrap()
    }

    fn held(old: &Value, new: &Value) -> Value {
        let (old, new) = (node(old), node(new));
        let keys = loosened_paths(Some(&old), Some(&new));
        let held = hold(Some(&old), Some(&new), &keys).unwrap();
        let again = loosened_paths(Some(&old), Some(&held));
        assert_eq!(again.len(), 0, "what is held is no looser");
        held.to_value()
    }

    #[test]
    fn lists_keep_what_is_strict_in_both() {
        assert_eq!(
            held(
                &json!({"permissions": {"allow": ["A", "B"], "deny": ["X"]}}),
                &json!({"permissions": {"allow": ["B", "C"], "deny": ["Y"]}, "model": "m"}),
            ),
            json!({"permissions": {"allow": ["B"], "deny": ["X", "Y"]}, "model": "m"})
        );
    }

    #[test]
    fn rules_gain_refusals_and_lose_permissions() {
        let rule = |action: &str, pattern: &str| json!({"pattern": pattern, "action": action});
        let old = [rule("allow", "A"), rule("deny", "B"), rule("allow", "C")];
        let new = [
            rule("allow", "D"),
            rule("allow", "C"),
            rule("deny", "E"),
            rule("ask", "F"),
        ];
        assert_eq!(
            held(
                &json!({"permissions": {"rules": old}}),
                &json!({"permissions": {"rules": new}})
            ),
            json!({"permissions": {"rules": [
                rule("deny", "E"), rule("deny", "B"), rule("allow", "C"), rule("ask", "F")
            ]}})
        );
    }

    #[test]
    fn what_was_removed_comes_back_and_what_is_new_goes() {
        assert_eq!(
            held(
                &json!({"hooks": {"PreToolUse": [{"a": 1}]}, "sandbox": {"enabled": true}}),
                &json!({"env": {"A": "1"}, "sandbox": {"network": {"allowed_domains": ["x"]}}}),
            ),
            json!({"sandbox": {"enabled": true, "network": {}}, "hooks": {"PreToolUse": [{"a": 1}]}})
        );
    }

    #[test]
    fn a_deleted_file_frees_nothing() {
        let old = node(&json!({"permissions": {"deny": ["X"], "allow": ["Y"]}}));
        let keys = loosened_paths(Some(&old), None);
        let held = hold(Some(&old), None, &keys).unwrap();
        assert_eq!(held.to_value(), json!({"permissions": {"deny": ["X"]}}));
    }
}
