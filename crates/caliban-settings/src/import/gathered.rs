//! What a source's settings come to in our terms.

use serde_json::{Map, Value};

use crate::write::RuleSpec;

#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub(crate) settings: Map<String, Value>,
    pub(crate) rules: Vec<RuleSpec>,
    pub(crate) notes: Vec<String>,
}

impl Gathered {
    /// Sets a key such as `permissions.default_mode`.
    pub(crate) fn set(&mut self, dotted: &str, value: impl Into<Value>) {
        let mut map = &mut self.settings;
        let mut key = dotted;
        while let Some((table, rest)) = key.split_once('.') {
            let entry = map
                .entry(table)
                .or_insert_with(|| Value::Object(Map::new()));
            if !entry.is_object() {
                *entry = Value::Object(Map::new());
            }
            let Value::Object(inner) = entry else { return };
            (map, key) = (inner, rest);
        }
        map.insert(key.to_owned(), value.into());
    }

    pub(crate) fn note(&mut self, text: impl Into<String>) {
        self.notes.push(text.into());
    }

    /// Adds a rule unless an earlier one leaves nothing for it: the first match decides.
    pub(crate) fn rule(&mut self, rule: RuleSpec) {
        let earlier = self.rules.iter().find(|earlier| {
            earlier.pattern == rule.pattern && earlier.expires_at == rule.expires_at
        });
        match earlier {
            Some(earlier) if earlier.action == rule.action => {}
            Some(earlier) => self.notes.push(format!(
                "`{}` is both `{}` and `{}`; only `{}` was taken, which comes first",
                rule.pattern, earlier.action, rule.action, earlier.action
            )),
            None => self.rules.push(rule),
        }
    }

    /// One line for keys that mean nothing here.
    pub(crate) fn note_unknown<'a>(&mut self, keys: impl Iterator<Item = &'a String>) {
        let names: Vec<String> = keys.map(|key| format!("`{key}`")).collect();
        if !names.is_empty() {
            self.note(format!(
                "not imported, no counterpart here: {}",
                names.join(", ")
            ));
        }
    }
}

/// The strings of a list; `None` when it is not a list of strings.
pub(super) fn texts(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}
